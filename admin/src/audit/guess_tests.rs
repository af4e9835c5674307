//! That the route table names operations as they were named before it did, by their paths.

use shared::routes::{Method, Operation, operations};

#[test]
fn the_route_table_names_every_operation_as_before() {
    for operation in operations() {
        let named = operation.audit.map(|name| (name.resource_type, name.action));
        assert_eq!(named, subject(operation).map(|one| (one.resource_type, one.action)), "{operation:?}");
    }
}

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
