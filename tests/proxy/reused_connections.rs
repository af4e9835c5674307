//! A request is answered alike on a new connection and on one that has carried others, however its bytes arrive and
//! whichever lane the requests around it belong to.

use crate::raw::{RawAnswer, Wire, credentials, post};
use harness::{Stack, chat};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const GREETING: &str = "GET / HTTP/1.1\r\nHost: gateway.test\r\n\r\n";
/// Of each request, or of its time.
const OWN: &[&str] = &[
    "date",
    "x-gateway-request-id",
    "x-gateway-trace-id",
    "x-request-id",
    "server-timing",
    "traceparent",
    "x-gateway-overhead-ms",
];

struct Case {
    name: &'static str,
    request: String,
    status: u16,
    keeps_alive: bool,
}

fn cases(stack: &Stack) -> Vec<Case> {
    let common = credentials(stack);
    let closing = format!("{common}Connection: close\r\n");
    let scripted = |script: Value| chat(&json!({ "mock": script }).to_string());
    let streamed = |script: Value| {
        let mut body = scripted(script);
        body["stream"] = json!(true);
        body.to_string()
    };
    let case = |name, request, status| Case { name, request, status, keeps_alive: true };
    let stranger = common.replace(&stack.home.workspace_key, "pk_unknown");
    vec![
        case("a whole answer", post(CHAT, &common, &chat("hello").to_string()), 200),
        case("a stream", post(CHAT, &common, &streamed(json!({ "chunks": 5 }))), 200),
        case("a long body and a long answer", post(CHAT, &common, &chat(&"long ".repeat(60_000)).to_string()), 200),
        case("Anthropic's words", post("/v1/messages", &common, &chat("hello").to_string()), 200),
        case("embeddings", post("/v1/embeddings", &common, r#"{"model":"m","input":"x"}"#), 200),
        case("a failure of the provider", post(CHAT, &common, &scripted(json!({ "status": 418 })).to_string()), 418),
        case("no key that is known", post(CHAT, &stranger, &chat("hello").to_string()), 401),
        case("no JSON", post(CHAT, &common, "{"), 400),
        case("no body", post(CHAT, &common, ""), 400),
        case("another type", post(CHAT, &common, "{}").replace("application/json", "text/csv"), 400),
        case("no such model list", post("/v1/responses", &common, "[]"), 400),
        Case {
            name: "the last of its connection",
            request: post(CHAT, &closing, &chat("hello").to_string()),
            status: 200,
            keeps_alive: false,
        },
        Case {
            name: "a refusal that is the last of its connection",
            request: post(CHAT, &closing, "{"),
            status: 400,
            keeps_alive: false,
        },
    ]
}

/// What two answers to one request must have in common.
fn compared(answer: RawAnswer) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let is_told = |name: &String| !OWN.contains(&name.as_str());
    let mut headers: Vec<_> = answer.headers.into_iter().filter(|(name, _)| is_told(name)).collect();
    headers.sort();
    (answer.status, headers, answer.body)
}

/// The provider numbers its answers.
fn without_numbers(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body).into_owned();
    let mut parts = text.split("000000000000");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "#" + part.get(4..).unwrap_or_default())
}

#[tokio::test]
async fn a_request_is_answered_alike_on_a_fresh_and_on_a_used_connection() {
    let stack = Stack::start().await;
    for Case { name, request, status, keeps_alive } in cases(&stack) {
        let (mut fresh, mut used) = (Wire::open(stack.proxy_port).await, Wire::open(stack.proxy_port).await);
        for before in [GREETING, &post(CHAT, &credentials(&stack), &chat("before").to_string())] {
            used.send(before).await;
            assert_eq!(used.answer().await.unwrap().status, 200);
        }
        fresh.send(&request).await;
        used.send(&request).await;
        let (one, other) = (fresh.answer().await.expect(name), used.answer().await.expect(name));
        assert_eq!((one.status, one.says_close()), (status, !keeps_alive), "{name}: {one:?}");
        let (one, other) = (compared(one), compared(other));
        assert_eq!((one.0, one.1), (other.0, other.1), "{name}");
        assert_eq!(without_numbers(&one.2), without_numbers(&other.2), "{name}");
        for mut wire in [fresh, used] {
            if keeps_alive {
                wire.send(GREETING).await;
                assert_eq!(wire.answer().await.expect(name).status, 200, "{name}");
            } else {
                assert!(wire.is_closed().await, "{name}");
            }
        }
    }
}

/// Cut anywhere, in its head and in its body.
#[tokio::test]
async fn a_request_may_come_in_pieces() {
    let stack = Stack::start().await;
    let request = post(CHAT, &credentials(&stack), &chat("in pieces").to_string());
    let mut wire = Wire::open(stack.proxy_port).await;
    let cuts = (1..request.len()).step_by(23);
    let expected = cuts.len();
    for cut in cuts {
        wire.send(&request[..cut]).await;
        tokio::task::yield_now().await;
        wire.send(&request[cut..]).await;
        assert_eq!(wire.answer().await.expect("an answer").status, 200, "cut at {cut}");
    }
    let bodies: Vec<u64> = stack.mock.requests().iter().map(|request| request.body_bytes).collect();
    assert_eq!(bodies, vec![chat("in pieces").to_string().len() as u64; expected]);
}

#[tokio::test]
async fn requests_that_are_sent_at_once_are_answered_in_their_order() {
    let stack = Stack::start().await;
    let engine = |text: &str| post(CHAT, &credentials(&stack), &chat(text).to_string());
    let relayed = post("/v1/rerank", &credentials(&stack), r#"{"model":"m","query":"q","documents":["d"]}"#);
    let mut wire = Wire::open(stack.proxy_port).await;
    wire.send([engine("one"), engine("two"), GREETING.into(), relayed, engine("three")].concat()).await;
    for (which, provider) in
        [("one", "openai"), ("two", "openai"), ("greeting", ""), ("relayed", "openai"), ("three", "openai")]
    {
        let answer = wire.answer().await.expect(which);
        assert_eq!((answer.status, answer.header("x-gateway-provider")), (200, provider), "{which}");
    }
    assert_eq!(stack.mock.requests().len(), 4);
}

/// A provider without such an endpoint is the relay lane's, which is known only once its head was judged.
#[tokio::test]
async fn an_engine_call_that_turns_out_to_be_relayed_is_sent_once() {
    let stack = Stack::start().await;
    let headers = credentials(&stack).replace("x-gateway-provider: openai", "x-gateway-provider: jina");
    let request = post("/v1/moderations", &headers, r#"{"model":"m","input":"x"}"#);
    let mut wire = Wire::open(stack.proxy_port).await;
    for _ in 0..2 {
        wire.send(&request).await;
        let answer = wire.answer().await.expect("an answer");
        assert_eq!(answer.header("x-gateway-provider"), "jina", "{answer:?}");
    }
    assert_eq!(stack.mock.requests().len(), 2, "{:?}", stack.mock.requests());
}

/// More than the gateway takes: it says so without reading it, and the connection goes on where the body has come.
#[tokio::test]
async fn a_body_that_nobody_wants_is_read_away() {
    let stack = Stack::builder().proxy("MAX_BODY_BYTES", "1024").start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    let common = credentials(&stack);
    for _ in 0..2 {
        wire.send(post(CHAT, &common, &chat(&"long ".repeat(10_000)).to_string())).await;
        assert_eq!(wire.answer().await.expect("an answer").status, 413);
        wire.send(post(CHAT, &common, &chat("short").to_string())).await;
        assert_eq!(wire.answer().await.expect("an answer").status, 200);
    }
}
