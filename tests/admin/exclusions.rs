//! Workspaces that organisation-wide guardrails leave out.

use crate::service::Service;
use harness::Answer;
use serde_json::{Value, json};

const INPUT: &str = "/workspace-exclusions/input-guardrails";
const OUTPUT: &str = "/workspace-exclusions/output-guardrails";

fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

fn slugs(list: &Value) -> Vec<String> {
    let mut slugs: Vec<String> = list["data"]
        .as_array()
        .unwrap_or_else(|| panic!("{list}"))
        .iter()
        .map(|one| one["workspace_slug"].as_str().unwrap().to_owned())
        .collect();
    slugs.sort_unstable();
    slugs
}

#[tokio::test]
async fn workspaces_are_excluded_one_by_one_or_as_a_whole_list_for_each_side_apart() {
    let service = Service::start().await;
    let admin = service.administrator();
    let one = service.workspace("one").await;
    service.workspace("two").await;
    service.workspace("three").await;
    assert_eq!(admin.get(INPUT).await.json(), json!({ "object": "list", "total": 0, "data": [] }));
    let exclude = json!({ "workspaces": [{ "workspace_id": one, "excluded": true }, { "workspace_id": "two", "excluded": true }] });
    let answer = admin.put(INPUT, &exclude).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json(), admin.get(INPUT).await.json(), "the answer is the list as it is now");
    assert_eq!((slugs(&answer.json()), &answer.json()["total"]), (vec!["one".to_owned(), "two".into()], &json!(2)));
    let shown = answer.json()["data"].as_array().unwrap().iter().find(|row| row["workspace_slug"] == "one").cloned();
    assert_eq!(shown.unwrap(), json!({ "workspace_id": one, "workspace_slug": "one", "excluded": true }));
    assert_eq!(admin.get(OUTPUT).await.json()["total"], 0);
    let change = json!({ "workspaces": [{ "workspace_id": "one", "excluded": false }, { "workspace_id": "three", "excluded": true }] });
    assert_eq!(slugs(&admin.put(INPUT, &change).await.json()), ["three", "two"]);
    let replace = json!({ "workspaces": [{ "workspace_id": "one", "excluded": true }], "override_existing": true,
                          "organisation_id": service.home.organisation_id });
    assert_eq!(slugs(&admin.put(INPUT, &replace).await.json()), ["one"]);
    let trail = service.trail(service.home.organisation_id).await;
    let last = trail.last().unwrap();
    assert_eq!((&last["resource_type"], &last["action"]), (&json!("organisation"), &json!("update")));
    assert_eq!(last["after"]["excluded_from_input_guardrails"], json!([one]), "{last}");
}

#[tokio::test]
async fn only_workspaces_of_the_organisation_can_be_named_and_a_refusal_changes_nothing() {
    let service = Service::start().await;
    let admin = service.administrator();
    let other = service.organisation().await;
    let of = |workspace: Value| json!({ "workspaces": [{ "workspace_id": service.home.workspace_id, "excluded": true }, { "workspace_id": workspace, "excluded": true }] });
    for (body, expected) in [
        (of(json!(other.workspace_id)), (404, "AB08")),
        (of(json!("nobody")), (404, "AB08")),
        (of(json!(1)), (400, "AB01")),
        (json!({}), (400, "AB01")),
        (json!({ "workspaces": [], "organisation_id": other.organisation_id }), (400, "AB01")),
        (json!({ "workspaces": [{ "workspace_id": "x" }] }), (400, "AB01")),
    ] {
        let answer = admin.put(OUTPUT, &body).await;
        assert_eq!(outcome(&answer), (expected.0, expected.1.to_owned()), "{body}: {}", answer.text());
    }
    assert_eq!(admin.get(OUTPUT).await.json()["total"], 0);
    let own = json!({ "workspaces": [{ "workspace_id": service.home.workspace_id, "excluded": true }] });
    assert_eq!(admin.put(OUTPUT, &own).await.json()["total"], 1);
    let stranger = service.client().with_key(&other.admin_key.key);
    assert_eq!(stranger.get(OUTPUT).await.json()["total"], 0, "another organisation sees its own");
}

#[tokio::test]
async fn two_changes_at_once_are_both_kept() {
    let service = Service::start().await;
    let admin = service.administrator();
    for name in ["one", "two"] {
        service.workspace(name).await;
    }
    for excluded in [true, false, true] {
        let body = |name: &str| json!({ "workspaces": [{ "workspace_id": name, "excluded": excluded }] });
        let (one, two) = (body("one"), body("two"));
        tokio::join!(admin.put(INPUT, &one), admin.put(INPUT, &two));
        assert_eq!(admin.get(INPUT).await.json()["total"], if excluded { 2 } else { 0 });
    }
}
