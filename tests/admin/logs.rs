//! Logs over HTTP: what is listed and found, page by page, and by whom.

mod bounds;
mod custom;
mod erase;
mod tail;
mod visibility;

use crate::document::Document;
use crate::service::Service;
use chrono::{DateTime, TimeDelta, Utc};
use harness::Client;
use http::Method;
use serde_json::{Value, json};
use uuid::{NoContext, Timestamp, Uuid};

/// A moment of today's partition and those beside it.
pub fn at(seconds_ago: i64) -> DateTime<Utc> {
    let time = Utc::now() - TimeDelta::seconds(seconds_ago);
    DateTime::from_timestamp_millis(time.timestamp_millis()).unwrap()
}

/// An id of that moment, as the journal makes them.
pub fn id_at(time: DateTime<Utc>) -> Uuid {
    let time = Timestamp::from_unix(NoContext, time.timestamp() as u64, time.timestamp_subsec_nanos());
    Uuid::new_v7(time)
}

/// Stores a row as the proxy would, with these columns over a plain one.
pub async fn store(service: &Service, time: DateTime<Utc>, columns: Value) -> Uuid {
    let id = id_at(time);
    let mut row = json!({
        "id": id, "created_at": time, "organisation_id": service.home.organisation_id,
        "workspace_id": service.home.workspace_id, "mode": "single", "request_url": "/v1/chat/completions",
        "request_method": "POST", "response_status_code": 200, "response_time": 10, "trace_id": "t",
        "internal_trace_id": Uuid::new_v4(), "ai_org": "openai", "ai_model": "gpt-4o", "metadata": {},
    });
    row.as_object_mut().unwrap().extend(columns.as_object().unwrap().clone());
    let names: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    let names = names.join(", ");
    let client = service.database.client().await;
    client.execute("SELECT request_logs_day($1)", &[&time.date_naive()]).await.unwrap();
    let insert =
        format!("INSERT INTO request_logs ({names}) SELECT {names} FROM jsonb_populate_record(NULL::request_logs, $1)");
    client.execute(&insert, &[&row]).await.unwrap();
    id
}

