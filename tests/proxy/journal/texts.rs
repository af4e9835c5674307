//! Texts that clients and providers choose, of any length and of any characters: a log of them is stored, or set aside
//! alone, and never holds up those of others.

use super::calls::{rows, text};
use super::ship::{STORED_AND_REJECTED, emptied, files, leave, one, open, record, ship_until, tenant, uploader};
use harness::{Database, Stack, chat};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use proxy::journal::Record;
use rand::distr::{Alphanumeric, Distribution as _};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Nothing that could be compressed: an index takes a long text of few letters.
fn random(length: usize) -> String {
    Alphanumeric.sample_iter(rand::rng()).take(length).map(char::from).collect()
}

#[tokio::test]
async fn a_name_of_any_length_is_logged_as_far_as_a_row_takes_it_and_holds_nobody_up() {
    let stack = Stack::start().await;
    let model = random(4000);
    let mut asked = chat("Hello");
    asked["model"] = json!(model);
    assert_eq!(stack.client().post("/chat/completions", &asked).await.status, 200);
    let session = stack.client().get(&format!("/realtime?model={model}")).await;
    let path = format!("/proxy/{}", random(4000));
    let relayed = stack.client().post(&path, &json!({})).await;
    let answer = json!({ "model": model, "service_tier": model, "choices": [], "usage": { "prompt_tokens": 3 } });
    stack.mock.script(json!([{ "body": answer.to_string() }])).unwrap();
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    let other = stack.organisation().await;
    let well = stack.as_application(&other.workspace_key).post("/chat/completions", &chat("Hello")).await;
    assert_eq!(well.status, 200);
    let client = stack.database.client().await;
    // How the second tenant's key became known is of no interest.
    let found = async || {
        const ROWS: &str = "SELECT * FROM request_logs WHERE request_url <> '/v1/models' ORDER BY created_at, id";
        client.query(ROWS, &[]).await.unwrap()
    };
    stack.until("all calls are stored", async || found().await.len() == 5).await;
    let rows = found().await;
    let statuses: Vec<i32> = rows.iter().map(super::calls::status).collect();
    let expected = [200, session.status.as_u16(), relayed.status.as_u16(), 200, 200].map(i32::from);
    assert_eq!(statuses, expected);
    for row in [0, 1, 3] {
        assert_eq!(text(&rows[row], "ai_model"), Some(&model[..255]), "{row}");
    }
    assert_eq!(text(&rows[2], "request_url"), Some(&format!("/v1{path}")[..2048]));
    assert_eq!(rows[4].get::<_, uuid::Uuid>("organisation_id"), other.id);
    for metric in ["rejected", "ship_failures", "too_long", "lost"] {
        assert_eq!(stack.metric(&format!("gateway_journal_{metric}_total")).await, Some(0.0), "{metric}");
    }
}

#[tokio::test]
async fn what_a_provider_says_of_usage_is_counted_even_where_it_cannot_be_stored() {
    let stack = Stack::start().await;
    let usages = [
        r#"{"prompt_tokens":3,"x":"\ud800"}"#.to_owned(),
        r#"{"prompt_tokens":3,"x":1e100000}"#.to_owned(),
        format!(r#"{{"prompt_tokens":3,"x":{}{}}}"#, "[".repeat(3500), "]".repeat(3500)),
        r#"{"prompt_tokens":3,"x":"\u0000é"}"#.to_owned(),
    ];
    for usage in &usages {
        let answer = format!(r#"{{"model":"m","choices":[],"usage":{usage}}}"#);
        stack.mock.script(json!([{ "body": answer }])).unwrap();
        assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    }
    let rows = rows(&stack, usages.len()).await;
    let read: Vec<i64> = rows.iter().map(|row| row.get("req_units")).collect();
    assert_eq!(read, [3; 4]);
    let kept: Vec<Option<Value>> = rows.iter().map(|row| row.get("usage")).collect();
    assert_eq!(kept, [None, None, None, Some(json!({ "prompt_tokens": 3, "x": "é" }))]);
    assert_eq!(stack.metric("gateway_journal_rejected_total").await, Some(0.0));
}

#[tokio::test]
async fn metadata_beyond_its_bounds_is_refused_with_its_reason() {
    let stack = Stack::start().await;
    let many: serde_json::Map<String, Value> = (0..65).map(|number| (format!("k{number}"), json!(1))).collect();
    for (metadata, reason) in
        [(json!({ "n".repeat(129): 1 }), "longer than 128 characters"), (Value::Object(many), "more than 64 pairs")]
    {
        let client = stack.client().with("x-gateway-metadata", metadata.to_string());
        let answer = client.post("/chat/completions", &chat("Hello")).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!("invalid_metadata")));
        assert!(answer.text().contains(reason), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_record_that_is_too_deep_for_postgres_is_set_aside_alone() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    let mut records: Vec<_> = (0..9).map(|_| record(tenant())).collect();
    records.insert(4, Record { metadata: Some(&deep), ..record(tenant()) });
    leave(folder.path(), &records);
    let meters = ship_until(folder.path(), &database, STORED_AND_REJECTED, "9 1".to_owned()).await;
    let client = database.client().await;
    assert_eq!(meters.ship_failures.get(), 0);
    let reason: String = one(&client, "SELECT reason FROM rejected_records").await;
    assert!(reason.contains("stack depth"), "{reason}");
}

/// What a client or a provider may write: letters of all alphabets, NUL and other controls, and what JSON is made of.
fn any_text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => any::<char>(),
        2 => prop::char::range('\0', '\u{7f}'),
        2 => prop::sample::select(vec!['\\', '"', '{', '}', '[', ']', 'u', '0', '\u{1F600}']),
    ];
    let text =
        |length: std::ops::Range<usize>| prop::collection::vec(character.clone(), length).prop_map(String::from_iter);
    // Many characters one by one take long to choose, and no less to be shrunk.
    let long = (text(1..40), 50..3000_usize).prop_map(|(text, times)| text.repeat(times));
    prop_oneof![6 => text(0..12), 2 => text(250..260), 1 => long]
}

