//! What each operation reads of a request, for the check before its handler: the fields and parameters of its own
//! description, and beside them the other spellings that it takes. One table for all, so that a new resource has the
//! check by describing itself.

use super::{routes, virtual_keys};
use crate::http::Query;
use crate::http::dry_run::DRY_RUN;
use crate::http::schema_check::PREFIXES;
use serde_json::{Map, Value, json};
use shared::routes::Operation;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Of one operation.
pub struct Accepted {
    /// A JSON schema; of an operation without a body one that knows no field.
    pub body: Value,
    parameters: Vec<String>,
    is_list: bool,
}

impl Accepted {
    pub fn reads_parameter(&self, name: &str) -> bool {
        // Where a path names the object, its workspace may be named too; a list must have it as a filter.
        self.parameters().any(|one| one == name) || (!self.is_list && name == "workspace_id")
    }

    /// A workspace is named by `workspace_id` or `workspace_slug`, whichever is described, and all of them by `*`.
    pub fn in_own_words(&self, query: Query) -> Query {
        const BY_ID: &str = "workspace_id";
        const BY_SLUG: &str = "workspace_slug";
        let is_described = |name: &str| self.parameters().any(|one| one == name);
        if is_described(BY_SLUG) {
            return if is_described(BY_ID) { query } else { query.spelt(BY_ID, BY_SLUG) };
        }
        if !self.reads_parameter(BY_ID) {
            return query;
        }
        let query = query.spelt(BY_SLUG, BY_ID);
        // A list of all that the caller may see is what it is without a name.
        if self.is_list { query.without(BY_ID, "*") } else { query }
    }

    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(String::as_str)
    }
}

/// None for an operation that describes itself nowhere.
pub fn by(operation: &Operation) -> Option<&'static Accepted> {
    static ALL: LazyLock<HashMap<(&str, &str), Accepted>> = LazyLock::new(all);
    ALL.get(&(operation.method.as_str(), operation.path))
}

fn all() -> HashMap<(&'static str, &'static str), Accepted> {
    let routes = routes();
    let described = routes.docs().iter().map(|(operation, doc)| {
        let key = (operation.method.as_str(), operation.path);
        let (body, query) = doc.accepts();
        let body = body.cloned().unwrap_or_else(nothing);
        let described = query["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let parameters = described.chain(operation.may_be_tried().then(|| DRY_RUN.to_owned()));
        let is_list = operation.method.as_str() == "GET" && !operation.path.contains('{');
        (key, Accepted { body: also(key.1, body), parameters: parameters.collect(), is_list })
    });
    described.collect()
}

/// Closed to our own clients, and open with a warning to others: hence a field that nobody sends.
fn nothing() -> Value {
    json!({ "type": "object", "properties": { "": {} } })
}

/// What handlers take beside their description: another spelling of a field, and fields that may only repeat what is
/// stored (without a second name). Fields further in are written with dots.
static ALSO: &[(&str, &[(&str, &str)])] = &[
    // One body for the three kinds of keys; whose a key is cannot be changed.
    ("/api-keys/organisation/service", &[("user_id", ""), ("workspace_id", "")]),
    ("/api-keys/workspace/service", &[("user_id", "")]),
    ("/api-keys/{type}/{subType}", &[("user_id", ""), ("workspace_id", "")]),
    ("/api-keys/{id}", &[("type", ""), ("user_id", ""), ("workspace_id", "")]),
    ("/configs", &[("is_default", "isDefault")]),
    ("/configs/{slug}", &[("is_default", "isDefault")]),
    ("/integrations/{slug}", &[("slug", ""), ("ai_provider_id", "")]),
    ("/feedback", TRACE),
    ("/logs/erase", TRACE),
    ("/logs", &[("response.time", "response_time"), ("response.streaming_mode", "streamingMode")]),
    ("/admin/workspaces", MEMBERS),
    ("/workspaces", MEMBERS),
    ("/admin/workspaces/{workspaceId}", &[("slug", "")]),
    ("/workspaces/{workspaceId}", &[("slug", "")]),
    ("/admin/workspaces/{workspaceId}/users", MEMBERS),
    ("/workspaces/{workspaceId}/users", MEMBERS),
];
const TRACE: &[(&str, &str)] = &[("traceID", "trace_id"), ("traceId", "trace_id")];
/// Alone, or in a list of them.
const MEMBERS: &[(&str, &str)] = &[("user_id", "id"), ("users.user_id", "id")];

fn also(path: &str, mut body: Value) -> Value {
    let names = ALSO.iter().filter(|(one, _)| *one == path).flat_map(|(_, names)| *names);
    for (name, of) in names {
        add(&mut body, &name.split('.').collect::<Vec<_>>(), of);
    }
    if path.starts_with("/virtual-keys") {
        body[PREFIXES] = virtual_keys::setting_prefixes().into();
    }
    body
}

/// Adds a field to an object, to each of its forms and to the items of a list of it. What it is another spelling of is
/// then no longer required: one of the two is, and the handler knows which was sent.
fn add(schema: &mut Value, path: &[&str], of: &str) {
    for inner in ["anyOf", "items"] {
        match schema.get_mut(inner) {
            Some(Value::Array(forms)) => forms.iter_mut().for_each(|form| add(form, path, of)),
            Some(items) => add(items, path, of),
            None => {}
        }
    }
    let ([name, rest @ ..], Some(Value::Object(fields))) = (path, schema.get_mut("properties")) else { return };
    if !rest.is_empty() {
        if let Some(field) = fields.get_mut(*name) {
            add(field, rest, of);
        }
        return;
    }
    fields.entry(*name).or_insert_with(|| Value::Object(Map::new()));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|one| one != of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::routes::operations;

    #[test]
    fn a_workspace_has_two_names_in_a_query_of_which_the_described_one_is_read() {
        let read = |path: &str, query: &str| {
            let operation = operations().find(|one| one.path == path && one.method.as_str() == "GET").unwrap();
            let query = by(operation).unwrap().in_own_words(Query::parse(Some(query)).unwrap());
            ["workspace_id", "workspace_slug"].map(|name| query.text(name).map(str::to_owned))
        };
        let (by_id, by_slug) = (|name: &str| [Some(name.to_owned()), None], |name: &str| [None, Some(name.to_owned())]);
        for path in ["/configs", "/api-keys", "/configs/{slug}"] {
            assert_eq!(read(path, "workspace_slug=a"), by_id("a"), "{path}");
            assert_eq!(read(path, "workspace_id=a"), by_id("a"), "{path}");
        }
        for path in ["/logs", "/analytics/graphs/cost", "/analytics/budgets"] {
            assert_eq!(read(path, "workspace_id=a,b"), by_slug("a,b"), "{path}");
            assert_eq!(read(path, "workspace_id=*"), by_slug("*"), "{path}");
        }
        assert_eq!(read("/configs", "workspace_slug=*"), [None, None]);
        assert_eq!(read("/configs/{slug}", "workspace_id=*"), by_id("*"), "no workspace is called so");
    }

    #[test]
    fn every_operation_that_is_built_says_what_it_reads() {
        for operation in operations().filter(|one| super::super::is_built(one)) {
            assert!(by(operation).is_some(), "{operation:?}");
        }
        for (path, _) in ALSO {
            assert!(operations().any(|one| one.path == *path), "{path} is no path");
        }
    }
}
