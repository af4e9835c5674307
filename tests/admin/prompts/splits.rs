//! Labels that point to several versions by weight: where they are seen, whom they serve, and how they move.

use super::{create, get, messages, new_prompt, outcome, post, put};
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};
use shared::prompt::split;
use uuid::Uuid;

/// A prompt of three versions, whose texts are their numbers.
async fn three_versions(client: &Client) -> String {
    let path = create(client, new_prompt("1")).await;
    for text in ["2", "3"] {
        put(client, &path, json!({ "patch": true, "string": text })).await;
    }
    path
}

fn split_of(parts: &[(i32, u32)]) -> Value {
    let versions = parts.iter().map(|(version, weight)| json!({ "version": version, "weight": weight }));
    json!({ "versions": versions.collect::<Vec<_>>() })
}

#[tokio::test]
async fn a_split_is_shown_wherever_labels_are() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = three_versions(&client).await;
    let staging = get(&client, "/labels?search=staging").await["data"][0]["id"].clone();
    let label = format!("{path}/labels/staging");
    assert_eq!(put(&client, &label, split_of(&[(2, 10), (1, 90)])).await, json!({}));
    let list = get(&client, &format!("{path}/labels")).await;
    assert_eq!((&list["object"], &list["total"]), (&json!("list"), &json!(1)));
    let shown = &list["data"][0];
    assert_eq!((&shown["id"], &shown["name"]), (&staging, &json!("staging")));
    let points_to: Vec<_> =
        shown["versions"].as_array().unwrap().iter().map(|one| (&one["version"], &one["weight"])).collect();
    assert_eq!(points_to, [(&json!(1), &json!(90)), (&json!(2), &json!(10))], "the heaviest first");
    let served = get(&client, &format!("{path}@staging")).await;
    assert_eq!(served["prompt_version"], 1, "the heaviest stands for all");
    for (version, labels) in [
        (1, json!([{ "id": staging, "name": "staging", "weight": 90 }])),
        (2, json!([{ "id": staging, "name": "staging", "weight": 10 }])),
        (3, json!([])),
    ] {
        let read = get(&client, &format!("{path}/versions/{version}")).await;
        assert_eq!(read["prompt_version_labels"], labels, "{version}");
    }
    let versions = get(&client, &format!("{path}/versions")).await;
    assert_eq!(versions["data"][1]["labels"][0]["weight"], 10, "{versions}");
    assert_eq!(versions["data"][2]["label_id"], staging, "{versions}");
}

#[tokio::test]
async fn a_split_serves_users_by_weight_and_each_always_the_same() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = three_versions(&client).await;
    let id: Uuid = get(&client, &path).await["id"].as_str().unwrap().parse().unwrap();
    let parts = [(1, 70), (2, 30)];
    put(&client, &format!("{path}/labels/staging"), split_of(&parts)).await;
    let render = format!("{path}@staging/render");
    let served = async |client: &Client| post(client, &render, json!({})).await["data"]["prompt"].clone();
    let mut met = [0; 2];
    for user in (0..100).map(|n| format!("user-{n}")) {
        let of_user = client.with("x-gateway-metadata", json!({ "_user": user }).to_string());
        let first = served(&of_user).await;
        // As any proxy would choose.
        let expected = split::choose(&parts, &split::sticky_key(id, "staging", &user)).unwrap();
        assert_eq!(first, expected.to_string(), "{user}");
        assert_eq!(served(&of_user.with("x-gateway-trace-id", "any")).await, first, "{user}: a trace changes nothing");
        met[usize::try_from(expected - 1).unwrap()] += 1;
    }
    assert!(met[0] > met[1] && met[1] > 5, "{met:?}");
    let of_trace = client.with("x-gateway-trace-id", "trace-7");
    let expected = split::choose(&parts, &split::sticky_key(id, "staging", "trace-7")).unwrap();
    assert_eq!(served(&of_trace).await, expected.to_string());
    assert_eq!(served(&client).await, "1", "nobody meets the heaviest");
}

