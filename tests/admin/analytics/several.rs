//! Several questions at once: each answer is the one that the operation of that question gives, and all are of one moment.

use super::reference::World;
use super::{ALL, COUNTING, get};
use crate::document::Document;
use crate::logs::store;
use crate::service::Service;
use harness::{Answer, Client, until};
use http::Method;
use serde_json::{Value, json};

const QUERY: &str = "/analytics/query";
/// As `ALL`.
const FROM: &str = "2026-01-01T00:00:00Z";
const TO: &str = "2026-01-31T00:00:00Z";

async fn ask(client: &Client, questions: &[Value], more: Value) -> Answer {
    let mut body = json!({ "period": { "from": FROM, "to": TO }, "questions": questions });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.post(QUERY, &body).await
}

async fn answers(client: &Client, questions: &[Value], more: Value) -> Vec<Value> {
    let answer = ask(client, questions, more).await;
    assert_eq!(answer.status, 200, "{questions:?}: {}", answer.text());
    answer.json()["answers"].as_array().unwrap().clone()
}

/// The question that an operation is.
fn question(path: &str) -> Value {
    for kind in ["graph", "group", "summary"] {
        let beginning = if kind == "summary" { "/analytics/summary/".into() } else { format!("/analytics/{kind}s/") };
        if let Some(name) = path.strip_prefix(&beginning) {
            return json!({ kind: name });
        }
    }
    panic!("{path} is no question")
}

fn first_calls() -> chrono::DateTime<chrono::Utc> {
    "2026-01-15T12:00:00Z".parse().unwrap()
}

