//! How long a verified token is remembered.

use super::*;
use shared::model::{AccessStatus, KeyKind};
use std::time::Duration;
use uuid::Uuid;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn verified_with(organisation: &Arc<Organisation>, lives: i64, keys: &Arc<WebKeySet>, fresh_for: Duration) -> Verified {
    let token = VerifiedToken {
        id: Uuid::nil(),
        organisation_id: organisation.id.uuid(),
        workspace: "w".into(),
        scopes: [].into(),
        expires_at: now() + TimeDelta::seconds(lives) - shared::identity::jwt::claims::LEEWAY,
        person: None,
        jti: None,
        config_id: None,
        metadata: Default::default(),
        usage_limits: Vec::new(),
        rate_limits: Vec::new(),
    };
    let key = ApiKey {
        id: Uuid::nil().into(),
        organisation_id: organisation.id,
        workspace_id: None,
        user_id: None,
        kind: KeyKind::Jwt,
        hash: KeyHash([0; 32]),
        scopes: [].into(),
        status: AccessStatus::Active,
        expires_at: None,
        previous: None,
        limits: None,
        defaults: None,
    };
    let current = Current { keys: keys.clone(), fresh_for };
    Verified::new(organisation.clone(), Arc::new(key), Arc::new(token), current, now())
}

fn verified(organisation: &Arc<Organisation>, lives: i64) -> Verified {
    verified_with(organisation, lives, &Arc::default(), Duration::MAX)
}

#[test]
fn a_token_is_remembered_until_it_ends_at_most_five_minutes_and_while_its_organisation_is_unchanged() {
    let row = Organisation { id: Uuid::new_v4().into(), ..Organisation::default() };
    let snapshot = Snapshot::with_rows(Vec::new(), Vec::new()).with_organisations(vec![row.clone()]);
    let organisation = snapshot.organisation(&row.id).unwrap();
    let (memory, hash) = (Memory::new(), KeyHash([7; 32]));
    for (lives, after, found) in
        [(3600, 0, true), (3600, 299, true), (3600, 300, false), (100, 99, true), (100, 100, false)]
    {
        memory.keep(hash, verified(&organisation, lives), now());
        let kept = memory.find(&hash, &snapshot, now() + TimeDelta::seconds(after));
        assert_eq!(kept.is_some(), found, "lives {lives} s, asked after {after} s");
    }
    memory.keep(hash, verified(&organisation, 3600), now());
    assert!(memory.find(&KeyHash([8; 32]), &snapshot, now()).is_none());
    let changed = snapshot.with_organisations(vec![row]);
    assert!(memory.find(&hash, &changed, now()).is_none(), "the organisation was written anew");
}

#[test]
fn a_token_is_forgotten_when_its_keys_are_replaced_or_due_to_be_asked_for() {
    let row = Organisation { id: Uuid::new_v4().into(), ..Organisation::default() };
    let snapshot = Snapshot::with_rows(Vec::new(), Vec::new()).with_organisations(vec![row.clone()]);
    let organisation = snapshot.organisation(&row.id).unwrap();
    let (memory, hash, keys) = (Memory::new(), KeyHash([7; 32]), Arc::new(WebKeySet::default()));
    memory.keep(hash, verified_with(&organisation, 3600, &keys, Duration::from_secs(20)), now());
    for (after, found) in [(19, true), (20, false)] {
        let kept = memory.find(&hash, &snapshot, now() + TimeDelta::seconds(after));
        assert_eq!(kept.is_some(), found, "asked after {after} s");
    }
    keys.withdraw();
    assert!(memory.find(&hash, &snapshot, now()).is_none(), "its key may be withdrawn");
}

#[test]
fn the_memory_is_bounded() {
    let organisation = Arc::new(Organisation::default());
    let memory = Memory::new();
    for n in 0..4 * MAX_IN_PART as u32 {
        let mut hash = [0; 32];
        hash[4..8].copy_from_slice(&n.to_be_bytes());
        memory.keep(KeyHash(hash), verified(&organisation, 3600), now());
    }
    assert!(memory.0[0].read().len() <= MAX_IN_PART);
}
