//! Which names and values of metadata are kept, and what is left to the logs.

use super::super::pack::SlotValues;
use super::super::slot_dimension::SlotDimension;
use super::*;
use crate::log_store::Packer;
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

fn slot() -> DateTime<Utc> {
    "2026-01-15T10:30:00Z".parse().unwrap()
}

fn call(second: u32) -> CountedCall<'static> {
    CountedCall {
        organisation_id: Uuid::nil(),
        workspace_id: Uuid::nil(),
        created_at: slot() + chrono::TimeDelta::seconds(second.into()),
        ai_org: None,
        ai_model: None,
        provider: None,
        config: None,
        prompt_slug: None,
        prompt_version_id: None,
        api_key_id: None,
        user: None,
        cache_status: "MISS",
        status_code: 200,
        is_success: true,
        response_time: 100,
        retries: 0,
        attempt: 0,
        req_units: 1,
        res_units: 2,
        cost: u128::from(second) + 1,
        saved: 0,
        guardrails: Vec::new(),
    }
}

/// Calls a second apart, by their metadata.
fn counted(metadata: &[&str], first: u32) -> SlotValues {
    let mut values = SlotValues::new(SlotDimension::Metadata);
    for (second, written) in (first..).zip(metadata) {
        values.add_pairs(&call(second), MetadataPairs::parse(written).as_ref());
    }
    values
}

fn stored(values: &SlotValues) -> Vec<u8> {
    super::super::pack::stored(&values.payload(slot()), &mut Packer::default())
}

/// Requests, cost and the last second by value; none where the slot does not have them.
fn read(values: &SlotValues, name: &str) -> Option<BTreeMap<String, (u64, u128, i64)>> {
    let mut found = BTreeMap::new();
    let last = |figures: &Figures| (figures.last_seen - slot().timestamp_micros()) / 1_000_000;
    let is_kept = read_name(&stored(values), slot(), name, |value, figures| {
        found.insert(value.to_owned(), (figures.requests, figures.cost, last(figures)));
    });
    is_kept.unwrap().then_some(found)
}

fn found(values: &[(&str, u64, u128, i64)]) -> Option<BTreeMap<String, (u64, u128, i64)>> {
    Some(values.iter().map(|(value, requests, cost, last)| ((*value).to_owned(), (*requests, *cost, *last))).collect())
}

#[test]
fn calls_without_a_name_are_under_the_empty_value() {
    let values = counted(&["{}", r#"{"team": "a", "n": 1.50}"#, r#"{"team": "", "n": true}"#, r#"{"team": "a"}"#], 0);
    assert_eq!(read(&values, "team"), found(&[("", 2, 4, 2), ("a", 2, 6, 3)]));
    assert_eq!(read(&values, "n"), found(&[("", 2, 5, 3), ("1.50", 1, 2, 1), ("true", 1, 3, 2)]));
    assert_eq!(read(&values, "tea"), found(&[("", 4, 10, 3)]));
    assert_eq!(read(&values, ""), found(&[("", 4, 10, 3)]));
}

#[test]
fn what_is_null_or_names_the_user_is_no_value() {
    let values = counted(&[r#"{"_user": "ada", "team": null, "of": {"a": [1, "x"]}}"#, r#"{"a\"b": "\u00e9\n"}"#], 0);
    assert_eq!(read(&values, "_user"), found(&[("", 2, 3, 1)]), "slots are divided by it already");
    assert_eq!(read(&values, "team"), found(&[("", 2, 3, 1)]));
    assert_eq!(read(&values, "of"), found(&[("", 1, 2, 1), (r#"{"a": [1, "x"]}"#, 1, 1, 0)]));
    assert_eq!(read(&values, "a\"b"), found(&[("", 1, 1, 0), ("é\n", 1, 2, 1)]));
}

#[test]
fn a_name_of_too_many_values_leaves_the_others_alone() {
    let written: Vec<String> = (0..=MAX_OF_A_NAME).map(|n| format!(r#"{{"id": "{n}", "team": "a"}}"#)).collect();
    let values = counted(&written.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    assert_eq!(read(&values, "id"), None);
    assert_eq!(read(&values, "team").unwrap()["a"].0, MAX_OF_A_NAME as u64 + 1);
    let mut merged = SlotValues::new(SlotDimension::Metadata);
    merged.merge(&stored(&values), slot()).unwrap();
    merged.merge(&stored(&counted(&[r#"{"id": "x"}"#], 0)), slot()).unwrap();
    assert_eq!(read(&merged, "id"), None, "what is not known of a part is not known of the whole");
    assert_eq!(read(&merged, "team").unwrap()[""].0, 1);
    let long = format!(r#"{{"text": "{}"}}"#, "é".repeat(MAX_VALUE + 1));
    assert_eq!(read(&counted(&[&long], 0), "text"), None);
    assert!(read(&counted(&[&long.replacen('é', "", 1)], 0), "text").is_some());
}

#[test]
fn too_many_names_and_what_cannot_be_read_are_not_kept() {
    let written: Vec<String> = (0..=MAX_NAMES).map(|n| format!(r#"{{"name-{n}": "x"}}"#)).collect();
    let written: Vec<&str> = written.iter().map(String::as_str).collect();
    assert!(read(&counted(&written[..MAX_NAMES], 0), "name-1").is_some());
    assert_eq!(counted(&written, 0), SlotValues::TooMany);
    let mut halves = counted(&written[..40], 0);
    halves.add(&counted(&written[40..], 0));
    assert_eq!(halves, SlotValues::TooMany);
    assert_eq!(counted(&["no JSON"], 0), SlotValues::TooMany);
}

#[test]
fn names_that_tell_calls_apart_are_trimmed() {
    let trimmed = |different: usize, calls: usize| {
        let written: Vec<String> = (0..calls).map(|n| format!(r#"{{"id": "{}"}}"#, n % different)).collect();
        let mut values = counted(&written.iter().map(String::as_str).collect::<Vec<_>>(), 0);
        values.trim();
        read(&values, "id").is_none()
    };
    for (different, calls, is_trimmed) in
        [(FEW, FEW, false), (FEW + 1, FEW + 1, true), (90, 100, false), (91, 100, true), (400, 600, false)]
    {
        assert_eq!(trimmed(different, calls), is_trimmed, "{different} of {calls}");
    }
}

fn any_metadata() -> impl Strategy<Value = String> {
    let pairs = proptest::collection::btree_map("[ab]{0,1}", prop_oneof![Just(""), Just("x"), Just("y")], 0..3);
    pairs.prop_map(|pairs| serde_json::to_string(&pairs).unwrap())
}

proptest! {
    #[test]
    fn parts_add_up_to_the_whole(metadata in proptest::collection::vec(any_metadata(), 0..30), at in 0..30_usize) {
        let metadata: Vec<&str> = metadata.iter().map(String::as_str).collect();
        let whole = counted(&metadata, 0);
        let (before, after) = metadata.split_at(at.min(metadata.len()));
        let parts = [counted(before, 0), counted(after, before.len() as u32)];
        for [one, other] in [[&parts[0], &parts[1]], [&parts[1], &parts[0]]] {
            let mut merged = SlotValues::new(SlotDimension::Metadata);
            let mut added = SlotValues::new(SlotDimension::Metadata);
            for part in [one, other] {
                merged.merge(&stored(part), slot()).unwrap();
                added.add(part);
            }
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(&added, &whole);
            prop_assert_eq!(merged.payload(slot()), whole.payload(slot()));
        }
    }
}
