//! Purging kept answers of a workspace: those of a namespace, of a config, or all. Proxies learn of it within a moment and
//! look past what was stored before; nothing is deleted, so it takes as long for a million answers as for one.

use crate::app::App;
use crate::crud::cache_purges;
use crate::crud::{Action, Answer, Change, Routes};
use crate::http::{ApiError, text};
use crate::identity::{Call, tenancy};
use crate::openapi::{Doc, schema};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::model::{PurgeTarget, purge_tag};
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// As long as the header that names one may be, which is read without the blanks around it.
const MAX_NAMESPACE: usize = 512;

pub fn routes() -> Routes {
    Routes::default().delete("/cache", purge).describe([docs()])
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PurgeRequest {
    namespace: Option<String>,
    config: Option<String>,
    all: Option<bool>,
    workspace_id: Option<String>,
}

/// What was named, before it is known whether it exists.
#[derive(Debug, PartialEq)]
enum NamedTarget {
    Namespace(String),
    Config(String),
    All,
}

async fn purge(State(app): State<App>, call: Call) -> Answer {
    let mut request: PurgeRequest = call.body()?;
    let place = request.workspace_id.take();
    let named = named(request)?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let place = place.as_deref().or_else(|| call.query().text("workspace_id"));
    let workspace = tenancy::asked(&action.tx, &call.caller, place).await?;
    let workspace = workspace.ok_or_else(|| ApiError::field("workspace_id", "is required"))?;
    action.workspace_id = Some(workspace);
    let organisation = action.organisation_id();
    let target = match &named {
        NamedTarget::All => PurgeTarget::All,
        NamedTarget::Namespace(name) => PurgeTarget::Namespace(purge_tag(name)),
        NamedTarget::Config(name) => PurgeTarget::Config(config(&action.tx, organisation, workspace, name).await?),
    };
    let purged = cache_purges::purge(&action.tx, organisation, Some(workspace), target).await?;
    let after = Some(shown(&named));
    action.commit(Change { resource_id: workspace.to_string(), before: None, after }).await?;
    Ok(Json(json!({
        "status": "success",
        "object": "cache-purge",
        "kind": purged.target.kind(),
        "workspace_id": workspace,
        "purged_at": purged.at,
    })))
}

fn named(request: PurgeRequest) -> Result<NamedTarget, ApiError> {
    match (request.namespace, request.config, request.all.unwrap_or(false)) {
        (Some(name), None, false) => {
            Ok(NamedTarget::Namespace(text::sized("namespace", name.trim().to_owned(), 1..=MAX_NAMESPACE)?))
        }
        (None, Some(name), false) => Ok(NamedTarget::Config(name)),
        (None, None, true) => Ok(NamedTarget::All),
        _ => Err(ApiError::invalid("Name exactly one of namespace, config and all (true)")),
    }
}

/// One of the workspace by id or slug, archived or not: its answers outlive it.
async fn config(db: &impl GenericClient, organisation: Uuid, workspace: Uuid, name: &str) -> Result<Uuid, ApiError> {
    const FIND: &str = "SELECT id FROM configs
        WHERE organisation_id = $1 AND workspace_id = $2 AND (id = $3 OR slug = $4)";
    let missing = || ApiError::no_such("config", "config");
    if !text::is_slug(name) {
        return Err(missing());
    }
    let found = db.query_opt(FIND, &[&organisation, &workspace, &tenancy::id(name), &name]).await?;
    Ok(found.ok_or_else(missing)?.try_get("id")?)
}

/// For the audit trail.
fn shown(named: &NamedTarget) -> Value {
    match named {
        NamedTarget::All => json!({ "all": true }),
        NamedTarget::Namespace(name) => json!({ "namespace": name }),
        NamedTarget::Config(name) => json!({ "config": name }),
    }
}

fn docs() -> Doc {
    let says = "The workspace, by id or slug; admin keys name one, other keys have theirs. Also accepted in the query.";
    let place = || schema::any_text().eg("ws-market-3f9a01").or_null().says(says);
    let body = schema::object("CachePurge")
        .may(
            "namespace",
            schema::text(1..=MAX_NAMESPACE)
                .eg("team-a")
                .or_null()
                .says("What was stored under this namespace (`x-gateway-cache-namespace`)."),
        )
        .may(
            "config",
            schema::any_text().eg(Value::Null).or_null().says("What requests with this config stored, by slug or id."),
        )
        .may("all", schema::flag().eg(Value::Null).or_null().says("Everything that the workspace keeps, when true."))
        .may("workspace_id", place());
    let answer = schema::object("CachePurged")
        .need("status", schema::fixed("success").says("Always success: failures are errors."))
        .need("object", schema::fixed("cache-purge"))
        .need(
            "kind",
            schema::choice(&["namespace", "config", "all"])
                .says("What was purged: `all` also where so many single purges were made that one takes their place."),
        )
        .need("workspace_id", schema::uuid().says("The workspace whose answers were purged."))
        .need("purged_at", schema::time().says("Answers to calls that began before this moment count no more."));
    Doc::remove("/cache", "Purge kept answers of a workspace")
        .details(
            "Name exactly one of `namespace`, `config` and `all`. Every replica looks past what was asked for before within a \
             second, in memory and in Redis, also where the answer came later; what is asked for in the two seconds after it \
             is not used either, because clocks differ.",
        )
        .filter("workspace_id", place())
        .body(body)
        .answer(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_target_is_named() {
        let read = |body: Value| named(serde_json::from_value(body).unwrap()).ok();
        for (body, expected) in [
            (json!({ "namespace": "a" }), Some(NamedTarget::Namespace("a".into()))),
            (json!({ "config": "pc-1", "all": false }), Some(NamedTarget::Config("pc-1".into()))),
            (json!({ "all": true, "config": null }), Some(NamedTarget::All)),
            (json!({}), None),
            (json!({ "all": false }), None),
            (json!({ "namespace": " a " }), Some(NamedTarget::Namespace("a".into()))),
            (json!({ "namespace": " " }), None),
            (json!({ "namespace": "a".repeat(MAX_NAMESPACE + 1) }), None),
            (json!({ "namespace": "a", "all": true }), None),
            (json!({ "namespace": "a", "config": "b" }), None),
        ] {
            assert_eq!(read(body.clone()), expected, "{body}");
        }
    }
}
