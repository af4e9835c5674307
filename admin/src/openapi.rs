//! The OpenAPI document: what is served, who may call it, what goes in and what comes out. Paths, scopes, kinds of key
//! and refusals come from the route table; bodies, filters and examples from the resources, which describe themselves:
//!
//! ```text
//! pub fn routes() -> Routes {
//!     crud::routes::<Label>().describe(docs())          // in the resource's own file, or its `docs.rs`
//! }
//!
//! fn docs() -> [Doc; 5] {
//!     let sent = schema::object("NewLabel").need("name", schema::slug().eg("candidate"));
//!     let label = schema::shown("Label", "label").with(&sent).archivable();
//!     Doc::five::<Label>(&label, sent, "LabelChange")   // or one by one, where an operation has more to say:
//! }
//!
//! Doc::list::<Policy>(&policy).filter(…)                // pages and workspace_id join by themselves
//! Doc::create::<Policy>(sent).answer(…)                 // answers { id, object } unless told otherwise
//! Doc::post("/labels/{id}/merge", "Merge two labels").body(…).answer(…)               // beyond the five verbs
//! ```
//!
//! Each part of a schema has an example (`.eg`), so the whole has one. Fields that say nothing of themselves (`.says`)
//! get a sentence by their name (`descriptions`). A test fails when an operation that is built has no description, a
//! field has no sentence, or an example does not fit its own schema.

mod components;
mod config_language;
mod descriptions;
mod doc;
pub mod docs_page;
mod inference;
mod operation;
mod refusals;
pub mod schema;
mod scope_names;

pub use doc::{Doc, choices};

use serde_json::{Map, Value, json};
use shared::routes::{Operation, operations};

/// The version of the interface description, and the release whose interface it is; neither is our own version.
const INTERFACE_VERSION: &str = "2.0.0";
const COMPATIBLE_RELEASE: &str = "1.12.0";

/// `docs` are the descriptions of the operations that have one, `built` those that have a handler.
pub fn document(docs: &[(&'static Operation, Doc)], built: &[&'static Operation]) -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for (path, method, rendered) in rendered(docs, built) {
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[method] = components::hoisted(rendered, &mut schemas);
    }
    let responses = components::hoisted(refusals::responses(), &mut schemas);
    schemas.sort_keys();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portcullis",
            "version": INTERFACE_VERSION,
            "description": "One base URL for model providers and for managing who may call them. Send an API key as \
                            `x-gateway-api-key` or as a bearer token. Unknown fields of a body and unknown parameters \
                            are refused with the nearest known name; under a header prefix of another product \
                            (`HEADER_PREFIX_ALIASES`) they are ignored, and listed in `x-gateway-warnings`. \
                            Objects are read with an `ETag`; a change with `If-Match` is 412 if somebody changed the \
                            object meanwhile. `?dry_run=true` tries a change without making it.",
            "x-compatible-release": COMPATIBLE_RELEASE,
        },
        "servers": [{ "url": "/v1" }],
        "paths": paths,
        "components": {
            "securitySchemes": security_schemes(), "schemas": schemas, "responses": responses,
            "parameters": inference::header_parameters(),
        },
    });
    config_language::join(&mut document);
    scope_names::join(&mut document);
    descriptions::complete(&mut document);
    document
}

/// Path, method and description of everything, before what is named is moved to the components.
fn rendered(docs: &[(&'static Operation, Doc)], built: &[&'static Operation]) -> Vec<(String, String, Value)> {
    let doc_of = |operation| docs.iter().find(|(one, _)| *one == operation).map(|(_, doc)| doc);
    let managed = operations().map(|operation| {
        let rendered = operation::rendered(operation, doc_of(operation), built.contains(&operation));
        (operation.path.replace("{*", "{"), operation.method.as_str().to_ascii_lowercase(), rendered)
    });
    managed.chain(inference::rendered()).collect()
}

fn security_schemes() -> Value {
    json!({
        "apiKey": { "type": "apiKey", "in": "header", "name": "x-gateway-api-key", "description": "An API key or a JWT." },
        "bearer": { "type": "http", "scheme": "bearer", "description": "An API key or a JWT that the organisation's key set signs; read when x-gateway-api-key is absent." },
        "session": { "type": "apiKey", "in": "cookie", "name": "__Host-gateway_session", "description": "A person's session, begun under /auth; `gateway_session` where the gateway is reached by plain HTTP. Calls that change something repeat its `csrf_token` in `x-gateway-csrf-token`." },
        "scimToken": { "type": "http", "scheme": "bearer", "description": "The organisation's SCIM token." },
    })
}

#[cfg(test)]
mod tests;
