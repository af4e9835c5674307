//! Every way a provider can fail, over HTTP/1 and HTTP/2, plain and streamed, with a fallback, a retry, or both: the
//! client gets a whole answer or a well-formed error, and never half of one without a word. One gateway serves it all;
//! each failure has a provider of its own, so that all of them run side by side.

use super::client;
use bench::mock::{self, Authority, Mock};
use futures::future::join_all;
use harness::{Answer, Stack, chat};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// The next attempt takes its place.
    Mended,
    /// The target is never reached: only another one can answer.
    Dead,
    /// It comes too late for another attempt.
    Broken,
    /// It is no failure.
    Harmless,
}

pub struct Fault {
    pub name: &'static str,
    pub kind: Kind,
    pub plain: Value,
    pub stream: Value,
}

/// How long a provider may be silent, in milliseconds: enough for a healthy one on a busy machine.
pub const MAX_SILENCE: u64 = 3000;

impl Fault {
    /// Only a timeout ends it. The others have none, since a busy machine would turn it into a fault of its own.
    pub fn is_endless(&self) -> bool {
        ["latency_ms", "stall_after_bytes"].iter().any(|way| !self.plain[way].is_null())
    }
}

pub fn faults() -> Vec<Fault> {
    let same = |name, kind, fault: Value| Fault { name, kind, plain: fault.clone(), stream: fault };
    vec![
        same("refuses the connection", Kind::Dead, json!({})),
        same("fails in TLS", Kind::Dead, json!({})),
        same("resets", Kind::Mended, json!({ "no_answer": true, "reset": true })),
        same("closes without an answer", Kind::Mended, json!({ "no_answer": true })),
        same("takes too long", Kind::Mended, json!({ "latency_ms": 60_000 })),
        same("is busy", Kind::Mended, json!({ "status": 429 })),
        same("fails", Kind::Mended, json!({ "status": 500 })),
        same("reports an error inside a 200", Kind::Mended, json!({ "error_in_200": true })),
        same("cuts its answer before the first event", Kind::Mended, json!({ "cut_at": 10 })),
        same("stalls before the first event", Kind::Mended, json!({ "stall_after_bytes": 10 })),
        Fault {
            name: "sends bad JSON",
            kind: Kind::Mended,
            plain: json!({ "bad_json": true }),
            stream: json!({ "body": "data: {\"choices\":[\n\n", "content_type": "text/event-stream" }),
        },
        Fault {
            name: "cuts its answer after the first event",
            kind: Kind::Broken,
            plain: json!({ "cut_at": 40 }),
            stream: json!({ "cut_at": 1500, "chunks": 20, "reply_bytes": 400 }),
        },
        Fault {
            name: "stalls after the first event",
            kind: Kind::Broken,
            plain: json!({ "stall_after_bytes": 40 }),
            stream: json!({ "stall_after_bytes": 1500, "chunks": 20, "reply_bytes": 400 }),
        },
        same("splits its characters", Kind::Harmless, json!({ "split_utf8": true })),
    ]
}

const PLANS: [&str; 3] = ["fallback", "retry", "both"];

fn config(plan: &str, fault: &Fault, first: &str, second: &str) -> Value {
    let target = |host: &str| json!({ "provider": "openai", "api_key": "sk-config", "custom_host": host });
    let retry = json!({ "attempts": 1, "jitter": "full", "on_status_codes": [408, 429, 500, 502, 503] });
    let mut config = match plan {
        "retry" => target(first),
        _ => json!({ "strategy": { "mode": "fallback" }, "targets": [target(first), target(second)] }),
    };
    if fault.is_endless() {
        config["request_timeout"] = json!(MAX_SILENCE);
    }
    if plan != "fallback" {
        config["retry"] = retry;
    }
    config
}

