//! Changes as the feed hands them over, applied to keys in memory.

use super::*;
use shared::identity::api_key::KeyHash;
use shared::model::{AccessStatus, ApiKey, KeyKind, PreviousSecret};

fn key(id: u128, secret: &str) -> ApiKey {
    ApiKey {
        id: Uuid::from_u128(id).into(),
        organisation_id: Uuid::from_u128(1).into(),
        workspace_id: None,
        user_id: None,
        kind: KeyKind::OrganisationService,
        hash: KeyHash::from_key(secret.as_bytes()),
        scopes: ["completions.write".into()].into(),
        status: AccessStatus::Active,
        expires_at: None,
        previous: None,
        limits: None,
        defaults: None,
    }
}

fn loaded(rows: &[(u128, &str)]) -> Collection<ApiKey> {
    let keys = Collection::empty();
    keys.replace(rows.iter().map(|(id, secret)| key(*id, secret)).collect());
    keys
}

/// Which row each of these secrets opens.
fn opened(keys: &Collection<ApiKey>, secrets: &[&str]) -> Vec<Option<u128>> {
    secrets
        .iter()
        .map(|secret| keys.find(&KeyHash::from_key(secret.as_bytes())).map(|key| key.id.uuid().as_u128()))
        .collect()
}

#[test]
fn a_rotated_key_opens_with_its_new_secret_only() {
    let keys = loaded(&[(1, "old"), (2, "other")]);
    let merged = keys.merge(&[], vec![key(1, "new")]);
    assert_eq!(opened(&keys, &["old", "new", "other"]), [None, Some(1), Some(2)]);
    assert_eq!((merged.put, merged.removed, keys.len()), (1, 0, 2));
}

#[test]
fn a_rotated_key_opens_with_both_secrets_until_it_is_written_without_the_first() {
    let rotated = |id, secret: &str, previous: &str| {
        let expires_at = chrono::DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let previous = PreviousSecret { hash: KeyHash::from_key(previous.as_bytes()), expires_at };
        ApiKey { previous: Some(Box::new(previous)), ..key(id, secret) }
    };
    let keys = loaded(&[(1, "a"), (2, "other")]);
    let merged = keys.merge(&[], vec![rotated(1, "b", "a")]);
    assert_eq!(opened(&keys, &["a", "b", "other"]), [Some(1), Some(1), Some(2)]);
    assert_eq!((merged.put, merged.removed, keys.len()), (1, 0, 2));
    let mut copy = Vec::new();
    assert_eq!(keys.frozen().write(&mut copy).unwrap(), 2, "a row is written once");
    keys.merge(&[], vec![rotated(1, "c", "b")]);
    assert_eq!(opened(&keys, &["a", "b", "c"]), [None, Some(1), Some(1)]);
    keys.merge(&[], vec![key(1, "c")]);
    assert_eq!(opened(&keys, &["b", "c"]), [None, Some(1)]);
    keys.replace(vec![rotated(1, "e", "d")]);
    assert_eq!(opened(&keys, &["c", "d", "e"]), [None, Some(1), Some(1)]);
    assert_eq!(keys.merge(&[Uuid::from_u128(1)], vec![]).removed, 1);
    assert_eq!((opened(&keys, &["d", "e"]), keys.len()), (vec![None, None], 0));
}

#[test]
fn a_secret_may_pass_from_one_row_to_another_in_one_batch() {
    for rows in [vec![key(1, "b"), key(2, "a")], vec![key(2, "a"), key(1, "b")]] {
        let keys = loaded(&[(1, "a")]);
        keys.merge(&[], rows);
        assert_eq!(opened(&keys, &["a", "b"]), [Some(2), Some(1)]);
    }
}

#[test]
fn a_deleted_row_is_gone_and_deleting_it_again_changes_nothing() {
    let keys = loaded(&[(1, "a"), (2, "b")]);
    assert_eq!(keys.merge(&[Uuid::from_u128(1)], vec![]).removed, 1);
    assert_eq!(keys.merge(&[Uuid::from_u128(1)], vec![]), Merged::default());
    assert_eq!((opened(&keys, &["a", "b"]), keys.len()), (vec![None, Some(2)], 1));
}

#[test]
fn a_row_deleted_and_made_again_in_one_batch_lives() {
    let keys = loaded(&[(1, "a")]);
    keys.merge(&[Uuid::from_u128(1)], vec![key(1, "b")]);
    assert_eq!(opened(&keys, &["a", "b"]), [None, Some(1)]);
}

#[test]
fn merging_the_same_rows_twice_is_as_merging_them_once() {
    let keys = loaded(&[(1, "a"), (3, "c")]);
    for _ in 0..2 {
        keys.merge(&[Uuid::from_u128(3)], vec![key(1, "new"), key(2, "b")]);
        assert_eq!(opened(&keys, &["a", "new", "b", "c"]), [None, Some(1), Some(2), None]);
        assert_eq!(keys.len(), 2);
    }
}

#[test]
fn a_change_of_one_key_among_200_000_copies_one_shard_and_a_rotation_two() {
    let keys = Collection::empty();
    keys.replace((0..200_000).map(|n| key(n, &n.to_string())).collect());
    let mut revoked = key(7, "7");
    revoked.status = AccessStatus::Archived;
    assert_eq!(keys.merge(&[], vec![revoked]).shards, 1);
    assert_eq!(keys.find(&KeyHash::from_key(b"7")).unwrap().status, AccessStatus::Archived);
    assert!(keys.merge(&[], vec![key(7, "seven")]).shards <= 2);
    assert_eq!(keys.len(), 200_000);
}

#[test]
fn rows_come_back_from_their_lines_as_they_were() {
    let keys = loaded(&[(1, "a"), (2, "b")]);
    let mut text = Vec::new();
    assert_eq!(keys.frozen().write(&mut text).unwrap(), 2);
    let copy: Collection<ApiKey> = Collection::empty();
    let mut incoming = copy.incoming();
    for line in String::from_utf8(text).unwrap().lines() {
        let (table, json) = line.split_once(' ').unwrap();
        assert_eq!(table, "api_keys");
        incoming.line(json).unwrap();
    }
    incoming.replace();
    for secret in ["a", "b"] {
        let hash = KeyHash::from_key(secret.as_bytes());
        assert_eq!(copy.find(&hash), keys.find(&hash));
    }
    assert_eq!(copy.len(), 2);
}