#[tokio::test]
async fn a_label_is_moved_at_once_and_every_move_is_recorded() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = three_versions(&client).await;
    let own = post(&client, "/labels", json!({ "name": "own" })).await["id"].clone();
    let label = format!("{path}/labels/{}", own.as_str().unwrap());
    let last = async || service.trail(service.home.organisation_id).await.pop().unwrap();
    put(&client, &label, split_of(&[(1, 1), (2, 2), (3, 0)])).await;
    let part = |version: i32, weight: u32| json!({ "version": version, "weight": weight });
    let three = json!({ "own": [part(2, 2), part(1, 1), part(3, 0)] });
    let record = last().await;
    assert_eq!((&record["before"]["labels"], &record["after"]["labels"]), (&json!({}), &three), "{record}");
    assert_eq!((&record["action"], &record["resource_type"]), (&json!("update"), &json!("prompts")));

    put(&client, &format!("{path}/versions/2"), json!({ "label_id": null })).await;
    let two = json!({ "own": [part(1, 1), part(3, 0)] });
    assert_eq!(last().await["after"]["labels"], two, "a split goes on without one of its versions");
    put(&client, &format!("{path}/versions/3"), json!({ "label_id": own })).await;
    let record = last().await;
    assert_eq!((&record["before"]["labels"], &record["after"]["labels"]), (&two, &json!({ "own": 3 })), "{record}");
    put(&client, &label, json!({ "versions": [{ "version": 1 }] })).await;
    assert_eq!(last().await["after"]["labels"], json!({ "own": 1 }), "one version needs no weight");

    assert_eq!(client.delete(&label).await.json(), json!({}));
    assert_eq!(last().await["after"]["labels"], json!({}));
    assert_eq!(outcome(&client.delete(&label).await), (404, "AB08".into()), "it is not on this prompt any more");
    assert_eq!(outcome(&client.get(&format!("{path}@own")).await), (404, "AB08".into()));
    put(&client, &label, split_of(&[(1, 1), (2, 1)])).await;
    assert_eq!(client.delete(&format!("/labels/{}", own.as_str().unwrap())).await.status, 200);
    assert_eq!(get(&client, &format!("{path}/labels")).await["total"], 0, "a label that is gone points nowhere");
}

#[tokio::test]
async fn what_cannot_be_a_split_is_refused_and_nothing_moves() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = three_versions(&client).await;
    let label = format!("{path}/labels/production");
    put(&client, &label, split_of(&[(1, 1), (2, 1)])).await;
    let many: Vec<(i32, u32)> = (1..=21).map(|version| (version, 1)).collect();
    for (body, status, field) in [
        (json!({}), 400, "versions"),
        (json!({ "versions": [] }), 400, "versions"),
        (split_of(&many), 400, "versions"),
        (split_of(&[(1, 0), (2, 0)]), 400, "versions"),
        (split_of(&[(1, 1), (1, 1)]), 400, "versions[1].version"),
        (split_of(&[(1, 1_000_001)]), 400, "versions[0].weight"),
        (json!({ "versions": [{ "version": 1, "weight": -1 }] }), 400, "versions[0].weight"),
        (json!({ "versions": [{ "version": 1, "weight": 0.5 }] }), 400, "versions[0].weight"),
        (json!({ "versions": [{ "version": "latest" }] }), 400, "versions[0].version"),
        (split_of(&[(1, 1), (4, 1)]), 404, "versions[1].version"),
    ] {
        let answer = client.put(&label, &body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        assert_eq!(answer.json()["data"]["errors"][0]["field"], field, "{body}: {}", answer.text());
    }
    let elsewhere = service.workspace("elsewhere").await;
    let foreign = json!({ "name": "foreign", "workspace_id": elsewhere });
    post(&service.administrator(), "/labels", foreign).await;
    let one = split_of(&[(1, 1)]);
    for name in ["foreign", "nothing", "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11"] {
        let answer = client.put(&format!("{path}/labels/{name}"), &one).await;
        assert_eq!(outcome(&answer), (404, "AB08".into()), "{name}: {}", answer.text());
    }
    let neighbour = service.workspace_client(elsewhere).await;
    for answer in [
        neighbour.put(&label, &one).await,
        neighbour.delete(&label).await,
        neighbour.get(&format!("{path}/labels")).await,
    ] {
        assert_eq!(outcome(&answer), (404, "AB08".into()), "{}", answer.text());
    }
    let versions = &get(&client, &format!("{path}/labels")).await["data"][0]["versions"];
    assert_eq!(versions.as_array().unwrap().len(), 2, "{versions}");
}

#[tokio::test]
async fn a_version_of_a_split_keeps_its_partials_alive() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let partial = post(&client, "/prompts/partials", json!({ "name": "P", "string": "p" })).await;
    let partial = partial["slug"].as_str().unwrap();
    let path = three_versions(&client).await;
    put(&client, &path, json!({ "patch": true, "string": messages(&format!("{{{{>{partial}}}}}")) })).await;
    put(&client, &format!("{path}/labels/staging"), split_of(&[(1, 9), (4, 1)])).await;
    let partial = format!("/prompts/partials/{partial}");
    assert_eq!(outcome(&client.delete(&partial).await), (409, "AB07".into()));
    put(&client, &format!("{path}/labels/staging"), split_of(&[(1, 9), (2, 1)])).await;
    assert_eq!(client.delete(&partial).await.status, 200);
}
