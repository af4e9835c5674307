//! Following logs: rows come as they are listed, in the order in which they arrive, to who may see them and as long as they may.

use super::{at, ids, store};
use crate::login::by_link;
use crate::service::Service;
use harness::{Client, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use shared::bootstrap::FirstKeys;
use shared::model::KeyKind;
use std::time::Duration;
use uuid::Uuid;

/// Longer than anything takes, also the next look at the caller's rights.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream that somebody reads.
struct Tail {
    response: reqwest::Response,
    text: String,
}

#[derive(Debug, PartialEq)]
struct Event {
    id: String,
    kind: String,
    data: Value,
}

impl Tail {
    async fn open(client: &Client, query: &str) -> Self {
        Self::open_after(client, query, "").await
    }

    async fn open_after(client: &Client, query: &str, id: &str) -> Self {
        let response = send(client, query, id).await;
        assert_eq!(response.status(), 200, "{query}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut tail = Self { response, text: String::new() };
        // From here on nothing that arrives is missed.
        assert!(tail.block().await.unwrap().starts_with(": following\nid: "));
        tail
    }

    /// The next event, heartbeats left out; none when the stream is over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let Some(data) = field("data: ") {
                let (id, kind) = (field("id: ").unwrap(), field("event: ").unwrap());
                return Some(Event { id, kind, data: serde_json::from_str(&data).unwrap() });
            }
        }
    }

    /// The next log.
    async fn log(&mut self) -> Value {
        let event = self.next().await.expect("the stream goes on");
        assert_eq!(event.kind, "log", "{event:?}");
        event.data
    }

    /// After a reconnect logs may come again whose transaction was as young as another that was open.
    async fn next_but(&mut self, known: &[String]) -> Event {
        loop {
            let event = self.next().await.unwrap();
            if !known.iter().any(|trace| event.data["trace_id"] == **trace) {
                return event;
            }
        }
    }

    async fn trace(&mut self) -> String {
        self.log().await["trace_id"].as_str().unwrap().to_owned()
    }

    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("the stream is silent");
            self.text.push_str(std::str::from_utf8(&chunk.ok().flatten()?).unwrap());
        }
    }
}

async fn send(client: &Client, query: &str, id: &str) -> reqwest::Response {
    let request = client.request(Method::GET, &format!("/logs/tail?{query}"));
    let request = if id.is_empty() { request } else { request.header("last-event-id", id) };
    request.send().await.unwrap()
}

async fn refused(client: &Client, query: &str, id: &str) -> (StatusCode, Value) {
    let response = send(client, query, id).await;
    let status = response.status();
    assert_ne!(status, 200, "{query}");
    (status, response.json().await.unwrap())
}

async fn named(service: &Service, trace: &str, columns: Value) -> Uuid {
    let mut all = json!({ "trace_id": trace });
    all.as_object_mut().unwrap().extend(columns.as_object().unwrap().clone());
    store(service, at(5), all).await
}

/// So many logs, which arrive at once.
async fn store_many(service: &Service, count: u32) {
    store(service, at(5), json!({ "request_url": "/first" })).await;
    let many = format!(
        "INSERT INTO request_logs (id, created_at, organisation_id, workspace_id, request_url, request_method,
             response_status_code, response_time, trace_id, internal_trace_id)
         SELECT gen_random_uuid(), created_at, organisation_id, workspace_id, '/many', 'POST', 200, 1, 'many-' || n,
             gen_random_uuid()
         FROM request_logs, generate_series(1, {count}) AS n WHERE request_url = '/first'"
    );
    service.sql(&many).await;
}

/// A person who signed in.
async fn by_session(service: &Service, person: Uuid) -> Client {
    let browser = by_link(service, person).await;
    let cookies: Vec<String> = browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    service.client().with("cookie", cookies.join("; "))
}

