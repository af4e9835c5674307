//! Every scope, and who can hold it: admin keys, service and user keys of a workspace, tokens (JWT), and sessions.
//!
//! One line per scope, so that a search for a scope ends here. Scopes are exact: `list` does not imply `read`.

use super::KeyKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    pub name: &'static str,
    holders: u8,
}

const ADMIN: u8 = 1;
const SERVICE: u8 = 2;
const USER: u8 = 4;
const JWT: u8 = 8;
/// A person who is signed in. They hold all that their keys can hold, too.
const SESSION: u8 = 16;
/// Whatever acts inside one workspace.
const WORKSPACE: u8 = SERVICE | USER | JWT;
const EVERYONE: u8 = ADMIN | WORKSPACE;

/// All scopes that a key of this kind can hold.
pub fn all_for(kind: KeyKind) -> Vec<&'static str> {
    held_by(match kind {
        KeyKind::OrganisationService => ADMIN,
        KeyKind::WorkspaceService => SERVICE,
        KeyKind::WorkspaceUser => USER,
        KeyKind::Jwt => JWT,
    })
}

/// Whether a key of this kind with these scopes is one of the organisation that may do all that one can.
pub fn is_every_admin_scope(kind: KeyKind, held: &[String]) -> bool {
    kind == KeyKind::OrganisationService && all_for(kind).iter().all(|scope| held.iter().any(|one| one == scope))
}

/// All scopes that a token can carry: those of a user key, and a few that only tokens know.
pub fn all_for_jwt() -> Vec<&'static str> {
    held_by(JWT)
}

/// All scopes that a person's session can hold in a workspace: those of a user key, and those of managing keys.
pub fn all_for_session() -> Vec<&'static str> {
    held_by(USER | SESSION)
}

fn held_by(holder: u8) -> Vec<&'static str> {
    SCOPES.iter().filter(|scope| scope.holders & holder != 0).map(|scope| scope.name).collect()
}

const fn scope(name: &'static str, holders: u8) -> Scope {
    Scope { name, holders }
}

