//! The headers of an answer: ids, what routing decided, the gateway's own time, and the alias a caller used.

use harness::{Answer, Stack, chat};
use serde_json::json;
use std::collections::HashSet;
use uuid::Uuid;

const ALWAYS: [&str; 3] = ["x-gateway-request-id", "x-gateway-trace-id", "x-request-id"];
const ROUTED: [(&str, &str); 4] = [
    ("x-gateway-provider", "openai"),
    ("x-gateway-retry-attempt-count", "0"),
    ("x-gateway-last-used-option-index", "config"),
    ("x-gateway-cache-status", "DISABLED"),
];

/// One answer of every kind: both lanes, streams, refusals before and after routing, admin's, our own page.
async fn one_of_each(stack: &Stack) -> Vec<(&'static str, Answer, bool)> {
    let (client, anonymous) = (stack.client(), stack.anonymous());
    let mut stream = chat("Hello");
    stream["stream"] = json!(true);
    let unreachable = stack.as_application(&stack.home.workspace_key).with("x-gateway-request-timeout", "1");
    stack.mock.script(json!([{ "latency_ms": 60_000 }])).unwrap();
    let timeout = unreachable.post("/chat/completions", &chat("Hello")).await;
    vec![
        ("a timeout", timeout, true),
        ("a plain chat", client.post("/chat/completions", &chat("Hello")).await, true),
        ("a streamed chat", client.post("/chat/completions", &stream).await, true),
        ("a relayed call", client.post("/embeddings", &json!({ "input": "a" })).await, true),
        ("a relayed error", client.get("/models/none").await, true),
        ("no key", anonymous.post("/chat/completions", &chat("Hello")).await, false),
        ("no provider", anonymous.with_key(&stack.home.workspace_key).get("/models").await, false),
        ("a body that is no object", client.post("/chat/completions", &json!([])).await, true),
        ("the control plane", stack.administrator().get("/api-keys").await, false),
        ("the control plane without a key", anonymous.get("/api-keys").await, false),
        (
            "a preflight",
            harness::client::whole(anonymous.request(http::Method::OPTIONS, "/chat/completions")).await,
            false,
        ),
        ("another method", harness::client::whole(anonymous.request(http::Method::TRACE, "/models")).await, false),
    ]
}

#[tokio::test]
async fn every_answer_says_which_request_it_answers_and_how_it_was_routed() {
    let stack = Stack::start().await;
    let mut ids = HashSet::new();
    for (what, answer, is_routed) in one_of_each(&stack).await {
        for name in ALWAYS {
            assert_eq!(answer.headers.get_all(name).iter().count(), 1, "{what}: {name} in {:?}", answer.headers);
        }
        let id: Uuid = answer.header("x-gateway-request-id").parse().unwrap_or_else(|_| panic!("{what}: no UUID"));
        assert_eq!(id.get_version_num(), 7, "{what}");
        assert!(ids.insert(id), "{what}: an id was used twice");
        assert!(answer.header("x-gateway-trace-id").parse::<Uuid>().is_ok(), "{what}");
        for (name, value) in ROUTED {
            let found: Vec<_> = answer.headers.get_all(name).iter().collect();
            let expected: &[&str] = if is_routed { &[value] } else { &[] };
            assert_eq!(found, expected, "{what}: {name}");
        }
    }
}

#[tokio::test]
async fn every_answer_says_how_long_the_gateway_itself_took() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "latency_ms": 80, "times": 2 }])).unwrap();
    for path in ["/chat/completions", "/rerank"] {
        let answer = stack.client().post(path, &chat("Hello")).await;
        let timing = answer.header("server-timing");
        let of = |name: &str| {
            let part = timing.split(", ").find_map(|part| part.strip_prefix(&format!("{name};dur=")));
            part.and_then(|number| number.parse::<f64>().ok()).unwrap_or_else(|| panic!("no {name} in {timing:?}"))
        };
        // The provider took 80 ms; they are its own and not the gateway's.
        assert!(of("upstream") >= 79.0, "{path}: {timing}");
        assert!(of("gateway") < of("upstream"), "{path}: {timing}");
    }
}

#[tokio::test]
async fn a_trace_is_named_by_the_caller_or_made_up() {
    let stack = Stack::start().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (sent, expected) in [
        (vec![("x-gateway-trace-id", "mine")], Some("mine")),
        (vec![("traceparent", parent)], Some("4bf92f3577b34da6a3ce929d0e0e4736")),
        (vec![("traceparent", parent), ("x-gateway-trace-id", "mine")], Some("mine")),
        (vec![("traceparent", "nonsense")], None),
        (vec![], None),
    ] {
        let client = sent.iter().fold(stack.client(), |client, (name, value)| client.with(name, *value));
        let mut seen = HashSet::new();
        for path in ["/chat/completions", "/rerank"] {
            let answer = client.post(path, &chat("Hello")).await;
            assert_eq!(answer.status, 200, "{sent:?} {}", answer.text());
            let trace = answer.header("x-gateway-trace-id").to_owned();
            assert!(expected.is_none_or(|expected| trace == expected), "{sent:?}: {trace}");
            assert!(!trace.is_empty(), "{sent:?}");
            seen.insert(trace);
        }
        assert_eq!(seen.len(), if expected.is_some() { 1 } else { 2 }, "{sent:?}");
    }
    let long = stack.client().with("x-gateway-trace-id", "x".repeat(129)).get("/models").await;
    assert_eq!((long.status.as_u16(), long.json()["error"]["code"].as_str()), (400, Some("invalid_header")));
}

#[tokio::test]
async fn an_alias_works_on_the_way_in_and_is_repeated_on_the_way_out() {
    let stack = Stack::builder().proxy("HEADER_PREFIX_ALIASES", "x-acme-,X-Other-").start().await;
    let client = stack.anonymous().with("authorization", "Bearer sk-mock");
    for (prefix, others) in [("x-acme-", "x-other-"), ("x-other-", "x-acme-"), ("X-AcMe-", "x-other-")] {
        let of = |name: &str| format!("{prefix}{name}");
        let client = client
            .with(&of("api-key"), &stack.home.workspace_key)
            .with(&of("provider"), "openai")
            .with(&of("custom-host"), stack.mock.url())
            .with(&of("trace-id"), "mine");
        for path in ["/chat/completions", "/rerank"] {
            let answer = client.post(path, &chat("Hello")).await;
            assert_eq!(answer.status, 200, "{prefix} {path} {}", answer.text());
            for name in ALWAYS.iter().chain(ROUTED.iter().map(|(name, _)| name)) {
                let aliased = name.replace("x-gateway-", &prefix.to_lowercase());
                assert_eq!(answer.header(&aliased), answer.header(name), "{prefix} {path} {name}");
                assert_ne!(answer.header(name), "", "{prefix} {path} {name}");
                let is_ours = name.starts_with("x-gateway-");
                assert!(
                    !is_ours || answer.header(&name.replace("x-gateway-", others)).is_empty(),
                    "{prefix} {path} {name}"
                );
            }
            assert_eq!(answer.header("x-gateway-trace-id"), "mine");
        }
        // A refusal as well.
        let refused = stack.anonymous().with(&of("api-key"), "wrong").get("/models").await;
        assert_eq!(refused.status, 401);
        assert_ne!(refused.header(&of("request-id")), "");
    }
}
