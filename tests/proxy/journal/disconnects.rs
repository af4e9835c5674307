//! Streams cut by their clients at random bytes: whoever leaves pays for what was received, to the token.

use super::calls::{anthropic, rows};
use bench::mock::words_of;
use futures::StreamExt as _;
use futures::future::join_all;
use harness::{Client, Stack};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

const WORDS: usize = 200;
const STREAMS: usize = 14;
/// The engine lane in two dialects, and the relay lane.
const PATHS: [&str; 3] = ["/chat/completions", "/messages", "/relayed/chat/completions"];

fn client(stack: &Stack, path: &str) -> Client {
    if path == "/messages" { anthropic(stack) } else { stack.client() }
}

fn ask(fault: &Value) -> Value {
    let content = json!({ "mock": fault }).to_string();
    json!({
        "model": "gpt-4o-mini", "stream": true, "max_tokens": 1000,
        "messages": [{ "role": "user", "content": content }],
    })
}

/// Reads until as many words have come as will, and leaves. Answers the id of the call.
async fn cut(stack: &Stack, path: &str, after: usize, words: u64) -> Uuid {
    let body = ask(&json!({ "words": WORDS, "stall_after_bytes": after }));
    let answer = client(stack, path).request(Method::POST, path).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    let id = answer.headers()["x-gateway-request-id"].to_str().unwrap().parse().unwrap();
    let (mut pieces, mut read) = (answer.bytes_stream(), Vec::new());
    while words_of(&read) < words {
        read.extend_from_slice(&pieces.next().await.unwrap().unwrap());
    }
    id
}

/// What the provider says in the first so many bytes, in events that are whole.
fn words_in(stream: &[u8], after: usize) -> u64 {
    let end = stream[..after].windows(2).rposition(|pair| pair == b"\n\n").map_or(0, |at| at + 2);
    words_of(&stream[..end])
}

#[tokio::test]
async fn streams_cut_at_random_bytes_count_the_tokens_that_were_received() {
    let stack = Stack::start().await;
    let mut expected = BTreeMap::new();
    for path in PATHS {
        let whole = client(&stack, path).post(path, &ask(&json!({ "words": WORDS, "tag": path }))).await;
        assert_eq!((whole.status.as_u16(), words_of(&whole.body)), (200, WORDS as u64), "{path}");
        assert_eq!(stack.mock.spoken()[path], WORDS as u64);
        // Every stream has the same bytes but for a number of fixed length.
        let streams = (0..STREAMS).map(|_| {
            let after = rand::random_range(2000..whole.body.len() - 1000);
            let (stack, words) = (&stack, words_in(&whole.body, after));
            async move { (cut(stack, path, after, words).await, words) }
        });
        expected.extend(join_all(streams).await);
    }
    assert_eq!(expected.len(), PATHS.len() * STREAMS);
    let mut found = 0;
    for row in rows(&stack, expected.len() + PATHS.len()).await {
        let Some(words) = expected.get(&row.get::<_, Uuid>("id")) else { continue };
        let counted = u64::try_from(row.get::<_, i64>("res_units")).unwrap();
        assert_eq!(counted, *words, "{}", row.get::<_, &str>("request_url"));
        assert!(row.get::<_, bool>("usage_estimated"));
        found += 1;
    }
    assert_eq!(found, expected.len());
}