pub static SCOPES: &[Scope] = &[
    // The organisation.
    scope("organisation_users.create", ADMIN),
    scope("organisation_users.read", ADMIN),
    scope("organisation_users.update", ADMIN),
    scope("organisation_users.delete", ADMIN),
    scope("organisation_users.list", ADMIN),
    scope("organisation_service_api_keys.create", ADMIN),
    scope("organisation_service_api_keys.read", ADMIN),
    scope("organisation_service_api_keys.update", ADMIN),
    scope("organisation_service_api_keys.delete", ADMIN),
    scope("organisation_service_api_keys.list", ADMIN),
    scope("organisation_service_api_keys.rotate", ADMIN),
    scope("organisations.read", ADMIN),
    scope("organisation_settings.read", ADMIN),
    scope("organisation_settings.update", ADMIN),
    scope("organisation_guardrails.create", ADMIN),
    scope("organisation_guardrails.read", ADMIN),
    scope("organisation_guardrails.update", ADMIN),
    scope("organisation_guardrails.delete", ADMIN),
    scope("organisation_guardrails.list", ADMIN),
    scope("organisation_exclusions.list", ADMIN),
    scope("organisation_exclusions.update", ADMIN),
    scope("audit_logs.list", ADMIN | SESSION),
    scope("plugins.create", ADMIN),
    scope("plugins.update", ADMIN),
    scope("plugins.list", ADMIN),
    scope("deployments.create", ADMIN),
    scope("deployments.read", ADMIN),
    scope("deployments.update", ADMIN),
    scope("deployments.delete", ADMIN),
    scope("deployments.list", ADMIN),
    scope("secret_references.create", ADMIN),
    scope("secret_references.read", ADMIN),
    scope("secret_references.update", ADMIN),
    scope("secret_references.delete", ADMIN),
    scope("secret_references.list", ADMIN),
    // Workspaces, their members and keys.
    scope("workspaces.create", ADMIN),
    scope("workspaces.read", EVERYONE),
    scope("workspaces.update", EVERYONE),
    scope("workspaces.delete", ADMIN),
    scope("workspaces.list", EVERYONE),
    scope("workspace_service_api_keys.create", ADMIN | SERVICE | SESSION),
    scope("workspace_service_api_keys.read", ADMIN | SERVICE | SESSION),
    scope("workspace_service_api_keys.update", ADMIN | SERVICE | SESSION),
    scope("workspace_service_api_keys.delete", ADMIN | SERVICE | SESSION),
    scope("workspace_service_api_keys.list", ADMIN | SERVICE | SESSION),
    scope("workspace_service_api_keys.rotate", ADMIN | SERVICE | SESSION),
    scope("workspace_user_api_keys.create", ADMIN | SERVICE | SESSION),
    scope("workspace_user_api_keys.read", ADMIN | SERVICE | SESSION),
    scope("workspace_user_api_keys.update", ADMIN | SERVICE | SESSION),
    scope("workspace_user_api_keys.delete", ADMIN | SERVICE | SESSION),
    scope("workspace_user_api_keys.list", ADMIN | SERVICE | SESSION),
    scope("workspace_user_api_keys.rotate", ADMIN | SERVICE | SESSION),
    scope("own_api_keys.read", SESSION),
    scope("own_api_keys.update", SESSION),
    scope("own_api_keys.delete", SESSION),
    scope("own_api_keys.list", SESSION),
    scope("own_api_keys.rotate", SESSION),
    scope("workspace_users.create", EVERYONE),
    scope("workspace_users.read", EVERYONE),
    scope("workspace_users.update", EVERYONE),
    scope("workspace_users.delete", EVERYONE),
    scope("workspace_users.list", EVERYONE),
    // Inference.
    scope("completions.write", WORKSPACE),
    scope("models.list", WORKSPACE),
    scope("mcp.invoke", WORKSPACE),
    // What a workspace configures.
    scope("prompts.create", EVERYONE),
    scope("prompts.read", EVERYONE),
    scope("prompts.update", EVERYONE),
    scope("prompts.delete", EVERYONE),
    scope("prompts.list", EVERYONE),
    scope("prompts.publish", EVERYONE),
    scope("prompts.render", WORKSPACE),
    scope("configs.create", EVERYONE),
    scope("configs.read", EVERYONE),
    scope("configs.update", EVERYONE),
    scope("configs.delete", EVERYONE),
    scope("configs.list", EVERYONE),
    scope("guardrails.create", EVERYONE),
    scope("guardrails.read", EVERYONE),
    scope("guardrails.update", EVERYONE),
    scope("guardrails.delete", EVERYONE),
    scope("guardrails.list", EVERYONE),
    scope("virtual_keys.create", EVERYONE),
    scope("virtual_keys.read", EVERYONE),
    scope("virtual_keys.update", EVERYONE),
    scope("virtual_keys.delete", EVERYONE),
    scope("virtual_keys.list", EVERYONE),
    scope("providers.create", EVERYONE),
    scope("providers.read", EVERYONE),
    scope("providers.update", EVERYONE),
    scope("providers.delete", EVERYONE),
    scope("providers.list", EVERYONE),
    scope("policies.create", EVERYONE),
    scope("policies.read", EVERYONE),
    scope("policies.update", EVERYONE),
    scope("policies.delete", EVERYONE),
    scope("policies.list", EVERYONE),
    // Integrations: those of the organisation are only listed by a workspace.
    scope("organisation_integrations.create", ADMIN),
    scope("organisation_integrations.read", ADMIN),
    scope("organisation_integrations.update", ADMIN),
    scope("organisation_integrations.delete", ADMIN),
    scope("organisation_integrations.list", EVERYONE),
    scope("workspace_integrations.create", EVERYONE),
    scope("workspace_integrations.read", EVERYONE),
    scope("workspace_integrations.update", EVERYONE),
    scope("workspace_integrations.delete", EVERYONE),
    scope("workspace_integrations.list", EVERYONE),
    scope("organisation_mcp_integrations.create", ADMIN),
    scope("organisation_mcp_integrations.read", ADMIN),
    scope("organisation_mcp_integrations.update", ADMIN),
    scope("organisation_mcp_integrations.delete", ADMIN),
    scope("organisation_mcp_integrations.list", EVERYONE),
    scope("workspace_mcp_integrations.create", EVERYONE),
    scope("workspace_mcp_integrations.read", EVERYONE),
    scope("workspace_mcp_integrations.update", EVERYONE),
    scope("workspace_mcp_integrations.delete", EVERYONE),
    scope("workspace_mcp_integrations.list", EVERYONE),
    scope("mcp_servers.create", EVERYONE),
    scope("mcp_servers.read", EVERYONE),
    scope("mcp_servers.update", EVERYONE),
    scope("mcp_servers.delete", EVERYONE),
    scope("mcp_servers.list", EVERYONE),
    // Data.
    scope("analytics.view", EVERYONE),
    scope("logs.export", EVERYONE),
    scope("logs.list", EVERYONE),
    scope("logs.view", EVERYONE),
    scope("logs.write", WORKSPACE),
    scope("logs.delete", ADMIN),
    scope("cache.delete", EVERYONE),
    scope("logs.read", JWT),
    scope("feedbacks.write", JWT),
];

