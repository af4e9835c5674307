//! Which part of the trail a caller reads. Who runs the organisation reads all of it; who runs a workspace reads, by
//! their session, what was done there, and of it only what their security settings do not keep from them elsewhere.

use super::AuditLog;
use crate::identity::Caller;
use crate::identity::access::Standing;
use shared::db::table::Filter;
use std::collections::HashSet;
use uuid::Uuid;

pub const SCOPE: &str = "audit_logs.list";
/// Whoever reads all of these elsewhere reads here what was sent, and what things were before and after.
const CONTENTS: [&str; 7] = [
    "configs.read",
    "guardrails.read",
    "prompts.read",
    "virtual_keys.read",
    "workspace_service_api_keys.read",
    "logs.view",
    "analytics.view",
];

/// The rows that the caller reads.
pub fn rows(caller: &Caller) -> Filter {
    let filter = Filter::default().equals("organisation_id", caller.organisation_id());
    match (caller.workspace_id(), caller.own_workspaces_with(SCOPE)) {
        (Some(workspace), _) => filter.equals("workspace_id", workspace),
        (None, Some(own)) => filter.one_of("workspace_id", own),
        (None, None) => filter,
    }
}

/// Takes out of rows what the caller may not see elsewhere.
pub fn conceal(caller: &Caller, records: &mut [AuditLog]) {
    let may_all = |standing: &Standing| CONTENTS.iter().all(|scope| standing.allows(scope));
    let whole: HashSet<Uuid> = match (&caller.own_workspaces, caller.workspace_id(), &caller.standing) {
        (Some(own), ..) => own.iter().filter(|one| may_all(&one.standing)).map(|one| one.id).collect(),
        (None, Some(workspace), Some(standing)) => may_all(standing).then_some(workspace).into_iter().collect(),
        _ => return,
    };
    for record in records {
        if !record.workspace_id.is_some_and(|workspace| whole.contains(&workspace)) {
            (record.request_body, record.query_params) = (None, None);
            (record.before, record.after, record.error) = (None, None, None);
        }
    }
}