pub async fn ids(client: &Client, query: &str) -> Vec<String> {
    let answer = client.get(&format!("/logs?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    let list = answer.json();
    list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn encoded(name: &str, value: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
}

#[tokio::test]
async fn a_log_is_shown_under_the_published_names_and_as_documented() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let client = service.administrator();
    let time = at(5);
    let columns = json!({
        "req_units": 7, "res_units": 5, "cost": "0.0125", "stream_mode": true, "trace_id": "checkout-42",
        "metadata": { "_user": "ada", "n": 5 }, "usage": { "prompt_tokens": 7 }, "unit_prices": { "request_token": "0.1" },
    });
    let id = store(&service, time, columns).await;
    let path = format!("/logs/{id}");
    let answer = client.get(&path).await;
    assert!(
        document.faults(&Method::GET, &path, &answer).is_empty(),
        "{:?}",
        document.faults(&Method::GET, &path, &answer)
    );
    let log = answer.json();
    assert_eq!((&log["_id"], &log["log_format"]), (&json!(id), &json!("v1")));
    assert_eq!(log["request"], json!({ "url": "/v1/chat/completions", "method": "POST" }));
    assert_eq!((&log["response"]["status"], &log["response"]["responseTime"]), (&json!(200), &json!(10)));
    let metrics = &log["metrics"];
    for (name, expected) in [
        ("total_units", json!(12)),
        ("cost", json!(0.0125)),
        ("cost_currency", json!("USD")),
        ("is_success", json!(true)),
        ("stream_mode", json!(1)),
        ("organisation_name", json!("Home")),
        ("metadata.key", json!(["n", "_user"])),
        ("metadata.value", json!(["5", "ada"])),
        ("created_at", json!(time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))),
    ] {
        assert_eq!(metrics[name], expected, "{name}: {metrics}");
    }
    let list = client.get("/logs").await;
    assert!(
        document.faults(&Method::GET, "/logs", &list).is_empty(),
        "{:?}",
        document.faults(&Method::GET, "/logs", &list)
    );
    assert_eq!(list.json()["data"][0], *metrics, "a list shows the same");
    for unknown in [Uuid::new_v4(), Uuid::now_v7(), id_at(time)] {
        assert_eq!(client.get(&format!("/logs/{unknown}")).await.status, 404);
    }
    assert_eq!(client.get("/logs/x").await.status, 404);
}

#[tokio::test]
async fn every_filter_finds_what_it_names_and_nothing_else() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let (key, person) = (Uuid::new_v4(), Uuid::new_v4());
    let wanted_at = at(3600);
    let wanted = store(
        &service,
        wanted_at,
        json!({
            "req_units": 70, "res_units": 50, "cost": "2.5", "response_status_code": 429, "virtual_key": "team",
            "config": "pc-1", "api_key_id": key, "trace_id": "wanted", "span_id": "s", "prompt_slug": "pp-1",
            "cache_status": "HIT", "ai_org": "groq", "ai_model": "llama", "metadata": { "_user": "ada", "n": 5 },
            "error_code": "AB05", "response_time": 700, "time_to_first_token": 300, "user_id": person,
            "request_url": "/v1/embeddings", "source": "custom",
        }),
    )
    .await
    .to_string();
    store(&service, at(60), json!({ "metadata": { "_user": "bob" } })).await;
    let time = |name: &str, seconds: i64| encoded(name, &(wanted_at + TimeDelta::seconds(seconds)).to_rfc3339());
    let between = format!("{}&{}", time("time_of_generation_min", -1), time("time_of_generation_max", 1));
    let feedback = json!([{ "trace_id": "wanted", "value": 8, "weight": 0.5 }, { "trace_id": "other", "value": -8 }]);
    assert_eq!(client.post("/feedback", &feedback).await.status, 200);
    for query in [
        between,
        time("time_of_generation_max", 0),
        "total_units_min=120&total_units_max=120".into(),
        "prompt_token_min=70".into(),
        "completion_token_min=50".into(),
        "cost_min=2.5&cost_max=2.5".into(),
        "status_code=500,429".into(),
        "virtual_keys=team,other".into(),
        "configs=pc-1".into(),
        format!("api_key_ids={key}"),
        "trace_id=wanted".into(),
        "span_id=s".into(),
        "prompt_slug=pp-1".into(),
        "cache_status=HIT".into(),
        "ai_org_model=openai__llama,groq__llama".into(),
        "ai_model=llama".into(),
        "ai_org=groq".into(),
        "is_success=false".into(),
        "status_class=4xx,5xx".into(),
        "-status_code=200".into(),
        "error_code=AB05".into(),
        "response_time_min=700&response_time_max=700".into(),
        "time_to_first_token_min=300&time_to_first_token_max=300".into(),
        format!("user_id={person}"),
        "request_url=/v1/embeddings".into(),
        "source=custom".into(),
        encoded("metadata", r#"{"_user":"ada","n":"5"}"#),
        "weighted_feedback_min=4&weighted_feedback_max=4".into(),
        "weighted_feedback_max=9".into(),
        format!("search={wanted}"),
        "search=wanted".into(),
    ] {
        assert_eq!(ids(&client, &query).await, [wanted.as_str()], "{query}");
    }
    for query in [
        "weighted_feedback_min=5".into(),
        "cost_max=1".into(),
        "trace_id=want".into(),
        "status_code=404".into(),
        "status_class=5xx".into(),
        "is_success=true&status_class=4xx".into(),
        "response_time_min=701".into(),
        "-ai_model=llama&-status_code=200".into(),
        "-error_code=AB05&error_code=AB05".into(),
        encoded("metadata", r#"{"_user":"ada","n":"6"}"#),
        time("time_of_generation_max", -1),
        format!("search={}", Uuid::now_v7()),
    ] {
        assert_eq!(ids(&client, &query).await, [""; 0], "{query}");
    }
    let read = client.get(&format!("/logs/{wanted}")).await.json();
    assert_eq!((&read["feedbacks"][0]["value"], &read["feedbacks"][0]["weight"]), (&json!(8), &json!(0.5)), "{read}");
}

#[tokio::test]
async fn pages_by_number_and_by_place_show_every_log_once_and_newest_first() {
    let service = Service::start().await;
    let client = service.administrator();
    let mut all = Vec::new();
    let time = at(100);
    for n in 0..7 {
        // Two of the same millisecond are told apart by their ids.
        let id = store(&service, time + TimeDelta::milliseconds(n / 2), json!({})).await;
        all.push((n / 2, id));
    }
    all.sort_unstable();
    let newest: Vec<String> = all.iter().rev().map(|(_, id)| id.to_string()).collect();
    assert_eq!(ids(&client, "").await, newest);
    assert_eq!(ids(&client, "page_size=3&current_page=1").await, newest[3..6]);
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/logs?page_size=3&after={after}")).await.json();
        assert_eq!((&page["total"], &page["total_is_capped"]), (&json!(7), &json!(false)), "{page}");
        seen.extend(page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, newest);
    let beyond = client.get("/logs?current_page=1000000").await;
    assert_eq!((beyond.status.as_u16(), &beyond.json()["error"]["param"]), (400, &json!("current_page")));
}

#[tokio::test]
async fn a_total_that_would_take_long_is_not_counted_and_a_last_page_needs_no_count() {
    let service = Service::start().await;
    let client = service.administrator();
    for ago in 1..=3 {
        store(&service, at(ago), json!({})).await;
    }
    // Every row costs as much to Postgres as a million do, in connections made from now on.
    service
        .sql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET cpu_tuple_cost = 100000', current_database()); END $$")
        .await;
    service
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        .await;
    let told = async |query: &str| {
        let list = client.get(&format!("/logs?{query}")).await.json();
        (list["total"].clone(), list["total_is_capped"].clone())
    };
    harness::until("new connections are in use", async || told("page_size=2").await.1 == true).await;
    assert_eq!(told("page_size=2").await, (json!(2), json!(true)));
    assert_eq!(
        told("page_size=2&current_page=1").await,
        (json!(3), json!(false)),
        "the last page says how many there are"
    );
    assert_eq!(told("page_size=5").await, (json!(3), json!(false)));
}

#[tokio::test]
async fn a_total_is_exact_up_to_ten_thousand_and_says_when_it_is_not() {
    let service = Service::start().await;
    let client = service.administrator();
    store(&service, at(10), json!({})).await;
    let fill = |count: i64| {
        format!(
            "INSERT INTO request_logs (id, created_at, organisation_id, workspace_id, request_url, request_method,
                 response_status_code, response_time, trace_id, internal_trace_id)
             SELECT gen_random_uuid(), created_at, organisation_id, workspace_id, '/', 'POST', 200, 1, 't', gen_random_uuid()
             FROM request_logs, generate_series(1, {count}) WHERE trace_id = 't' AND request_url <> '/'"
        )
    };
    service.sql(&fill(9_999)).await;
    let list = client.get("/logs?page_size=1").await.json();
    assert_eq!((&list["total"], &list["total_is_capped"]), (&json!(10_000), &json!(false)));
    service.sql(&fill(1)).await;
    let list = client.get("/logs?page_size=1").await.json();
    assert_eq!((&list["total"], &list["total_is_capped"]), (&json!(10_000), &json!(true)));
    let beyond = client.get("/logs?page_size=100&current_page=100").await.json();
    assert_eq!(beyond["data"].as_array().unwrap().len(), 1);
}
