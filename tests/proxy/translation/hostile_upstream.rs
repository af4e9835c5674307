//! Providers of every wire that send rubbish: bad JSON, values of wrong types, events that are missing, doubled, cut or
//! huge, streams without an end. A client gets a whole answer or a documented error, nothing hangs, nothing panics, and
//! the proxy's memory stays within its bounds.

mod endless;
mod rubbish;

use super::wires::{answer, client_at};
use crate::upstream::RawUpstream;
use endless::Endless;
use futures::future::join_all;
use harness::{Answer, Client, Stack, chat};
use rubbish::{Case, bad_answers, bad_streams, huge_event};
use serde_json::{Value, json};

/// A provider, the folder of its format's fixtures, and the dialect of its client.
#[derive(Clone, Copy)]
struct HostileWire {
    provider: &'static str,
    format: &'static str,
    path: &'static str,
}

const WIRES: [HostileWire; 6] = [
    HostileWire { provider: "anthropic", format: "messages", path: "/chat/completions" },
    HostileWire { provider: "google", format: "gemini", path: "/chat/completions" },
    HostileWire { provider: "bedrock", format: "converse", path: "/chat/completions" },
    HostileWire { provider: "cohere", format: "cohere", path: "/chat/completions" },
    HostileWire { provider: "openai", format: "chat", path: "/messages" },
    HostileWire { provider: "anthropic", format: "messages", path: "/responses" },
];

impl HostileWire {
    fn client(self, stack: &Stack, host: &str) -> Client {
        client_at(stack, host.strip_suffix("/v1").unwrap_or(host), self.provider)
    }

    fn body(self, is_stream: bool) -> Value {
        let mut body = match self.path {
            "/chat/completions" => chat("Hello"),
            "/responses" => json!({ "model": "m", "input": "Hello" }),
            _ => json!({ "model": "m", "max_tokens": 50, "messages": [{ "role": "user", "content": "Hello" }] }),
        };
        body["stream"] = json!(is_stream);
        body
    }

    fn stream_type(self) -> &'static str {
        if self.format == "converse" { "application/vnd.amazon.eventstream" } else { "text/event-stream" }
    }

    /// A whole answer in the client's dialect, or an error that names the provider.
    fn judge_plain(self, got: &Answer, what: &str) {
        let said = serde_json::from_slice::<Value>(&got.body).unwrap_or_else(|error| panic!("{what}: {error}"));
        if got.status == 200 {
            let shape = match self.path {
                "/chat/completions" => said["choices"].is_array(),
                "/responses" => said["output"].is_array(),
                _ => said["content"].is_array(),
            };
            assert!(shape, "{what}: {said}");
        } else {
            self.judge_error(got, &said, what);
        }
    }

    fn judge_error(self, got: &Answer, said: &Value, what: &str) {
        assert_eq!(got.status, 502, "{what}: {said}");
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(self.provider), "{what}: {said}");
        let code = &said["error"]["code"];
        assert!(code.is_null() || code == "invalid_upstream_response", "{what}: {said}");
    }

    /// Whole events and an end that the dialect's readers look for; or an error before any of it.
    fn judge_stream(self, got: &Answer, what: &str) {
        let text = got.text();
        if got.status != 200 {
            return self.judge_error(got, &got.json(), what);
        }
        let (names, data): (Vec<&str>, Vec<&str>) =
            (lines(&text, "event: "), lines(&text, "data: ").into_iter().filter(|data| *data != "[DONE]").collect());
        for data in data {
            assert!(serde_json::from_str::<Value>(data).is_ok(), "{what}: {data}");
        }
        let has_end = match self.path {
            "/chat/completions" => text.ends_with("data: [DONE]\n\n"),
            "/responses" => names.last().is_some_and(|name| {
                ["response.completed", "response.incomplete", "response.failed", "error"].contains(name)
            }),
            _ => names.last().is_some_and(|name| ["message_stop", "error"].contains(name)),
        };
        assert!(has_end, "{what}: {text}");
    }
}

fn lines<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    text.lines().filter_map(|line| line.strip_prefix(prefix)).collect()
}

/// The most memory the proxy ever held, in bytes.
fn peak(stack: &Stack) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", stack.proxy.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

