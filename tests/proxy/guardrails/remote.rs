//! Checks that services outside answer: what they are asked, what follows from what they say, and that one which hangs, dies,
//! talks nonsense or does not stop talking is an error of its check and of nothing else.

use crate::routing::{asked, client, target};
use harness::{GuardService, Issuer, Says, Stack, chat};
use serde_json::{Value, json};

fn webhook(service: &GuardService, parameters: Value, more: Value) -> Value {
    let mut webhook = json!({ "webhookURL": service.url(), "timeout": 10_000 });
    webhook.as_object_mut().unwrap().extend(parameters.as_object().unwrap().clone());
    let mut hook = json!({ "default.webhook": webhook });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hook
}

fn denying(service: &GuardService, parameters: Value) -> Value {
    webhook(service, parameters, json!({ "deny": true }))
}

#[tokio::test]
async fn a_webhook_passes_and_denies_requests_and_answers() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Json(json!({ "verdict": true }))).await;
    for side in ["input_guardrails", "output_guardrails"] {
        let client = client(&stack, &target(&stack, json!({ side: [denying(&service, json!({}))] })));
        for (path, body) in [
            ("/chat/completions", chat("hello")),
            ("/completions", json!({ "model": "m", "prompt": "hello" })),
            ("/messages", json!({ "model": "m", "max_tokens": 5, "messages": chat("hello")["messages"] })),
            ("/responses", json!({ "model": "m", "input": "hello" })),
        ] {
            service.says(Says::Json(json!({ "verdict": true, "data": { "score": 1 } })));
            let answer = client.post(path, &body).await;
            assert_eq!(answer.status, 200, "{side} {path}: {}", answer.text());
            service.says(Says::Json(json!({ "verdict": false, "data": { "explanation": "too rude" } })));
            let answer = client.post(path, &body).await;
            assert_eq!(answer.status, 446, "{side} {path}: {}", answer.text());
            assert!(answer.text().contains("too rude"), "{side} {path}: {}", answer.text());
        }
    }
    assert!(service.asked().iter().all(|asked| asked.head.starts_with("POST /judge ")), "{:?}", service.asked());
}

#[tokio::test]
async fn a_service_that_fails_is_an_error_of_its_check_and_fails_only_where_it_is_to() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Silence).await;
    let elsewhere = GuardService::start(Says::Json(json!({ "verdict": true }))).await;
    for (says, name) in [
        (Says::Silence, "TimeoutError"),
        (Says::HangUp, "ConnectionError"),
        (Says::Garbage, "InvalidAnswer"),
        (Says::Json(json!({ "verdict": "yes" })), "InvalidAnswer"),
        (Says::Huge(50 << 20), "AnswerTooLong"),
        (Says::Status(500, "s3cret".into()), "HttpError"),
        (Says::Redirect(elsewhere.url()), "HttpError"),
    ] {
        service.says(says.clone());
        for (fails, status) in [(false, 200), (true, 446)] {
            let timeout = if name == "TimeoutError" { 300 } else { 10_000 };
            let hook = denying(&service, json!({ "timeout": timeout, "failOnError": fails }));
            let client = client(&stack, &target(&stack, json!({ "input_guardrails": [hook] })));
            let answer = client.post("/chat/completions", &chat("hello")).await;
            assert_eq!(answer.status, status, "{says:?} {fails}: {}", answer.text());
            let check = &answer.json()["hook_results"]["before_request_hooks"][0]["checks"][0];
            assert_eq!(check["error"]["name"], name, "{says:?}: {check}");
            assert!(!answer.text().contains("s3cret"), "{}", answer.text());
        }
    }
    assert!(elsewhere.asked().is_empty(), "nobody follows a redirect");
}

#[tokio::test]
async fn no_address_inside_is_asked() {
    let stack = Stack::builder().proxy("TRUSTED_CUSTOM_HOSTS", "localhost").start().await;
    let service = GuardService::start(Says::Json(json!({ "verdict": true }))).await;
    for url in
        [service.url(), "https://169.254.169.254/latest".into(), "https://10.0.0.1/x".into(), "https://[::1]/x".into()]
    {
        let hook = json!({ "default.webhook": { "webhookURL": url, "failOnError": true }, "deny": true });
        let mut config = target(&stack, json!({ "input_guardrails": [hook] }));
        config["custom_host"] = json!(stack.mock.url().replace("127.0.0.1", "localhost"));
        let answer = client(&stack, &config).post("/chat/completions", &chat("hello")).await;
        assert_eq!(answer.status, 446, "{url}: {}", answer.text());
        let check = &answer.json()["hook_results"]["before_request_hooks"][0]["checks"][0];
        assert_eq!(check["error"]["name"], "ForbiddenAddress", "{url}: {check}");
    }
    assert!(service.asked().is_empty());
    assert_eq!(asked(&stack), 0);
}

