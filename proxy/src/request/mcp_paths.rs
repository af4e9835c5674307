//! Where clients of MCP servers look for what they need before they have a key (RFC 9728).

pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The path of the resource that a metadata path is about; none for other paths.
pub fn resource_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(WELL_KNOWN)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}
