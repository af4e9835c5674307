//! Limits that tokens (JWT) bring along: counted by subject, whatever token it shows.

use super::patient;
use crate::tokens::accept;
use harness::issuer::{Issuer, claims};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

async fn started() -> (Stack, Issuer) {
    let (stack, issuer) = (patient().await, Issuer::start().await);
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    (stack, issuer)
}

fn bearer(stack: &Stack, issuer: &Issuer, more: &Value) -> Client {
    let mut claims = claims(stack.home.id, &stack.home.workspace_id.to_string(), "completions.write");
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    stack.as_application(&issuer.token(&claims))
}

async fn ask(client: &Client) -> Answer {
    client.post("/chat/completions", &chat("Hello")).await
}

#[tokio::test]
async fn a_subject_has_one_rate_whatever_token_it_shows() {
    let (stack, issuer) = started().await;
    let limits = json!([{ "type": "requests", "unit": "rpd", "value": 2 }]);
    let shows = |more: Value| {
        let mut more = more;
        more["rate_limits"] = limits.clone();
        bearer(&stack, &issuer, &more)
    };
    let first = ask(&shows(json!({ "sub": "alice", "jti": "1" }))).await;
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.header("x-ratelimit-limit-requests"), "2");
    assert_eq!(first.header("x-ratelimit-remaining-requests"), "1");
    assert_eq!(ask(&shows(json!({ "sub": "alice", "jti": "2" }))).await.status, 200);
    let refused = ask(&shows(json!({ "sub": "alice", "jti": "3" }))).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.header("x-gateway-ratelimit-scope"), "token");
    assert!(refused.text().contains("this token") && refused.text().contains("2 requests per day"));
    assert_eq!(ask(&shows(json!({ "sub": "bob", "jti": "3" }))).await.status, 200, "another subject");
    assert_eq!(ask(&bearer(&stack, &issuer, &json!({ "sub": "alice" }))).await.status, 200, "a token without limits");
    assert_eq!(ask(&stack.client()).await.status, 200, "nor is a key meant");
    let blocked = json!({ "sub": "carol", "rate_limits": [{ "type": "tokens", "unit": "rpm", "value": 0 }] });
    assert_eq!(ask(&bearer(&stack, &issuer, &blocked)).await.status, 429, "zero blocks");
    // Without a subject a token speaks for itself alone. Made once: one of the next second would expire later, and be another.
    let own = [1, 2].map(|iat| shows(json!({ "sub": null, "iat": iat })));
    for (token, expected) in [(0, 200), (1, 200), (0, 200), (0, 429), (1, 200), (1, 429)] {
        assert_eq!(ask(&own[token]).await.status, expected, "token {token}");
    }
}

#[tokio::test]
async fn a_subject_has_one_budget_and_each_budget_counts_apart() {
    let (stack, issuer) = started().await;
    let shows = |name: &str, limits: Value| bearer(&stack, &issuer, &json!({ "sub": name, "usage_limits": limits }));
    let alice = json!({ "type": "tokens", "credit_limit": 1 });
    let first = ask(&shows("alice", alice.clone())).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let used = first.json()["usage"]["total_tokens"].as_f64();
    let refused = ask(&shows("alice", json!([alice]))).await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    assert!(refused.text().contains("this token") && refused.text().contains("budget_exhausted"));
    const COUNTED: &str = "SELECT value::float8 FROM usage_counters WHERE scope = 'token' AND unit = 'tokens'";
    let database = stack.database.client().await;
    let counted = async || {
        let rows = database.query(COUNTED, &[]).await.unwrap();
        rows.len() == 1 && Some(rows[0].get::<_, f64>(0)) == used
    };
    stack.until("usage arrives", counted).await;
    for (name, limits, expected) in [
        ("alice", json!([]), 200),
        ("alice", json!({ "id": "other", "type": "tokens", "credit_limit": 1 }), 200),
        ("alice", json!({ "id": "other", "type": "tokens", "credit_limit": 1 }), 412),
        ("alice", json!({ "id": "other", "type": "tokens", "credit_limit": 1, "status": "archived" }), 200),
        ("alice", json!({ "type": "tokens", "credit_limit": 1, "periodic_reset": "monthly" }), 200),
        (
            "alice",
            json!([{ "type": "tokens", "credit_limit": 1, "periodic_reset": "weekly" },
                         { "type": "tokens", "credit_limit": 1, "periodic_reset": "monthly" }]),
            412,
        ),
        ("bob", json!({ "type": "tokens", "credit_limit": 1 }), 200),
        ("bob", json!({ "credit_limit": 1, "strict": true }), 412),
        ("bob", json!({ "credit_limit": 1 }), 200),
    ] {
        let answer = ask(&shows(name, limits.clone())).await;
        assert_eq!(answer.status, expected, "{name} {limits}: {}", answer.text());
    }
}
