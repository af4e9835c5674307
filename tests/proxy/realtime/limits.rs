//! Realtime sessions under limits: each response counts as a request, and a session that may not go on is ended with a
//! reason that its client can read.

use super::sessions::{done, frame, session_of};
use crate::journal::calls::{rows, status, text, tokens};
use crate::limits::{limited_key, patient, requests};
use crate::raw::Wire;
use crate::relay::websocket::{CLOSE, TEXT, masked, read_frame};
use harness::Stack;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn session_with(stack: &Stack, key: &str) -> (Wire, TcpStream) {
    let (wire, provider, _) = session_of(stack, key, "", "").await;
    (wire, provider)
}

/// The client sends an event, and the provider gets it.
async fn ask(wire: &mut Wire, provider: &mut TcpStream, event: Value) {
    let sent = masked(TEXT, event.to_string().as_bytes());
    wire.send(&sent).await;
    let mut got = vec![0; sent.len()];
    provider.read_exact(&mut got).await.expect("it arrives");
    assert_eq!(got, sent);
}

/// The provider says something, and the client hears it.
async fn tell(wire: &mut Wire, provider: &mut TcpStream, event: &str) {
    provider.write_all(&frame(TEXT, event.as_bytes())).await.unwrap();
    assert_eq!(read_frame(wire).await, Some((TEXT, event.as_bytes().to_vec())));
}

/// The client hears why it is over, and both connections end without another byte to the provider.
async fn assert_ended(mut wire: Wire, mut provider: TcpStream, why: &str) {
    let (first, payload) = read_frame(&mut wire).await.expect("a last frame");
    assert_eq!((first, &payload[..2]), (CLOSE, &1008u16.to_be_bytes()[..]));
    let reason = String::from_utf8(payload[2..].to_vec()).expect("a reason is text");
    assert!(reason.contains(why), "{reason}");
    wire.send(masked(CLOSE, &payload)).await;
    assert!(wire.is_closed().await);
    let mut rest = Vec::new();
    let _ = provider.read_to_end(&mut rest).await;
    assert_eq!(rest, b"", "the provider was asked for no more");
}

fn create() -> Value {
    json!({ "type": "response.create" })
}

fn sound() -> Value {
    json!({ "type": "input_audio_buffer.append", "audio": "AAAA" })
}

fn began() -> String {
    json!({ "type": "response.created", "response": {} }).to_string()
}

#[tokio::test]
async fn a_session_ends_after_the_response_that_used_its_budget_up() {
    let stack = patient().await;
    let budget = json!({ "usage_limits": { "type": "tokens", "credit_limit": 40 } });
    let (key, client) = limited_key(&stack, budget).await;
    let (mut wire, mut provider) = session_with(&stack, &key).await;
    for used in [(10, 5), (20, 10)] {
        ask(&mut wire, &mut provider, create()).await;
        tell(&mut wire, &mut provider, &began()).await;
        tell(&mut wire, &mut provider, &done(used.0, used.1)).await;
    }
    // How much is left may have to be asked elsewhere first; then whatever the client says next is the end.
    wire.send(masked(TEXT, sound().to_string().as_bytes())).await;
    assert_ended(wire, provider, "budget").await;
    let rows = rows(&stack, 3).await;
    assert_eq!([tokens(&rows[0]), tokens(&rows[1]), tokens(&rows[2])], [(10, 5), (20, 10), (0, 0)]);
    assert_eq!((status(&rows[2]), text(&rows[2], "error_code")), (412, Some("budget_exhausted")));
    assert_eq!(client.post("/chat/completions", &harness::chat("Hello")).await.status, 412, "it holds elsewhere too");
    const COUNTED: &str = "SELECT c.value::float8 FROM usage_counters c JOIN api_keys k ON c.scope_id = k.id::text
        WHERE c.scope = 'api_key' AND c.unit = 'tokens' AND c.period = 'total'
          AND c.starts_at = (k.usage_limits ->> 'last_reset_at')::timestamptz";
    stack
        .until("what was used is counted", async || {
            let row = stack.database.client().await.query_opt(COUNTED, &[]).await.unwrap();
            row.is_some_and(|row| row.get::<_, f64>(0) == 45.0)
        })
        .await;
}

