//! The matrix of faults once more, with targets that speak other formats than the client and than each other: whatever
//! one does wrong before its first content, the next takes its place in its own format; after it the client gets one
//! error in its own words. With tools too, and with retries, timeouts and circuits.

use super::client;
use super::matrix::{Fault, Kind, MAX_SILENCE, assert_broken_off, assert_refused, assert_whole, faults};
use bench::mock::{self, Mock};
use futures::future::join_all;
use harness::{Answer, Stack, chat};
use serde_json::{Value, json};

/// Each format is once the one that fails and once the one that takes over.
const PAIRS: [(&str, &str); 5] = [
    ("anthropic", "google"),
    ("google", "bedrock"),
    ("bedrock", "cohere"),
    ("cohere", "openai"),
    ("openai", "anthropic"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Plan {
    Fallback,
    /// The same target twice.
    Retry,
    /// A fallback of a conversation that calls tools.
    Tools,
}

/// At an origin; formats of OpenAI and Anthropic begin with their version.
fn target(provider: &str, origin: &str) -> Value {
    let host = match provider {
        "openai" | "anthropic" => format!("{origin}/v1"),
        _ => origin.to_owned(),
    };
    json!({ "provider": provider, "api_key": "sk-config", "custom_host": host })
}

fn config(plan: Plan, is_endless: bool, first: Value, second: Value) -> Value {
    let mut config = match plan {
        Plan::Retry => first,
        Plan::Fallback | Plan::Tools => {
            json!({ "strategy": { "mode": "fallback" }, "targets": [first, second] })
        }
    };
    if is_endless {
        config["request_timeout"] = json!(MAX_SILENCE);
    }
    if plan == Plan::Retry {
        config["retry"] = json!({ "attempts": 1, "jitter": "full", "on_status_codes": [408, 429, 500, 502, 503, 529] });
    }
    config
}

fn body(plan: Plan, is_stream: bool) -> Value {
    let mut body = chat("Hello");
    body["stream"] = json!(is_stream);
    if plan == Plan::Tools {
        let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let function = json!({ "name": "weather", "parameters": parameters });
        body["tools"] = json!([{ "type": "function", "function": function }]);
        body["tool_choice"] = json!("required");
    }
    body
}

#[tokio::test]
async fn between_any_two_formats_the_client_gets_a_whole_answer_or_a_whole_error() {
    let stack = Stack::builder().proxy("UPSTREAM_STREAM_IDLE_TIMEOUT_MS", MAX_SILENCE.to_string()).start().await;
    let cells = PAIRS.into_iter().flat_map(|pair| faults().into_iter().map(move |fault| (pair, fault)));
    let tested = cells.map(async |(pair, fault)| {
        let mock = Mock::start(mock::Options::default());
        let mut cases = 0;
        for is_stream in [false, true] {
            for plan in [Plan::Fallback, Plan::Retry, Plan::Tools] {
                // A call is too short for what comes after its first event.
                if plan == Plan::Tools && !matches!(fault.kind, Kind::Mended | Kind::Dead) {
                    continue;
                }
                case(&stack, &mock, &fault, pair, is_stream, plan).await;
                cases += 1;
            }
        }
        cases
    });
    let cases: usize = join_all(tested).await.into_iter().sum();
    assert_eq!(cases, PAIRS.len() * (14 * 2 * 2 + 11 * 2));
}

async fn case(stack: &Stack, mock: &Mock, fault: &Fault, pair: (&str, &str), is_stream: bool, plan: Plan) {
    let what = format!("{pair:?} {}, stream {is_stream}, {plan:?}", fault.name);
    let origin = match fault.name {
        "refuses the connection" => "http://127.0.0.1:1".to_owned(),
        "fails in TLS" => format!("https://localhost:{}", mock.address().port()),
        _ => mock.origin(),
    };
    mock.reset();
    if fault.kind != Kind::Dead {
        mock.script(json!([if is_stream { &fault.stream } else { &fault.plain }])).unwrap();
    }
    let config = config(plan, fault.is_endless(), target(pair.0, &origin), target(pair.1, &mock.origin()));
    let answer = client(stack, &config).post("/chat/completions", &body(plan, is_stream)).await;
    let calls = mock.requests().len();
    match fault.kind {
        Kind::Dead if plan == Plan::Retry => return assert_refused(&answer, &what),
        Kind::Broken if is_stream => {
            assert_broken_off(&answer, &what);
            assert_eq!((calls, answer.header("x-gateway-provider")), (1, pair.0), "{what}");
            return;
        }
        Kind::Harmless => assert_eq!((calls, answer.header("x-gateway-provider")), (1, pair.0), "{what}"),
        // A connection that was held and has died is made anew, and then the same target answers.
        Kind::Mended if fault.plain["no_answer"] == true => {}
        Kind::Mended | Kind::Broken | Kind::Dead => {
            let expected = if plan == Plan::Retry { pair.0 } else { pair.1 };
            assert_eq!(answer.header("x-gateway-provider"), expected, "{what}: {}", answer.text());
        }
    }
    match plan {
        Plan::Tools => assert_called(&answer, is_stream, &what),
        Plan::Fallback | Plan::Retry => assert_whole(&answer, is_stream, &what),
    }
}

/// One whole call of the tool, whoever made it.
fn assert_called(answer: &Answer, is_stream: bool, what: &str) {
    let text = answer.text();
    assert_eq!(answer.status, 200, "{what}: {text}");
    let (calls, reason): (Vec<Value>, Value) = match is_stream {
        false => {
            let choice = &answer.json()["choices"][0];
            (choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default(), choice["finish_reason"].clone())
        }
        true => {
            assert!(text.ends_with("data: [DONE]\n\n"), "{what}: {text}");
            let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
            let chunks: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
            let deltas = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].as_array());
            let mut reasons = chunks.iter().map(|chunk| &chunk["choices"][0]["finish_reason"]);
            (
                deltas.flatten().cloned().collect(),
                reasons.find(|reason| reason.is_string()).cloned().unwrap_or_default(),
            )
        }
    };
    let told = |field: &str| calls.iter().filter_map(|call| call["function"][field].as_str()).collect::<String>();
    assert_eq!((told("name"), told("arguments")), ("weather".into(), r#"{"city":"Paris"}"#.into()), "{what}: {text}");
    assert_eq!(reason, "tool_calls", "{what}: {text}");
    assert!(calls[0]["id"].as_str().is_some_and(|id| !id.is_empty()), "{what}: {text}");
}

#[tokio::test]
async fn a_circuit_opens_for_a_translated_target_whatever_it_did_wrong() {
    let stack = Stack::start().await;
    for (first, second) in PAIRS {
        for fault in [json!({ "status": 500 }), json!({ "bad_json": true }), json!({ "no_answer": true })] {
            let mut config = config(
                Plan::Fallback,
                false,
                target(first, &stack.mock.origin()),
                target(second, &stack.mock.origin()),
            );
            // Circuits are told apart by what a config says.
            config["strategy"]["cb_config"] = json!({ "failure_threshold": 1, "cooldown_interval": 60_000 });
            config["override_params"] = json!({ "user": fault.to_string() });
            stack.mock.reset();
            stack.mock.script(json!([fault])).unwrap();
            for calls in [2, 1] {
                let before = stack.mock.requests().len();
                let answer = client(&stack, &config).post("/chat/completions", &chat("Hello")).await;
                let what = format!("{first} {fault}: {}", answer.text());
                assert_eq!((answer.status.as_u16(), answer.header("x-gateway-provider")), (200, second), "{what}");
                assert_eq!(stack.mock.requests().len() - before, calls, "{what}");
            }
        }
    }
}
