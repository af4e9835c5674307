//! Credentials that a provider would make of a stored one, and sessions that a client would hold beside the gateway: refused
//! wherever somebody pays, counts or judges.

use crate::families::{application, integrate};
use crate::guardrails::lanes::{guarded, until_held};
use crate::limits::{limited_key, patient};
use crate::upstream::RawUpstream;
use harness::Client;
use serde_json::json;

const PATHS: [&str; 14] = [
    "/realtime",
    "/realtime/client_secrets",
    "/realtime/sessions",
    "/realtime/transcription_sessions",
    "/realtime/calls",
    "/Realtime//client%5Fsecrets/",
    "/proxy/realtime/client_secrets",
    "/openai/v1/realtime/client_secrets",
    "/openai/v1/realtime/calls",
    "/openai/realtime/sessions",
    "/openai/realtimeapi/sessions",
    "/v1alpha/auth_tokens",
    "/v1beta/authTokens",
    "/auth/grant",
];

async fn asked(client: &Client, path: &str) -> (u16, String) {
    let answer = client.post(path, &json!({ "model": "gpt-realtime" })).await;
    let body: serde_json::Value = serde_json::from_str(&answer.text()).unwrap_or_default();
    // Google's shape has a number there, and the code in its details.
    let code = body["error"]["code"].as_str().or_else(|| body["error"]["details"][0]["reason"].as_str());
    (answer.status.as_u16(), code.unwrap_or_default().to_ascii_lowercase())
}

#[tokio::test]
async fn no_credential_is_made_of_a_stored_one_and_none_where_a_limit_counts_what_is_used() {
    let stack = patient().await;
    integrate(&stack, "prod", "openai").await;
    let arrived = stack.mock.requests().len();
    let upstream = RawUpstream::start().await;
    let own = |key: &str| {
        let client = stack.anonymous().with_key(key).with("x-gateway-provider", "openai");
        client.with("authorization", "Bearer sk-own").with("x-gateway-custom-host", upstream.url())
    };
    let stored = application(&stack).with("x-gateway-provider", "@prod");
    let mut refused = vec![("a stored credential", stored)];
    for (what, limits) in [
        ("a budget of money", json!({ "usage_limits": { "credit_limit": 1 } })),
        ("a budget of tokens", json!({ "usage_limits": { "type": "tokens", "credit_limit": 1000 } })),
        ("a rate of tokens", json!({ "rate_limits": [{ "type": "tokens", "unit": "rpm", "value": 1000 }] })),
    ] {
        refused.push((what, own(&limited_key(&stack, limits).await.0)));
    }
    for (what, client) in &refused {
        for path in PATHS {
            let expected = (400, "endpoint_not_supported".to_owned());
            assert_eq!(asked(client, path).await, expected, "{what} {path}");
        }
    }
    assert_eq!((stack.mock.requests().len(), upstream.take().len()), (arrived, 0), "nobody was asked");
    let calls = json!({ "rate_limits": [{ "type": "requests", "unit": "rpm", "value": 1000 }] });
    for (what, key) in [
        ("one's own credential", stack.home.workspace_key.clone()),
        ("a limit on calls alone", limited_key(&stack, calls).await.0),
    ] {
        for path in PATHS {
            assert_eq!(asked(&own(&key), path).await.0, 200, "{what} {path}");
        }
        assert_eq!(upstream.take().len(), PATHS.len(), "{what}");
    }
}

#[tokio::test]
async fn what_guardrails_could_not_hear_is_refused_with_ones_own_credential_too() {
    for side in ["input_guardrails", "output_guardrails"] {
        let (stack, client) = guarded(&[side]).await;
        if side == "input_guardrails" {
            until_held(&stack, &client).await;
        } else {
            let said = async || asked(&client, PATHS[1]).await.0 == 403;
            stack.until("the guardrail holds", said).await;
        }
        for path in PATHS {
            assert_eq!(asked(&client, path).await, (403, "guardrail_unreadable".to_owned()), "{side} {path}");
        }
    }
}
