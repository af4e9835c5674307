//! The control plane's route table: every operation with who may call it. The proxy asks it, for every request,
//! whether the path is admin's; admin checks callers against the same rows, so the two cannot disagree.
//!
//! Inference paths that live beside it (`/files`, `/batches`, `/models`, `/prompts/{id}/completions`) are absent
//! on purpose: provider headers count there, and the proxy serves them itself.

mod authoring;
mod catalogue;
mod data;
mod keys;
mod mcp;
mod operation;
mod template;
mod tenancy;

pub use operation::{Access, Feature, KeySet, Method, Operation, Scopes};

/// What a method and path mean to the control plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lookup {
    Operation(&'static Operation),
    /// The path is the control plane's, the method is not one of its methods: admin answers 405.
    WrongMethod,
    /// Inference or pass-through.
    NotControlPlane,
}

/// Looks up the path after `/v1`, without its query. One trailing slash is ignored; case matters.
///
/// A path belongs to its most specific template whatever the method, so `DELETE /guardrails/checks` is a wrong
/// method and never deletes a guardrail called `checks`.
pub fn find(method: &str, path: &str) -> Lookup {
    let path = path.strip_suffix('/').unwrap_or(path);
    let Some(template) = template_of(path) else { return Lookup::NotControlPlane };
    let found = group_of(path).iter().find(|one| one.path == template && one.method.as_str() == method);
    found.map_or(Lookup::WrongMethod, Lookup::Operation)
}

/// The methods a control-plane path has, for the `Allow` header of a 405.
pub fn allowed(path: &str) -> impl Iterator<Item = Method> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let template = template_of(path);
    group_of(path).iter().filter(move |one| Some(one.path) == template).map(|one| one.method)
}

/// Every operation, in the order of the contract's groups.
pub fn operations() -> impl Iterator<Item = &'static Operation> {
    GROUPS.iter().copied().flatten()
}

fn template_of(path: &str) -> Option<&'static str> {
    let fitting = group_of(path).iter().map(|one| one.path).filter(|one| template::matches(one, path));
    fitting.reduce(|best, one| if template::is_more_specific(one, best) { one } else { best })
}

/// Operations by first segment. Every inference request passes here and must leave at once: a match on a short
/// string costs a few nanoseconds, a hash map several times that.
fn group_of(path: &str) -> &'static [Operation] {
    let Some(path) = path.strip_prefix('/') else { return &[] };
    let first = path.split_once('/').map_or(path, |(first, _)| first);
    match first {
        "admin" => tenancy::ADMIN,
        "workspaces" => tenancy::WORKSPACES,
        "workspace-exclusions" => tenancy::WORKSPACE_EXCLUSIONS,
        "scim" => tenancy::SCIM,
        "api-keys" => keys::API_KEYS,
        "integrations" => catalogue::INTEGRATIONS,
        "providers" => catalogue::PROVIDERS,
        "virtual-keys" => catalogue::VIRTUAL_KEYS,
        "model-configs" => catalogue::MODEL_CONFIGS,
        "secret-references" => catalogue::SECRET_REFERENCES,
        "deployments" => catalogue::DEPLOYMENTS,
        "configs" => authoring::CONFIGS,
        "explain" => authoring::EXPLAIN,
        "prompts" => authoring::PROMPTS,
        "collections" => authoring::COLLECTIONS,
        "labels" => authoring::LABELS,
        "guardrails" => authoring::GUARDRAILS,
        "plugins" => authoring::PLUGINS,
        "policies" => authoring::POLICIES,
        "mcp-integrations" => mcp::MCP_INTEGRATIONS,
        "mcp-servers" => mcp::MCP_SERVERS,
        "feedback" => data::FEEDBACK,
        "analytics" => data::ANALYTICS,
        "logs" => data::LOGS,
        "audit-logs" => data::AUDIT_LOGS,
        "openapi.json" => data::OPENAPI,
        _ => &[],
    }
}

static GROUPS: &[&[Operation]] = &[
    tenancy::ADMIN,
    tenancy::WORKSPACES,
    tenancy::WORKSPACE_EXCLUSIONS,
    keys::API_KEYS,
    catalogue::INTEGRATIONS,
    catalogue::PROVIDERS,
    catalogue::VIRTUAL_KEYS,
    authoring::CONFIGS,
    authoring::EXPLAIN,
    authoring::PROMPTS,
    authoring::COLLECTIONS,
    authoring::LABELS,
    authoring::GUARDRAILS,
    authoring::PLUGINS,
    authoring::POLICIES,
    catalogue::MODEL_CONFIGS,
    catalogue::SECRET_REFERENCES,
    catalogue::DEPLOYMENTS,
    mcp::MCP_INTEGRATIONS,
    mcp::MCP_SERVERS,
    data::FEEDBACK,
    data::ANALYTICS,
    data::LOGS,
    data::AUDIT_LOGS,
    tenancy::SCIM,
    data::OPENAPI,
];

#[cfg(test)]
mod tests;
