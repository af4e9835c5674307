//! Prompts, labels and versions are found in their own workspace only.

use super::*;
use serde_json::{Value, json};

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn row<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn prompt(n: u128, workspace: u128, status: &str) -> Prompt {
    row(json!({
        "id": id(n), "organisation_id": id(1), "workspace_id": id(workspace), "slug": format!("pp-{n}"), "status": status,
        "version_id": id(100 + n), "latest_version_id": id(200 + n), "latest_version": 3, "revision": "7",
    }))
}

fn version(n: u128, of: u128, number: i32) -> ReadyVersion {
    row(json!({
        "id": id(n), "organisation_id": id(1), "prompt_id": id(of), "number": number, "template": "Say {{word}}",
        "parameters": {}, "model": "m", "virtual_key": "main", "is_raw": false,
    }))
}

fn label(n: u128, workspace: Option<u128>, name: &str, status: &str) -> Label {
    row(json!({
        "id": id(n), "organisation_id": id(1), "workspace_id": workspace.map(id), "name": name, "status": status,
    }))
}

fn snapshot() -> Snapshot {
    let snapshot = Snapshot::empty();
    snapshot.prompts.replace(vec![prompt(10, 2, "active"), prompt(11, 3, "active"), prompt(12, 2, "archived")]);
    snapshot.prompt_versions.replace(vec![version(110, 10, 1), version(111, 11, 1)]);
    snapshot.labels.replace(vec![
        label(50, None, "production", "active"),
        label(51, Some(2), "production", "active"),
        label(52, None, "staging", "active"),
        label(53, None, "old", "archived"),
    ]);
    let at = |n: u128, label: u128, version: u128| {
        row::<PromptLabel>(json!({
            "id": id(n), "organisation_id": id(1), "prompt_id": id(10), "label_id": id(label), "version_id": id(version),
        }))
    };
    snapshot.prompt_labels.replace(vec![at(60, 50, 110), at(61, 51, 210), at(62, 52, 110), at(63, 53, 110)]);
    snapshot
}

#[test]
fn a_prompt_is_found_by_slug_or_id_in_its_own_workspace_while_it_is_active() {
    let snapshot = snapshot();
    let ten = id(10).to_string();
    for (organisation, workspace, name, found) in [
        (1, 2, "pp-10", true),
        (1, 2, ten.as_str(), true),
        (1, 3, "pp-10", false),
        (1, 3, ten.as_str(), false),
        (9, 2, ten.as_str(), false),
        (9, 2, "pp-10", false),
        (1, 2, "pp-12", false),
        (1, 2, "", false),
    ] {
        let answer = snapshot.prompt(id(organisation).into(), id(workspace).into(), name);
        assert_eq!(answer.is_some(), found, "{organisation} {workspace} {name}");
    }
}

#[test]
fn a_label_of_the_workspace_wins_and_a_deleted_one_points_nowhere() {
    let snapshot = snapshot();
    let prompt = snapshot.prompt(id(1).into(), id(2).into(), "pp-10").unwrap();
    let points = |name: &str| snapshot.prompt_label(&prompt, name).map(|label| label.version_id);
    assert_eq!(points("production"), Some(id(210)));
    assert_eq!(points("staging"), Some(id(110)));
    assert_eq!(points("old"), None);
    assert_eq!(points("nothing"), None);
}

#[test]
fn a_version_belongs_to_its_prompt_by_id_and_by_number() {
    let snapshot = snapshot();
    let prompt = snapshot.prompt(id(1).into(), id(2).into(), "pp-10").unwrap();
    for (key, found) in [
        (VersionKey::Id(id(110)), true),
        (VersionKey::Number(id(10), 1), true),
        (VersionKey::Id(id(111)), false),
        (VersionKey::Number(id(11), 1), false),
        (VersionKey::Number(id(10), 2), false),
    ] {
        assert_eq!(snapshot.prompt_version(&prompt, key).is_some(), found, "{key:?}");
    }
}
