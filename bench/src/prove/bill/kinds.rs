//! The kinds of calls that are paid for. What a call shall meet stands in its last message, which the mock reads; its tag in the
//! one before, which is all that is billed by length.

use super::session;
use super::shop::Counter;
use crate::prove::client::Caller;
use anyhow::{Context as _, ensure};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::time::Duration;

/// Words of three letters with the space before them: a token for every vocabulary, and four characters for the mock.
const WORDS: [&str; 8] = [" the", " and", " for", " was", " had", " not", " but", " all"];
/// So many, where what is read is estimated: what stands around them must not matter.
const LONG: usize = 3000;
const SHORT: usize = 20;
const MODEL: &str = "gpt-4o-mini";
/// The account that judges, and the one that makes vectors.
pub const JUDGE: &str = "sk-judge";
pub const EMBEDDER: &str = "sk-embedder";
pub const STRICT: &str = "strict";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Streamed,
    /// A stream that does not say what it used.
    Silent,
    /// The client leaves in the middle.
    Cut,
    /// The first target fails.
    Retried,
    /// A guardrail denies the answer, and the next one.
    Denied,
    /// A second call overtakes, or is overtaken.
    Hedged,
    /// The same twice: the second is answered by the cache.
    Cached,
    /// A model judges the request first.
    Judged,
    /// A question whose vector is asked for.
    Searched,
    /// Under a strict budget.
    Strict,
    Embedding,
    Prompt,
    Tool,
    Realtime,
}

/// Who runs the rows of a batch, and what its client asks for.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub name: &'static str,
    pub value: &'static str,
}

pub const DAY: &str = "day";
pub const WINDOWS: [Window; 2] = [Window { name: "immediate", value: "immediate" }, Window { name: DAY, value: "24h" }];

impl Kind {
    pub const ALL: [Self; 15] = [
        Self::Plain,
        Self::Streamed,
        Self::Silent,
        Self::Cut,
        Self::Retried,
        Self::Denied,
        Self::Hedged,
        Self::Cached,
        Self::Judged,
        Self::Searched,
        Self::Strict,
        Self::Embedding,
        Self::Prompt,
        Self::Tool,
        Self::Realtime,
    ];

    /// Until the records of a call are surely written, after its client is done with it. Where the client has read the end of
    /// all that is paid, they are there before.
    pub fn records_within(self) -> Duration {
        match self {
            Self::Cut | Self::Hedged | Self::Realtime => Duration::from_millis(300),
            _ => Duration::ZERO,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Streamed => "streamed",
            Self::Silent => "silent",
            Self::Cut => "cut",
            Self::Retried => "retried",
            Self::Denied => "denied",
            Self::Hedged => "hedged",
            Self::Cached => "cached",
            Self::Judged => "judged",
            Self::Searched => "searched",
            Self::Strict => STRICT,
            Self::Embedding => "embedding",
            Self::Prompt => "prompt",
            Self::Tool => "tool",
            Self::Realtime => "realtime",
        }
    }

