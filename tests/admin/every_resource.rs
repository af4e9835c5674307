//! What holds for every resource, walked over the examples: malformed bodies, the audit trail, pages, and other
//! tenants' objects.

use crate::samples::{FURTHER, Sample, numbered, samples};
use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::routes::operations;

fn outcome(answer: &Answer) -> (u16, String) {
    let code = answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), code)
}

/// Made by the admin key, in the first workspace where it needs one.
async fn made(service: &Service, sample: &Sample, n: usize) -> String {
    let mut body = numbered(&sample.body, n);
    if sample.is_in_workspace {
        body["workspace_id"] = json!(service.home.workspace_id);
    }
    let answer = service.administrator().post(sample.create_path(), &body).await;
    assert_eq!(answer.status, 200, "POST {}: {}", sample.path, answer.text());
    answer.json()["id"].as_str().unwrap_or_else(|| panic!("{}: no id", sample.path)).to_owned()
}

async fn delete(client: &Client, sample: &Sample, id: &str, n: usize) -> Answer {
    let body = numbered(&sample.delete, n);
    whole(client.request(Method::DELETE, &format!("{}/{id}", sample.path)).json(&body)).await
}

#[test]
fn every_write_that_is_built_has_an_example() {
    let samples = samples();
    let is_sampled = |path: &str| {
        samples.iter().any(|sample| {
            let rest = path.strip_prefix(sample.path);
            rest.is_some_and(|rest| {
                rest.is_empty() || (rest.starts_with("/{") && rest.ends_with('}') && !rest[1..].contains('/'))
            })
        })
    };
    for operation in operations().filter(|one| admin::resources::is_built(one) && one.method.as_str() != "GET") {
        let is_known = is_sampled(operation.path) || FURTHER.contains(&operation.path);
        assert!(is_known, "add an example (or a test and a line in FURTHER) for {operation:?}");
    }
}

#[tokio::test]
async fn a_malformed_body_is_400_and_names_the_field() {
    let service = Service::start().await;
    let client = service.administrator();
    for (n, sample) in samples().iter().enumerate() {
        sample.prepare(&service).await;
        let id = made(&service, sample, n).await;
        for (method, path) in
            [(Method::POST, sample.create_path().to_owned()), (Method::PUT, format!("{}/{id}", sample.path))]
        {
            for text in ["{", "[]", "\"text\"", "7", "null", "{\"name\": \"a\\u0000b\"}", "\u{feff}{}"] {
                let answer = whole(client.request(method.clone(), &path).body(text)).await;
                assert_eq!(outcome(&answer), (400, "AB01".into()), "{method} {path} {text}: {}", answer.text());
            }
            let (body, field) = &sample.wrong;
            let answer = whole(client.request(method.clone(), &path).json(body)).await;
            assert_eq!(outcome(&answer), (400, "AB01".into()), "{method} {path} {body}: {}", answer.text());
            assert_eq!(answer.json()["data"]["errors"][0]["field"], *field, "{method} {path}: {}", answer.text());
            assert_eq!(answer.json()["error"]["param"], *field, "{method} {path}");
        }
        let nothing = client.put(&format!("{}/{id}", sample.path), &json!({ "invented": 1 })).await;
        assert_eq!(outcome(&nothing), (400, "AB01".into()), "{}: {}", sample.path, nothing.text());
        assert_eq!(nothing.json()["data"]["errors"][0]["field"], "invented", "{}", nothing.text());
        let nothing = client.put(&format!("{}/{id}", sample.path), &json!({})).await;
        assert_eq!(nothing.json()["message"], "Nothing to update", "{}: {}", sample.path, nothing.text());
    }
}

#[tokio::test]
async fn every_write_leaves_one_record_whether_it_succeeded_or_not() {
    let service = Service::start().await;
    let client = service.administrator();
    for (n, sample) in samples().iter().enumerate() {
        sample.prepare(&service).await;
        let before = service.trail(service.home.organisation_id).await.len();
        let id = made(&service, sample, n).await;
        let path = format!("{}/{id}", sample.path);
        assert_eq!(client.put(&path, &numbered(&sample.change, n)).await.status, 200, "{path}");
        assert_eq!(client.get(&path).await.status, 200, "{path}");
        assert_eq!(client.get(&sample.list_path(&service, "")).await.status, 200, "{path}");
        assert_eq!(delete(&client, sample, &id, n).await.status, 200, "{path}");
        let (again, verb) = match sample.is_revivable() {
            true => (delete(&client, sample, &id, n).await, "delete"),
            false => (client.put(&path, &numbered(&sample.change, n)).await, "update"),
        };
        assert_eq!(outcome(&again), (404, "AB08".into()), "{path}");
        let trail = service.trail(service.home.organisation_id).await.split_off(before);
        let seen: Vec<_> = trail
            .iter()
            .map(|row| (row["action"].as_str().unwrap(), row["response_status_code"].as_i64().unwrap()))
            .collect();
        assert_eq!(seen, [("create", 200), ("update", 200), ("delete", 200), (verb, 404)], "{}", sample.path);
        for row in &trail {
            assert_eq!(row["resource_type"], sample.recorded_as, "{row}");
            assert_eq!(row["resource_id"], id, "{row}");
            assert_eq!((&row["user_type"], &row["client_ip"]), (&json!("api_key"), &json!("127.0.0.1")), "{row}");
            assert_eq!(row["api_key_id"], service.home.admin_key.id.to_string(), "{row}");
            assert!(!row.to_string().contains(&service.home.admin_key.key), "{row}");
        }
        assert!(trail[0]["before"].is_null() && trail[0]["after"].is_object(), "{}", trail[0]);
        assert!(trail[1]["before"].is_object() && trail[1]["after"] != trail[1]["before"], "{}", trail[1]);
        assert!(trail[2]["before"].is_object(), "{}", trail[2]);
        assert!(trail[3]["error"].as_str().unwrap().starts_with("AB08"), "{}", trail[3]);
    }
}

