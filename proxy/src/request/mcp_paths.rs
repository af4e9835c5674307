//! Paths that clients and servers of MCP look at without a key: what a client needs to get one (RFC 9728), and the keys
//! that sign identities.

pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The path of the resource that a metadata path is about; none for other paths.
pub fn resource_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(WELL_KNOWN)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Where servers find the keys that the gateway signs identities with, by organisation.
pub const KEYS: &str = "/.well-known/mcp-keys/";

/// The organisation whose keys are asked for.
pub fn keys_of(path: &str) -> Option<&str> {
    path.strip_prefix(KEYS).filter(|id| !id.is_empty() && !id.contains('/'))
}
