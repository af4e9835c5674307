//! Versions: what makes one, which is served, and labels on them.

use super::{create, get, messages, new_prompt, outcome, post, put};
use crate::service::Service;
use serde_json::{Value, json};

#[tokio::test]
async fn a_patch_fills_in_from_the_latest_version_and_nothing_is_served_until_published() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let mut body = new_prompt(&messages("one"));
    body["tools"] = json!([{ "type": "function" }]);
    let path = create(&client, body).await;
    let changed = put(&client, &path, json!({ "patch": true, "string": "two", "version_description": "d" })).await;
    let latest = get(&client, &format!("{path}?version=latest")).await;
    assert_eq!(
        changed,
        json!({ "id": latest["id"], "slug": latest["slug"], "prompt_version_id": latest["prompt_version_id"] })
    );
    assert_eq!((&latest["string"], &latest["prompt_version"]), (&json!("two"), &json!(2)));
    assert_eq!(latest["parameters"], json!({ "temperature": 0.5, "model": "m" }), "from the version before");
    assert_eq!(
        (&latest["tools"], &latest["prompt_version_status"]),
        (&json!([{ "type": "function" }]), &json!("archived"))
    );
    assert_eq!(get(&client, &path).await["prompt_version"], 1, "the default is still the first");

    put(&client, &path, json!({ "patch": true, "model": "n", "tools": null })).await;
    let third = get(&client, &format!("{path}@3")).await;
    assert_eq!((&third["string"], &third["model"], &third["tools"]), (&json!("two"), &json!("n"), &Value::Null));
    put(&client, &path, json!({ "string": "four", "parameters": { "model": "o" } })).await;
    let fourth = get(&client, &format!("{path}@latest")).await;
    assert_eq!(fourth["parameters"], json!({ "model": "o" }), "a version that is sent whole keeps nothing");
    assert_eq!((&fourth["virtual_key"], &fourth["prompt_version_description"]), (&json!("main"), &Value::Null));

    for (body, field) in [
        (json!({ "string": "x" }), "parameters"),
        (json!({ "string": "x", "parameters": {} }), "model"),
        (json!({ "model": "x" }), "string"),
        (json!({ "patch": true, "string": "{{" }), "string"),
    ] {
        let answer = client.put(&path, &body).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{body}: {}", answer.text());
        assert_eq!(answer.json()["data"]["errors"][0]["field"], field, "{body}");
    }
    assert_eq!(outcome(&client.put(&path, &json!({ "tools": [] })).await), (400, "AB01".into()));
    assert_eq!(client.put(&path, &json!({ "patch": true })).await.json()["message"], "Nothing to update");
    let corrected = put(&client, &path, json!({ "virtual_key": "@other", "version_description": "fixed" })).await;
    assert_eq!(corrected.get("prompt_version_id"), None, "no version is made");
    let fourth = get(&client, &format!("{path}?version=4")).await;
    assert_eq!((&fourth["virtual_key"], &fourth["prompt_version_description"]), (&json!("other"), &json!("fixed")));

    assert_eq!(put(&client, &format!("{path}/makeDefault"), json!({ "version": 2 })).await, json!({}));
    let served = get(&client, &path).await;
    assert_eq!((&served["prompt_version"], &served["prompt_version_status"]), (&json!(2), &json!("active")));
    for (version, status) in [(json!(5), 404), (json!(0), 400), (json!("2"), 400), (Value::Null, 400)] {
        let answer = client.put(&format!("{path}/makeDefault"), &json!({ "version": version })).await;
        assert_eq!(answer.status, status, "{version}: {}", answer.text());
    }
    let list = get(&client, &format!("{path}/versions")).await;
    let seen: Vec<_> =
        list["data"].as_array().unwrap().iter().map(|one| (&one["prompt_version"], &one["status"])).collect();
    let expected =
        [(4, "archived"), (3, "archived"), (2, "active"), (1, "archived")].map(|(n, status)| (json!(n), json!(status)));
    assert_eq!(seen, expected.iter().map(|(n, status)| (n, status)).collect::<Vec<_>>());
    assert_eq!(list["data"][3]["prompt_template"]["string"], messages("one"), "a version never changes");
    let id = list["data"][1]["id"].as_str().unwrap();
    for name in [id, "3"] {
        assert_eq!(get(&client, &format!("{path}/versions/{name}")).await["prompt_version"], 3, "{name}");
    }
    for name in ["9", "99999999999", "staging", "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11"] {
        assert_eq!(outcome(&client.get(&format!("{path}/versions/{name}")).await), (404, "AB08".into()), "{name}");
        assert_eq!(outcome(&client.get(&format!("{path}@{name}")).await), (404, "AB08".into()), "{name}");
    }
}

