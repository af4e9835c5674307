//! Exports of logs: from the draft to the file, through restarts, and only what each may see.

mod runs;
mod several;
mod visibility;

use crate::document::Document;
use crate::jobs::{admin_on, run};
use crate::service::Service;
use admin::App;
use harness::{Answer, Client};
use http::Method;
use serde_json::{Value, json};
use shared::log_store::{self, LogStore};
use uuid::Uuid;

/// A service, and an admin that runs its jobs.
pub struct Place {
    pub service: Service,
    pub app: App,
}

impl Place {
    pub async fn start() -> Self {
        let service = Service::start().await;
        let app = admin_on(&service.database).await;
        Self { service, app }
    }

    /// So many logs of a workspace, a minute between each, the newest an hour old; `user` is whose keys they came by.
    pub async fn fill(&self, organisation: Uuid, workspace: Uuid, user: Option<Uuid>, count: i64) {
        const LOGS: &str = "INSERT INTO request_logs (id, created_at, organisation_id, workspace_id, user_id, ai_org, ai_model,
                request_url, request_method, response_status_code, response_time, req_units, res_units, cost, trace_id,
                internal_trace_id, metadata)
            SELECT gen_random_uuid(), now() - interval '1 hour' - n * interval '1 millisecond', $1, $2, $3, 'openai', 'gpt-4o',
                '/v1/chat/completions', 'POST', CASE WHEN n % 10 = 0 THEN 429 ELSE 200 END, 5, 10, n, 0.015, 't-' || n,
                gen_random_uuid(), jsonb_build_object('_user', 'u-' || n % 3)
            FROM generate_series(1, $4::bigint) n";
        let client = self.service.database.client().await;
        for day in ["now()", "now() - interval '1 day'"] {
            let make = format!("SELECT request_logs_day((({day}) AT TIME ZONE 'UTC')::date)");
            client.batch_execute(&make).await.unwrap();
        }
        client.execute(LOGS, &[&organisation, &workspace, &user, &count]).await.unwrap();
    }

    pub async fn fill_home(&self, count: i64) {
        self.fill(self.service.home.organisation_id, self.service.home.workspace_id, None, count).await;
    }

    /// Runs the exports until they are complete.
    pub async fn make(&self) {
        run(&self.app, "export_logs").await;
    }

    /// What a link leads to, for somebody without a key.
    pub async fn fetch(&self, link: &str) -> Answer {
        let (_, path) = link.split_once("/v1").unwrap();
        self.service.client().get(path).await
    }

    /// The lines of all files of a complete export.
    pub async fn lines(&self, client: &Client, id: &str) -> Vec<Value> {
        let links = client.get(&format!("/logs/exports/{id}/download")).await;
        assert_eq!(links.status, 200, "{}", links.text());
        let mut lines = Vec::new();
        for link in links.json()["signed_urls"].as_array().unwrap() {
            let file = self.fetch(link.as_str().unwrap()).await;
            assert_eq!(file.status, 200, "{}", file.text());
            lines.extend(file.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        }
        lines
    }
}

pub async fn draft(client: &Client, body: Value) -> String {
    let made = client.post("/logs/exports", &body).await;
    assert_eq!(made.status, 200, "{body}: {}", made.text());
    made.json()["id"].as_str().unwrap().to_owned()
}

pub async fn start(client: &Client, id: &str) {
    let started = client.post(&format!("/logs/exports/{id}/start"), &json!({})).await;
    assert_eq!(started.status, 200, "{}", started.text());
}

pub async fn shown(client: &Client, id: &str) -> Value {
    client.get(&format!("/logs/exports/{id}")).await.json()
}

#[tokio::test]
async fn an_export_is_drafted_started_made_and_fetched() {
    let place = Place::start().await;
    place.fill_home(30).await;
    let client = place.service.administrator();
    let body = json!({
        "filters": { "status_code": [200], "metadata": { "_user": "u-1" } },
        "requested_data": ["id", "ai_provider", "status_code", "cost", "metadata", "created_at", "response"],
        "description": "January",
    });
    let made = client.post("/logs/exports", &body).await.json();
    let expected = json!({
        "id": made["id"], "total": 9, "total_is_capped": false, "workspace_ids": null, "object": "export",
    });
    assert_eq!(made, expected);
    let id = made["id"].as_str().unwrap();
    let seen = shown(&client, id).await;
    let expected = json!({
        "id": id,
        "organisation_id": place.service.home.organisation_id,
        "workspace_id": null,
        "workspace_ids": null,
        "filters": body["filters"],
        "requested_data": ["id", "ai_org", "response_status_code", "cost", "metadata", "created_at", "response"],
        "format": "jsonl",
        "status": "draft",
        "description": "January",
        "created_by": place.service.home.admin_key.id,
        "total_records": 9,
        "total_is_capped": false,
        "exported_records": 0,
        "files": 0,
        "error": null,
        "created_at": seen["created_at"],
        "last_updated_at": seen["last_updated_at"],
        "object": "export",
    });
    assert_eq!(seen, expected);
    start(&client, id).await;
    assert_eq!(shown(&client, id).await["status"], "in_progress");
    place.make().await;
    let done = shown(&client, id).await;
    assert_eq!((&done["status"], &done["exported_records"], &done["files"]), (&json!("success"), &json!(9), &json!(1)));
    let lines = place.lines(&client, id).await;
    assert_eq!(lines.len(), 9);
    for line in &lines {
        let names: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            ["id", "ai_org", "response_status_code", "cost", "cost_unit", "metadata", "created_at", "response"]
        );
        assert_eq!((&line["ai_org"], &line["cost"]), (&json!("openai"), &json!(0.015)));
        assert_eq!((&line["response_status_code"], &line["response"]), (&json!(200), &Value::Null));
        assert_eq!(line["metadata"], json!({ "_user": "u-1" }));
        assert!(line["created_at"].as_str().unwrap().ends_with('Z'), "{line}");
    }
    assert!(lines.is_sorted_by(|one, next| one["created_at"].as_str() > next["created_at"].as_str()), "newest first");
    let listed = client.get("/logs/exports").await.json();
    assert_eq!((&listed["total"], &listed["data"][0]), (&json!(1), &done));
}