#[tokio::test]
async fn a_response_beyond_the_rate_is_not_asked_for_and_ends_the_session() {
    let stack = patient().await;
    let (key, _) = limited_key(&stack, json!({ "rate_limits": requests("rpd", 2) })).await;
    let (mut wire, mut provider) = session_with(&stack, &key).await;
    for _ in 0..2 {
        ask(&mut wire, &mut provider, create()).await;
        tell(&mut wire, &mut provider, &done(1, 1)).await;
    }
    // What begins no response passes.
    ask(&mut wire, &mut provider, sound()).await;
    let third = masked(TEXT, create().to_string().as_bytes());
    wire.send(&third[..third.len() - 1]).await;
    let mut began = vec![0; third.len() - 1];
    provider.read_exact(&mut began).await.unwrap();
    wire.send(&third[third.len() - 1..]).await;
    assert_ended(wire, provider, "2 requests").await;
    assert_eq!(text(&rows(&stack, 3).await[2], "error_code"), Some("rate_limit_exceeded"));
}

#[tokio::test]
async fn responses_asked_for_at_once_each_need_their_own_leave() {
    let stack = patient().await;
    let (key, _) = limited_key(&stack, json!({ "rate_limits": requests("rpd", 2) })).await;
    let (mut wire, mut provider) = session_with(&stack, &key).await;
    for _ in 0..2 {
        ask(&mut wire, &mut provider, create()).await;
    }
    // In another spelling, and as bytes that are no text.
    wire.send(masked(TEXT, br#"{"type":"response\u002ecreate"}"#)).await;
    let (first, payload) = read_frame(&mut wire).await.expect("a last frame");
    assert_eq!((first, &payload[..2]), (CLOSE, &1008u16.to_be_bytes()[..]));
}

#[tokio::test]
async fn responses_that_the_provider_begins_by_itself_are_limited_too() {
    let stack = patient().await;
    let (key, _) = limited_key(&stack, json!({ "rate_limits": requests("rpd", 1) })).await;
    let (mut wire, mut provider) = session_with(&stack, &key).await;
    tell(&mut wire, &mut provider, &began()).await;
    tell(&mut wire, &mut provider, &done(1, 1)).await;
    tell(&mut wire, &mut provider, &began()).await;
    // Whether another may pass may have to be asked elsewhere first; then whatever the client says next is the end.
    wire.send(masked(TEXT, sound().to_string().as_bytes())).await;
    assert_ended(wire, provider, "1 requests").await;
    let rows = rows(&stack, 2).await;
    assert_eq!((status(&rows[0]), tokens(&rows[0])), (200, (1, 1)));
    assert_eq!(text(&rows[1], "error_code"), Some("rate_limit_exceeded"));
}

#[tokio::test]
async fn a_session_ends_when_its_key_does() {
    let stack = Stack::start().await;
    let body = json!({ "name": "k", "workspace_id": stack.home.workspace_id, "scopes": ["completions.write"] });
    let made = stack.administrator().post("/api-keys/workspace/service", &body).await.json();
    let key = made["key"].as_str().unwrap();
    stack.until_known(key).await;
    let (mut wire, mut provider) = session_with(&stack, key).await;
    ask(&mut wire, &mut provider, create()).await;
    let path = format!("/api-keys/{}", made["id"].as_str().unwrap());
    assert_eq!(stack.administrator().delete(&path).await.status, 200);
    // Without a provider: the list of a provider would be logged too.
    let client = stack.anonymous().with_key(key);
    stack.until("the key is gone", async || client.get("/models").await.status == 401).await;
    tell(&mut wire, &mut provider, &done(3, 1)).await;
    assert_ended(wire, provider, "key").await;
    let rows = rows(&stack, 2).await;
    assert_eq!((status(&rows[0]), tokens(&rows[0])), (200, (3, 1)));
    assert_eq!((status(&rows[1]), text(&rows[1], "error_code")), (401, Some("invalid_api_key")));
}
