//! Which answers a purge concerns, as tables.

use super::*;
use chrono::{DateTime, Utc};
use serde_json::json;
use shared::model::id::OrganisationId;
use shared::model::{CachePurge, Workspace, purge_tag};

const ORGANISATION: Uuid = Uuid::from_u128(1);
const HOME: Uuid = Uuid::from_u128(2);
const NEXT_DOOR: Uuid = Uuid::from_u128(3);
const PURGED_MS: i64 = 1_700_000_000_000;

fn workspace(id: Uuid, organisation: Uuid) -> Workspace {
    let row = json!({ "id": id, "organisation_id": organisation, "slug": id.to_string(), "status": "active" });
    serde_json::from_value(row).unwrap()
}

fn purges(rows: &[(Option<Uuid>, PurgeTarget)]) -> Purges {
    let row = |(n, (workspace, target)): (usize, &(Option<Uuid>, PurgeTarget))| CachePurge {
        id: Uuid::from_u128(100 + n as u128),
        organisation_id: OrganisationId::new(ORGANISATION),
        workspace_id: workspace.map(WorkspaceId::new),
        target: *target,
        purged_at: DateTime::<Utc>::from_timestamp_millis(PURGED_MS).unwrap(),
    };
    let workspaces = vec![workspace(HOME, ORGANISATION), workspace(NEXT_DOOR, Uuid::from_u128(9))];
    let rows = rows.iter().enumerate().map(row).collect();
    Purges { snapshot: Arc::new(Snapshot::with_rows(Vec::new(), workspaces).with_cache_purges(rows)) }
}

fn tags() -> Tags {
    Tags { namespace: Some(purge_tag("team")), config: Some(Uuid::from_u128(7)), user: Some(purge_tag("ada")) }
}

#[test]
fn an_answer_is_purged_by_any_of_its_marks_in_its_workspace() {
    for (purge, is_purged) in [
        ((Some(HOME), PurgeTarget::All), true),
        ((Some(HOME), PurgeTarget::Namespace(purge_tag("team"))), true),
        ((Some(HOME), PurgeTarget::Config(Uuid::from_u128(7))), true),
        ((Some(HOME), PurgeTarget::User(purge_tag("ada"))), true),
        ((None, PurgeTarget::User(purge_tag("ada"))), true),
        ((None, PurgeTarget::All), true),
        ((Some(HOME), PurgeTarget::Namespace(purge_tag("ada"))), false),
        ((Some(HOME), PurgeTarget::Config(Uuid::from_u128(8))), false),
        ((Some(HOME), PurgeTarget::User(purge_tag("team"))), false),
        ((Some(Uuid::from_u128(4)), PurgeTarget::All), false),
    ] {
        let purges = purges(&[purge]);
        assert_eq!(purges.is_purged(HOME, &tags(), PURGED_MS), is_purged, "{purge:?}");
        assert!(!purges.is_purged(NEXT_DOOR, &tags(), PURGED_MS), "of another organisation: {purge:?}");
        assert!(!purges.is_purged(HOME, &tags(), PURGED_MS + MARGIN_MS), "stored later: {purge:?}");
    }
}

#[test]
fn an_answer_without_marks_is_purged_with_everything_alone() {
    let narrow = purges(&[(Some(HOME), PurgeTarget::Namespace(purge_tag("team"))), (None, PurgeTarget::User([0; 16]))]);
    assert!(!narrow.is_purged(HOME, &Tags::default(), 0));
    assert!(purges(&[(Some(HOME), PurgeTarget::All)]).is_purged(HOME, &Tags::default(), 0));
}

#[test]
fn what_was_stored_just_after_a_purge_counts_as_before_it() {
    let purges = purges(&[(Some(HOME), PurgeTarget::All)]);
    for (stored, is_purged) in [(-5000, true), (0, true), (1_999, true), (2_000, false)] {
        assert_eq!(purges.is_purged(HOME, &tags(), PURGED_MS + stored), is_purged, "{stored}");
    }
}
