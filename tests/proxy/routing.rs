//! Configs that came with a request: where it goes, what follows a failure, and what of the body is changed. The mock
//! plays every target; the answer's headers tell which one it was.

mod catalog;
mod circuits;
mod conditions;
mod config_locks;
mod faults;
mod heartbeats;
mod hedges;
mod matrix;
pub mod saved;
mod translated_matrix;

use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

pub fn target(stack: &Stack, more: Value) -> Value {
    let mut target = json!({ "provider": "openai", "api_key": "sk-config", "custom_host": stack.mock.url() });
    target.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    target
}

/// An application that sends this config and nothing else about providers.
pub fn client(stack: &Stack, config: &Value) -> Client {
    stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config.to_string())
}

pub async fn ask(stack: &Stack, config: &Value) -> Answer {
    client(stack, config).post("/chat/completions", &chat("Hello")).await
}

fn two(stack: &Stack, strategy: Value) -> Value {
    json!({ "strategy": strategy, "targets": [target(stack, json!({})), target(stack, json!({}))] })
}

/// How many requests the provider has answered or begun to answer.
pub fn asked(stack: &Stack) -> u64 {
    let counts = stack.mock.counts();
    counts.served.values().flat_map(|outcomes| outcomes.values()).sum::<u64>() + counts.in_flight
}