#[tokio::test]
async fn over_either_protocol_the_client_gets_a_whole_answer_or_a_whole_error() {
    let authority = Authority::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, authority.pem().unwrap()).unwrap();
    let stack = Stack::builder()
        .proxy("UPSTREAM_STREAM_IDLE_TIMEOUT_MS", MAX_SILENCE.to_string())
        .proxy("UPSTREAM_CA_FILE", file.to_str().unwrap())
        .start()
        .await;
    let cells = [false, true].into_iter().flat_map(|is_h2| faults().into_iter().map(move |fault| (is_h2, fault)));
    let tested = cells.map(async |(is_h2, fault)| {
        let tls = mock::Tls { port: 0, identity: authority.issue(&["localhost"]).unwrap(), h2: true };
        let mock = Mock::start(mock::Options { tls: Some(tls), ..mock::Options::default() });
        let mut cases = 0;
        for is_stream in [false, true] {
            for plan in PLANS {
                case(&stack, &mock, &fault, is_h2, is_stream, plan).await;
                cases += 1;
            }
        }
        cases
    });
    let cases: usize = join_all(tested).await.into_iter().sum();
    assert_eq!(cases, 14 * 2 * 2 * 3);
}

async fn case(stack: &Stack, mock: &Mock, fault: &Fault, is_h2: bool, is_stream: bool, plan: &str) {
    let what = format!("{}, h2 {is_h2}, stream {is_stream}, {plan}", fault.name);
    let alive = if is_h2 { mock.tls_url().unwrap() } else { mock.url() };
    let first = match fault.name {
        "refuses the connection" => format!("http{}://localhost:1/v1", if is_h2 { "s" } else { "" }),
        "fails in TLS" => format!("https://localhost:{}/v1", mock.address().port()),
        _ => alive.clone(),
    };
    mock.reset();
    if fault.kind != Kind::Dead {
        mock.script(json!([if is_stream { &fault.stream } else { &fault.plain }])).unwrap();
    }
    let mut body = chat("Hello");
    body["stream"] = json!(is_stream);
    let answer = client(stack, &config(plan, fault, &first, &alive)).post("/chat/completions", &body).await;
    // Not the counts of calls that ended: one that was cancelled may end after the next case has begun.
    let calls = mock.requests().len();
    match fault.kind {
        Kind::Dead if plan == "retry" => assert_refused(&answer, &what),
        Kind::Dead => {
            assert_whole(&answer, is_stream, &what);
            assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{what}");
        }
        Kind::Broken if is_stream => {
            assert_broken_off(&answer, &what);
            assert_eq!(calls, 1, "{what}");
        }
        Kind::Harmless => {
            assert_whole(&answer, is_stream, &what);
            assert_eq!(calls, 1, "{what}");
        }
        Kind::Mended | Kind::Broken => assert_whole(&answer, is_stream, &what),
    }
    if is_h2 && fault.kind != Kind::Dead {
        assert!(mock.requests().iter().all(|request| request.version == "HTTP/2"), "{what}");
    }
}

pub fn assert_whole(answer: &Answer, is_stream: bool, what: &str) {
    let text = answer.text();
    assert_eq!(answer.status, 200, "{what}: {text}");
    assert!(!text.contains("\"error\"") && !text.contains('\u{fffd}'), "{what}: {text}");
    match is_stream {
        true => {
            assert!(text.ends_with("data: [DONE]\n\n") && text.contains("\"finish_reason\":\"stop\""), "{what}: {text}")
        }
        false => assert_eq!(answer.json()["choices"][0]["finish_reason"], "stop", "{what}: {text}"),
    }
}

pub fn assert_refused(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 503, "{what}: {}", answer.text());
    assert_eq!(answer.json()["error"]["code"], "upstream_unreachable", "{what}");
    assert_eq!(answer.header("x-gateway-retry-attempt-count"), "-1", "{what}");
}

/// Content, then one error event, then the end that its readers look for.
pub fn assert_broken_off(answer: &Answer, what: &str) {
    let text = answer.text();
    assert_eq!(answer.status, 200, "{what}: {text}");
    let events: Vec<&str> = text.split_terminator("\n\n").collect();
    let [.., content, error, "data: [DONE]"] = events[..] else { panic!("{what}: {text}") };
    assert!(content.contains("\"delta\""), "{what}: {content}");
    let error: Value = serde_json::from_str(error.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(error["error"]["code"], "invalid_upstream_response", "{what}: {error}");
}
