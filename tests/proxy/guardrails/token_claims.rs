//! Tokens of callers: what an issuer said is asked for again no sooner than the check wants, claims become headers for the
//! services behind it, and an issuer that nobody reaches is an error like any other.

use crate::routing::{client, target};
use harness::{GuardService, Says, Stack, chat};
use serde_json::{Value, json};

fn with(mut fields: Value, more: Value) -> Value {
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fields
}

#[tokio::test]
async fn an_issuer_is_asked_about_a_token_once_in_the_time_that_its_answer_is_kept() {
    let stack = Stack::start().await;
    let issuer = GuardService::start(Says::Json(json!({ "active": true, "sub": "ada" }))).await;
    let asks = async |kept: Value, token: &str| {
        let parameters = with(json!({ "introspectEndpoint": issuer.url(), "headerKey": "x-user-token" }), kept);
        let hook = json!({ "default.jwt": parameters, "deny": true });
        let client = client(&stack, &target(&stack, json!({ "input_guardrails": [hook] })));
        let before = issuer.asked().len();
        let answer = client.with("x-user-token", token).post("/chat/completions", &chat("hello")).await;
        (answer.status.as_u16(), issuer.asked().len() - before)
    };
    assert_eq!(asks(json!({}), "one").await, (200, 1));
    assert_eq!(asks(json!({}), "one").await, (200, 1), "nothing is kept unless it is asked for");
    let kept = json!({ "introspectCacheMaxAge": 300 });
    assert_eq!(asks(kept.clone(), "one").await, (200, 1));
    assert_eq!(asks(kept.clone(), "one").await, (200, 0));
    issuer.says(Says::Json(json!({ "active": false })));
    assert_eq!(asks(kept.clone(), "one").await, (200, 0));
    assert_eq!(asks(kept.clone(), "two").await, (446, 1), "another token is another question");
    issuer.says(Says::Status(500, String::new()));
    assert_eq!(asks(kept.clone(), "three").await, (446, 1), "nobody knows, so nobody passes");
    assert_eq!(asks(kept, "three").await, (446, 1), "and that is not kept");
}

#[tokio::test]
async fn claims_are_headers_for_the_services_that_are_asked_afterwards() {
    let stack = Stack::start().await;
    let claims = json!({ "active": true, "sub": "ada", "team_id": 7, "groups": ["a", "b"] });
    let issuer = GuardService::start(Says::Json(claims)).await;
    let (before, beside, after) = (
        GuardService::start(Says::Json(json!({ "verdict": true }))).await,
        GuardService::start(Says::Json(json!({ "verdict": true }))).await,
        GuardService::start(Says::Json(json!({ "verdict": true }))).await,
    );
    let names = ["x-jwt-sub", "x-jwt-team-id", "x-jwt-groups", "x-jwt-email"];
    let webhook = |service: &GuardService| json!({ "webhookURL": service.url(), "forwardHeaders": names });
    let token = json!({
        "introspectEndpoint": issuer.url(), "headerKey": "x-user-token", "extractClaims": ["sub", "team_id", "groups", "email"],
    });
    let config = target(
        &stack,
        json!({
            "input_guardrails": [
                { "default.jwt": token, "default.webhook": webhook(&before), "sequential": true, "deny": true },
                { "default.webhook": webhook(&beside) },
            ],
            "output_guardrails": [{ "default.webhook": webhook(&after) }],
        }),
    );
    let sent =
        client(&stack, &config).with("x-user-token", "opaque").with("x-jwt-sub", "forged").with("x-jwt-email", "f@x");
    let answer = sent.post("/chat/completions", &chat("hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = |service: &GuardService| {
        let head = service.asked().pop().unwrap().head.to_ascii_lowercase();
        names.map(|name| head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned)))
    };
    let claimed = [Some("ada".to_owned()), Some("7".to_owned()), Some("a,b".to_owned()), None];
    assert_eq!(told(&before), claimed, "in the same hook, in order");
    assert_eq!(told(&after), claimed, "of the answer");
    assert_eq!(told(&beside)[0].as_deref(), Some("forged"), "beside it, what was sent");
    assert!(!answer.text().contains("ada"), "claims are not told: {}", answer.text());
}

#[tokio::test]
async fn an_issuer_that_nobody_reaches_fails_unless_it_is_said_to_pass() {
    let stack = Stack::start().await;
    let token = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsxIn0.e30.c2ln";
    for address in
        [json!({ "jwksUri": "http://127.0.0.1:1/keys" }), json!({ "introspectEndpoint": "http://127.0.0.1:1/" })]
    {
        for (fails, status) in
            [(json!({ "failOnError": false }), 200), (json!({ "failOnError": true }), 446), (json!({}), 446)]
        {
            let parameters = with(with(address.clone(), json!({ "headerKey": "x-user-token" })), fails.clone());
            let hook = json!({ "default.jwt": parameters, "deny": true });
            let client = client(&stack, &target(&stack, json!({ "input_guardrails": [hook] })));
            let answer = client.with("x-user-token", token).post("/chat/completions", &chat("hello")).await;
            assert_eq!(answer.status, status, "{address} {fails}: {}", answer.text());
            let check = &answer.json()["hook_results"]["before_request_hooks"][0]["checks"][0];
            assert_eq!(
                (&check["verdict"], &check["error"]["name"]),
                (&json!(false), &json!("ConnectionError")),
                "{check}"
            );
        }
    }
}
