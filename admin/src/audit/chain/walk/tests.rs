//! Every way to tamper with a chain, on a chain of five.

use super::*;

fn id(n: i64) -> Uuid {
    Uuid::from_u128(n as u128)
}

fn chained(before: ChainEnd, text: &str) -> (ChainedRecord, ChainEnd) {
    let fields = vec![Some(text.to_owned()), None];
    let end = before.with(&fields);
    let (previous_hash, hash) = (before.hash.to_vec(), end.hash.to_vec());
    (ChainedRecord { id: id(end.sequence), sequence: end.sequence, previous_hash, hash, fields }, end)
}

fn five() -> (Vec<ChainedRecord>, ChainEnd) {
    let mut end = ChainEnd::BEGINNING;
    let mut records = Vec::new();
    for text in ["a", "b", "c", "d", "e"] {
        let (record, next) = chained(end, text);
        records.push(record);
        end = next;
    }
    (records, end)
}

fn found(records: &[ChainedRecord], known: Option<ChainEnd>, anchor: Option<ChainEnd>) -> Vec<ChainFinding> {
    let mut walk = ChainWalk::new(anchor);
    records.iter().for_each(|record| walk.step(record));
    walk.end(known)
}

/// Computes the hashes anew from the record at `from` on, as somebody would who knows how.
fn recomputed(records: &mut [ChainedRecord], from: usize) -> ChainEnd {
    let mut end = ChainEnd::BEGINNING;
    for (n, record) in records.iter_mut().enumerate() {
        if n >= from {
            record.previous_hash = end.hash.to_vec();
            record.hash = end.with(&record.fields).hash.to_vec();
        }
        end = ChainEnd { sequence: record.sequence, hash: record.hash.as_slice().try_into().unwrap() };
    }
    end
}

#[test]
fn a_chain_that_nobody_touched_has_no_findings() {
    let (records, end) = five();
    assert_eq!(found(&records, Some(end), Some(end)), []);
    assert_eq!(found(&[], None, None), []);
    let third = ChainEnd { sequence: 3, hash: records[2].hash.as_slice().try_into().unwrap() };
    assert_eq!(found(&records, Some(end), Some(third)), []);
}

#[test]
fn an_edit_is_found_at_its_record() {
    for n in 0..5 {
        let (mut records, end) = five();
        records[n].fields[0] = Some("x".into());
        let sequence = n as i64 + 1;
        assert_eq!(found(&records, Some(end), None), [ChainFinding::Edited { sequence, id: id(sequence) }]);
    }
}

#[test]
fn an_edit_with_a_new_hash_is_found_at_the_next_record_or_at_the_end() {
    for n in 0..5 {
        let (mut records, end) = five();
        records[n].fields[0] = Some("x".into());
        let record = &mut records[n];
        record.hash = hash(&record.previous_hash, record.sequence, &record.fields).to_vec();
        let next = n as i64 + 2;
        let expected = if n == 4 {
            ChainFinding::OtherEnd { sequence: 5 }
        } else {
            ChainFinding::Unlinked { sequence: next, id: id(next) }
        };
        assert_eq!(found(&records, Some(end), None), [expected]);
    }
}

#[test]
fn a_gap_is_found_wherever_it_is() {
    for (from, to) in [(1, 1), (1, 3), (2, 2), (3, 4), (5, 5), (4, 5), (1, 5)] {
        let (mut records, end) = five();
        records.retain(|record| !(from..=to).contains(&record.sequence));
        assert_eq!(found(&records, Some(end), None), [ChainFinding::Missing { from, to }]);
    }
}

#[test]
fn a_gap_that_was_closed_by_new_numbers_is_found() {
    let (mut records, end) = five();
    records.remove(1);
    for (n, record) in records.iter_mut().enumerate() {
        record.sequence = n as i64 + 1;
    }
    let findings = found(&records, Some(end), None);
    assert_eq!(findings.first(), Some(&ChainFinding::Edited { sequence: 2, id: id(3) }), "{findings:?}");
    assert_eq!(findings.last(), Some(&ChainFinding::Missing { from: 5, to: 5 }), "{findings:?}");
}

#[test]
fn an_added_record_is_found() {
    let (mut records, end) = five();
    let extra = ChainedRecord { id: id(9), ..records[2].clone() };
    records.insert(3, extra);
    assert_eq!(found(&records, Some(end), None), [ChainFinding::Added { sequence: 3, id: id(9) }]);
    let (mut records, end) = five();
    records.push(chained(end, "f").0);
    assert_eq!(found(&records, Some(end), None), [ChainFinding::OtherEnd { sequence: 5 }]);
}

#[test]
fn a_chain_computed_anew_is_found_by_its_end_and_with_a_new_end_by_an_anchor() {
    let (mut records, end) = five();
    records[1].fields[0] = Some("x".into());
    let new_end = recomputed(&mut records, 1);
    assert_eq!(found(&records, Some(end), None), [ChainFinding::OtherEnd { sequence: 5 }]);
    assert_eq!(found(&records, Some(new_end), None), []);
    assert_eq!(found(&records, Some(new_end), Some(end)), [ChainFinding::OtherAnchor { sequence: 5 }]);
    assert_eq!(found(&records[..3], None, Some(end)).last(), Some(&ChainFinding::Missing { from: 4, to: 5 }));
}

#[test]
fn a_chain_whose_end_was_forgotten_is_not_whole() {
    assert_eq!(found(&five().0, None, None), [ChainFinding::NoEnd]);
}