    pub async fn call(self, shop: &Counter, tag: &str) -> anyhow::Result<()> {
        let target = shop.target(self.name());
        match self {
            Self::Plain => {
                expect(&shop.by(&target, tag)?, &chat(tag, SHORT, &json!({ "words": 20 }), false), &[200]).await
            }
            Self::Streamed => {
                expect(&shop.by(&target, tag)?, &chat(tag, SHORT, &json!({ "words": 20 }), true), &[200]).await
            }
            Self::Silent => {
                let fault = json!({ "words": 200, "no_usage": true });
                expect(&shop.by(&target, tag)?, &chat(tag, LONG, &fault, true), &[200]).await
            }
            Self::Cut => cut(&shop.by(&target, tag)?, tag).await,
            Self::Retried => {
                let failing = with(&target, json!({ "override_params": { "model": "fault/status=503" } }));
                let config = json!({ "strategy": { "mode": "fallback" }, "targets": [failing, target] });
                expect(&shop.by(&config, tag)?, &chat(tag, SHORT, &json!({ "words": 20 }), false), &[200]).await
            }
            Self::Denied => {
                let denies =
                    json!([{ "default.contains": { "words": ["forbidden"], "operator": "none" }, "deny": true }]);
                let retry = json!({ "attempts": 1, "on_status_codes": [446] });
                let config = with(&target, json!({ "output_guardrails": denies, "retry": retry }));
                let fault = json!({ "reply": "something forbidden" });
                expect(&shop.by(&config, tag)?, &chat(tag, SHORT, &fault, false), &[446]).await
            }
            Self::Hedged => {
                let config = with(&target, json!({ "hedge": { "after_ms": 50 } }));
                let fault = json!({ "words": 20, "latency_ms": 150 });
                expect(&shop.by(&config, tag)?, &chat(tag, LONG, &fault, false), &[200]).await
            }
            Self::Cached => {
                let config = with(&target, json!({ "cache": { "mode": "simple" } }));
                let (caller, body) = (shop.by(&config, tag)?, chat(tag, SHORT, &json!({ "words": 20 }), false));
                expect(&caller, &body, &[200]).await?;
                expect(&caller, &body, &[200]).await
            }
            Self::Judged => {
                let judge = json!({ "gateway.judge": { "config": shop.judge, "instructions": "It is polite.",
                    "timeout": 20_000 } });
                let config = with(&target, json!({ "input_guardrails": [judge] }));
                // What is judged tells the judge's model nothing to do.
                let body = json!({ "model": MODEL, "messages": [{ "role": "user", "content": words(tag, SHORT) }] });
                expect(&shop.by(&config, tag)?, &body, &[200, 246]).await
            }
            Self::Searched => {
                let config = with(&target, json!({ "cache": { "mode": "semantic" } }));
                let body = json!({ "model": MODEL, "messages": [{ "role": "user", "content": words(tag, SHORT) }] });
                expect(&shop.by(&config, tag)?, &body, &[200]).await
            }
            Self::Strict => {
                let mut body = chat(tag, SHORT, &json!({ "words": 20 }), false);
                body["max_tokens"] = json!(30);
                let caller = shop.by(&target, tag)?;
                let metadata = json!({ "bill": tag, "purse": STRICT }).to_string();
                expect(&caller.with("x-gateway-metadata", &metadata)?, &body, &[200, 412]).await
            }
            Self::Embedding => {
                let body = json!({ "model": "text-embedding-3-small", "input": words(tag, SHORT) });
                let caller = shop.by(&target, tag)?;
                answered(&caller, "/v1/embeddings", &body, &[200]).await
            }
            Self::Prompt => {
                let caller = shop.by_headers(self.name(), tag)?;
                let body = json!({ "variables": { "name": words(tag, SHORT) } });
                answered(&caller, &format!("/v1/prompts/{}/completions", shop.prompt), &body, &[200]).await
            }
            Self::Tool => {
                let arguments = json!({ "message": format!("bill:{tag}") });
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": { "name": "echo", "arguments": arguments } });
                let caller = shop.mcp.with("x-gateway-metadata", &json!({ "bill": tag }).to_string())?;
                answered(&caller, "/bench/mcp", &body, &[200]).await
            }
            Self::Realtime => session::respond(&shop.by_headers(self.name(), tag)?, tag).await,
        }
    }
}

/// A text with the tag and so many words.
pub fn words(tag: &str, count: usize) -> String {
    let words: String = WORDS.iter().cycle().take(count).copied().collect();
    format!("bill:{tag}{words}")
}

/// A chat that the mock answers as `fault` says.
pub fn chat(tag: &str, count: usize, fault: &Value, is_stream: bool) -> Value {
    let fault = json!({ "mock": fault }).to_string();
    let messages = json!([{ "role": "user", "content": words(tag, count) }, { "role": "user", "content": fault }]);
    match is_stream {
        true => json!({ "model": MODEL, "stream": true, "messages": messages }),
        false => json!({ "model": MODEL, "messages": messages }),
    }
}

fn with(target: &Value, more: Value) -> Value {
    let mut target = target.clone();
    if let (Some(target), Value::Object(more)) = (target.as_object_mut(), more) {
        target.extend(more);
    }
    target
}

async fn expect(caller: &Caller, body: &Value, statuses: &[u16]) -> anyhow::Result<()> {
    answered(caller, "/v1/chat/completions", body, statuses).await
}

async fn answered(caller: &Caller, path: &str, body: &Value, statuses: &[u16]) -> anyhow::Result<()> {
    let (status, text) = caller.answer(caller.post_json(path, body)).await?;
    ensure!(statuses.contains(&status.as_u16()), "{status}: {text}");
    Ok(())
}

async fn cut(caller: &Caller, tag: &str) -> anyhow::Result<()> {
    /// Of a stream that is longer.
    const READ: usize = 8 << 10;
    let body = chat(tag, LONG, &json!({ "words": 200, "chunk_delay_ms": 1 }), true);
    let mut connection = caller.connect().await?;
    let answer = connection.send(caller.post_json("/v1/chat/completions", &body)).await?;
    ensure!(answer.status() == 200, "{}", answer.status());
    let (mut answer, mut read) = (answer.into_body(), 0);
    while read < READ {
        let piece = answer.frame().await.context("the stream ended before it was cut")??;
        read += piece.data_ref().map_or(0, bytes::Bytes::len);
    }
    connection.leave().await;
    Ok(())
}
