//! Names on a workspace's merged server: tools, prompts and resources of all its servers, each with the slug of its server
//! before it. Addresses of resources become `mcp://{slug}/{address}`: a slug is no scheme, but it may be a host.

use super::client_message::Asked;
use super::visible::McpTarget;
use shared::mcp::Kind;

const BETWEEN: &str = "__";
const SCHEME: &str = "mcp://";

/// Where the name stands by which a message finds its server.
pub struct MergedPlace<'m> {
    pub name: &'m str,
    /// Of a resource.
    pub is_address: bool,
    /// In the message (RFC 6901).
    pub pointer: &'static str,
}

/// None for what is asked of the merged server itself, or not known there.
pub fn merged_place(asked: &Asked) -> Option<MergedPlace<'_>> {
    let (name, is_address, pointer) = match asked {
        Asked::Tool(name) | Asked::Prompt(name) => (name, false, "/params/name"),
        Asked::Resource(name) => (name, true, "/params/uri"),
        Asked::About(Kind::Prompt, name) => (name, false, "/params/ref/name"),
        Asked::About(Kind::ResourceTemplate, name) => (name, true, "/params/ref/uri"),
        _ => return None,
    };
    Some(MergedPlace { name, is_address, pointer })
}

pub fn merged_uri(slug: &str, uri: &str) -> String {
    format!("{SCHEME}{slug}/{uri}")
}

/// The server that an address is of, and the address there.
pub fn split_uri<'n, 't>(uri: &'n str, targets: &'t [McpTarget]) -> Option<(&'t McpTarget, &'n str)> {
    let (slug, own) = uri_parts(uri)?;
    Some((targets.iter().find(|target| target.server.slug == slug)?, own))
}

fn uri_parts(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.split_once('/').filter(|(_, own)| !own.is_empty())
}

pub fn merged_name(slug: &str, name: &str) -> String {
    format!("{slug}{BETWEEN}{name}")
}

/// The server that a name is of, and its name there. Where two slugs would do, the longer one is meant.
pub fn split_name<'n, 't>(name: &'n str, targets: &'t [McpTarget]) -> Option<(&'t McpTarget, &'n str)> {
    let place = split_at(name, targets.iter().map(|target| target.server.slug.as_str()))?;
    let target = targets.get(place)?;
    Some((target, &name[target.server.slug.len() + BETWEEN.len()..]))
}

fn split_at<'s>(name: &str, slugs: impl Iterator<Item = &'s str>) -> Option<usize> {
    let fits = |slug: &str| name.strip_prefix(slug).and_then(|rest| rest.strip_prefix(BETWEEN)).is_some();
    slugs.enumerate().filter(|(_, slug)| fits(slug)).max_by_key(|(_, slug)| slug.len()).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_the_longest_slug_that_it_begins_with() {
        let slugs = ["a", "a__b", "c"];
        for (name, place) in
            [("a__x", Some(0)), ("a__b__x", Some(1)), ("c__a__x", Some(2)), ("d__x", None), ("a_x", None), ("a", None)]
        {
            assert_eq!(split_at(name, slugs.into_iter()), place, "{name}");
        }
        assert_eq!(merged_name("a", "x"), "a__x");
    }

    #[test]
    fn an_address_comes_back_as_it_was() {
        for uri in ["demo://resource/1", "file:///a?b#c", "mcp://a/b", "notes://{id}/x"] {
            assert_eq!(uri_parts(&merged_uri("a_1", uri)), Some(("a_1", uri)));
        }
        for uri in ["demo://resource/1", "mcp://a", "mcp://a/", "mcp:/a/b"] {
            assert_eq!(uri_parts(uri), None, "{uri}");
        }
    }
}
