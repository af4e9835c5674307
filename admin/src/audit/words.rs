//! The words that records of the trail have for what was changed and what was done to it: closed sets, so that a search for
//! another word is a mistake and not an empty list. A test holds every record that tests cause against them.

use shared::routes::{self, AuditName};
use std::collections::BTreeSet;

/// What no operation of the interface changes: the gateway itself does, a command or a rejected token.
const OTHER_TYPES: &[&str] = &["data_keys", "jwt", "limits", "other", "prices"];
const OTHER_ACTIONS: &[&str] = &[
    "authenticate",
    "duplicate",
    "import",
    "limit_reached",
    "manage",
    "mend",
    "reconcile",
    "release",
    "rotate",
    "threshold_reached",
];

pub fn resource_types() -> BTreeSet<&'static str> {
    named().map(|name| name.resource_type).chain(OTHER_TYPES.iter().copied()).collect()
}

pub fn actions() -> BTreeSet<&'static str> {
    named().map(|name| name.action).chain(OTHER_ACTIONS.iter().copied()).collect()
}

fn named() -> impl Iterator<Item = AuditName> {
    routes::operations().filter_map(|operation| operation.audit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients of the reference product search by these.
    #[test]
    fn published_words_are_among_them() {
        const TYPES: &str = "organisation users user_invites workspaces workspace_users api_keys integrations providers \
            virtual_keys configs prompts partials collections labels guardrails policies secret_references deployments \
            mcp_integrations mcp_servers log_exports scim jwt plugins";
        const ACTIONS: &str =
            "create update delete publish export rotate manage duplicate authenticate threshold_reached";
        let (types, actions) = (resource_types(), actions());
        assert_eq!(TYPES.split_whitespace().find(|word| !types.contains(word)), None);
        assert_eq!(ACTIONS.split_whitespace().find(|word| !actions.contains(word)), None);
    }
}