/// Scopes that open nothing. Keys that have them already keep them, so that clients can send back what they read; no key
/// gets one any more.
pub static RETIRED: &[&str] = &[
    "agent_servers.create",
    "agent_servers.delete",
    "agent_servers.list",
    "agent_servers.read",
    "agent_servers.update",
    "agents.invoke",
    "completions.read",
    "feedbacks.read",
    "guardrails.invoke",
    "organisation_agent_integrations.create",
    "organisation_agent_integrations.delete",
    "organisation_agent_integrations.list",
    "organisation_agent_integrations.read",
    "organisation_agent_integrations.update",
    "virtual_keys.copy",
    "virtual_keys.duplicate",
    "workspace_agent_integrations.create",
    "workspace_agent_integrations.delete",
    "workspace_agent_integrations.list",
    "workspace_agent_integrations.read",
    "workspace_agent_integrations.update",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes;
    use KeyKind::{OrganisationService, WorkspaceService, WorkspaceUser};

    #[test]
    fn each_scope_is_listed_once() {
        let mut names: Vec<_> = SCOPES.iter().map(|scope| scope.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_scope_opens_an_operation_and_no_retired_one_is_among_them() {
        // Of inference, which has no row in the table of the control plane.
        const OF_PROXIES: &[&str] = &["completions.write", "mcp.invoke", "models.list"];
        let asked: Vec<&str> = routes::operations().flat_map(|one| one.scopes.listed().iter().copied()).collect();
        for scope in SCOPES {
            assert!(asked.contains(&scope.name) || OF_PROXIES.contains(&scope.name), "nothing asks for {}", scope.name);
        }
        for name in RETIRED {
            assert!(!asked.contains(name) && SCOPES.iter().all(|scope| scope.name != *name), "{name}");
        }
    }

    #[test]
    fn admin_keys_hold_no_scope_that_calls_a_model() {
        let admin = all_for(OrganisationService);
        for scope in ["completions.write", "models.list", "mcp.invoke", "prompts.render", "logs.write"] {
            assert!(!admin.contains(&scope), "{scope}");
            assert!(all_for(WorkspaceService).contains(&scope), "{scope}");
        }
    }

    #[test]
    fn workspace_keys_hold_nothing_of_the_organisation_but_lists_of_its_integrations() {
        for kind in [WorkspaceService, WorkspaceUser] {
            let organisation: Vec<_> =
                all_for(kind).into_iter().filter(|scope| scope.starts_with("organisation")).collect();
            assert!(organisation.iter().all(|scope| scope.ends_with("_integrations.list")), "{organisation:?}");
            assert_eq!(organisation.len(), 2);
        }
    }

    #[test]
    fn user_keys_manage_no_keys_and_tokens_hold_all_that_user_keys_do() {
        let user = all_for(WorkspaceUser);
        assert!(!user.iter().any(|scope| scope.contains("api_keys")));
        let jwt = all_for_jwt();
        let extras: Vec<_> = jwt.iter().filter(|scope| !user.contains(scope)).copied().collect();
        assert_eq!(extras, ["logs.read", "feedbacks.write"]);
        assert!(user.iter().all(|scope| jwt.contains(scope)));
        let session = all_for_session();
        assert!(user.iter().all(|scope| session.contains(scope)));
        let extras = session.iter().filter(|scope| !user.contains(scope));
        let is_for_people = |scope: &&str| scope.contains("api_keys") || *scope == "audit_logs.list";
        assert!(
            extras.clone().count() > 10 && extras.clone().copied().all(|scope| is_for_people(&scope)),
            "{session:?}"
        );
        assert!(!session.iter().any(|scope| scope.starts_with("organisation_service")));
    }
}
