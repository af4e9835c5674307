//! Workspaces that the organisation's own guardrails leave out, for requests and for answers apart.

use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::{ApiError, PageSizes};
use crate::identity::{Call, tenancy};
use crate::openapi::{Doc, schema};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::db::table::{OnDelete, SelectList, Table, Tenancy};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

#[derive(Deserialize)]
struct ExclusionsChange {
    organisation_id: Option<Uuid>,
    workspaces: Vec<Exclusion>,
    /// Whether the list is replaced rather than changed.
    #[serde(default)]
    override_existing: bool,
}

#[derive(Deserialize)]
struct Exclusion {
    workspace_id: String,
    excluded: bool,
}

/// Each is looked up.
const MAX_WORKSPACES: usize = 1000;

/// The column of `workspaces` that says so.
#[derive(Clone, Copy)]
enum ExclusionSide {
    Input,
    Output,
}

impl ExclusionSide {
    const fn column(self) -> &'static str {
        match self {
            Self::Input => "excluded_from_input_guardrails",
            Self::Output => "excluded_from_output_guardrails",
        }
    }
}

pub async fn read_input(State(app): State<App>, call: Call) -> Answer {
    read_exclusions(&app, &call, ExclusionSide::Input).await
}

pub async fn read_output(State(app): State<App>, call: Call) -> Answer {
    read_exclusions(&app, &call, ExclusionSide::Output).await
}

pub async fn update_input(State(app): State<App>, call: Call) -> Answer {
    update(&app, &call, ExclusionSide::Input).await
}

pub async fn update_output(State(app): State<App>, call: Call) -> Answer {
    update(&app, &call, ExclusionSide::Output).await
}

pub fn docs() -> Vec<Doc> {
    let named = schema::object("Exclusion")
        .need("workspace_id", schema::name_of("ws-market-3f9a01").says("Id or slug."))
        .need("excluded", schema::flag().eg(true));
    let change = schema::object("ExclusionsChange")
        .need("workspaces", schema::list(named).at_most(MAX_WORKSPACES))
        .may("override_existing", schema::flag().says("Replace the list instead of changing it."))
        .may(
            "organisation_id",
            schema::uuid().or_null().says("The caller's; nothing else is accepted.").eg(Value::Null),
        );
    let excluded = schema::object("ExcludedWorkspace")
        .need("workspace_id", schema::uuid())
        .need("workspace_slug", schema::slug().eg("ws-market-3f9a01"))
        .need("excluded", schema::fixed(true));
    let list = schema::object("ExcludedWorkspaceList")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX))
        .need("data", schema::list(excluded));
    let sides = [("input-guardrails", "requests"), ("output-guardrails", "answers")];
    let docs = sides.into_iter().flat_map(|(side, what)| {
        let path = format!("/workspace-exclusions/{side}");
        let read = format!("List workspaces whose {what} the organisation's guardrails leave out");
        let write = format!("Change which workspaces' {what} the organisation's guardrails leave out");
        [
            Doc::get(&path, &read).pages(PageSizes::USUAL).answer(list.clone()),
            Doc::put(&path, &write).pages(PageSizes::USUAL).body(change.clone()).answer(list.clone()).also(404),
        ]
    });
    docs.collect()
}

const TABLE: Table = Table {
    name: "workspaces",
    columns: SelectList::Sql("id, slug"),
    slug: Some("slug"),
    tenancy: Tenancy::Workspace("id"),
    on_delete: OnDelete::Archive,
};

async fn read_exclusions(app: &App, call: &Call, side: ExclusionSide) -> Answer {
    let db = app.db.get().await?;
    listed(&*db, call, side).await
}

async fn listed(db: &impl GenericClient, call: &Call, side: ExclusionSide) -> Answer {
    let filter = tenancy::visible(&TABLE, &call.caller, None).holds("status = 'active'").holds(side.column());
    let found = TABLE.page(db, &filter, call.query().page(PageSizes::USUAL)?).await?;
    let data = found.rows.iter().map(shown).collect::<Result<Vec<_>, _>>()?;
    Ok(crud::listed(found.total, data))
}

fn shown(row: &Row) -> Result<Value, tokio_postgres::Error> {
    Ok(json!({
        "workspace_id": row.try_get::<_, Uuid>("id")?,
        "workspace_slug": row.try_get::<_, &str>("slug")?,
        "excluded": true,
    }))
}

async fn update(app: &App, call: &Call, side: ExclusionSide) -> Answer {
    let change: ExclusionsChange = call.body()?;
    if change.workspaces.len() > MAX_WORKSPACES {
        return Err(ApiError::field("workspaces", format!("must have at most {MAX_WORKSPACES} items")));
    }
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, app, call).await?;
    let organisation = action.organisation_id();
    if change.organisation_id.is_some_and(|id| id != organisation) {
        return Err(ApiError::field("organisation_id", "must be the caller's organisation"));
    }
    let before = excluded(&action, side).await?;
    let mut wanted: Vec<Uuid> = if change.override_existing { Vec::new() } else { before.clone() };
    for one in &change.workspaces {
        let found = tenancy::find_workspace(&action.tx, organisation, &one.workspace_id).await?;
        let id = found.ok_or(ApiError::NotFound("workspace"))?;
        wanted.retain(|other| *other != id);
        if one.excluded {
            wanted.push(id);
        }
    }
    // Only rows that change are written: each one is news to every proxy.
    let sql = format!(
        "UPDATE workspaces SET {0} = (id = ANY($2)), last_updated_at = now()
         WHERE organisation_id = $1 AND status = 'active' AND {0} <> (id = ANY($2))",
        side.column()
    );
    action.tx.execute(&sql, &[&organisation, &wanted]).await?;
    let reply = listed(&action.tx, call, side).await?;
    let named = |ids: &[Uuid]| Some(json!({ side.column(): ids }));
    let change = Change { resource_id: organisation.to_string(), before: named(&before), after: named(&wanted) };
    action.commit(change).await?;
    Ok(reply)
}

/// Those excluded now, held so that two changes at once are both kept.
async fn excluded(action: &Action<'_>, side: ExclusionSide) -> Result<Vec<Uuid>, ApiError> {
    const HOLD: &str = "SELECT FROM organisations WHERE id = $1 FOR NO KEY UPDATE";
    let organisation = action.organisation_id();
    action.tx.execute(HOLD, &[&organisation]).await?;
    let sql = format!(
        "SELECT id FROM workspaces WHERE organisation_id = $1 AND status = 'active' AND {} ORDER BY created_at, id",
        side.column()
    );
    let rows = action.tx.query(&sql, &[&organisation]).await?;
    rows.iter().map(crud::id_of).collect()
}