/// What stands where JSON should: an object of the provider's or of our own, damaged or not.
fn any_json() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec!["\\ud800", "\\u0000", "\\udc00\\ud800", "\\x", "\u{7}", "é", "\u{1F600}"]);
    prop_oneof![
        any_text(),
        any_text().prop_map(|text| json!({ "prompt_tokens": 3, "x": text }).to_string()),
        any_text().prop_map(|text| json!({ text: 3 }).to_string()),
        odd.prop_map(|odd| format!(r#"{{"prompt_tokens":3,"{odd}":"{odd}"}}"#)),
        (any::<u32>(), any::<i32>()).prop_map(|(number, power)| format!(r#"{{"prompt_tokens":{number}e{power}}}"#)),
        (1..30_000_usize).prop_map(|levels| format!(r#"{{"x":{}{}}}"#, "[".repeat(levels), "]".repeat(levels))),
    ]
}

/// As many texts as a record has.
const TEXTS: usize = 17;

/// A record with these texts, the two at its end where JSON stands.
fn record_with<'t>(texts: &'t [String], usage: &'t str, metadata: &'t str) -> Record<'t> {
    let text = |at: usize| Some(texts[at].as_str());
    Record {
        virtual_key: text(0),
        ai_org: text(1),
        requested_model: text(2),
        answered_model: text(3),
        config: text(4),
        option: text(5),
        method: &texts[6],
        url: &texts[7],
        error_code: text(8),
        service_tier: text(9),
        trace_id: &texts[10],
        span_id: text(11),
        span_name: text(12),
        parent_span_id: text(13),
        runtime: text(14),
        runtime_version: text(15),
        sdk_version: text(16),
        usage: vec![usage, usage],
        metadata: Some(metadata),
        ..record(tenant())
    }
}

#[test]
fn whatever_a_record_says_it_is_stored_or_set_aside_and_never_stalls_the_others() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::fresh());
    let client = runtime.block_on(database.client());
    let texts = prop::collection::vec(prop_oneof![3 => any_text(), 1 => Just("a".to_owned())], TEXTS);
    let some = prop::collection::vec((texts, any_json(), any_json()), 1..12);
    let mut runner =
        TestRunner::new(Config { cases: 8, max_shrink_iters: 8, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&some, |some| {
        let folder = TempDir::new().unwrap();
        let mut records: Vec<_> =
            some.iter().map(|(texts, usage, metadata)| record_with(texts, usage, metadata)).collect();
        records.insert(records.len() / 2, record(tenant()));
        let ids: Vec<_> = records.iter().map(|record| record.id).collect();
        runtime.block_on(async {
            let (journal, mut shipper, meters) = open(folder.path(), database.settings());
            records.iter().for_each(|record| journal.append(record));
            let uploader = uploader();
            tokio::select! {
                () = journal.run(&mut shipper, &uploader) => {}
                () = emptied(folder.path()) => {}
            }
            const FOUND: &str = "SELECT count(*) FROM request_logs WHERE id = ANY ($1)";
            let stored: i64 = client.query_one(FOUND, &[&ids]).await.unwrap().get(0);
            let accounted = stored as u64 + meters.rejected.get() + meters.too_long.get();
            prop_assert_eq!(accounted, ids.len() as u64);
            prop_assert!(stored > 0, "the plain one is stored");
            prop_assert_eq!((meters.ship_failures.get(), files(folder.path()).len()), (0, 0));
            Ok(())
        })
    });
    outcome.unwrap();
}
