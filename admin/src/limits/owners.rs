//! What budgets can be on, beside groups of policies: keys, workspaces, providers, integrations. A table of where each has its budget
//! and under which name it is counted.

use serde_json::{Value, json};

/// Something that a budget can be on. Written in the code, these become SQL; `t` is its row.
pub struct BudgetOwner {
    pub table: &'static str,
    /// The budget inside its row, and back.
    pub budget: &'static str,
    pub wrapped: fn(Value) -> Value,
    /// Under which names it is counted.
    pub scope: &'static str,
    pub scope_id: &'static str,
    pub workspace: &'static str,
    pub name: &'static str,
    pub is_alive: &'static str,
    /// Whether its row says that it is used up.
    pub has_status: bool,
    pub resource_type: &'static str,
    pub spoken: &'static str,
    /// Where it is changed, before its id.
    pub path: &'static str,
    /// What its path and the audit trail call it.
    pub called: &'static str,
}

pub static OWNERS: &[BudgetOwner] = &[
    BudgetOwner {
        table: "api_keys",
        budget: "t.usage_limits",
        wrapped: |budget| budget,
        scope: "api_key",
        scope_id: "t.id::text",
        workspace: "t.workspace_id",
        name: "t.name",
        is_alive: "t.status <> 'archived'",
        has_status: true,
        resource_type: "api_keys",
        spoken: "API key",
        path: "/v1/api-keys/",
        called: "t.id::text",
    },
    BudgetOwner {
        table: "workspaces",
        budget: "(t.usage_limits -> 0)",
        wrapped: |budget| json!([budget]),
        scope: "workspace",
        scope_id: "t.id::text",
        workspace: "t.id",
        name: "t.name",
        is_alive: "t.status <> 'archived'",
        has_status: false,
        resource_type: "workspaces",
        spoken: "workspace",
        path: "/v1/admin/workspaces/",
        called: "t.id::text",
    },
    BudgetOwner {
        table: "providers",
        budget: "t.usage_limits",
        wrapped: |budget| budget,
        scope: "provider",
        scope_id: "t.workspace_id || '/' || t.slug",
        workspace: "t.workspace_id",
        name: "t.name",
        is_alive: "t.status <> 'archived'",
        has_status: true,
        resource_type: "providers",
        spoken: "provider",
        path: "/v1/providers/",
        called: "t.id::text",
    },
    BudgetOwner {
        table: "integration_workspaces",
        budget: "t.usage_limits",
        wrapped: |budget| budget,
        scope: "integration",
        scope_id: "t.integration_id || '/' || t.workspace_id",
        workspace: "t.workspace_id",
        name: "(SELECT i.name || ' in ' || w.name FROM integrations i, workspaces w WHERE i.id = t.integration_id AND w.id = t.workspace_id)",
        is_alive: "t.enabled",
        has_status: false,
        resource_type: "integrations",
        spoken: "integration",
        path: "/v1/integrations/",
        called: "t.integration_id::text",
    },
];
