//! The control plane's route table: every operation with who may call it. The proxy asks it, for every request,
//! whether the path is admin's; admin checks callers against the same rows, so the two cannot disagree.
//!
//! Inference paths that live beside it (`/files`, `/batches`, `/models`, `/prompts/{id}/completions`) are absent
//! on purpose: provider headers count there, and the proxy serves them itself.

mod authoring;
mod catalog;
mod data;
mod keys;
mod mcp;
mod meant;
mod operation;
mod sign_in;
mod template;
mod tenancy;

pub use meant::{hint, meant};
pub use operation::{Access, AuditName, Feature, KeySet, Method, Operation, PUBLIC_BODY, Scopes, SessionReach};

/// What a method and path mean to the control plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lookup {
    Operation(&'static Operation),
    /// The path is the control plane's, the method is not one of its methods: admin answers 405.
    WrongMethod,
    /// No operation, but of a protocol that is wholly the control plane's: admin answers 404 in that protocol's form.
    Unknown,
    /// Inference or pass-through.
    NotControlPlane,
}

/// Looks up the path after `/v1`, without its query. One trailing slash is ignored; case matters.
///
/// A path belongs to its most specific template whatever the method, so `DELETE /guardrails/checks` is a wrong
/// method and never deletes a guardrail called `checks`.
pub fn find(method: &str, path: &str) -> Lookup {
    let path = path.strip_suffix('/').unwrap_or(path);
    let Some(template) = template_of(path) else {
        return if path.starts_with("/scim/") { Lookup::Unknown } else { Lookup::NotControlPlane };
    };
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

/// Operations by first segment. Every inference request passes here and must leave at once: a match on bytes
/// compiles to a tree of comparisons, a hash map would cost several times that.
fn group_of(path: &str) -> &'static [Operation] {
    let Some((b'/', path)) = path.as_bytes().split_first() else { return &[] };
    let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
    match &path[..end] {
        b"admin" => tenancy::ADMIN,
        b"workspaces" => tenancy::WORKSPACES,
        b"workspace-exclusions" => tenancy::WORKSPACE_EXCLUSIONS,
        b"scim" => tenancy::SCIM,
        b"auth" => sign_in::AUTH,
        b"api-keys" => keys::API_KEYS,
        b"integrations" => catalog::INTEGRATIONS,
        b"providers" => catalog::PROVIDERS,
        b"virtual-keys" => catalog::VIRTUAL_KEYS,
        b"model-configs" => catalog::MODEL_CONFIGS,
        b"secret-references" => catalog::SECRET_REFERENCES,
        b"deployments" => catalog::DEPLOYMENTS,
        b"configs" => authoring::CONFIGS,
        b"explain" => authoring::EXPLAIN,
        b"prompts" => authoring::PROMPTS,
        b"collections" => authoring::COLLECTIONS,
        b"labels" => authoring::LABELS,
        b"guardrails" => authoring::GUARDRAILS,
        b"plugins" => authoring::PLUGINS,
        b"policies" => authoring::POLICIES,
        b"mcp-integrations" => mcp::MCP_INTEGRATIONS,
        b"mcp-servers" => mcp::MCP_SERVERS,
        b"feedback" => data::FEEDBACK,
        b"analytics" => data::ANALYTICS,
        b"logs" => data::LOGS,
        b"cache" => data::CACHE,
        b"audit-logs" => data::AUDIT_LOGS,
        b"openapi.json" => data::OPENAPI,
        _ => &[],
    }
}

static GROUPS: &[&[Operation]] = &[
    tenancy::ADMIN,
    tenancy::WORKSPACES,
    tenancy::WORKSPACE_EXCLUSIONS,
    keys::API_KEYS,
    catalog::INTEGRATIONS,
    catalog::PROVIDERS,
    catalog::VIRTUAL_KEYS,
    authoring::CONFIGS,
    authoring::EXPLAIN,
    authoring::PROMPTS,
    authoring::COLLECTIONS,
    authoring::LABELS,
    authoring::GUARDRAILS,
    authoring::PLUGINS,
    authoring::POLICIES,
    catalog::MODEL_CONFIGS,
    catalog::SECRET_REFERENCES,
    catalog::DEPLOYMENTS,
    mcp::MCP_INTEGRATIONS,
    mcp::MCP_SERVERS,
    data::FEEDBACK,
    data::ANALYTICS,
    data::LOGS,
    data::CACHE,
    data::AUDIT_LOGS,
    tenancy::SCIM,
    sign_in::AUTH,
    data::OPENAPI,
];

#[cfg(test)]
mod tests;