#[tokio::test]
async fn a_file_is_csv_when_asked_for_and_says_what_it_is() {
    let place = Place::start().await;
    place.fill_home(2).await;
    let client = place.service.administrator();
    let body = json!({ "filters": {}, "requested_data": ["trace_id", "metadata", "config"], "format": "csv" });
    let id = draft(&client, body).await;
    start(&client, &id).await;
    place.make().await;
    let links = client.get(&format!("/logs/exports/{id}/download")).await.json();
    let file = place.fetch(links["signed_url"].as_str().unwrap()).await;
    let expected = "trace_id,metadata,config\r\nt-1,\"{\"\"_user\"\":\"\"u-1\"\"}\",\r\n\
                    t-2,\"{\"\"_user\"\":\"\"u-2\"\"}\",\r\n";
    assert_eq!(file.text(), expected);
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(file.header("content-length"), expected.len().to_string());
    assert!(file.header("content-disposition").contains(&format!("logs-{id}-1.csv")));
}

#[tokio::test]
async fn an_export_of_nothing_is_a_file_without_lines() {
    let place = Place::start().await;
    place.fill_home(1).await;
    let client = place.service.administrator();
    for (format, expected) in [("jsonl", ""), ("csv", "id\r\n")] {
        let body = json!({ "filters": { "trace_id": "nobody" }, "requested_data": ["id"], "format": format });
        let id = draft(&client, body).await;
        start(&client, &id).await;
        place.make().await;
        let links = client.get(&format!("/logs/exports/{id}/download")).await.json();
        let file = place.fetch(links["signed_url"].as_str().unwrap()).await;
        assert_eq!((file.status.as_u16(), file.text().as_str()), (200, expected), "{format}");
    }
}

#[tokio::test]
async fn bodies_are_taken_from_the_log_store() {
    let place = Place::start().await;
    place.fill_home(4).await;
    let store: &LogStore = &place.app.log_store;
    let body = json!({ "request": { "body": { "model": "gpt-4o" } }, "response": { "status": 200 }, "metrics": {} });
    let at = |name: &str| format!("bodies/{}/{name}", place.service.home.organisation_id);
    store.put(&at("there"), log_store::pack(body.to_string().as_bytes()).unwrap()).await.unwrap();
    store.put(&at("damaged"), bytes::Bytes::from_static(b"no zstd")).await.unwrap();
    let (other, frame) = (log_store::pack(b"{}").unwrap(), log_store::pack(body.to_string().as_bytes()).unwrap());
    store.put(&at("x.pack.zst"), [&other[..], &frame, &other].concat().into()).await.unwrap();
    let packed = log_store::packed_key("x.pack.zst", &(other.len() as u64..(other.len() + frame.len()) as u64));
    for (trace, key) in [("t-1", "there"), ("t-2", "damaged"), ("t-3", "gone"), ("t-4", packed.as_str())] {
        let set = format!("UPDATE request_logs SET body_key = '{}' WHERE trace_id = '{trace}'", at(key));
        place.service.sql(&set).await;
    }
    let client = place.service.administrator();
    let id = draft(&client, json!({ "filters": {}, "requested_data": ["trace_id", "response", "request"] })).await;
    start(&client, &id).await;
    place.make().await;
    let expected = [
        json!({ "trace_id": "t-1", "response": body["response"], "request": body["request"] }),
        json!({ "trace_id": "t-2", "response": null, "request": null }),
        json!({ "trace_id": "t-3", "response": null, "request": null }),
        json!({ "trace_id": "t-4", "response": body["response"], "request": body["request"] }),
    ];
    assert_eq!(place.lines(&client, &id).await, expected);
}

