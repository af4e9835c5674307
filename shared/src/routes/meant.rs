//! What somebody probably meant who asked for a path that is not there, for answers that teach: a slip in a name, a `/v1`
//! too many or missing, or the parent of the operation they need.

use super::operation::Operation;
use super::{Lookup, find, operations};
use crate::nearest::nearest;
use crate::providers::Family;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How many are told of where several are as likely.
const SHOWN: usize = 3;
const ADMIN: &str = "admin";

/// A sentence to go with a refusal, about the whole path as it was sent; none when nothing comes close.
pub fn hint(method: &str, path: &str) -> Option<String> {
    if let Some(rest) = path.strip_prefix("/v1/v1").filter(|rest| rest.starts_with('/')) {
        return Some(format!("the base address ends in /v1 already: {method} /v1{rest}"));
    }
    if path == "/" {
        return Some("GET /docs shows those that there are".to_owned());
    }
    let Some(relative) = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')) else {
        let is_known = find(method, path) != Lookup::NotControlPlane;
        return is_known.then(|| format!("paths begin with /v1: {method} /v1{path}"));
    };
    if is_inference(method, relative) {
        return Some("models are asked at the proxy's address, and this is the control plane's".to_owned());
    }
    let written = |one: &&Operation| format!("{} /v1{}", one.method.as_str(), one.path);
    let likeliest: Vec<String> = likeliest(method, relative).iter().take(SHOWN).map(written).collect();
    match likeliest.as_slice() {
        [] => None,
        [one] => Some(format!("the nearest is {one}")),
        several => Some(format!("the nearest are {}", several.join(", "))),
    }
}

/// Whether a path, after `/v1`, is one that the proxy serves.
fn is_inference(method: &str, path: &str) -> bool {
    let method = method.parse::<http::Method>();
    path == "/models" || method.is_ok_and(|method| Family::from_path(&method, path).is_some())
}

/// The operation that a path, after `/v1`, was meant to be; none when it does not begin like a resource of the control
/// plane.
pub fn meant(method: &str, path: &str) -> Option<&'static Operation> {
    likeliest(method, path).first().copied()
}

/// In the order of the table.
fn likeliest(method: &str, path: &str) -> Vec<&'static Operation> {
    let mut segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    // Of inference, so that `model` is not taken for `model-configs`; nothing here is about it.
    let resources: BTreeSet<&str> = operations().filter_map(resource).chain(["models"]).collect();
    let first = segments.first().copied().unwrap_or_default();
    let meant = nearest(first, resources).or_else(|| {
        // People and the organisation are looked for at the root, too.
        nearest(first, operations().filter_map(below_admin))?;
        segments.insert(0, ADMIN);
        Some(ADMIN)
    });
    let Some(meant) = meant else { return Vec::new() };
    let of_resource = operations().filter(|one| resource(one) == Some(meant));
    let rated: Vec<_> = of_resource.map(|one| (likeness(one, method, &segments), one)).collect();
    let best = rated.iter().map(|(likeness, _)| *likeness).max();
    rated.into_iter().filter(|(likeness, _)| Some(*likeness) == best).map(|(_, one)| one).collect()
}

/// What a path below `/admin` is about.
fn below_admin(operation: &'static Operation) -> Option<&'static str> {
    operation.path.strip_prefix("/admin/")?.split('/').next()
}

fn resource(operation: &Operation) -> Option<&'static str> {
    operation.path.strip_prefix('/')?.split('/').next()
}

/// Of the right method first, then by how well the segments fit, then by the length of the path.
fn likeness(operation: &Operation, method: &str, sent: &[&str]) -> (bool, usize, Reverse<usize>) {
    let template: Vec<&str> = operation.path.trim_start_matches('/').split('/').collect();
    let after_first = template.iter().zip(sent).skip(1);
    let fitting = after_first.map(|(template, sent)| match *template {
        template if template == *sent => 3,
        template if template.starts_with('{') => 1,
        template if nearest(sent, [template]).is_some() => 2,
        _ => 0,
    });
    let apart = template.len().abs_diff(sent.len());
    (operation.method.as_str() == method, fitting.sum(), Reverse(apart))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_leads_to_the_operation_and_inference_to_none() {
        for (method, path, expected) in [
            ("GET", "/workspace", Some("/workspaces")),
            ("POST", "/workspace", Some("/workspaces")),
            ("GET", "/workspace/abc", Some("/workspaces/{workspaceId}")),
            ("GET", "/apikeys", Some("/api-keys")),
            ("POST", "/config", Some("/configs")),
            ("GET", "/config/main/version", Some("/configs/{slug}/versions")),
            ("GET", "/users", Some("/admin/users")),
            ("GET", "/users/0b0cb1f4", Some("/admin/users/{userId}")),
            ("POST", "/users/invites", Some("/admin/users/invites")),
            ("GET", "/organization", Some("/admin/organisation")),
            ("POST", "/chat/completions", None),
            ("POST", "/files", None),
            ("GET", "/models", None),
            ("GET", "/model", None),
            ("GET", "/audit", Some("/audit-logs")),
            ("GET", "/batches", None),
            ("POST", "/vector_stores", None),
            ("POST", "/responses", None),
            ("GET", "/assistants", None),
            ("GET", "", None),
        ] {
            let found = meant(method, path).map(|one| one.path);
            assert_eq!(found, expected, "{method} {path}");
        }
        let created = meant("POST", "/api-keys").unwrap();
        assert!(created.path.starts_with("/api-keys/") && created.method.as_str() == "POST", "{}", created.path);
    }

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
            ("GET", "/", Some("GET /docs")),
            ("POST", "/v1/chat/completions", Some("the proxy's address")),
            ("GET", "/v1/models", Some("the proxy's address")),
            ("GET", "/v1", None),
        ] {
            let hint = hint(method, path);
            match part {
                Some(part) => assert!(hint.as_ref().is_some_and(|hint| hint.contains(part)), "{path}: {hint:?}"),
                None => assert_eq!(hint, None, "{path}"),
            }
        }
        let several = hint("POST", "/v1/api-keys").unwrap();
        assert_eq!(several.matches("POST /v1/api-keys/").count(), SHOWN, "{several}");
    }
}