async fn count(service: &Service, sql: &str) -> i64 {
    service.database.client().await.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn logs_come_as_they_are_listed_in_the_order_in_which_they_arrive() {
    let service = Service::start().await;
    let client = service.administrator();
    named(&service, "before", json!({})).await;
    let mut tail = Tail::open(&client, "").await;
    let columns = json!({
        "req_units": 7, "cost": "0.0125", "metadata": { "_user": "ada\n" }, "error_code": "AB01", "response_status_code": 429,
    });
    let first = named(&service, "first", columns).await;
    // Of a proxy that was cut off for hours.
    let late = store(&service, at(3 * 3600), json!({ "trace_id": "late" })).await;
    let list = client.get("/logs").await.json();
    let listed = |id: Uuid| {
        let rows = list["data"].as_array().unwrap();
        rows.iter().find(|row| row["id"] == json!(id)).unwrap_or_else(|| panic!("{id} is not in {list}")).clone()
    };
    assert_eq!(tail.log().await, listed(first));
    assert_eq!(tail.log().await, listed(late));
    // Numbers are given out before their transaction is over.
    let mut slow = service.database.client().await;
    let open = slow.transaction().await.unwrap();
    let columns =
        "created_at, organisation_id, workspace_id, request_url, request_method, response_status_code, response_time,
        internal_trace_id";
    let copy = |trace: &str| {
        format!(
            "INSERT INTO request_logs (id, trace_id, {columns}) SELECT gen_random_uuid(), '{trace}', {columns}
             FROM request_logs WHERE id = '{first}'"
        )
    };
    open.batch_execute(&copy("open")).await.unwrap();
    service.sql(&copy("quick")).await;
    assert_eq!(tail.trace().await, "quick");
    open.commit().await.unwrap();
    assert_eq!(tail.trace().await, "open", "committed behind a higher number");
}

#[tokio::test]
async fn a_stream_has_the_filters_of_the_list() {
    let service = Service::start().await;
    let client = service.administrator();
    let key = Uuid::new_v4();
    let elsewhere = service.workspace("elsewhere").await;
    for (query, columns) in [
        ("status_code=429,500".to_owned(), json!({ "response_status_code": 429 })),
        ("cost_min=2&total_units_max=200".to_owned(), json!({ "cost": "2.5", "req_units": 70 })),
        ("metadata=%7B%22plan%22%3A%22pro%22%7D".to_owned(), json!({ "metadata": { "plan": "pro" } })),
        (
            format!("api_key_ids={key}&ai_org_model=groq__llama"),
            json!({ "api_key_id": key, "ai_org": "groq", "ai_model": "llama" }),
        ),
        ("trace_id=wanted".to_owned(), json!({})),
        ("search=wanted".to_owned(), json!({})),
        ("workspace_slug=elsewhere".to_owned(), json!({ "workspace_id": elsewhere })),
        (format!("workspace_id={elsewhere}"), json!({ "workspace_id": elsewhere })),
        (format!("time_of_generation_min={}", at(60).to_rfc3339().replace('+', "%2B")), json!({})),
    ] {
        let mut tail = Tail::open(&client, &query).await;
        store(&service, at(3600), json!({ "trace_id": "unwanted" })).await;
        named(&service, "wanted", columns).await;
        assert_eq!(tail.trace().await, "wanted", "{query}");
    }
    for (query, field) in [
        ("status_code=x", "status_code"),
        ("cost_min=-1", "cost_min"),
        ("colour=red", "colour"),
        ("page_size=5", "page_size"),
        ("workspace_slug=nowhere", "workspace_slug"),
    ] {
        let (status, body) = refused(&client, query, "").await;
        assert!([400, 404].contains(&status.as_u16()), "{query}: {body}");
        assert_eq!(body["error"]["param"], field, "{query}: {body}");
    }
}

#[tokio::test]
async fn nobody_sees_what_the_list_would_not_show_them() {
    let service = Service::start().await;
    let other: FirstKeys = service.organisation().await;
    let elsewhere = service.workspace("elsewhere").await;
    let member = service.person("member", Some("member")).await;
    let (admin, stranger) = (service.administrator(), service.client().with_key(&other.admin_key.key));
    let own = service.workspace_client(service.home.workspace_id).await;
    let person = service.person_client(service.home.workspace_id, member).await;
    let narrow = json!({ "membersViewAllData": false, "membersViewLogMetadata": false });
    service.sql(&format!("UPDATE organisations SET security_settings = '{narrow}'")).await;
    let (mut by_admin, mut by_stranger) = (Tail::open(&admin, "").await, Tail::open(&stranger, "").await);
    let (mut by_own, mut by_person) = (Tail::open(&own, "workspace_slug=*").await, Tail::open(&person, "").await);
    let theirs = json!({ "organisation_id": other.organisation_id, "workspace_id": other.workspace_id });
    named(&service, "theirs", theirs).await;
    named(&service, "elsewhere", json!({ "workspace_id": elsewhere })).await;
    named(&service, "of-all", json!({})).await;
    named(&service, "of-member", json!({ "user_id": member, "metadata": { "plan": "pro" } })).await;
    for trace in ["elsewhere", "of-all", "of-member"] {
        assert_eq!(by_admin.trace().await, trace);
    }
    for trace in ["of-all", "of-member"] {
        assert_eq!(by_own.trace().await, trace);
    }
    assert_eq!(by_stranger.trace().await, "theirs");
    let log = by_person.log().await;
    assert_eq!((&log["trace_id"], &log["metadata"]), (&json!("of-member"), &json!({})));
    assert_eq!(ids(&person, "").await, [log["id"].as_str().unwrap()], "as the list has it");
    let (status, body) = refused(&person, "metadata=%7B%22plan%22%3A%22pro%22%7D", "").await;
    assert_eq!(status, 403, "{body}");
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewLogs": false}'"#).await;
    assert_eq!(refused(&person, "", "").await.0, 403);
    let scopeless = service.key(KeyKind::WorkspaceService, &["logs.view", "analytics.view"]).await;
    assert_eq!(refused(&service.client().with_key(&scopeless.key), "", "").await.0, 403);
}

#[tokio::test]
async fn who_loses_the_right_to_logs_is_cut_off_and_others_go_on() {
    let service = Service::start().await;
    let scopes = ["logs.list"];
    let key = async || service.key(KeyKind::WorkspaceService, &scopes).await;
    let (revoked, narrowed, kept) = (key().await, key().await, key().await);
    let (gone, watched) =
        (service.person("member", Some("member")).await, service.person("member", Some("member")).await);
    let (signed_out, signed_in) =
        (service.person("member", Some("member")).await, service.person("member", Some("member")).await);
    let client = |key: &str| service.client().with_key(key);
    let mut over = vec![
        Tail::open(&client(&revoked.key), "").await,
        Tail::open(&client(&narrowed.key), "").await,
        Tail::open(&service.person_client(service.home.workspace_id, gone).await, "").await,
        Tail::open(&by_session(&service, signed_out).await, "").await,
    ];
    let mut goes_on =
        [Tail::open(&client(&kept.key), "").await, Tail::open(&by_session(&service, signed_in).await, "").await];
    let mut sees_less = Tail::open(&service.person_client(service.home.workspace_id, watched).await, "").await;
    service.sql(&format!("DELETE FROM sessions WHERE user_id = '{signed_out}'")).await;
    // Another page of the same browser has got a new token meanwhile.
    let rotate =
        "UPDATE sessions SET previous_hash = hash, hash = sha256('new'), rotated_at = now() - interval '1 hour'";
    service.sql(&format!("{rotate}, confirmed_at = now() - interval '1 hour' WHERE user_id = '{signed_in}'")).await;
    service.sql(&format!("UPDATE api_keys SET status = 'archived' WHERE id = '{}'", revoked.id)).await;
    service.sql(&format!("UPDATE api_keys SET scopes = '{{logs.view}}' WHERE id = '{}'", narrowed.id)).await;
    service.sql(&format!("DELETE FROM workspace_members WHERE user_id = '{gone}'")).await;
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewAllData": false}'"#).await;
    for tail in &mut over {
        assert_eq!(tail.next().await, None);
    }
    for tail in &mut goes_on {
        assert_eq!(tail.block().await.unwrap(), ": heartbeat");
    }
    // All were asked within the same seconds; this one shows the person's own from then on.
    let seen = async || {
        named(&service, "of-others", json!({})).await;
        named(&service, "of-themselves", json!({ "user_id": watched })).await;
    };
    seen().await;
    let mut traces = Vec::new();
    while !traces.ends_with(&["of-themselves".to_owned(), "of-themselves".to_owned()]) {
        traces.push(sees_less.trace().await);
        if traces.last().is_some_and(|trace| trace == "of-themselves") {
            seen().await;
        }
    }
    assert_eq!(goes_on[0].trace().await, "of-others");
    // Its person sees as little as the other by now.
    named(&service, "of-who-signed-in", json!({ "user_id": signed_in })).await;
    assert_eq!(goes_on[1].trace().await, "of-who-signed-in");
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_last_event() {
    let service = Service::start().await;
    let client = service.administrator();
    let mut tail = Tail::open(&client, "").await;
    named(&service, "seen", json!({})).await;
    let seen = tail.next().await.unwrap();
    assert_eq!(seen.data["trace_id"], "seen");
    drop(tail);
    until("the place is given back", async || {
        count(&service, "SELECT count(*) FROM log_watchers WHERE expires_at > now()").await == 0
    })
    .await;
    named(&service, "missed", json!({})).await;
    store(&service, at(7200), json!({ "trace_id": "missed-late" })).await;
    let mut back = Tail::open_after(&client, "", &seen.id).await;
    named(&service, "new", json!({})).await;
    let mut last = String::new();
    let mut known = vec!["seen".to_owned()];
    for trace in ["missed", "missed-late", "new"] {
        let event = back.next_but(&known).await;
        assert_eq!((event.kind.as_str(), &event.data["trace_id"]), ("log", &json!(trace)));
        (last, known) = (event.id, [known, vec![trace.to_owned()]].concat());
    }
    let mut again = Tail::open_after(&client, "", &last).await;
    named(&service, "newest", json!({})).await;
    assert_eq!(again.next_but(&known).await.data["trace_id"], "newest");
    for wrong in ["x", "1-2-3", "1-2-3--4", "99999999999999999999-1-1-1"] {
        let (status, body) = refused(&client, "", wrong).await;
        assert_eq!((status.as_u16(), &body["error"]["param"]), (400, &json!("Last-Event-ID")), "{wrong}: {body}");
    }
    // Of what was never noted nobody knows how much it is.
    let mut lost = Tail::open_after(&client, "", "1-1-1-1").await;
    let gap = lost.next().await.unwrap();
    assert_eq!((gap.kind.as_str(), gap.data), ("gap", json!({ "skipped": null })));
}

#[tokio::test]
async fn what_is_too_much_is_left_out_and_counted() {
    let service = Service::start().await;
    let client = service.administrator();
    let (mut all, mut some) = (Tail::open(&client, "").await, Tail::open(&client, "trace_id=many-4,many-700").await);
    store_many(&service, 700).await;
    let (mut logs, mut skipped) = (0, 0);
    while logs + skipped < 701 {
        let event = all.next().await.unwrap();
        match event.kind.as_str() {
            "log" => logs += 1,
            _ => skipped += event.data["skipped"].as_u64().unwrap(),
        }
    }
    assert_eq!(logs + skipped, 701);
    assert!((1..=300).contains(&logs), "{logs} of a moment");
    assert_eq!([some.trace().await, some.trace().await], ["many-4", "many-700"], "filters come first");
    // Behind a gap it goes on.
    named(&service, "after", json!({})).await;
    assert_eq!(all.trace().await, "after");
}

#[tokio::test]
async fn only_so_many_watch_at_once() {
    let service = Service::start().await;
    let client = service.administrator();
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(Tail::open(&client, "").await);
    }
    let response = send(&client, "", "").await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "15");
    assert_eq!(response.json::<Value>().await.unwrap()["data"]["errorCode"], "AB06");
    let own = service.workspace_client(service.home.workspace_id).await;
    let _own = Tail::open(&own, "").await;
    drop(open.pop());
    until("the place is free", async || {
        let response = send(&client, "", "").await;
        let is_open = response.status() == 200;
        // Closed again, if it was opened.
        drop(response);
        is_open
    })
    .await;
    // Those of other admins count: what they hold stands in the database.
    service
        .sql(&format!(
            "INSERT INTO log_watchers (id, organisation_id, watcher_id, expires_at, noted_until, noted_since)
             SELECT gen_random_uuid(), '{}', gen_random_uuid(), now() + interval '1 hour', now() + interval '1 hour', now()
             FROM generate_series(1, 50)",
            service.home.organisation_id
        ))
        .await;
    assert_eq!(refused(&own, "", "").await.0, 429);
    let other = service.organisation().await;
    let _other = Tail::open(&service.client().with_key(&other.admin_key.key), "").await;
    service.sql("UPDATE log_watchers SET expires_at = now() WHERE noted_since IS NOT NULL").await;
    let _own = Tail::open(&own, "").await;
}