#[tokio::test]
async fn a_fallback_takes_the_next_target_and_the_last_answer_when_all_fail() {
    let stack = Stack::start().await;
    let config = two(&stack, json!({ "mode": "fallback" }));
    for (faults, status, index) in [
        (json!([]), 200, "config.targets[0]"),
        (json!([{ "status": 500 }]), 200, "config.targets[1]"),
        (json!([{ "status": 404 }]), 200, "config.targets[1]"),
        (json!([{ "status": 500 }, { "status": 418 }]), 418, "config.targets[1]"),
    ] {
        stack.mock.script(faults.clone()).unwrap();
        let answer = ask(&stack, &config).await;
        assert_eq!(answer.status, status, "{faults} {}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), index, "{faults}");
        assert_eq!(answer.header("x-gateway-provider"), "openai", "{faults}");
    }
    let listed = two(&stack, json!({ "mode": "fallback", "on_status_codes": [429] }));
    stack.mock.script(json!([{ "status": 500 }])).unwrap();
    assert_eq!(ask(&stack, &listed).await.status, 500);
}

/// An old header; what a config says is stronger.
#[tokio::test]
async fn a_request_may_wish_for_retries_where_its_config_says_nothing_of_them() {
    let stack = Stack::start().await;
    let silent = target(&stack, json!({}));
    let never = target(&stack, json!({ "retry": { "attempts": 0 } }));
    for (config, wished, status, count) in [
        (&silent, "1", 200, "1"),
        (&silent, "0", 500, "0"),
        (&never, "1", 500, "0"),
        (&silent, "6", 400, ""),
        (&silent, "many", 400, ""),
    ] {
        stack.mock.reset();
        stack.mock.script(json!([{ "status": 500 }])).unwrap();
        let client = client(&stack, config).with("x-gateway-retry-count", wished);
        let answer = client.post("/chat/completions", &chat("Hello")).await;
        assert_eq!(answer.status, status, "{config} {wished}: {}", answer.text());
        assert_eq!(answer.header("x-gateway-retry-attempt-count"), count, "{config} {wished}");
    }
}

#[tokio::test]
async fn a_target_is_tried_again_as_often_as_the_config_allows_and_says_how_often() {
    let stack = Stack::start().await;
    let retry = json!({ "attempts": 3, "use_retry_after_headers": true });
    let config = target(&stack, json!({ "retry": retry }));
    let busy = json!({ "status": 429, "retry_after_ms": 1 });
    for (failures, status, count) in [(0, 200, "0"), (1, 200, "1"), (3, 200, "3"), (4, 429, "-1")] {
        stack.mock.script(json!(vec![busy.clone(); failures])).unwrap();
        let before = asked(&stack);
        let answer = ask(&stack, &config).await;
        assert_eq!(answer.status, status, "{failures}");
        assert_eq!(answer.header("x-gateway-retry-attempt-count"), count, "{failures}");
        assert_eq!(asked(&stack) - before, failures.min(3) as u64 + 1);
    }
    stack.mock.script(json!([{ "status": 429, "retry_after": 60 }])).unwrap();
    let answer = ask(&stack, &config).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-gateway-retry-attempt-count")), (429, "-1"));
    stack.mock.script(json!([{ "status": 400 }])).unwrap();
    assert_eq!(ask(&stack, &config).await.header("x-gateway-retry-attempt-count"), "0");
}

#[tokio::test]
async fn weights_and_conditions_choose_the_target() {
    let stack = Stack::start().await;
    let weights = json!({ "strategy": { "mode": "loadbalance" },
        "targets": [target(&stack, json!({ "weight": 0 })), target(&stack, json!({ "weight": 1 }))] });
    for _ in 0..5 {
        assert_eq!(ask(&stack, &weights).await.header("x-gateway-last-used-option-index"), "config.targets[1]");
    }
    let conditions = json!({
        "strategy": { "mode": "conditional", "default": "rest", "conditions": [
            { "query": { "metadata.tier": "pro", "params.model": { "$regex": "^gpt" } }, "then": "pro" },
        ] },
        "targets": [target(&stack, json!({ "name": "rest" })), target(&stack, json!({ "name": "pro" }))],
    });
    for (metadata, index) in [(json!({ "tier": "pro" }), 1), (json!({ "tier": "free" }), 0), (json!({}), 0)] {
        let answer = client(&stack, &conditions)
            .with("x-gateway-metadata", metadata.to_string())
            .post("/chat/completions", &chat("Hello"))
            .await;
        let expected = format!("config.targets[{index}]");
        assert_eq!(answer.header("x-gateway-last-used-option-index"), expected, "{metadata}");
    }
}

#[tokio::test]
async fn conditions_see_the_baggage_and_the_user_of_the_body() {
    let stack = Stack::start().await;
    let conditions = json!({
        "strategy": { "mode": "conditional", "default": "rest", "conditions": [
            { "query": { "metadata._user": "ann" }, "then": "user" },
            { "query": { "metadata.tier": "pro" }, "then": "pro" },
        ] },
        "targets": [target(&stack, json!({ "name": "rest" })), target(&stack, json!({ "name": "user" })), target(&stack, json!({ "name": "pro" }))],
    });
    for (baggage, metadata, user, index) in [
        ("tier=pro", "{}", None, 2),
        ("tier=pro", r#"{"tier":"free"}"#, None, 0),
        ("a=b", "{}", Some("ann"), 1),
        ("_user=bob", "{}", Some("ann"), 0),
        ("a=b", r#"{"_user":"ann"}"#, Some("bob"), 1),
    ] {
        let mut body = chat("Hello");
        body["user"] = json!(user);
        let client = client(&stack, &conditions).with("x-gateway-metadata", metadata).with("baggage", baggage);
        let answer = client.post("/chat/completions", &body).await;
        let expected = format!("config.targets[{index}]");
        assert_eq!(answer.header("x-gateway-last-used-option-index"), expected, "{baggage} {metadata} {user:?}");
        assert!(!stack.mock.requests().pop().unwrap().headers.contains_key("baggage"));
    }
}

#[tokio::test]
async fn only_what_the_config_asks_for_is_changed_in_the_body() {
    let stack = Stack::start().await;
    let body = r#"{ "model" : "gpt-4o" , "messages":[{"role":"user","content":"é\u00e9"}], "temperature":1.0, "x":{"b":1,"a":2} }"#;
    for (edits, expected) in [
        (json!({}), body.to_owned()),
        (
            json!({ "override_params": { "model": "gpt-4o-mini" }, "default_params": { "seed": 7, "temperature": 2 }, "drop_params": ["x.b"] }),
            r#"{ "model" : "gpt-4o-mini" , "messages":[{"role":"user","content":"é\u00e9"}], "temperature":1.0, "x":{"a":2},"seed":7 }"#.to_owned(),
        ),
    ] {
        let request = client(&stack, &target(&stack, edits.clone())).request(http::Method::POST, "/chat/completions");
        let answer = harness::client::whole(request.header("content-type", "application/json").body(body)).await;
        assert_eq!(answer.status, 200, "{edits} {}", answer.text());
        let sent = stack.mock.requests().pop().unwrap();
        assert_eq!(String::from_utf8_lossy(&sent.body), expected, "{edits}");
        assert_eq!(sent.headers["authorization"], "Bearer sk-config");
    }
}

#[tokio::test]
async fn a_bad_config_is_400_and_says_everything_that_is_wrong() {
    let stack = Stack::start().await;
    for (config, says) in [
        ("{".to_owned(), "JSON"),
        (
            json!({ "strategy": { "mode": "twice" }, "targets": [{ "provider": "openai" }] }).to_string(),
            "strategy,mode",
        ),
        (json!({ "retry": {}, "weight": -1, "targets": [] }).to_string(), "path: "),
        (json!({ "provider": "nobody", "api_key": "k" }).to_string(), "provider"),
        ("pc-nowhere".to_owned(), "pc-nowhere"),
    ] {
        let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config.clone());
        let answer = client.post("/chat/completions", &chat("Hello")).await;
        assert_eq!(answer.status, 400, "{config} {}", answer.text());
        assert!(
            answer.text().contains(says) || answer.json()["error"]["code"] == "AB01_INVALID_CONFIG",
            "{}",
            answer.text()
        );
    }
    let faulty = json!({ "retry": { "attempts": "x" }, "strategy": { "mode": "twice" }, "targets": [] }).to_string();
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", faulty);
    for path in ["/chat/completions", "/messages", "/responses", "/threads"] {
        let answer = client.post(path, &chat("Hello")).await;
        let shown = answer.json();
        assert_eq!(
            (answer.status.as_u16(), shown["error"]["code"].as_str()),
            (400, Some("AB01_INVALID_CONFIG")),
            "{path}"
        );
        let errors = shown["errors"].as_array().unwrap_or_else(|| panic!("{path}: {shown}"));
        assert!(errors.len() > 1, "{path}: {shown}");
        for error in errors {
            assert!(error["code"].as_str().is_some_and(|code| code.starts_with("AB01_")), "{path}: {error}");
            assert!(error["path"].is_string() && error["message"].is_string(), "{path}: {error}");
        }
    }
    let deep = (0..30)
        .fold(target(&stack, json!({})), |inner, _| json!({ "strategy": { "mode": "single" }, "targets": [inner] }));
    let answer = ask(&stack, &deep).await;
    assert_eq!((answer.status.as_u16(), answer.json()["error"]["code"].as_str()), (400, Some("AB01_INVALID_CONFIG")));
}

#[tokio::test]
async fn what_is_deep_or_large_beyond_reason_is_refused_or_passed_on_and_harms_nobody() {
    let stack = Stack::start().await;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let inline = |text: String| stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", text);
    let many: Vec<Value> = (0..101).map(|_| json!({ "provider": "@a" })).collect();
    for (what, config) in [
        ("a deep value", format!(r#"{{"provider":"@a","override_params":{{"x":{}}}}}"#, deep(10_000))),
        (
            "a deep query",
            format!(
                r#"{{"strategy":{{"mode":"conditional","default":"a","conditions":[{{"query":{}{}{},"then":"a"}}]}},"targets":[{{"name":"a","provider":"@a"}}]}}"#,
                r#"{"$and":["#.repeat(500),
                "{}",
                "]}".repeat(500)
            ),
        ),
        ("many targets", json!({ "strategy": { "mode": "fallback" }, "targets": many }).to_string()),
    ] {
        let answer = inline(config).post("/chat/completions", &chat("Hello")).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["error"]["code"].as_str()),
            (400, Some("AB01_INVALID_CONFIG")),
            "{what}"
        );
    }
    // Nothing of ours looks inside: the provider may think of it what it likes.
    let conditions = json!({ "strategy": { "mode": "conditional", "default": "a", "conditions": [{ "query": { "params.x": 1 }, "then": "a" }] },
        "targets": [target(&stack, json!({ "name": "a", "drop_params": ["x[0][0].y", "z"], "default_params": { "n": 1 } }))] });
    let body =
        format!(r#"{{"model":"gpt-4o-mini","messages":[{{"role":"user","content":"Hello"}}],"x":{}}}"#, deep(10_000));
    let request = client(&stack, &conditions).request(http::Method::POST, "/chat/completions");
    let answer = harness::client::whole(request.header("content-type", "application/json").body(body.clone())).await;
    let sent = stack.mock.requests().pop().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&sent.body),
        body.replace("]}", "],\"n\":1}").replace("}],\"n\":1,", "}],"),
        "{}",
        answer.text()
    );
    assert_eq!(ask(&stack, &target(&stack, json!({}))).await.status, 200, "everybody else is served");
}

#[tokio::test]
async fn every_json_family_follows_the_plan() {
    let stack = Stack::start().await;
    let config = two(&stack, json!({ "mode": "fallback" }));
    for (path, body) in [
        ("/completions", json!({ "model": "m", "prompt": "p" })),
        ("/embeddings", json!({ "model": "m", "input": "i" })),
    ] {
        stack.mock.script(json!([{ "status": 503 }])).unwrap();
        let answer = client(&stack, &config).post(path, &body).await;
        assert_eq!(answer.status, 200, "{path} {}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{path}");
    }
    let anthropic = json!({ "strategy": { "mode": "fallback" }, "targets": [
        target(&stack, json!({ "provider": "anthropic" })), target(&stack, json!({ "provider": "anthropic", "anthropic_beta": "b-1" })),
    ] });
    stack.mock.script(json!([{ "status": 529 }])).unwrap();
    let message =
        json!({ "model": "claude-sonnet-5", "max_tokens": 10, "messages": [{ "role": "user", "content": "Hello" }] });
    let answer = client(&stack, &anthropic).post("/messages", &message).await;
    assert_eq!((answer.status.as_u16(), answer.json()["type"].as_str()), (200, Some("message")), "{}", answer.text());
    let sent = stack.mock.requests().pop().unwrap();
    for (name, value) in [("x-api-key", "sk-config"), ("anthropic-beta", "b-1"), ("anthropic-version", "2023-06-01")] {
        assert_eq!(sent.headers[name], value, "{name}");
    }
}

#[tokio::test]
async fn the_whole_request_has_a_time_of_its_own() {
    let stack = Stack::start().await;
    let mut config = two(&stack, json!({ "mode": "fallback" }));
    config["total_timeout"] = json!(300);
    stack.mock.script(json!([{ "latency_ms": 60_000, "times": 2 }])).unwrap();
    let before = asked(&stack);
    let answer = ask(&stack, &config).await;
    assert_eq!((answer.status.as_u16(), answer.json()["error"]["code"].as_str()), (408, Some("timeout")));
    assert_eq!(asked(&stack) - before, 1, "no time was left for the second target");
}