async fn assert_unharmed(stack: &Stack) {
    let answer = super::client(stack, "anthropic").post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!stack.proxy.log().contains("panicked"), "{}", stack.proxy.log());
}

#[tokio::test]
async fn whatever_a_provider_answers_its_client_gets_a_whole_answer_or_a_documented_error() {
    let stack = Stack::start().await;
    let tried = join_all(WIRES.map(async |wire| {
        let upstream = RawUpstream::start().await;
        let client = wire.client(&stack, &upstream.url());
        let mut count = 0;
        for Case { what, bytes } in bad_answers(wire.format) {
            upstream.answer(answer("application/json", &bytes));
            let got = client.post(wire.path, &wire.body(false)).await;
            wire.judge_plain(&got, &format!("{} {}: {what}", wire.format, wire.path));
            count += 1;
        }
        for Case { what, bytes } in bad_streams(wire.format) {
            upstream.answer(answer(wire.stream_type(), &bytes));
            let got = client.post(wire.path, &wire.body(true)).await;
            wire.judge_stream(&got, &format!("stream of {} {}: {what}", wire.format, wire.path));
            count += 1;
        }
        count
    }));
    let counts = tried.await;
    assert!(counts.iter().all(|count| *count > 60), "{counts:?}");
    assert_unharmed(&stack).await;
}

#[tokio::test]
async fn an_event_beyond_all_measure_is_an_error_and_no_more_memory_than_its_bound() {
    const BOUND: u64 = 160 << 20;
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    assert_unharmed(&stack).await;
    let before = peak(&stack);
    for wire in WIRES {
        upstream.answer(answer(wire.stream_type(), &huge_event(wire.format)));
        let got = wire.client(&stack, &upstream.url()).post(wire.path, &wire.body(true)).await;
        wire.judge_error(&got, &got.json(), wire.format);
    }
    let grown = peak(&stack) - before;
    assert!(grown < BOUND, "{} MiB", grown >> 20);
    assert_unharmed(&stack).await;
}

#[tokio::test]
async fn an_answer_without_an_end_ends_at_its_bound() {
    const BOUND: u64 = 400 << 20;
    let stack = Stack::start().await;
    assert_unharmed(&stack).await;
    let before = peak(&stack);
    for (kind, unit, is_stream) in [
        // One text that never ends.
        ("application/json", "x", false),
        // One line that never ends.
        ("text/event-stream", "x", true),
    ] {
        let endless = Endless::start(kind, "{\"content\":\"", &unit.repeat(64 << 10)).await;
        let [wire, ..] = WIRES;
        let got = wire.client(&stack, &endless.url()).post(wire.path, &wire.body(is_stream)).await;
        wire.judge_error(&got, &got.json(), kind);
        // Sockets hold some of it.
        assert!(endless.until_left().await < 96 << 20, "{kind}");
    }
    let grown = peak(&stack) - before;
    assert!(grown < BOUND, "{} MiB", grown >> 20);
    assert_unharmed(&stack).await;
}

#[tokio::test]
async fn a_stream_without_an_end_ends_with_its_client_and_takes_no_more_memory_than_its_bound() {
    const BOUND: u64 = 256 << 20;
    let stack = Stack::start().await;
    assert_unharmed(&stack).await;
    let before = peak(&stack);
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n\
        event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
    let said = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"more and more\"}}\n\n";
    for (unit, least) in [(said, 4 << 20), ("event: ping\ndata: {\"type\":\"ping\"}\n\n", 0), (": nothing\n\n", 0)] {
        let endless = Endless::start("text/event-stream", start, &unit.repeat(512)).await;
        let [wire, ..] = WIRES;
        let request = wire.client(&stack, &endless.url()).request(http::Method::POST, wire.path);
        let mut got = request.json(&wire.body(true)).send().await.unwrap();
        assert_eq!(got.status(), 200);
        let mut read = 0;
        while read < least {
            read += got.chunk().await.unwrap().expect("it has no end").len();
        }
        // Of what says nothing, nothing is passed on: it must be read all the same, and not be kept.
        if least == 0 {
            endless.until_sent(16 << 20).await;
        }
        drop(got);
        endless.until_left().await;
    }
    let grown = peak(&stack) - before;
    assert!(grown < BOUND, "{} MiB", grown >> 20);
    assert_unharmed(&stack).await;
}
