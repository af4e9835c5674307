//! What an operation does to what, in the words of the audit trail. Reading is not an action; neither is use, such as
//! rendering a prompt or sending feedback.

use axum::http::Uri;
use shared::routes::{Method, Operation};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub resource_type: &'static str,
    pub action: &'static str,
}

/// None for what is not recorded.
pub fn subject(operation: &Operation) -> Option<Subject> {
    let resource_type = resource_type(operation.path)?;
    let last = operation.path.rsplit('/').next().unwrap_or_default();
    let action = match (operation.method, last) {
        (Method::Get, _) | (_, "render" | "explain" | "test" | "check") => return None,
        (_, "rotate") => "rotate",
        (_, "makeDefault") => "publish",
        (Method::Post, "start") => "export",
        (Method::Post, "erase") => "delete",
        (Method::Post, "resend" | "cancel" | "reset" | "sync" | "accept" | "rollback") => "manage",
        (Method::Put, "reset") => "manage",
        (Method::Post, _) => "create",
        (Method::Put | Method::Patch, _) => "update",
        (Method::Delete, _) => "delete",
    };
    Some(Subject { resource_type, action })
}

/// The longest prefix wins, so the order is from specific to general.
fn resource_type(path: &str) -> Option<&'static str> {
    let is_below_workspace = path.contains("workspaces/{workspaceId}/");
    if is_below_workspace {
        return Some("workspace_users");
    }
    let found = PREFIXES
        .iter()
        .find(|(prefix, _)| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    found.map(|(_, name)| *name)
}

static PREFIXES: &[(&str, &str)] = &[
    ("/admin/organisation", "organisation"),
    ("/admin/users/invites", "user_invites"),
    ("/admin/users", "users"),
    ("/admin/workspaces", "workspaces"),
    ("/workspaces", "workspaces"),
    ("/workspace-exclusions", "organisation"),
    ("/api-keys", "api_keys"),
    ("/integrations", "integrations"),
    ("/providers", "providers"),
    ("/virtual-keys", "virtual_keys"),
    ("/model-configs", "integrations"),
    ("/secret-references", "secret_references"),
    ("/deployments", "deployments"),
    ("/configs", "configs"),
    ("/prompts/partials", "partials"),
    ("/prompts", "prompts"),
    ("/collections", "collections"),
    ("/labels", "labels"),
    ("/guardrails", "guardrails"),
    ("/plugins", "plugins"),
    ("/policies", "policies"),
    ("/mcp-integrations", "mcp_integrations"),
    ("/mcp-servers", "mcp_servers"),
    ("/logs/exports", "log_exports"),
    ("/logs/erase", "logs"),
    ("/scim", "scim"),
];

/// The object that the path itself names: its last parameter, id or slug.
pub fn named_in_path(operation: &Operation, uri: &Uri) -> Option<String> {
    let path = uri.path();
    let path = path.strip_prefix("/v1").unwrap_or(path);
    let pairs = operation.path.split('/').zip(path.split('/'));
    let named = pairs.filter(|(template, _)| template.starts_with('{')).last();
    named.map(|(_, value)| value.chars().take(255).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::routes::{Lookup, find, operations};

    fn found(method: &str, path: &str) -> &'static Operation {
        match find(method, path) {
            Lookup::Operation(operation) => operation,
            other => panic!("{method} {path}: {other:?}"),
        }
    }

    #[test]
    fn operations_are_named_in_the_words_of_the_trail() {
        for (method, path, expected) in [
            ("POST", "/labels", Some(("labels", "create"))),
            ("PUT", "/workspaces/w", Some(("workspaces", "update"))),
            ("DELETE", "/admin/workspaces/w/users/u", Some(("workspace_users", "delete"))),
            ("POST", "/workspaces/w/users", Some(("workspace_users", "create"))),
            ("POST", "/admin/users/invites/i/resend", Some(("user_invites", "manage"))),
            ("POST", "/api-keys/k/rotate", Some(("api_keys", "rotate"))),
            ("POST", "/api-keys/workspace/user", Some(("api_keys", "create"))),
            ("PUT", "/prompts/p/makeDefault", Some(("prompts", "publish"))),
            ("PUT", "/prompts/partials/p", Some(("partials", "update"))),
            ("POST", "/prompts/p/render", None),
            ("POST", "/feedback", None),
            ("POST", "/logs", None),
            ("POST", "/logs/erase", Some(("logs", "delete"))),
            ("GET", "/labels", None),
        ] {
            let subject = subject(found(method, path)).map(|one| (one.resource_type, one.action));
            assert_eq!(subject, expected, "{method} {path}");
        }
    }

    #[test]
    fn every_write_is_recorded_but_use() {
        let is_use = |path: &str| {
            ["/feedback", "/logs", "/explain", "/analytics"].iter().any(|one| path.starts_with(one))
                || ["/render", "/test", "/check"].iter().any(|one| path.ends_with(one))
        };
        for operation in operations().filter(|one| one.method != Method::Get && !is_use(one.path)) {
            assert!(subject(operation).is_some(), "{operation:?}");
        }
    }

    #[test]
    fn the_path_names_its_object() {
        for (method, path, named) in [
            ("PUT", "/v1/labels/l-1", Some("l-1")),
            ("PUT", "/v1/workspaces/w/users/u", Some("u")),
            ("POST", "/v1/labels", None),
        ] {
            let operation = found(method, path.strip_prefix("/v1").unwrap());
            assert_eq!(named_in_path(operation, &path.parse().unwrap()).as_deref(), named, "{path}");
        }
    }
}
