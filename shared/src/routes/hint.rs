//! What somebody probably meant who asked for a path that is not there: one slip in a name, a `/v1` too many or missing,
//! or the parent of the operation they need.

use super::{Lookup, Method, Operation, find, operations};
use crate::nearest::nearest as nearest_name;

/// A sentence to go with a refusal, about the whole path as it was sent; none when nothing comes close.
pub fn hint(method: &str, path: &str) -> Option<String> {
    if let Some(rest) = path.strip_prefix("/v1/v1").filter(|rest| rest.starts_with('/')) {
        return Some(format!("the base address ends in /v1 already: {method} /v1{rest}"));
    }
    let Some(relative) = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')) else {
        let is_known = find(method, path) != Lookup::NotControlPlane;
        return is_known.then(|| format!("paths begin with /v1: {method} /v1{path}"));
    };
    let below = below(method, relative);
    if !below.is_empty() {
        return Some(format!("the nearest are {}", below.join(", ")));
    }
    nearest(method, relative).map(|one| format!("the nearest is {} /v1{}", one.method.as_str(), one.path))
}

/// Operations with this method whose path only goes on: `POST /api-keys` names none of the kinds of keys.
fn below(method: &str, path: &str) -> Vec<String> {
    const SHOWN: usize = 3;
    let is_below = |one: &&Operation| {
        let rest = one.path.strip_prefix(path).and_then(|rest| rest.strip_prefix('/'));
        one.method.as_str() == method && rest.is_some_and(|rest| !rest.starts_with('{'))
    };
    operations().filter(is_below).take(SHOWN).map(|one| format!("{method} /v1{}", one.path)).collect()
}

/// The operation whose path has the same segments but for a slip in one of its names; one with the method, if there is.
fn nearest(method: &str, path: &str) -> Option<&'static Operation> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let fitting = || operations().filter(|one| is_near(one, &segments));
    fitting().find(|one| one.method.as_str() == method).or_else(|| fitting().find(|one| one.method == Method::Get))
}

fn is_near(operation: &Operation, segments: &[&str]) -> bool {
    let template: Vec<&str> = operation.path.trim_matches('/').split('/').collect();
    if template.len() != segments.len() {
        return false;
    }
    // One name is mistyped, at most; a parameter may be anything.
    let differing: Vec<_> = template.iter().zip(segments).filter(|(known, sent)| known != sent).collect();
    let mut slips = differing.iter().filter(|(known, _)| !known.starts_with('{'));
    match (slips.next(), slips.next()) {
        (Some((known, sent)), None) => nearest_name(sent, [**known]).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_leads_to_the_one_that_was_meant() {
        for (method, path, part) in [
            ("GET", "/v1/workspace", Some("GET /v1/workspaces")),
            ("GET", "/v1/config", Some("GET /v1/configs")),
            ("PUT", "/v1/config/pc-1", Some("PUT /v1/configs/{slug}")),
            ("POST", "/v1/api_keys/workspace/service", Some("POST /v1/api-keys/workspace/service")),
            ("POST", "/v1/api-keys", Some("POST /v1/api-keys/organisation/service")),
            ("GET", "/v1/v1/configs", Some("GET /v1/configs")),
            ("GET", "/configs", Some("paths begin with /v1: GET /v1/configs")),
            ("GET", "/v1/entirely-unlike", None),
            ("GET", "/", None),
            ("GET", "/v1", None),
        ] {
            let hint = hint(method, path);
            match part {
                Some(part) => assert!(hint.as_ref().is_some_and(|hint| hint.contains(part)), "{path}: {hint:?}"),
                None => assert_eq!(hint, None, "{path}"),
            }
        }
    }
}
