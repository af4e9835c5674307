//! Guardrails and kept answers: hooks of the request run before it is looked for one, those of the answer do not run again,
//! and nothing that a hook said is kept.

use super::{ask, cache_status};
use crate::routing::{asked, client, target};
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

fn guarded(stack: &Stack, more: Value) -> Client {
    let mut config = json!({ "cache": { "mode": "simple" } });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client(stack, &target(stack, config))
}

fn none_of(word: &str, is_denied: bool) -> Value {
    json!([{ "default.contains": { "words": [word], "operator": "none" }, "deny": is_denied }])
}

#[tokio::test]
async fn a_hit_tells_what_the_hooks_of_this_request_said() {
    let stack = Stack::start().await;
    let plain = guarded(&stack, json!({}));
    let checked = guarded(&stack, json!({ "input_guardrails": none_of("secret", false) }));
    let body = chat("no word");
    let first = ask(&checked, &body).await;
    assert_eq!(cache_status(&first), "MISS");
    assert_eq!(first.json()["hook_results"]["before_request_hooks"][0]["verdict"], true, "{}", first.text());
    let bare = ask(&plain, &body).await;
    assert_eq!(cache_status(&bare), "HIT", "hooks of requests are no part of the key");
    assert_eq!(bare.json().get("hook_results"), None, "{}", bare.text());
    let again = ask(&checked, &body).await;
    assert_eq!(cache_status(&again), "HIT");
    assert_eq!(again.json()["hook_results"]["before_request_hooks"][0]["verdict"], true);
    let failed = ask(&guarded(&stack, json!({ "input_guardrails": none_of("word", false) })), &body).await;
    assert_eq!((failed.status.as_u16(), failed.header("x-gateway-cache-status")), (246, "HIT"));
    let denied = ask(&guarded(&stack, json!({ "input_guardrails": none_of("word", true) })), &body).await;
    assert_eq!((denied.status.as_u16(), denied.header("x-gateway-cache-status")), (446, ""));
    assert_eq!(asked(&stack), 1);
}

#[tokio::test]
async fn what_a_check_found_fault_with_is_not_kept() {
    let stack = Stack::start().await;
    for (what, hooks) in [
        ("a request", json!({ "input_guardrails": none_of("fault", false) })),
        ("an answer", json!({ "output_guardrails": none_of("spoken", false) })),
        ("a denied answer", json!({ "output_guardrails": none_of("spoken", true) })),
    ] {
        let client = guarded(&stack, hooks);
        for is_stream in [false, true] {
            let mut body = chat(&format!("a fault of {what}"));
            body["stream"] = json!(is_stream);
            let before = asked(&stack);
            for _ in 0..2 {
                stack.mock.script(json!([{ "reply": "spoken" }])).unwrap();
                let answer = ask(&client, &body).await;
                assert_eq!(answer.header("x-gateway-cache-status"), "MISS", "{what}, as a stream: {is_stream}");
            }
            assert_eq!(asked(&stack), before + 2, "{what}, as a stream: {is_stream}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_passed_no_hook_is_not_given_to_who_has_one() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "reply": "spoken", "times": 2 }])).unwrap();
    assert_eq!(cache_status(&ask(&guarded(&stack, json!({})), &chat("Hello")).await), "MISS");
    let strict = guarded(&stack, json!({ "output_guardrails": none_of("spoken", true) }));
    assert_eq!(ask(&strict, &chat("Hello")).await.status, 446);
    assert_eq!(asked(&stack), 2);
}
