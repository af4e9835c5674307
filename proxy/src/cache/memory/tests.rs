//! The memory of the cache stays within its bound and is fair between organisations and their workspaces.

use super::*;
use crate::cache::entry::tests::entry;
use bytes::Bytes;

const MIB: usize = 1 << 20;
const NOW: i64 = 2_000;

fn key(workspace: u128, number: u32) -> CacheKey {
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&number.to_le_bytes());
    // Spread as a hash would.
    digest[31] = (number.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0];
    CacheKey { tenant: Tenant::test(workspace, workspace), digest }
}

fn find(memory: &Memory, key: &CacheKey, now_ms: i64) -> Option<Arc<Entry>> {
    memory.find(key, now_ms, 0, |_| true)
}

fn sized(bytes: usize) -> Arc<Entry> {
    Arc::new(Entry { body: Bytes::from(vec![b'x'; bytes]), ..entry(b"") })
}

#[test]
fn an_entry_is_found_until_it_expires_and_by_its_own_workspace_alone() {
    let memory = Memory::new(MIB);
    memory.store(key(1, 1), sized(10), NOW);
    assert!(find(&memory, &key(1, 1), NOW).is_some());
    assert!(find(&memory, &key(2, 1), NOW).is_none());
    assert!(find(&memory, &key(1, 2), NOW).is_none());
    assert!(find(&memory, &key(1, 1), 60_999).is_some());
    assert!(find(&memory, &key(1, 1), 61_000).is_none());
    memory.retain(|_, entry| !entry.is_expired(61_000));
    assert_eq!(memory.size(), (0, 0));
}

#[test]
fn whether_an_entry_counts_is_asked_once_for_each_version() {
    let memory = Memory::new(MIB);
    memory.store(key(1, 1), sized(10), NOW);
    let found = |version, counts: fn(&Entry) -> bool| memory.find(&key(1, 1), NOW, version, counts).is_some();
    assert!(!found(0, |_| false), "it was never asked");
    assert!(found(0, |_| true) && found(0, |_| false), "it was asked in this version");
    assert!(!found(1, |_| false) && !found(1, |_| false));
    memory.store(key(1, 1), sized(10), NOW);
    assert!(!found(0, |_| false), "it is another one");
}

#[test]
fn a_hundred_thousand_entries_stay_within_the_bound_and_use_it() {
    let bound = 64 * MIB;
    let memory = Memory::new(bound);
    for number in 0..100_000 {
        memory.store(key(u128::from(number % 7), number), sized(2_048), NOW);
    }
    let (bytes, entries) = memory.size();
    assert!(bytes <= bound && bytes > bound / 10 * 9, "{bytes} bytes");
    assert_eq!(entries, bytes / sized(2_048).weight());
    assert_eq!(memory.evicted(), 100_000 - u64::try_from(entries).unwrap());
}

/// Of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
}

#[test]
fn a_hundred_thousand_entries_take_as_much_memory_as_they_are_weighed_for() {
    let bound = 224 * MIB;
    let memory = Memory::new(bound);
    let said = |number: u32| Entry {
        body: Bytes::from(vec![b'x'; 2_048]),
        content_type: String::from("application/json"),
        usage: vec![format!(r#"{{"prompt_tokens":{number},"completion_tokens":2,"total_tokens":3}}"#)],
        ..entry(b"")
    };
    let before = resident();
    for number in 0..100_000 {
        memory.store(key(u128::from(number % 7), number), Arc::new(said(number)), NOW);
    }
    let taken = resident() - before;
    let (bytes, _) = memory.size();
    assert!(bytes <= bound && bytes > bound / 10 * 9, "{bytes} bytes");
    assert!(taken <= bound / 10 * 11, "{taken} bytes are taken by what was weighed as {bytes}");
}

#[test]
fn a_tenant_that_writes_ten_times_the_bound_leaves_the_entries_of_others_alone() {
    let memory = Memory::new(16 * MIB);
    let mine = 1_000;
    for number in 0..mine {
        memory.store(key(1, number), sized(2_048), NOW);
        memory.store(key(2, number), sized(2_048), NOW);
    }
    for number in 0..80_000 {
        memory.store(key(3, number), sized(2_048), NOW);
    }
    for number in 0..mine {
        assert!(
            find(&memory, &key(1, number), NOW).is_some() && find(&memory, &key(2, number), NOW).is_some(),
            "{number}"
        );
    }
    let (bytes, _) = memory.size();
    assert!(bytes <= 16 * MIB && bytes > 15 * MIB);
}

#[test]
fn what_was_asked_for_outlives_what_was_not() {
    let memory = Memory::new(MIB);
    for number in 0..100 {
        memory.store(key(1, number), sized(4_096), NOW);
    }
    for number in 0..2_000 {
        assert!(find(&memory, &key(1, 0), NOW).is_some(), "before {number}");
        memory.store(key(1, 100 + number), sized(4_096), NOW);
    }
    assert!(find(&memory, &key(1, 1), NOW).is_none());
}

#[test]
fn an_entry_that_is_too_large_is_not_kept_and_replaces_nothing() {
    let memory = Memory::new(MIB);
    memory.store(key(1, 1), sized(10), NOW);
    memory.store(key(1, 2), sized(10), NOW);
    memory.store(key(1, 1), sized(memory.largest_entry()), NOW);
    assert!(find(&memory, &key(1, 1), NOW).is_none(), "an answer that is newer than it was given");
    assert!(find(&memory, &key(1, 2), NOW).is_some());
    assert_eq!(memory.size().1, 1);
}

#[test]
fn a_key_that_is_written_again_and_again_takes_no_more_room() {
    let memory = Memory::new(MIB);
    for round in 0..10_000 {
        memory.store(key(1, 1), sized(round % 100), NOW);
    }
    assert_eq!(memory.size(), (sized(9_999 % 100).weight(), 1));
    assert_eq!(memory.evicted(), 0);
    let room = memory.shards[0].read();
    assert_eq!(room.rooms[&Tenant::test(1, 1)].order.len(), 1);
}
