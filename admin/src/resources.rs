//! The operations: each resource is one file or folder.
//!
//! To add one: a migration; its rows in `shared::routes` (scopes, name in the audit trail); a new scope in
//! `shared::identity::scopes`; the file here with its `Resource` and `docs`; `mod` and `merge` below; `DEPENDENTS` in
//! `workspaces/archive.rs` if it belongs to workspaces; `shared::model` and `proxy/src/snapshot/tables.rs` if the proxy
//! reads it.

pub mod accepted;
mod analytics;
mod api_keys;
mod audit_logs;
mod auth;
mod cache;
mod collections;
mod configs;
mod deployments;
mod domains;
mod explain;
mod feedback;
mod guardrails;
mod integrations;
mod invites;
mod labels;
mod log_exports;
pub mod login;
mod logs;
mod mcp_integrations;
pub mod mcp_login;
mod mcp_servers;
mod model_configs;
mod organisation;
mod own_key;
mod plugins;
mod policies;
mod prompts;
mod providers;
mod saml;
mod scim;
mod secret_references;
mod users;
mod virtual_keys;
mod workspaces;

use crate::crud::Routes;
use crate::http::ApiError;
use crate::openapi::{self, Doc, schema};
use axum::extract::Path;
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use shared::routes::{Method, Operation};
use std::sync::LazyLock;

/// Whether an operation has a handler. The gate, the OpenAPI document and the conformance test ask.
pub fn is_built(operation: &Operation) -> bool {
    static BUILT: LazyLock<Vec<(Method, &str)>> =
        LazyLock::new(|| routes().built().iter().map(|one| (one.method, one.path)).collect());
    BUILT.contains(&(operation.method, operation.path))
}

/// Everything that has a handler, with its description.
pub fn routes() -> Routes {
    Routes::default()
        .merge(analytics::routes())
        .merge(audit_logs::routes())
        .merge(auth::routes())
        .merge(api_keys::routes())
        .merge(cache::routes())
        .merge(collections::routes())
        .merge(configs::routes())
        .merge(deployments::routes())
        .merge(domains::routes())
        .merge(explain::routes())
        .merge(feedback::routes())
        .merge(guardrails::routes())
        .merge(integrations::routes())
        .merge(providers::routes())
        .merge(virtual_keys::routes())
        .merge(labels::routes())
        .merge(log_exports::routes())
        .merge(logs::routes())
        .merge(organisation::routes())
        .merge(mcp_integrations::routes())
        .merge(mcp_servers::routes())
        .merge(plugins::routes())
        .merge(policies::routes())
        .merge(prompts::routes())
        .merge(saml::routes())
        .merge(scim::routes())
        .merge(secret_references::routes())
        .merge(users::routes())
        .merge(invites::routes())
        .merge(workspaces::members::routes())
        .merge(model_configs::routes())
        .merge(workspaces::routes())
        .get("/api-keys/self", own_key::describe)
        .post("/api-keys/{type}/{subType}", no_such_kind_of_key)
        .get("/openapi.json", openapi_json)
        .describe(docs())
}

fn docs() -> [Doc; 3] {
    let document = schema::any_object().eg(serde_json::json!({ "openapi": "3.1.0" }));
    [
        api_keys::docs::own(),
        Doc::post("/api-keys/{type}/{subType}", "Refuse any other kind of key"),
        Doc::get("/openapi.json", "Read this document").answer(document),
    ]
}

/// How a key gets another secret, for the job that does it by schedule.
pub mod rotation {
    pub use super::api_keys::rotate::{NewSecret, recorded, replace, transition};
}

/// Asking MCP servers what they offer, for the job that does it.
pub use mcp_integrations::sync as mcp_sync;

/// SCIM's filters, for the test that counts what reading one takes.
pub use scim::filter as scim_filter;

/// When a usage-limits policy starts over, as its row says, for the job that does it.
pub use policies::schedule_of as policy_schedule;

/// The table behind the longest lists, for the test that looks at its plans.
pub fn key_table() -> shared::db::table::Table {
    <api_keys::ApiKeyRow as crate::crud::Resource>::TABLE
}

/// Catches what is none of the three kinds, so that a mistyped path is not taken for a provider's.
async fn no_such_kind_of_key(Path((of, kind)): Path<(String, String)>) -> ApiError {
    match (crate::identity::tenancy::id(&of), kind.as_str()) {
        (Some(_), "suspend" | "disable" | "deactivate" | "revoke") => ApiError::invalid(
            "There is no such operation: a key is suspended by PUT /v1/api-keys/{id} {\"status\": \"suspended\"}",
        ),
        (Some(_), "resume" | "enable" | "activate") => ApiError::invalid(
            "There is no such operation: a key is resumed by PUT /v1/api-keys/{id} {\"status\": \"active\"}",
        ),
        (Some(_), _) => {
            ApiError::invalid("There is no such operation on an API key; the nearest is POST /v1/api-keys/{id}/rotate")
        }
        (None, _) => ApiError::invalid(
            "There is no such kind of API key: there are organisation/service, workspace/service and workspace/user",
        ),
    }
}

/// `GET /openapi.json`, below `/v1` and at the root.
pub async fn openapi_json() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], openapi_document())
}

/// The OpenAPI document of all operations; the same for the life of the process. Built for the first who asks, because
/// most starts of a process are not followed by that question.
pub fn openapi_document() -> Bytes {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
        let routes = routes();
        let document = openapi::document(routes.docs(), routes.built());
        serde_json::to_vec(&document).expect("a JSON value can be written as JSON").into()
    });
    DOCUMENT.clone()
}