#[tokio::test]
async fn nothing_is_noted_where_nobody_watches() {
    let service = Service::start().await;
    let other = service.organisation().await;
    let noted = "SELECT count(*) FROM log_arrivals";
    named(&service, "alone", json!({})).await;
    assert_eq!(count(&service, noted).await, 0);
    let mut tail = Tail::open(&service.administrator(), "").await;
    let theirs = json!({ "organisation_id": other.organisation_id, "workspace_id": other.workspace_id });
    named(&service, "theirs", theirs).await;
    named(&service, "watched", json!({})).await;
    assert_eq!(tail.trace().await, "watched");
    assert_eq!(count(&service, noted).await, 1, "the organisation that is watched");
    drop(tail);
    until("the place is given back", async || {
        count(&service, "SELECT count(*) FROM log_watchers WHERE expires_at > now()").await == 0
    })
    .await;
    service.sql("UPDATE log_watchers SET noted_until = now() - interval '1 second'").await;
    named(&service, "unwatched", json!({})).await;
    assert_eq!(count(&service, noted).await, 1);
}

#[tokio::test]
async fn a_stream_ends_when_the_service_does() {
    let service = Service::start().await;
    let mut tail = Tail::open(&service.administrator(), "").await;
    drop(service);
    assert_eq!(tail.next().await, None);
}
