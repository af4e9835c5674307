//! Entries as they lie in Redis, without Redis.

use super::sealed::FORM;
use super::*;
use crate::runtime::tenant_share::Tenant;
use crate::snapshot::Catalog;
use prometheus::Registry;
use shared::secrets::seal::data_key::DataKey;
use shared::secrets::seal::{Keyring, MasterKeys};
use shared::settings;

const HOME: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);
const SAID: &[u8] = br#"{"choices":[{"message":{"content":"the launch code is 0000"}}]}"#;

fn key(workspace: u128, digest: u8) -> CacheKey {
    CacheKey { tenant: Tenant::test(workspace, workspace), digest: [digest; 32] }
}

fn sealer() -> Arc<Sealer> {
    let key = Keyring::generate("m").unwrap().trim().to_owned();
    let settings = settings::Sealing { gateway_master_key_file: None, gateway_master_key: Some(key) };
    Arc::new(Sealer::new(MasterKeys::load(&settings).unwrap()))
}

fn entries(sealer: &Arc<Sealer>, data_keys: Vec<DataKey>) -> SealedEntries {
    let catalog = Catalog { data_keys, ..Catalog::default() };
    let snapshot = Snapshot::with_rows(Vec::new(), Vec::new()).with_catalog(catalog);
    SealedEntries { snapshot: Arc::new(snapshot), sealer: sealer.clone() }
}

#[test]
fn an_entry_opens_for_its_organisation_and_its_key_alone() {
    let sealer = sealer();
    let data_keys = [HOME, OTHER].map(|organisation| sealer.new_data_key(organisation).unwrap());
    let entries = entries(&sealer, data_keys.into());
    let stored = entries.seal(HOME, &key(7, 1), SAID).unwrap();
    assert_eq!(entries.open(HOME, &key(7, 1), &stored).as_deref(), Some(SAID));
    for (organisation, key) in [(OTHER, key(7, 1)), (HOME, key(8, 1)), (HOME, key(7, 2))] {
        assert_eq!(entries.open(organisation, &key, &stored), None, "moved to {organisation} {key:?}");
    }
    for part in [&b"launch"[..], b"content", b"0000"] {
        assert!(!stored.windows(part.len()).any(|found| found == part), "readable in Redis");
    }
}

#[test]
fn what_is_damaged_or_of_another_form_is_no_entry() {
    let sealer = sealer();
    let entries = entries(&sealer, vec![sealer.new_data_key(HOME).unwrap()]);
    let stored = entries.seal(HOME, &key(7, 1), SAID).unwrap();
    for at in 0..stored.len() {
        let mut bent = stored.clone();
        bent[at] ^= 1;
        assert_eq!(entries.open(HOME, &key(7, 1), &bent), None, "byte {at}");
        assert_eq!(entries.open(HOME, &key(7, 1), &stored[..at]), None, "cut at {at}");
    }
    let mut newer = stored;
    newer[0] = FORM + 1;
    assert_eq!(entries.open(HOME, &key(7, 1), &newer), None);
}

#[test]
fn a_replaced_data_key_opens_until_it_is_gone_and_seals_no_more() {
    let sealer = sealer();
    let old = sealer.new_data_key(HOME).unwrap();
    let stored = entries(&sealer, vec![old.clone()]).seal(HOME, &key(7, 1), SAID).unwrap();
    let new = sealer.new_data_key(HOME).unwrap();
    let retired = DataKey { is_active: false, ..old.clone() };
    let rotated = entries(&sealer, vec![retired, new.clone()]);
    assert_eq!(rotated.open(HOME, &key(7, 1), &stored).as_deref(), Some(SAID));
    let again = rotated.seal(HOME, &key(7, 1), SAID).unwrap();
    let rotated = entries(&sealer, vec![new]);
    assert_eq!(rotated.open(HOME, &key(7, 1), &stored), None);
    assert_eq!(rotated.open(HOME, &key(7, 1), &again).as_deref(), Some(SAID));
}

