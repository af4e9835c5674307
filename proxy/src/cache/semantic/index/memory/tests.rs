//! The index in memory finds the nearest, forgets what it must, and stays within its bound.

use super::*;
use crate::cache::semantic::lexical::Guard;
use crate::runtime::tenant_share::Tenant;

fn asked(workspace: u128, partition: u8, values: &[f32], text: &str) -> AskedVector {
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    AskedVector {
        partition: Partition { tenant: Tenant::test(workspace, workspace), digest: [partition; 32] },
        values: values.iter().map(|value| value / length).collect(),
        marks: LexicalMarks::read(text),
    }
}

fn key(workspace: u128, digest: u8) -> CacheKey {
    CacheKey { tenant: Tenant::test(workspace, workspace), digest: [digest; 32] }
}

fn nearness(threshold: f32, now_ms: i64) -> Nearness {
    Nearness { threshold, guard: Guard::Marks, now_ms, most: 8 }
}

fn found(index: &MemoryIndex, asked: &AskedVector, threshold: f32, now_ms: i64) -> Vec<u8> {
    let rows = index.rows(asked.partition.tenant);
    let found = rows.map(|rows| rows.read().found(asked, nearness(threshold, now_ms))).unwrap_or_default();
    found.iter().map(|key| key.digest[0]).collect()
}

#[test]
fn the_nearest_come_first_and_the_far_not_at_all() {
    let index = MemoryIndex::new(1 << 20);
    for (digest, values) in [(1, [1.0, 0.3]), (2, [1.0, 0.1]), (3, [0.0, 1.0])] {
        index.insert(asked(1, 0, &values, "text"), key(1, digest), 100);
    }
    let question = asked(1, 0, &[1.0, 0.0], "text");
    assert_eq!(found(&index, &question, 0.9, 0), [2, 1]);
    assert_eq!(found(&index, &question, 0.99, 0), [2]);
    assert_eq!(found(&index, &question, 0.9, 100), [0_u8; 0], "their time is over");
    let guarded = asked(1, 0, &[1.0, 0.0], "text 2");
    assert_eq!(found(&index, &guarded, 0.9, 0), [0_u8; 0], "a number that was not there");
}

#[test]
fn workspaces_and_partitions_never_meet() {
    let index = MemoryIndex::new(1 << 20);
    for workspace in 1..=3 {
        for partition in 1..=3 {
            let digest = u8::try_from(workspace * 10).unwrap() + partition;
            index.insert(asked(workspace, partition, &[1.0, 0.0], "t"), key(workspace, digest), 100);
        }
    }
    for workspace in 1..=3 {
        for partition in 1..=3 {
            let digest = u8::try_from(workspace * 10).unwrap() + partition;
            assert_eq!(found(&index, &asked(workspace, partition, &[1.0, 0.0], "t"), 0.0, 0), [digest]);
        }
    }
    index.insert(asked(1, 9, &[1.0, 0.0], "t"), key(2, 99), 100);
    assert_eq!(found(&index, &asked(1, 9, &[1.0, 0.0], "t"), 0.0, 0), [0_u8; 0], "a key of another workspace");
}

#[test]
fn a_key_is_there_once_and_what_is_removed_is_gone() {
    let index = MemoryIndex::new(1 << 20);
    let question = asked(1, 0, &[1.0, 0.0], "t");
    index.insert(question.clone(), key(1, 1), 100);
    let once = index.bytes();
    index.insert(question.clone(), key(1, 1), 200);
    assert_eq!(index.bytes(), once);
    assert_eq!(found(&index, &question, 0.5, 150), [1], "the later time counts");
    index.forget(question.partition, &[key(1, 1)]);
    assert_eq!((found(&index, &question, 0.5, 0), index.bytes()), (Vec::new(), 0));
}

#[test]
fn one_workspace_cannot_push_out_the_others() {
    let one = weight(&Quantised::new(&[1.0, 0.0]), &LexicalMarks::read("t"));
    let index = MemoryIndex::new(one * 20);
    for digest in 0..5 {
        index.insert(asked(1, 0, &[1.0, 0.0], "t"), key(1, digest), 100);
    }
    for round in 0..200_u8 {
        index.insert(asked(2, round, &[1.0, 0.0], "t"), key(2, round), 100);
    }
    assert!(index.bytes() <= one * 20);
    assert_eq!(found(&index, &asked(1, 0, &[1.0, 0.0], "t"), 0.5, 0).len(), 5);
    assert_eq!(found(&index, &asked(2, 199, &[1.0, 0.0], "t"), 0.5, 0), [199], "its newest is there");
    assert_eq!(found(&index, &asked(2, 0, &[1.0, 0.0], "t"), 0.5, 0), [0_u8; 0], "its oldest is not");
}

#[test]
fn a_partition_is_bounded_and_a_sweep_gives_memory_back() {
    let index = MemoryIndex::new(1 << 30);
    for number in 0..MAX_ROWS + 10 {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&(number as u64).to_be_bytes());
        let key = CacheKey { tenant: Tenant::test(1, 1), digest };
        index.insert(asked(1, 0, &[1.0, 0.0], "t"), key, 100);
    }
    let one = weight(&Quantised::new(&[1.0, 0.0]), &LexicalMarks::read("t"));
    assert_eq!(index.bytes(), one * MAX_ROWS);
    index.give_back(99);
    assert_eq!(index.bytes(), one * MAX_ROWS);
    index.give_back(100);
    assert_eq!((index.bytes(), index.workspaces.read().len()), (0, 0));
}