/// As clients do that know one workspace.
#[tokio::test]
async fn what_an_admin_key_makes_without_a_workspace_is_in_the_default_one_which_it_is_told() {
    let service = Service::start().await;
    let client = service.administrator();
    let default = json!(service.home.workspace_id);
    for (n, sample) in samples().iter().enumerate().filter(|(_, sample)| sample.is_in_workspace) {
        sample.prepare(&service).await;
        let made = client.post(sample.create_path(), &numbered(&sample.body, n)).await;
        if sample.path == "/guardrails" {
            assert_eq!(made.status, 400, "of the organisation or of a workspace: nobody can guess {}", made.text());
            continue;
        }
        assert_eq!(made.status, 200, "{}: {}", sample.path, made.text());
        let id = made.json()["id"].clone();
        let one = client.get(&format!("{}/{}", sample.path, id.as_str().unwrap())).await.json();
        // What may belong to the organisation does where no workspace is named. Prompts do not show where they are.
        let is_of_organisation = one.get("workspace_id").is_some_and(Value::is_null);
        let one = if one.get("workspace_id").is_some() { one } else { json!({ "workspace_id": default }) };
        assert!(is_of_organisation || one["workspace_id"] == default, "{}: {one}", sample.path);
        let is_told = made.header("x-gateway-warnings").contains("default workspace");
        assert_eq!(is_told, !is_of_organisation, "{}: {}", sample.path, made.header("x-gateway-warnings"));
        let all = client.get(sample.path).await;
        assert_eq!(all.status, 200, "{}: {}", sample.path, all.text());
        assert!(all.json()["data"].as_array().unwrap().iter().any(|one| one["id"] == id), "{}", sample.path);
    }
}

#[tokio::test]
async fn lists_are_newest_first_in_pages_of_either_spelling_with_the_true_total() {
    let service = Service::start().await;
    let client = service.administrator();
    for (first, sample) in samples().iter().enumerate().map(|(n, sample)| (10 * n, sample)) {
        sample.prepare(&service).await;
        let list = async |query: &str| -> Value {
            let answer = client.get(&sample.list_path(&service, query)).await;
            assert_eq!(answer.status, 200, "{} {query}: {}", sample.path, answer.text());
            answer.json()
        };
        let ids = |list: &Value| -> Vec<String> {
            list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
        };
        let existing = list("").await["total"].as_i64().unwrap();
        let mut newest = Vec::new();
        for n in first..first + 5 {
            newest.insert(0, made(&service, sample, n).await);
        }
        let all = list("").await;
        assert_eq!((&all["object"], &all["total"]), (&json!("list"), &json!(existing + 5)), "{}", sample.path);
        assert_eq!(&ids(&all)[..5], newest, "{}", sample.path);
        for (query, expected) in [
            ("page_size=2&current_page=0", &newest[..2]),
            ("page_size=2&current_page=1", &newest[2..4]),
            ("pageSize=3&currentPage=0", &newest[..3]),
        ] {
            let page = list(query).await;
            assert_eq!((ids(&page).as_slice(), &page["total"]), (expected, &json!(existing + 5)), "{query}");
        }
        let beyond = list("page_size=100&current_page=9223372036854775807").await;
        assert_eq!((ids(&beyond).len(), &beyond["total"]), (0, &json!(existing + 5)), "{}", sample.path);
        for query in ["page_size=-1", "current_page=x", "pageSize=1.5"] {
            let answer = client.get(&sample.list_path(&service, query)).await;
            assert_eq!(outcome(&answer), (400, "AB01".into()), "{} {query}", sample.path);
        }
        assert_eq!(delete(&client, sample, &newest[0], first + 4).await.status, 200);
        let rest = list("").await;
        assert_eq!((&ids(&rest)[0], &rest["total"]), (&newest[1], &json!(existing + 4)), "{}", sample.path);
    }
}

#[tokio::test]
async fn an_object_of_another_tenant_is_not_found_and_stays_as_it_was() {
    let service = Service::start().await;
    let owner = service.administrator();
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    let elsewhere = service.workspace("elsewhere").await;
    let neighbour = service.workspace_client(elsewhere).await;
    for (n, sample) in samples().iter().enumerate() {
        sample.prepare(&service).await;
        let path = format!("{}/{}", sample.path, made(&service, sample, n).await);
        let before = owner.get(&path).await.json();
        let mut others = vec![&stranger];
        if sample.is_in_workspace {
            others.push(&neighbour);
        }
        for client in others {
            let body = numbered(&sample.delete, n);
            for answer in [
                client.get(&path).await,
                client.put(&path, &numbered(&sample.change, n)).await,
                whole(client.request(Method::DELETE, &path).json(&body)).await,
            ] {
                assert_eq!(outcome(&answer), (404, "AB08".into()), "{path}: {}", answer.text());
            }
            let list = client.get(sample.path).await.json();
            let id = path.rsplit('/').next().unwrap();
            assert!(!list.to_string().contains(id), "{path}: {list}");
        }
        assert_eq!(owner.get(&path).await.json(), before, "{path}");
    }
}