#[test]
fn without_a_key_to_seal_with_nothing_is_stored() {
    let sealer = sealer();
    assert_eq!(entries(&sealer, Vec::new()).seal(HOME, &key(7, 1), SAID), None);
    let foreign = sealer.new_data_key(OTHER).unwrap();
    assert_eq!(entries(&sealer, vec![foreign]).seal(HOME, &key(7, 1), SAID), None);
}

fn store(url: &str) -> Arc<RemoteStore> {
    let settings = CacheStoreSettings { cache_store: CacheStoreKind::Redis, cache_wait_ms: 20 };
    let meters = Arc::new(RemoteMeters::new(&Registry::new()).unwrap());
    let snapshot = Arc::new(Snapshot::empty());
    RemoteStore::from_settings(&settings, Some(url), snapshot, sealer(), meters).unwrap()
}

#[tokio::test]
async fn a_store_that_was_never_reached_is_away_and_what_is_too_long_is_not_queued() {
    let store = store("redis://127.0.0.1:1");
    assert_eq!(store.get(HOME, &key(7, 1)).await, Remote::Away);
    assert_eq!(store.meters.skipped.get(), 1);
    store.put(HOME, key(7, 1), vec![0; MAX_SIZE + 1], Duration::from_secs(60));
    assert_eq!((store.meters.too_large.get(), store.meters.dropped.get()), (1, 0));
    let whole = 32 << 20;
    for _ in 0..=(whole / MAX_SIZE) {
        store.put(HOME, key(7, 1), vec![0; MAX_SIZE], Duration::from_secs(60));
    }
    assert!(store.meters.dropped.get() >= 1, "the queue is bounded");
}

#[tokio::test]
async fn what_is_long_once_it_is_packed_is_not_stored_and_what_packs_well_is() {
    let sealer = sealer();
    let data_key = sealer.new_data_key(HOME).unwrap();
    let mut store = Arc::into_inner(store("redis://127.0.0.1:1")).unwrap();
    store.sealed = entries(&sealer, vec![data_key]);
    let mut seed = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed.to_be_bytes()[0]
    })
    .take(MAX_STORED + 1)
    .collect();
    let write = |encoded| PendingWrite { organisation: HOME, key: key(7, 1), encoded, ttl: Duration::from_secs(60) };
    assert_eq!(store.stored(&write(noise.clone())), Some(Vec::new()));
    assert_eq!(store.meters.too_large.get(), 1);
    assert_eq!(store.stored(&write(Vec::new())), Some(Vec::new()), "nothing takes its place");
    for entry in [vec![b'x'; MAX_SIZE], noise[..MAX_STORED / 2].to_vec()] {
        let stored = store.stored(&write(entry.clone())).unwrap();
        assert!(!stored.is_empty());
        assert_eq!(store.opened(HOME, key(7, 1), stored).await, Some(entry));
    }
    assert_eq!(store.meters.too_large.get(), 1);
}

#[test]
fn redis_needs_an_address_and_memory_none() {
    for (kind, url, is_sound) in [
        (CacheStoreKind::Memory, None, true),
        (CacheStoreKind::Memory, Some("redis://a"), true),
        (CacheStoreKind::Redis, Some("redis://a"), true),
        (CacheStoreKind::Redis, None, false),
    ] {
        let settings = CacheStoreSettings { cache_store: kind, cache_wait_ms: 20 };
        assert_eq!(check(&settings, url).is_ok(), is_sound, "{kind:?} {url:?}");
    }
}

#[test]
fn names_tell_workspaces_and_digests_apart_and_share_no_slot_by_force() {
    let names: std::collections::HashSet<_> = [key(7, 1), key(7, 2), key(8, 1)].iter().map(name).collect();
    assert_eq!(names.len(), 3);
    assert!(names.iter().all(|name| name.starts_with("portcullis:cache:v1:") && !name.contains('{')));
}
