//! What nobody may see or call, known by name, by address and by template.

use foldhash::fast::RandomState;
use shared::mcp::Kind;
use std::collections::HashSet;

/// What nobody may see or call, of one integration or one server.
#[derive(Debug, Default, PartialEq)]
pub struct SwitchedOff {
    names: HashSet<(&'static str, String), RandomState>,
    /// Of resources.
    uris: HashSet<String, RandomState>,
    /// Patterns of templates.
    patterns: Vec<String>,
}

impl SwitchedOff {
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        !self.names.is_empty() && self.names.contains(&(kind.as_str(), name.to_owned()))
    }

    /// Whether a resource may not be read. One whose address was not listed yet is known by its name alone.
    pub fn has_uri(&self, uri: &str) -> bool {
        self.uris.contains(uri) || self.patterns.iter().any(|pattern| is_of_template(pattern, uri))
    }

    pub fn push(&mut self, kind: Kind, name: &str, uri: Option<&str>) {
        self.names.insert((kind.as_str(), name.to_owned()));
        match (kind, uri) {
            (Kind::Resource, uri) => self.uris.extend([Some(name), uri].into_iter().flatten().map(str::to_owned)),
            (Kind::ResourceTemplate, Some(pattern)) => self.patterns.push(pattern.to_owned()),
            _ => {}
        }
    }
}

/// Whether an address may be one of a template (RFC 6570): its literal parts in their order, and something in between.
/// A template that begins with a place would be everything, and is nothing.
fn is_of_template(pattern: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = pattern.split('{');
    let Some(first) = parts.next().filter(|first| !first.is_empty()) else { return false };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    for part in parts {
        let literal = part.split_once('}').map_or("", |(_, literal)| literal);
        match rest.find(literal) {
            Some(at) => rest = &rest[at + literal.len()..],
            None => return false,
        }
    }
    // What follows a last literal belongs to another address.
    pattern.ends_with('}') || rest.is_empty() || uri.ends_with(pattern.rsplit('}').next().unwrap_or(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_off_is_known_by_name_by_address_and_by_template() {
        let mut off = SwitchedOff::default();
        off.push(Kind::Tool, "delete", None);
        off.push(Kind::Resource, "readme", Some("file:///readme"));
        off.push(Kind::ResourceTemplate, "users", Some("db://users/{id}/profile"));
        off.push(Kind::ResourceTemplate, "notes", Some("note://{path}"));
        off.push(Kind::ResourceTemplate, "all", Some("{anything}"));
        assert!(off.has(Kind::Tool, "delete"));
        assert!(!off.has(Kind::Prompt, "delete"));
        for (uri, is_off) in [
            ("file:///readme", true),
            ("file:///readme2", false),
            ("readme", true),
            ("db://users/7/profile", true),
            ("db://users/7/orders", false),
            ("db://users/7/profile/x", false),
            ("note://a/b", true),
            ("else://a", false),
        ] {
            assert_eq!(off.has_uri(uri), is_off, "{uri}");
        }
    }
}
