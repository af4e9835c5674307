//! Two who write at the same moment: nothing is lost silently, and what can exist once exists once.

use crate::configs;
use crate::samples::{numbered, samples};
use crate::service::Service;
use futures::future::join_all;
use harness::Answer;
use serde_json::{Value, json};

fn statuses(answers: &[Answer]) -> Vec<u16> {
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    statuses
}

/// What every resource that has a unique name answers to whoever comes second, in the same instant or later.
#[tokio::test]
async fn of_many_who_create_the_same_one_succeeds_and_the_others_get_409() {
    let service = Service::start().await;
    let admin = service.administrator();
    for (n, sample) in samples().iter().enumerate().filter(|(_, sample)| sample.is_unique()) {
        sample.prepare(&service).await;
        let mut body = numbered(&sample.body, 500 + n);
        if sample.is_in_workspace {
            body["workspace_id"] = json!(service.home.workspace_id);
        }
        let answers = join_all((0..4).map(|_| admin.post(sample.create_path(), &body))).await;
        // One resource answers 400 instead, as its clients expect.
        let taken = if sample.path == "/secret-references" { 400 } else { 409 };
        let expected = [vec![200], vec![taken; 3]].concat();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(statuses(&answers), expected, "{}: {}", sample.path, answers[0].text());
    }
}

#[tokio::test]
async fn of_two_updates_at_once_neither_is_lost() {
    let service = Service::start().await;
    let admin = service.administrator();
    let label = admin.post("/labels", &json!({ "name": "l" })).await.json();
    let body = json!({ "name": "k", "workspace_id": service.home.workspace_id });
    let key = admin.post("/api-keys/workspace/service", &body).await.json();
    let id = |made: &Value| made["id"].as_str().unwrap().to_owned();
    for n in 0..8 {
        let made = configs::create(&admin, "c", json!({ "provider": "@a" })).await;
        service.sql(&format!("UPDATE configs SET slug = 'pc-{n}' WHERE id = '{}'", id(&made))).await;
    }
    for (path, one, two) in [
        (format!("/labels/{}", id(&label)), json!({ "description": "{n}" }), json!({ "color_code": "{n}" })),
        (
            format!("/api-keys/{}", id(&key)),
            json!({ "defaults": { "metadata": { "a": "{n}" } } }),
            json!({ "defaults": { "config_id": "pc-{n}" } }),
        ),
        (
            format!("/workspaces/{}", service.home.workspace_id),
            json!({ "settings": { "user_api_key_ttl": 60 } }),
            json!({ "settings": { "user_api_key_count": 3 } }),
        ),
    ] {
        for n in 0..8 {
            let (one, two) = (numbered(&one, n), numbered(&two, n));
            let (first, second) = tokio::join!(admin.put(&path, &one), admin.put(&path, &two));
            assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200), "{path}: {}", first.text());
            let seen = admin.get(&path).await.json();
            for sent in [&one, &two] {
                assert!(is_within(sent, &seen), "{path}: {sent} is lost in {seen}");
            }
        }
    }
}

/// Both change the whole of one list: the later one stands, and the trail shows that it replaced the earlier one.
#[tokio::test]
async fn of_two_updates_of_one_field_the_later_one_names_the_earlier_one_as_what_it_replaced() {
    let service = Service::start().await;
    let admin = service.administrator();
    let label = admin.post("/labels", &json!({ "name": "l" })).await.json();
    let path = format!("/labels/{}", label["id"].as_str().unwrap());
    let bodies: Vec<Value> = (0..8).map(|n| json!({ "description": format!("d{n}") })).collect();
    for answer in join_all(bodies.iter().map(|body| admin.put(&path, body))).await {
        assert_eq!(answer.status, 200);
    }
    let trail = service.trail(service.home.organisation_id).await;
    let changes: Vec<_> = trail.iter().filter(|row| row["action"] == "update").collect();
    let text = |value: &Value| value["description"].as_str().unwrap_or("none").to_owned();
    let mut replaced: Vec<_> = changes.iter().map(|row| text(&row["before"])).collect();
    let mut written: Vec<_> = changes.iter().map(|row| text(&row["after"])).collect();
    written.push("none".into());
    replaced.push(text(&admin.get(&path).await.json()));
    replaced.sort_unstable();
    written.sort_unstable();
    assert_eq!(replaced, written, "each value was written once, and replaced once or still stands");
}

fn is_within(sent: &Value, seen: &Value) -> bool {
    match sent {
        Value::Object(fields) => fields.iter().all(|(name, value)| is_within(value, &seen[name])),
        other => other == seen,
    }
}
