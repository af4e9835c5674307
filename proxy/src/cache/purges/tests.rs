//! Which answers a purge concerns, as tables.

use super::*;
use crate::cache::entry::CacheKey;
use crate::cache::keeper::{AnswerForm, Keeper, StoreTerms};
use crate::cache::store::{Cache, Found};
use crate::runtime::tenant_share::Tenant;
use crate::wire::codecs::AnswerOptions;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderValue, header};
use serde_json::json;
use shared::model::id::OrganisationId;
use shared::model::{CachePurge, Workspace, purge_tag};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

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
    let snapshot = Arc::new(Snapshot::with_rows(Vec::new(), workspaces).with_cache_purges(rows));
    Purges { snapshot, database_clock: Arc::new(|| PURGED_MS - 1) }
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
        assert!(!purges.is_purged(HOME, &tags(), PURGED_MS + MARGIN_MS), "asked later: {purge:?}");
    }
}

#[test]
fn an_answer_without_marks_is_purged_with_everything_alone() {
    let narrow = purges(&[(Some(HOME), PurgeTarget::Namespace(purge_tag("team"))), (None, PurgeTarget::User([0; 16]))]);
    assert!(!narrow.is_purged(HOME, &Tags::default(), 0));
    assert!(purges(&[(Some(HOME), PurgeTarget::All)]).is_purged(HOME, &Tags::default(), 0));
}

#[test]
fn what_was_asked_just_after_a_purge_counts_as_before_it() {
    let purges = purges(&[(Some(HOME), PurgeTarget::All)]);
    for (asked, is_purged) in [(-5000, true), (0, true), (1_999, true), (2_000, false)] {
        assert_eq!(purges.is_purged(HOME, &tags(), PURGED_MS + asked), is_purged, "{asked}");
    }
}

/// The clock of this machine may be anywhere, and the call may end long after the purge.
#[tokio::test]
async fn an_answer_carries_the_beginning_of_its_call_by_the_clock_that_stamps_purges() {
    for (database_ms, is_kept) in [(PURGED_MS - 60_000, false), (PURGED_MS, false), (PURGED_MS + MARGIN_MS, true)] {
        let mut purges = purges(&[(Some(HOME), PurgeTarget::All)]);
        let now = Arc::new(AtomicI64::new(database_ms));
        let clock = now.clone();
        purges.database_clock = Arc::new(move || clock.load(Relaxed));
        let cache = Arc::new(Cache::new(1 << 20).backed_by(None, purges));
        let key = CacheKey { tenant: Tenant { organisation: ORGANISATION, workspace: HOME }, digest: [1; 32] };
        let mut keeper = keeper_of(&cache, key);
        let json = HeaderValue::from_static("application/json");
        assert!(keeper.begins(200, &HeaderMap::from_iter([(header::CONTENT_TYPE, json)])));
        keeper.plain(&Bytes::from_static(b"{\"answer\":1}"));
        now.fetch_add(600_000, Relaxed);
        keeper.keep();
        let found = cache.find(OrganisationId::new(ORGANISATION), &key).await;
        assert_eq!(matches!(found, Found::Entry(_)), is_kept, "asked {} ms after the purge", database_ms - PURGED_MS);
    }
}

fn keeper_of(cache: &Arc<Cache>, key: CacheKey) -> Keeper {
    let options = AnswerOptions {
        is_strict: false,
        id: "made".into(),
        created: 1,
        model: "m".into(),
        provider: "".into(),
        include_usage: false,
        request: None,
    };
    let terms = StoreTerms {
        organisation: OrganisationId::new(ORGANISATION),
        key,
        tags: Tags::default(),
        max_age: Duration::from_secs(60),
        form: AnswerForm { client: None, provider: None, options, is_speech: false },
        asked: Bytes::new(),
    };
    Keeper::new(cache.clone(), terms, None)
}
