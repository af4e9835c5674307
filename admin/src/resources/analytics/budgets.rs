//! Budgets of keys, workspaces, providers, integrations and policies: what was used, how fast, and when they end.

use super::docs;
use crate::app::App;
use crate::crud::Routes;
use crate::http::{ApiError, PageSizes, Time};
use crate::identity::Call;
use crate::log_data::LogView;
use crate::log_data::analytics::budgets;
use crate::log_data::analytics::budgets::{Budgets, KINDS};
use crate::log_data::analytics::csv;
use crate::openapi::{Doc, choices, schema};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio_postgres::IsolationLevel;

const PATH: &str = "/analytics/budgets";

pub fn routes() -> Routes {
    Routes::default().get(PATH, list).describe([description()])
}

async fn list(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let page = call.query().page(PageSizes::USUAL)?;
    let kinds = call.query().choices("kind", &KINDS)?;
    let _turn = app.log_queries.enter(call.caller.organisation_id()).await?;
    let mut db = app.db.get().await?;
    let view = LogView::counted(&*db, &call.caller, call.query().text("workspace_slug")).await?;
    let tx = db.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
    let Budgets { as_of, rows, total, is_capped } = budgets::budgets(&tx, &view, &kinds, page).await?;
    tx.commit().await?;
    let workspaces = view.shown_workspaces(&*db).await?;
    if csv::is_wanted(&call.origin.headers) {
        return Ok(csv::response(&rows));
    }
    let list = json!({
        "object": "list", "as_of": Time(as_of), "total": total, "total_is_capped": is_capped, "data": rows,
        "workspaces": workspaces,
    });
    Ok(Json(list).into_response())
}

fn description() -> Doc {
    let amount = || schema::number(0).eg(12.5);
    let pace = || amount().says("Used a day.");
    let budget = schema::object("BudgetForecast")
        .need("object", schema::fixed("budget"))
        .need("kind", schema::choice(&KINDS).says("What the budget is on."))
        .need("id", schema::uuid().says("Of the key, workspace, provider, integration or policy."))
        .need("name", schema::any_text().eg("Support bot").or_null().says("Its name."))
        .need("workspace_id", schema::uuid().or_null().says("Its workspace; null for keys of the organisation."))
        .need("value_key", schema::any_text().eg("api_key:ada").or_null().says("Of a policy: the group."))
        .need("type", schema::choice(&["cost", "tokens", "requests"]).says("What is counted; costs are US dollars."))
        .need("unit", schema::choice(&["usd", "tokens", "requests"]).says("What the amounts are counted in."))
        .need("credit_limit", amount().says("The budget."))
        .need("current_usage", amount().says("What was used in its period."))
        .need("status", schema::choice(&["active", "exhausted"]).says("Whether something is left."))
        .need("last_reset_at", schema::time().or_null().says("When its period began."))
        .need("next_usage_reset_at", schema::time().or_null().says("When its period ends; null for never."))
        .need("pace_24h", pace().or_null().says("Used in the last 24 hours; null for policies."))
        .need("pace_7d", pace().or_null().says("Used on a day of the last seven; null for policies."))
        .need("pace", pace().says("The faster of the two; of policies, used on a day of the period."))
        .need(
            "runs_out_at",
            schema::time().or_null().says("When the limit is reached at this pace; null if the period ends before."),
        )
        .need("dry_run", schema::flag().says("Whether nothing is refused when it is used up."));
    let list = schema::object("BudgetForecasts")
        .need("object", schema::fixed("list"))
        .need("as_of", schema::time().says("When the counters were read."))
        .need("total", schema::whole(0..=budgets::MAX_BUDGETS).eg(1))
        .need("total_is_capped", schema::flag().says("Whether there are more budgets, which are left out."))
        .need("data", schema::list(budget).says("Those first that end first."))
        .need("workspaces", docs::workspaces());
    Doc::get(PATH, "When budgets end")
        .details(
            "Budgets with a limit, of the workspaces that are asked for. Paces are by counters of days (UTC), of which the \
             oldest counts in part. A limit that would be reached in more than ten years is never reached.",
        )
        .filter(
            "workspace_slug",
            schema::any_text().eg("ws-market-3f9a01").says(
                "Slug or id, or several with commas; `*` is all, as without it. A workspace's own key always sees \
                 its own.",
            ),
        )
        .filter("kind", choices(&KINDS))
        .pages(PageSizes::USUAL)
        .also_as(&[csv::KIND])
        .answer(list)
}
