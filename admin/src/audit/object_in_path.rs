//! The object that an audit record is about, where the handler does not name it.

use axum::http::Uri;
use shared::routes::Operation;

/// The object that the path itself names: its last parameter, id or slug.
pub fn named_in_path(operation: &Operation, uri: &Uri) -> Option<String> {
    let path = uri.path();
    let path = path.strip_prefix("/v1").unwrap_or(path);
    let pairs = operation.path.split('/').zip(path.split('/'));
    let named = pairs.filter(|(template, _)| template.starts_with('{')).last();
    named.map(|(_, value)| value.chars().take(255).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::routes::{Lookup, Method, find, operations};

    fn found(method: &str, path: &str) -> &'static Operation {
        match find(method, path) {
            Lookup::Operation(operation) => operation,
            other => panic!("{method} {path}: {other:?}"),
        }
    }

    #[test]
    fn operations_are_named_in_the_words_of_the_trail() {
        for (method, path, expected) in [
            ("POST", "/labels", Some(("labels", "create"))),
            ("PUT", "/workspaces/w", Some(("workspaces", "update"))),
            ("DELETE", "/admin/workspaces/w/users/u", Some(("workspace_users", "delete"))),
            ("POST", "/workspaces/w/users", Some(("workspace_users", "create"))),
            ("POST", "/admin/users/invites/i/resend", Some(("user_invites", "manage"))),
            ("POST", "/api-keys/k/rotate", Some(("api_keys", "rotate"))),
            ("POST", "/api-keys/workspace/user", Some(("api_keys", "create"))),
            ("PUT", "/prompts/p/makeDefault", Some(("prompts", "publish"))),
            ("PUT", "/prompts/partials/p", Some(("partials", "update"))),
            ("POST", "/prompts/p/render", None),
            ("POST", "/feedback", None),
            ("POST", "/logs", None),
            ("POST", "/logs/erase", Some(("logs", "delete"))),
            ("GET", "/labels", None),
        ] {
            let named = found(method, path).audit.map(|one| (one.resource_type, one.action));
            assert_eq!(named, expected, "{method} {path}");
        }
    }

    #[test]
    fn every_write_is_recorded_but_use() {
        // Whoever adds one here says with it that it changes nothing that anybody administers.
        const USE: [(&str, &str); 9] = [
            ("POST", "/analytics/query"),
            ("POST", "/explain"),
            ("POST", "/feedback"),
            ("POST", "/guardrails/test"),
            ("POST", "/logs"),
            ("POST", "/mcp-integrations/{id}/test"),
            ("POST", "/mcp-servers/{id}/test"),
            ("POST", "/prompts/{promptId}/render"),
            ("PUT", "/feedback/{id}"),
        ];
        let unrecorded = operations().filter(|one| one.method != Method::Get && one.audit.is_none());
        let mut unrecorded: Vec<_> = unrecorded.map(|one| (one.method.as_str(), one.path)).collect();
        unrecorded.sort_unstable();
        assert_eq!(unrecorded, USE);
    }

    #[test]
    fn the_path_names_its_object() {
        for (method, path, named) in [
            ("PUT", "/v1/labels/l-1", Some("l-1")),
            ("PUT", "/v1/workspaces/w/users/u", Some("u")),
            ("POST", "/v1/labels", None),
        ] {
            let operation = found(method, path.strip_prefix("/v1").unwrap());
            assert_eq!(named_in_path(operation, &path.parse().unwrap()).as_deref(), named, "{path}");
        }
    }
}