#[tokio::test]
async fn two_changes_at_once_make_two_versions() {
    let service = Service::start().await;
    let client = service.administrator();
    let path = create(&client, new_prompt("one")).await;
    let (two, three) = (json!({ "patch": true, "string": "a" }), json!({ "patch": true, "string": "b" }));
    let (one, other) = tokio::join!(client.put(&path, &two), client.put(&path, &three));
    assert_eq!((one.status.as_u16(), other.status.as_u16()), (200, 200));
    let list = get(&client, &format!("{path}/versions")).await;
    assert_eq!((&list["total"], &list["data"][0]["prompt_version"]), (&json!(3), &json!(3)));
    service.sql("UPDATE prompts SET latest_version = 1000").await;
    assert_eq!(outcome(&client.put(&path, &two).await), (409, "AB07".into()), "versions are bounded");
}

#[tokio::test]
async fn a_label_points_to_one_version_until_it_is_moved_or_deleted() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = create(&client, new_prompt("one")).await;
    put(&client, &path, json!({ "patch": true, "string": "two" })).await;
    let own = post(&client, "/labels", json!({ "name": "own" })).await["id"].clone();
    let production = get(&client, "/labels?search=production").await["data"][0]["id"].clone();
    let version = |n: i64| format!("{path}/versions/{n}");
    for (n, label) in [(1, &own), (1, &production), (2, &own)] {
        assert_eq!(put(&client, &version(n), json!({ "label_id": label })).await, json!({}));
    }
    let labelled = get(&client, &format!("{path}@own")).await;
    assert_eq!((&labelled["prompt_version"], &labelled["prompt_version_label_name"]), (&json!(2), &json!("own")));
    assert_eq!(labelled["prompt_version_labels"], json!([{ "id": own, "name": "own" }]), "it was moved");
    assert_eq!(get(&client, &format!("{path}?version=production")).await["prompt_version"], 1);
    let trail = service.trail(service.home.organisation_id).await;
    let moved = trail.last().unwrap();
    assert_eq!(moved["before"]["labels"], json!({ "own": 1, "production": 1 }), "{moved}");
    assert_eq!(moved["after"]["labels"], json!({ "own": 2, "production": 1 }), "{moved}");

    put(&client, &version(1), json!({ "label_id": null })).await;
    assert_eq!(outcome(&client.get(&format!("{path}@production")).await), (404, "AB08".into()));
    assert_eq!(client.delete(&format!("/labels/{}", own.as_str().unwrap())).await.status, 200);
    assert_eq!(outcome(&client.get(&format!("{path}@own")).await), (404, "AB08".into()));
    assert_eq!(
        get(&client, &version(2)).await["prompt_version_labels"],
        json!([]),
        "a label that is gone points nowhere"
    );
    let gone = client.put(&version(2), &json!({ "label_id": own })).await;
    assert_eq!(outcome(&gone), (404, "AB08".into()));

    let elsewhere = service.workspace("elsewhere").await;
    let admin = service.administrator();
    let foreign = post(&admin, "/labels", json!({ "name": "foreign", "workspace_id": elsewhere })).await["id"].clone();
    let refused = admin.put(&version(2), &json!({ "label_id": foreign })).await;
    assert_eq!(outcome(&refused), (404, "AB08".into()), "of another workspace: {}", refused.text());
    for body in [json!({}), json!({ "label_id": 7 }), json!({ "label_id": own, "string": "x" })] {
        assert_eq!(outcome(&client.put(&version(2), &body).await), (400, "AB01".into()), "{body}");
    }
    let neighbour = service.workspace_client(elsewhere).await;
    assert_eq!(outcome(&neighbour.put(&version(2), &json!({ "label_id": null })).await), (404, "AB08".into()));
}