#[tokio::test]
async fn nothing_secret_of_the_client_reaches_a_webhook_nor_its_own_secret_the_client() {
    let stack = Stack::builder().proxy("HEADER_PREFIX_ALIASES", "x-acme-").start().await;
    let key = stack.home.workspace_key.clone();
    let service =
        GuardService::start(Says::Json(json!({ "verdict": true, "data": { "echo": "token-of-the-hook" } }))).await;
    let listed = [
        "authorization",
        "cookie",
        "x-api-key",
        "x-gateway-api-key",
        "x-gateway-config",
        "x-acme-api-key",
        "x-team",
        "traceparent",
    ];
    let parameters = json!({ "forwardHeaders": listed, "headers": { "x-token": "token-of-the-hook" } });
    let hook = webhook(&service, parameters, json!({}));
    let config = target(&stack, json!({ "input_guardrails": [hook], "output_guardrails": [hook] }));
    let client = client(&stack, &config)
        .with("authorization", format!("Bearer {key}"))
        .with("cookie", format!("session={key}"))
        .with("x-api-key", &key)
        .with("x-team", "red");
    let answer = client.post("/chat/completions", &chat("hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!answer.text().contains("token-of-the-hook"), "{}", answer.text());
    let asked = service.asked();
    assert_eq!(asked.len(), 2);
    for asked in asked {
        let head = asked.head.to_ascii_lowercase();
        assert!(!head.contains(&key.to_ascii_lowercase()) && !asked.body.to_string().contains(&key), "{head}");
        assert!(
            head.contains("x-team: red")
                && head.contains("traceparent: 00-")
                && head.contains("x-token: token-of-the-hook")
        );
        assert!(!head.contains("sk-config") && !asked.body.to_string().contains("sk-config"));
    }
    nowhere_told(&stack, 1, "token-of-the-hook").await;
}

/// Neither in what the logs of so many calls keep of hooks nor in the lines of the proxy.
async fn nowhere_told(stack: &Stack, calls: usize, secret: &str) {
    const TOLD: &str = "SELECT hook_results FROM request_logs WHERE hook_results::text LIKE '%before_request_hooks%'";
    let database = stack.database.client().await;
    let told = async || database.query(TOLD, &[]).await.unwrap();
    stack.until("the calls are logged", async || told().await.len() >= calls).await;
    for row in told().await {
        let told: Value = row.get(0);
        assert!(!told.to_string().contains(secret), "{told}");
    }
    assert!(!stack.proxy.log().contains(secret), "{}", stack.proxy.log());
}

#[tokio::test]
async fn what_a_webhook_transforms_is_what_is_sent_and_what_comes_back() {
    let stack = Stack::start().await;
    let changed = chat("changed by the hook");
    let service = GuardService::start(Says::Json(
        json!({ "verdict": true, "transformedData": { "request": { "json": changed } } }),
    ))
    .await;
    let config = target(&stack, json!({ "input_guardrails": [webhook(&service, json!({}), json!({}))] }));
    let answer = client(&stack, &config).post("/chat/completions", &chat("hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["hook_results"]["before_request_hooks"][0]["transformed"], true);
    let sent = stack.mock.requests();
    assert!(String::from_utf8_lossy(&sent.last().unwrap().body).contains("changed by the hook"));
    let other = json!({ "choices": [{ "index": 0, "message": { "role": "assistant", "content": "another answer" } }] });
    service.says(Says::Json(json!({ "verdict": true, "transformedData": { "response": { "json": other } } })));
    let config = target(&stack, json!({ "output_guardrails": [webhook(&service, json!({}), json!({}))] }));
    let answer = client(&stack, &config).post("/chat/completions", &chat("hello")).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "another answer", "{}", answer.text());
}

#[tokio::test]
async fn in_order_a_webhook_sees_what_the_check_before_it_made() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Json(json!({ "verdict": true }))).await;
    let replace = json!({ "id": "default.regexReplace", "parameters": { "rule": "hello", "redactText": "gone" } });
    let ask = json!({ "id": "default.webhook", "parameters": { "webhookURL": service.url() } });
    for (sequential, expected) in [(true, "gone"), (false, "hello")] {
        let hook = json!({ "id": "h", "sequential": sequential, "checks": [replace, ask] });
        let config = target(&stack, json!({ "before_request_hooks": [hook] }));
        let answer = client(&stack, &config).post("/chat/completions", &chat("hello")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let told = service.asked().pop().unwrap().body;
        assert_eq!(told["request"]["text"], expected, "{told}");
        assert_eq!(told["request"]["isTransformed"], sequential, "{told}");
    }
}

#[tokio::test]
async fn a_held_stream_waits_for_a_webhook_and_is_denied_by_it() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Json(json!({ "verdict": false }))).await;
    let mut body = chat("hello");
    body["stream"] = json!(true);
    let hold = webhook(&service, json!({}), json!({ "deny": true, "stream": "hold" }));
    let config = target(&stack, json!({ "output_guardrails": [hold], "strict_open_ai_compliance": false }));
    let denied = client(&stack, &config).post("/chat/completions", &body).await;
    assert_eq!(denied.status, 446, "{}", denied.text());
    let told = service.asked().pop().unwrap().body;
    assert!(told["response"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{told}");
    service.says(Says::Json(json!({ "verdict": true })));
    let passed = client(&stack, &config).post("/chat/completions", &body).await;
    assert_eq!(passed.status, 200, "{}", passed.text());
    assert!(passed.text().contains("[DONE]") && passed.text().contains("after_request_hooks"), "{}", passed.text());
    let report = webhook(&service, json!({}), json!({}));
    let config = target(&stack, json!({ "output_guardrails": [report], "strict_open_ai_compliance": false }));
    service.says(Says::Json(json!({ "verdict": false })));
    let reported = client(&stack, &config).post("/chat/completions", &body).await;
    assert_eq!(reported.status, 200);
    assert!(reported.text().contains("\"verdict\":false") && reported.text().contains("[DONE]"), "{}", reported.text());
}

#[tokio::test]
async fn answers_are_logged_elsewhere_and_nothing_of_that_is_judged() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Garbage).await;
    let hook = |fails: bool| json!({ "default.log": { "logURL": service.url(), "failOnError": fails }, "deny": true });
    let config = target(&stack, json!({ "output_guardrails": [hook(true)] }));
    let answer = client(&stack, &config).post("/chat/completions", &chat("hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(service.asked()[0].body["response"]["statusCode"], 200);
    service.says(Says::Status(500, String::new()));
    let answer = client(&stack, &config).post("/chat/completions", &chat("hello")).await;
    assert_eq!(answer.status, 446, "{}", answer.text());
    let config = target(&stack, json!({ "output_guardrails": [hook(false)] }));
    assert_eq!(client(&stack, &config).post("/chat/completions", &chat("hello")).await.status, 200);
}

#[tokio::test]
async fn keys_of_tokens_are_fetched_once_and_again_for_a_key_that_is_new() {
    let stack = Stack::start().await;
    let issuer = Issuer::start().await;
    let hook = json!({ "default.jwt": { "jwksUri": issuer.url(), "headerKey": "x-user-token" }, "deny": true });
    let config = target(&stack, json!({ "input_guardrails": [hook] }));
    let claims = json!({ "iat": chrono::Utc::now().timestamp() - 5, "exp": chrono::Utc::now().timestamp() + 300 });
    let with = |token: String| client(&stack, &config).with("x-user-token", token);
    for _ in 0..3 {
        let answer = with(issuer.token(&claims)).post("/chat/completions", &chat("hello")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(issuer.fetches(), 1);
    assert_eq!(with("rubbish".into()).post("/chat/completions", &chat("hello")).await.status, 446);
    assert_eq!(issuer.fetches(), 1, "what can be no token makes nobody fetch");
    issuer.rotate("k2");
    let answer = with(issuer.token(&claims)).post("/chat/completions", &chat("hello")).await;
    assert_eq!((answer.status.as_u16(), issuer.fetches()), (200, 2), "{}", answer.text());
    let strange = issuer.sign(&json!({ "alg": "RS256", "typ": "JWT", "kid": "k3" }), &claims);
    assert_eq!(with(strange).post("/chat/completions", &chat("hello")).await.status, 446);
    assert_eq!(issuer.fetches(), 2, "unknown keys do not make it be fetched again and again");
}

#[tokio::test]
async fn a_vendor_is_asked_with_the_stored_credential_which_is_nowhere_told() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Json(json!({ "action": "BLOCK", "echo": "key-of-the-vendor" }))).await;
    let base = service.url().replace("/judge", "");
    let hook = json!({ "aiguard.scan": { "policyId": "7" }, "deny": true });
    let config = target(&stack, json!({ "input_guardrails": [hook] }));
    let client = client(&stack, &config);
    let unconfigured = client.post("/chat/completions", &chat("hello")).await;
    assert_eq!(unconfigured.status, 200, "a missing plugin stops nobody: {}", unconfigured.text());
    let check = &unconfigured.json()["hook_results"]["before_request_hooks"][0]["checks"][0];
    assert_eq!((&check["error"]["name"], &check["verdict"]), (&json!("NoCredentials"), &json!(true)), "{check}");
    let stored = json!({ "id": "aiguard", "credentials": { "apiKey": "key-of-the-vendor", "baseUrl": base } });
    let made = stack.administrator().post("/plugins", &stored).await;
    assert_eq!(made.status, 200, "{}", made.text());
    stack
        .until("the credential is known", async || client.post("/chat/completions", &chat("hello")).await.status == 446)
        .await;
    let denied = client.post("/chat/completions", &chat("hello")).await;
    assert!(!denied.text().contains("key-of-the-vendor"), "{}", denied.text());
    let asked = service.asked().pop().unwrap();
    assert!(asked.head.to_ascii_lowercase().contains("authorization: bearer key-of-the-vendor"), "{}", asked.head);
    assert_eq!(asked.body, json!({ "policyId": 7, "direction": "IN", "content": "hello" }));
    nowhere_told(&stack, service.asked().len(), "key-of-the-vendor").await;
}

#[tokio::test]
async fn a_hundred_requests_wait_for_a_silent_service_without_hurting_others() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Silence).await;
    let hook = webhook(&service, json!({ "timeout": 1000 }), json!({}));
    let slow = client(&stack, &target(&stack, json!({ "input_guardrails": [hook] })));
    let plain = client(&stack, &target(&stack, json!({})));
    let body = chat("hello");
    let waiting = futures::future::join_all((0..100).map(|_| slow.post("/chat/completions", &body)));
    let others = async {
        stack.until("all wait", async || service.asked().len() >= 100).await;
        plain.post("/chat/completions", &body).await.status
    };
    let (answers, other) = futures::join!(waiting, others);
    assert_eq!(other, 200);
    assert!(answers.iter().all(|answer| answer.status == 200), "an error passes");
}