#[tokio::test]
async fn what_is_wrong_with_an_export_is_named() {
    let place = Place::start().await;
    let client = place.service.administrator();
    let id = draft(&client, json!({ "filters": {}, "requested_data": ["id"] })).await;
    for (change, field) in [
        (json!({ "requested_data": [] }), "requested_data"),
        (json!({ "requested_data": ["id", "password"] }), "requested_data[1]"),
        (json!({ "requested_data": "id" }), "requested_data"),
        (json!({ "filters": [] }), "filters"),
        (json!({ "filters": { "cost_min": "cheap" } }), "filters.cost_min"),
        (json!({ "filters": { "page_size": -1 } }), "filters.page_size"),
        (json!({ "filters": { "created_at": { "gte": "soon" } } }), "filters.time_of_generation_min"),
        (json!({ "format": "xlsx" }), "format"),
        (json!({ "description": "x".repeat(1001) }), "description"),
    ] {
        let mut body = json!({ "filters": {}, "requested_data": ["id"] });
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answers =
            [client.post("/logs/exports", &body).await, client.put(&format!("/logs/exports/{id}"), &change).await];
        for answer in answers {
            assert_eq!(answer.status, 400, "{change}: {}", answer.text());
            let named = answer.json()["data"]["errors"][0]["field"].as_str().unwrap_or_default().to_owned();
            assert_eq!(named, field, "{change}: {}", answer.text());
        }
    }
    for missing in [json!({ "filters": {} }), json!({ "requested_data": ["id"] })] {
        assert_eq!(client.post("/logs/exports", &missing).await.status, 400, "{missing}");
    }
    let nothing = client.put(&format!("/logs/exports/{id}"), &json!({})).await;
    assert_eq!((nothing.status.as_u16(), nothing.json()["message"].as_str()), (400, Some("Nothing to update")));
}

#[tokio::test]
async fn a_link_opens_its_own_files_for_an_hour() {
    let place = Place::start().await;
    place.fill_home(2).await;
    let client = place.service.administrator();
    let mut links = Vec::new();
    for _ in 0..2 {
        let id = draft(&client, json!({ "filters": {}, "requested_data": ["id"] })).await;
        start(&client, &id).await;
        place.make().await;
        let link = client.get(&format!("/logs/exports/{id}/download")).await.json()["signed_url"].clone();
        links.push((id, link.as_str().unwrap().to_owned()));
    }
    let [(one, link), (other, _)] = links.as_slice() else { panic!("two links") };
    assert_eq!(place.fetch(link).await.status, 200);
    for wrong in [
        link.replace(one, other),
        link.replace("files/1", "files/2"),
        link.replace("files/1", "files/0"),
        link.replace("files/1", "files/x"),
        link.replace("token=", "token=x"),
        link.split('?').next().unwrap().to_owned(),
        link.replace(one, "x"),
    ] {
        let answer = place.fetch(&wrong).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str()),
            (404, Some("AB08")),
            "{wrong}"
        );
    }
    place.service.sql("UPDATE log_export_links SET expires_at = now() - interval '1 second'").await;
    assert_eq!(place.fetch(link).await.status, 404);
    assert_eq!(run(&place.app, "expire_exports").await, 2, "links that are over are forgotten");
    let stored = "SELECT count(*) FROM log_export_links";
    assert_eq!(place.service.database.client().await.query_one(stored, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn every_answer_is_what_the_document_says_and_changes_are_recorded() {
    let place = Place::start().await;
    place.fill_home(1).await;
    let document = Document::of(&place.service).await;
    let client = place.service.administrator();
    let body = json!({ "filters": {}, "requested_data": ["id"] });
    let id = draft(&client, body.clone()).await;
    let at = |rest: &str| format!("/logs/exports/{id}{rest}");
    let fits = |method: Method, path: String, answer: Answer, status: u16| {
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        let faults = document.faults(&method, &path, &answer);
        assert!(faults.is_empty(), "{method} {path}: {faults:?} in {}", answer.text());
    };
    let create = "/logs/exports".to_owned();
    fits(Method::POST, create.clone(), client.post(&create, &body).await, 200);
    fits(Method::GET, create.clone(), client.get(&create).await, 200);
    fits(Method::GET, at(""), client.get(&at("")).await, 200);
    fits(Method::PUT, at(""), client.put(&at(""), &json!({ "description": "d" })).await, 200);
    fits(Method::GET, at("/download"), client.get(&at("/download")).await, 400);
    fits(Method::POST, at("/start"), client.post(&at("/start"), &json!({})).await, 200);
    fits(Method::POST, at("/cancel"), client.post(&at("/cancel"), &json!({})).await, 200);
    fits(Method::POST, at("/start"), client.post(&at("/start"), &json!({})).await, 200);
    place.make().await;
    fits(Method::GET, at("/download"), client.get(&at("/download")).await, 200);
    fits(Method::GET, at("/files/1"), client.get(&at("/files/1")).await, 404);
    let restrictions = "/logs/exports/field-restrictions".to_owned();
    fits(Method::GET, restrictions.clone(), client.get(&restrictions).await, 200);
    let trail = place.service.trail(place.service.home.organisation_id).await;
    let actions: Vec<&str> =
        trail.iter().filter(|row| row["resource_id"] == json!(id)).map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["create", "update", "export", "manage", "export"]);
    assert!(trail.iter().all(|row| row["resource_type"] == "log_exports"), "{trail:?}");
}
