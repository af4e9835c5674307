//! Partials: their versions, and who keeps one alive.

use super::{create, get, messages, new_prompt, outcome, post, put};
use crate::service::Service;
use serde_json::{Value, json};

#[tokio::test]
async fn a_new_text_is_a_new_version_and_served_once_published() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let made = post(&client, "/prompts/partials", json!({ "name": "Tone", "string": "Be {{mood}}." })).await;
    let (id, slug) = (&made["id"], made["slug"].as_str().unwrap());
    assert_eq!(made, json!({ "id": id, "slug": slug, "version_id": made["version_id"], "object": "partial" }));
    let path = format!("/prompts/partials/{slug}");
    assert_eq!(put(&client, &path, json!({ "name": "Renamed" })).await, json!({}));
    let changed = put(&client, &path, json!({ "string": "Be brief.", "version_description": "shorter" })).await;
    let latest = get(&client, &format!("{path}?version=latest")).await;
    let version = &latest["prompt_partial_version_id"];
    assert_eq!(changed, json!({ "id": id, "slug": slug, "prompt_partial_version_id": version }));
    assert_eq!((&latest["string"], &latest["version"]), (&json!("Be brief."), &json!(2)));
    assert_eq!(latest["prompt_partial_version_status"], "archived");
    assert_eq!(latest["version_description"], "shorter");
    let served = get(&client, &path).await;
    assert_eq!((&served["string"], &served["name"]), (&json!("Be {{mood}}."), &json!("Renamed")));
    put(&client, &format!("{path}/makeDefault"), json!({ "version": 2 })).await;
    assert_eq!(get(&client, &path).await["string"], "Be brief.");
    let list = get(&client, &format!("{path}/versions")).await;
    let seen: Vec<Value> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| json!([one["version"], one["prompt_version_status"]]))
        .collect();
    assert_eq!(seen, [json!([2, "active"]), json!([1, "archived"])], "{list}");
    for (body, field) in
        [(json!({ "string": "{{" }), "string"), (json!({ "string": "x".repeat((1 << 20) + 1) }), "string")]
    {
        let answer = client.put(&path, &body).await;
        assert_eq!(answer.json()["data"]["errors"][0]["field"], field, "{}", answer.text());
    }
    assert_eq!(
        outcome(&client.put(&format!("{path}/makeDefault"), &json!({ "version": 3 })).await),
        (404, "AB08".into())
    );
    assert_eq!(outcome(&client.get(&format!("{path}@staging")).await), (404, "AB08".into()), "labels are for prompts");
}

#[tokio::test]
async fn a_partial_that_is_put_in_is_not_deleted() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let partial = async |string: String| -> String {
        let made = post(&client, "/prompts/partials", json!({ "name": "P", "string": string })).await;
        made["slug"].as_str().unwrap().to_owned()
    };
    let inner = partial("inner".into()).await;
    let outer = partial(format!("{{{{>{inner}}}}}")).await;
    let prompt = create(&client, new_prompt(&messages(&format!("{{{{>{outer}@1}}}}")))).await;
    let path = |slug: &str| format!("/prompts/partials/{slug}");
    for slug in [&inner, &outer] {
        let refused = client.delete(&path(slug)).await;
        assert_eq!(outcome(&refused), (409, "AB07".into()), "{slug}: {}", refused.text());
        let refused = client.put(&path(slug), &json!({ "status": "archived" })).await;
        assert_eq!(outcome(&refused), (409, "AB07".into()), "{slug}: {}", refused.text());
    }
    let named = client.delete(&path(&outer)).await.json()["data"]["in_use_by"][0]["name"].clone();
    assert_eq!(format!("/prompts/{}", named.as_str().unwrap()), prompt);
    put(&client, &prompt, json!({ "patch": true, "string": "none" })).await;
    assert_eq!(outcome(&client.delete(&path(&outer)).await), (409, "AB07".into()), "the default version has it still");
    put(&client, &format!("{prompt}/makeDefault"), json!({ "version": 2 })).await;
    for slug in [&outer, &inner] {
        assert_eq!(client.delete(&path(slug)).await.status, 200, "{slug}");
    }
    let render = client.post(&format!("{prompt}@1/render"), &json!({})).await;
    assert_eq!(outcome(&render), (400, "AB01".into()), "{}", render.text());
}