#[tokio::test]
async fn addresses_of_an_answer_must_be_there() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Status(204, String::new())).await;
    let hook = json!({ "default.validUrls": {}, "deny": true });
    let client = client(&stack, &target(&stack, json!({ "output_guardrails": [hook] })));
    let url = service.url();
    for (says, reply, status) in [
        (Says::Status(204, String::new()), format!("See {url}, and {url}?page=2"), 200),
        (Says::Redirect("http://127.0.0.1:1/".into()), format!("See {url}"), 200),
        (Says::Status(404, String::new()), format!("See {url}"), 446),
        (Says::HangUp, format!("See {url}"), 446),
        (Says::Status(204, String::new()), format!("See {url} and https://10.0.0.1/x"), 446),
        (Says::Status(204, String::new()), "See nothing".into(), 446),
    ] {
        service.says(says.clone());
        stack.mock.script(json!([{ "reply": reply }])).unwrap();
        let answer = client.post("/chat/completions", &chat("hello")).await;
        assert_eq!(answer.status, status, "{says:?} {reply}: {}", answer.text());
    }
    // What a model wrote behind a path would otherwise be told to whoever it names.
    let is_bare =
        |head: &str| head.starts_with("HEAD /judge") && !head.lines().next().unwrap_or_default().contains('?');
    assert!(service.asked().iter().all(|asked| is_bare(&asked.head)), "{:?}", service.asked());
}
