//! What a person may do: role and security settings decide which of a key's scopes count. Pure, and the only place
//! that knows roles. Service keys act for nobody and are bound by their scopes alone.

pub mod security;

pub use security::SecuritySettings;

use RolePermission::{Always, If, Never};

/// The roles of a workspace, lowest first. Owners and admins of the organisation are `Admin` in every workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkspaceRole {
    Member,
    Manager,
    Admin,
}

impl WorkspaceRole {
    /// A role of a workspace as it is stored and sent; some clients put `ws-` before it.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("ws-").unwrap_or(text) {
            "admin" => Some(Self::Admin),
            "manager" => Some(Self::Manager),
            "member" => Some(Self::Member),
            _ => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Manager => "manager",
            Self::Member => "member",
        }
    }
}

/// The person behind a key or token.
#[derive(Debug, Clone)]
pub struct Standing {
    pub organisation_role: String,
    /// None for somebody who is not (or no longer) in the workspace: such a person may do nothing there.
    pub role: Option<WorkspaceRole>,
    pub settings: SecuritySettings,
}

impl Standing {
    pub fn new(organisation_role: &str, member_role: Option<&str>, settings: SecuritySettings) -> Self {
        let everywhere = matches!(organisation_role, "owner" | "admin").then_some(WorkspaceRole::Admin);
        let role = everywhere.or_else(|| member_role.and_then(WorkspaceRole::parse));
        Self { organisation_role: organisation_role.to_owned(), role, settings }
    }

    pub fn is_organisation_admin(&self) -> bool {
        matches!(self.organisation_role.as_str(), "owner" | "admin")
    }

    pub fn allows(&self, scope: &str) -> bool {
        self.role.is_some_and(|role| grants(role, &self.settings, scope))
    }
}

/// The scopes of a person's key that count. One right comes with the role itself: user keys cannot carry key scopes,
/// yet people whose role says so create user keys with them.
pub fn effective_scopes(held: &[String], standing: &Standing) -> Vec<String> {
    const BY_ROLE: &str = "workspace_user_api_keys.create";
    let mut scopes: Vec<String> = held.iter().filter(|scope| standing.allows(scope)).cloned().collect();
    if standing.allows(BY_ROLE) && !scopes.iter().any(|scope| scope == BY_ROLE) {
        scopes.push(BY_ROLE.to_owned());
    }
    scopes
}

/// Whether somebody of role `by` may give (or take away) `role`: nobody raises others above themselves.
pub fn may_assign(by: WorkspaceRole, role: WorkspaceRole) -> bool {
    by > WorkspaceRole::Member && role <= by
}

/// Whether the role includes the scope, under these settings.
pub fn grants(role: WorkspaceRole, settings: &SecuritySettings, scope: &str) -> bool {
    if role == WorkspaceRole::Admin || IN_USE.contains(&scope) {
        return true;
    }
    let (family, verb) = scope.rsplit_once('.').unwrap_or((scope, ""));
    let Some(rule) = RULES.iter().find(|rule| rule.family == family) else { return false };
    let is_view = matches!(verb, "read" | "list" | "view" | "export" | "render");
    let permission = match (role, is_view) {
        (WorkspaceRole::Member, true) => rule.members[0],
        (WorkspaceRole::Member, false) => rule.members[1],
        (_, true) => rule.managers[0],
        (_, false) => rule.managers[1],
    };
    match permission {
        Always => true,
        Never => false,
        If(setting) => settings.is_on(setting),
    }
}

/// What people do with what others configured. Roles govern configuring, not use.
static IN_USE: &[&str] = &[
    "completions.write",
    "completions.read",
    "models.list",
    "mcp.invoke",
    "agents.invoke",
    "guardrails.invoke",
    "logs.write",
    "feedbacks.read",
    "feedbacks.write",
];

#[derive(Clone, Copy)]
enum RolePermission {
    Always,
    Never,
    If(&'static str),
}

/// Viewing and changing the things of one family of scopes, for each role below `Admin`.
struct ScopeRule {
    family: &'static str,
    members: [RolePermission; 2],
    managers: [RolePermission; 2],
}

const fn rule(family: &'static str, members: [RolePermission; 2], managers: [RolePermission; 2]) -> ScopeRule {
    ScopeRule { family, members, managers }
}

static RULES: &[ScopeRule] = &[
    rule("own_api_keys", [Always, Always], [Always, Always]),
    rule("workspaces", [Always, Never], [Always, If("managersUpdateWs")]),
    rule("workspace_users", [Always, Never], [Always, If("managersWriteWsUsers")]),
    rule(
        "workspace_service_api_keys",
        [If("membersViewApiKeys"), Never],
        [If("managersViewApiKeys"), If("managersWriteApiKeys")],
    ),
    rule(
        "workspace_user_api_keys",
        [If("membersViewApiKeys"), If("membersWriteApiKeys")],
        [If("managersViewApiKeys"), If("managersWriteApiKeys")],
    ),
    rule(
        "prompts",
        [If("membersViewPrompts"), If("membersWritePrompts")],
        [If("managersViewPrompts"), If("managersWritePrompts")],
    ),
    rule(
        "configs",
        [If("membersViewConfigs"), If("membersWriteConfigs")],
        [If("managersViewConfigs"), If("managersWriteConfigs")],
    ),
    rule(
        "guardrails",
        [If("membersViewGuardrails"), If("membersWriteGuardrails")],
        [If("managersViewGuardrails"), If("managersWriteGuardrails")],
    ),
    rule(
        "virtual_keys",
        [If("membersViewVirtualKeys"), If("membersWriteVirtualKeys")],
        [If("managersViewVirtualKeys"), If("managersWriteVirtualKeys")],
    ),
    rule(
        "providers",
        [If("membersViewVirtualKeys"), If("membersWriteVirtualKeys")],
        [If("managersViewVirtualKeys"), If("managersWriteVirtualKeys")],
    ),
    rule("policies", [Always, Never], [Always, Always]),
    rule("cache", [Always, Never], [Always, Always]),
    rule("organisation_integrations", [Always, Never], [Always, Never]),
    rule("workspace_integrations", [Always, Never], [Always, If("managersWriteWsIntegrations")]),
    rule("organisation_mcp_integrations", [Always, Never], [Always, Never]),
    rule("workspace_mcp_integrations", [Always, Never], [Always, If("managersWriteWsMcpIntegrations")]),
    rule("organisation_agent_integrations", [Always, Never], [Always, Never]),
    rule("workspace_agent_integrations", [Always, Never], [Always, If("managersWriteWsIntegrations")]),
    rule("mcp_servers", [Always, Never], [Always, If("managersWriteMcpServers")]),
    rule("agent_servers", [Always, Never], [Always, If("managersWriteMcpServers")]),
    rule("audit_logs", [Never, Never], [Always, Never]),
    rule("analytics", [If("membersViewAnalytics"), Never], [If("managersViewAnalytics"), Never]),
    rule("logs", [If("membersViewLogs"), Never], [If("managersViewLogs"), Never]),
];

#[cfg(test)]
mod tests;