#[tokio::test]
async fn each_answer_is_the_one_of_the_operation_that_is_that_question() {
    let service = Service::start().await;
    World::at_random(7, 400).store(&service).await;
    let document = Document::of(&service).await;
    let own = service.workspace_client(service.home.workspace_id).await;
    // A question, and the path and query of the same alone.
    let mut same: Vec<(Value, String)> = COUNTING
        .iter()
        .filter(|path| path.starts_with("/analytics/"))
        .map(|path| (question(path), format!("{path}?")))
        .collect();
    let further = [
        (json!({ "graph": "cost", "group_by": "model" }), "/analytics/graphs/cost?group_by=model&"),
        (json!({ "graph": "users", "group_by": "workspace" }), "/analytics/graphs/users?group_by=workspace&"),
        (
            json!({ "group": "model", "columns": ["cost", "p95_latency"], "top": 2, "include_total": true }),
            "/analytics/groups/model?columns=cost,p95_latency&page_size=2&include_total=true&",
        ),
        (
            json!({ "group": "workspace", "then_by": "status_code", "order_by": "status_code", "order_by_type": "asc" }),
            "/analytics/groups/workspace?then_by=status_code&order_by=status_code&order_by_type=asc&",
        ),
        (
            json!({ "group": "metadata/plan", "then_by": "workspace", "order_by": "workspace" }),
            "/analytics/groups/metadata/plan?then_by=workspace&order_by=workspace&",
        ),
        (json!({ "group": "user", "columns": ["first_seen"] }), "/analytics/groups/user?columns=first_seen&"),
    ];
    same.extend(further.map(|(question, path)| (question, path.to_owned())));
    for (more, query) in [
        (json!({}), ""),
        (json!({ "compare": "previous" }), "&compare=previous"),
        (json!({ "filters": { "status_code": [200, 429] } }), "&status_code=200,429"),
        (
            json!({ "filters": { "metadata": { "plan": "pro" }, "cost_max": 700 }, "compare": "previous" }),
            "&metadata=%7B%22plan%22%3A%22pro%22%7D&cost_max=700&compare=previous",
        ),
    ] {
        for same in same.chunks(12) {
            for client in [&service.administrator(), &own] {
                let questions: Vec<Value> = same.iter().map(|(question, _)| question.clone()).collect();
                let answer = ask(client, &questions, more.clone()).await;
                let faults = document.faults(&Method::POST, QUERY, &answer);
                assert!(faults.is_empty(), "{faults:?}");
                let answers = answer.json()["answers"].as_array().unwrap().clone();
                assert_eq!(answers.len(), same.len());
                for ((question, path), answer) in same.iter().zip(&answers) {
                    let (path, own) = path.split_once('?').unwrap();
                    assert_eq!(*answer, get(client, path, &format!("{own}{ALL}{query}")).await, "{question} {more}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_list_of_groups_is_compared_with_that_of_the_time_before() {
    let service = Service::start().await;
    World::at_random(8, 400).store(&service).await;
    let client = service.administrator();
    let half = json!({ "period": { "from": "2026-01-16T00:00:00Z", "to": "2026-01-30T23:59:59.999Z" }, "compare": "previous" });
    let before = "time_of_generation_min=2026-01-01T00:00:00Z&time_of_generation_max=2026-01-15T23:59:59.999Z";
    let list = &answers(&client, &[json!({ "group": "model", "columns": ["cost"] })], half).await[0];
    let alone = get(&client, "/analytics/groups/model", &format!("{before}&columns=cost")).await;
    for field in ["total", "total_is_capped", "data"] {
        assert_eq!(list["previous"][field], alone[field], "{field}");
    }
    assert_ne!(list["previous"]["data"], list["data"]);
    let query =
        "time_of_generation_min=2026-01-16T00:00:00Z&time_of_generation_max=2026-01-30T23:59:59.999Z&compare=previous";
    let sheet = client.with("accept", "text/csv").get(&format!("/analytics/groups/model?{query}")).await.text();
    let of = |period: &str| sheet.lines().filter(|line| line.contains(period)).count();
    let rows = |list: &Value| list["data"].as_array().unwrap().len();
    assert_eq!((of("asked"), of("previous")), (rows(list), rows(&alone)), "{sheet}");
}

#[tokio::test]
async fn what_is_asked_wrongly_is_said_with_its_place_in_the_body() {
    let service = Service::start().await;
    let client = service.administrator();
    let graph = || json!({ "graph": "requests" });
    for (wrong, place) in [
        (json!({ "graph": "colour" }), "questions[1].graph"),
        (json!({ "graph": "cost", "group_by": "colour" }), "questions[1].group_by"),
        (json!({ "graph": "feedbacks", "group_by": "model" }), "questions[1].group_by"),
        (json!({ "graph": "cost", "columns": ["cost"] }), "questions[1].columns"),
        (json!({ "group": "colour" }), "questions[1].group"),
        (json!({ "group": format!("metadata/{}", "n".repeat(150)) }), "questions[1].group"),
        (json!({ "group": "model", "columns": ["colour"] }), "questions[1].columns[0]"),
        (json!({ "group": "model", "top": 101 }), "questions[1].top"),
        (json!({ "group": "model", "order_by": "cost" }), "questions[1].order_by"),
        (json!({ "group": "model", "then_by": "model" }), "questions[1].then_by"),
        (json!({ "summary": "cost" }), "questions[1].summary"),
        (json!({ "colour": "red" }), "questions[1]"),
        (json!("requests"), "questions[1]"),
    ] {
        let answer = ask(&client, &[graph(), wrong.clone()], json!({})).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text());
        let param = answer.json()["error"]["param"].as_str().unwrap().to_owned();
        assert!(param.starts_with(place), "{wrong}: {param} in {}", answer.text());
    }
    for (more, place) in [
        (json!({ "period": {} }), "period.from"),
        (json!({ "period": { "from": TO, "to": FROM } }), "period.to"),
        (json!({ "period": { "from": "yesterday", "to": TO } }), "period.from"),
        (json!({ "period": { "from": "1970-01-01", "to": TO } }), "period.from"),
        (json!({ "compare": "next" }), "compare"),
        (json!({ "questions": [] }), "questions"),
        (json!({ "questions": vec![graph(); 13] }), "questions"),
        (json!({ "filters": { "status_code": "x" } }), "filters.status_code"),
        (json!({ "filters": { "cost_min": -1 } }), "filters.cost_min"),
        (json!({ "filters": { "colour": "red" } }), "filters.colour"),
        (json!({ "filters": { "time_of_generation_min": FROM } }), "filters.time_of_generation_min"),
        (json!({ "filters": { "workspace_slug": "nowhere" } }), "filters.workspace_slug"),
        (json!({ "filters": { "saved_filter_id": uuid::Uuid::new_v4() } }), "filters.saved_filter_id"),
        (json!({ "filters": { "trace_id": vec!["t"; 101] } }), "filters.trace_id"),
        (json!({ "colour": "red" }), "colour"),
    ] {
        let answer = ask(&client, &[graph()], more.clone()).await;
        // What is named and is not there.
        let is_missing = ["workspace_slug", "saved_filter_id"].iter().any(|name| place.ends_with(name));
        assert_eq!(answer.status.as_u16(), if is_missing { 404 } else { 400 }, "{more}: {}", answer.text());
        assert_eq!(answer.json()["error"]["param"], place, "{more}: {}", answer.text());
    }
    let nearest = ask(&client, &[json!({ "graph": "request" })], json!({})).await;
    assert_eq!(nearest.json()["data"]["errors"][0]["nearest"], "requests", "{}", nearest.text());
    let large = ask(&client, &[graph()], json!({ "filters": { "trace_id": "t".repeat(70 << 10) } })).await;
    assert_eq!(large.status, 413);
}

#[tokio::test]
async fn every_answer_is_of_the_same_moment() {
    let service = Service::start().await;
    let client = service.administrator();
    store(&service, first_calls(), json!({})).await;
    // The question about feedback waits for this lock, behind the first and before the last.
    let mut locker = service.database.client().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE feedback IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let questions = [json!({ "graph": "requests" }), json!({ "graph": "feedbacks" }), json!({ "graph": "requests" })];
    let asked = answers(&client, &questions, json!({}));
    let stored = async {
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'feedback'::regclass AND NOT granted)";
        let watcher = service.database.client().await;
        until("the second question waits", async || watcher.query_one(waits, &[]).await.unwrap().get(0)).await;
        store(&service, first_calls(), json!({})).await;
        lock.rollback().await.unwrap();
    };
    let (answers, ()) = tokio::join!(asked, stored);
    let totals = [0, 2].map(|n| answers[n]["summary"]["total"].clone());
    assert_eq!(totals, [json!(1), json!(1)]);
    assert_eq!(get(&client, "/analytics/graphs/requests", ALL).await["summary"]["total"], 2);
}

#[tokio::test]
async fn questions_see_what_the_operations_see_and_no_more() {
    const MARK: &str = "f0re1gn";
    let service = Service::start().await;
    let other = service.organisation().await;
    let theirs = json!({
        "organisation_id": other.organisation_id, "workspace_id": other.workspace_id, "ai_model": MARK,
        "metadata": { "_user": MARK, "plan": MARK },
    });
    store(&service, first_calls(), theirs).await;
    let elsewhere = service.workspace("elsewhere").await;
    store(&service, first_calls(), json!({ "workspace_id": elsewhere })).await;
    let member = service.person("member", Some("member")).await;
    store(&service, first_calls(), json!({ "user_id": member })).await;
    store(&service, first_calls(), json!({})).await;
    let questions = [json!({ "graph": "requests" }), json!({ "group": "model" }), json!({ "group": "workspaces" })];
    let total = async |client: &Client, more: Value| {
        let answers = answers(client, &questions, more).await;
        assert!(!json!(answers).to_string().contains(MARK), "{answers:?}");
        answers[0]["summary"]["total"].clone()
    };
    let (admin, own) = (service.administrator(), service.workspace_client(service.home.workspace_id).await);
    assert_eq!(total(&admin, json!({})).await, 3);
    for name in ["workspace_slug", "workspace_id"] {
        assert_eq!(total(&admin, json!({ "filters": { name: "elsewhere" } })).await, 1, "{name}");
        assert_eq!(total(&own, json!({ "filters": { name: "*" } })).await, 2, "{name}");
        let foreign = ask(&admin, &questions, json!({ "filters": { name: other.workspace_id } })).await;
        assert_eq!(foreign.status, 404, "{name}: {}", foreign.text());
    }
    let body = json!({ "period": { "from": FROM, "to": TO }, "questions": questions });
    let named = admin.post(&format!("{QUERY}?workspace_id=elsewhere"), &body).await.json();
    assert_eq!(named["answers"][0]["summary"]["total"], 1, "{named}");
    let person = service.person_client(service.home.workspace_id, member).await;
    assert_eq!(total(&person, json!({})).await, 2);
    let set = async |settings: Value| {
        service.sql(&format!("UPDATE organisations SET security_settings = '{settings}'")).await;
    };
    set(json!({ "membersViewAllData": false })).await;
    assert_eq!(total(&person, json!({})).await, 1);
    set(json!({ "membersViewLogMetadata": false })).await;
    for by in [
        json!({ "group": "users" }),
        json!({ "group": "metadata/plan" }),
        json!({ "graph": "cost", "group_by": "user" }),
    ] {
        let refused = ask(&person, &[questions[0].clone(), by.clone()], json!({})).await;
        assert_eq!(refused.status, 403, "{by}: {}", refused.text());
    }
    let searched = ask(&person, &questions, json!({ "filters": { "metadata": { "plan": "pro" } } })).await;
    assert_eq!(searched.status, 403, "{}", searched.text());
    set(json!({ "membersViewAnalytics": false })).await;
    assert_eq!(ask(&person, &questions, json!({})).await.status, 403);
}

#[tokio::test]
async fn filters_that_were_saved_are_used_by_name() {
    let service = Service::start().await;
    let client = service.administrator();
    store(&service, first_calls(), json!({ "response_status_code": 429 })).await;
    store(&service, first_calls(), json!({})).await;
    let saved = json!({ "name": "Failed", "filters": { "status_code": [429], "time_of_generation_min": TO } });
    let saved = client.post("/analytics/saved-filters", &saved).await.json();
    let filters = json!({ "filters": { "saved_filter_id": saved["id"] } });
    let failed = answers(&client, &[json!({ "graph": "requests" })], filters).await;
    assert_eq!(failed[0]["summary"]["total"], 1, "the period of the request wins");
    let filters = json!({ "filters": { "saved_filter_id": saved["id"], "status_code": 200 } });
    let others = answers(&client, &[json!({ "graph": "errors" })], filters).await;
    assert_eq!(others[0]["summary"]["total"], 0, "what the request says wins");
}
