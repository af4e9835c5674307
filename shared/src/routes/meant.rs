//! The operation that a path which is none was probably meant to be, for answers that teach.

use super::operation::Operation;
use super::operations;
use crate::nearest::nearest;
use std::collections::BTreeSet;

/// None when the path, after `/v1`, does not begin like a resource of the control plane.
pub fn meant(method: &str, path: &str) -> Option<&'static Operation> {
    let segments: Vec<&str> = path.strip_prefix('/')?.trim_end_matches('/').split('/').collect();
    let resources: BTreeSet<&str> = operations().filter_map(resource).collect();
    let meant = nearest(segments.first()?, resources)?;
    let of_resource = operations().filter(|one| resource(one) == Some(meant));
    // Of equally likely ones the first in the table.
    let likely = |one: &&Operation| std::cmp::Reverse(likeness(one, method, &segments));
    of_resource.min_by_key(likely)
}

fn resource(operation: &Operation) -> Option<&'static str> {
    operation.path.strip_prefix('/')?.split('/').next()
}

/// Of the right method first, then by how many segments fit, then by the length of the path.
fn likeness(operation: &Operation, method: &str, sent: &[&str]) -> (bool, usize, std::cmp::Reverse<usize>) {
    let template: Vec<&str> = operation.path.trim_start_matches('/').split('/').collect();
    let after_first = template.iter().zip(sent).skip(1);
    let fitting = after_first.map(|(template, sent)| match template {
        template if template == sent => 2,
        template if template.starts_with('{') => 1,
        _ => 0,
    });
    let apart = template.len().abs_diff(sent.len());
    (operation.method.as_str() == method, fitting.sum(), std::cmp::Reverse(apart))
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
            ("POST", "/chat/completions", None),
            ("POST", "/files", None),
            ("GET", "/models", None),
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
}
