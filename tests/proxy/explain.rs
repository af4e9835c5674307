//! `POST /explain`: what would become of a request, told without asking any provider, and what became of one, told by
//! admin on the same path.

use crate::families::integrate;
use crate::limits::{patient, policy, requests};
use crate::routing::{client as with_config, target};
use harness::client::whole;
use harness::{Answer, Stack, chat};
use http::Method;
use serde_json::{Value, json};

async fn explain(stack: &Stack, question: Value) -> Answer {
    stack.anonymous().with_key(&stack.home.workspace_key).post("/explain", &question).await
}

fn question(config: &Value) -> Value {
    json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-config": config, "x-gateway-metadata": { "tier": "pro" } },
        "body": { "model": "gpt-4o", "messages": [], "user": "ann" } })
}

#[tokio::test]
async fn a_hypothetical_request_is_told_its_config_its_targets_and_their_settings() {
    let stack = Stack::start().await;
    let host = stack.mock.url();
    let config = json!({
        "id": "checkout", "retry": { "attempts": 2 }, "request_timeout": 4000, "override_params": { "seed": 1 },
        "strategy": { "mode": "fallback", "on_status_codes": [429] },
        "targets": [
            { "strategy": { "mode": "conditional", "default": "rest", "conditions": [{ "query": { "metadata.tier": "pro" }, "then": "pro" }] },
              "targets": [{ "name": "rest", "provider": "@nobody" },
                          { "name": "pro", "provider": "openai", "api_key": "sk-never-shown", "custom_host": host, "hedge": { "after_ms": 300 } }] },
            { "provider": "@nobody" },
        ],
    });
    let answer = explain(&stack, question(&config)).await;
    let told = answer.json();
    assert_eq!((answer.status.as_u16(), told["object"].as_str()), (200, Some("explanation")), "{told}");
    assert_eq!((&told["config"]["source"], &told["lane"]), (&json!("inline"), &json!("engine")));
    assert_eq!(told["metadata"], json!({ "tier": "pro", "_user": "ann" }));
    let options: Vec<(&str, bool)> = told["plan"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stop| (stop["option"].as_str().unwrap(), stop["is_reached"] == true))
        .collect();
    let expected =
        [("config.targets[0].targets[1]", true), ("config.targets[1]", true), ("config.targets[0].targets[0]", false)];
    assert_eq!(options, expected);
    let first = &told["plan"][0];
    assert_eq!(first["target"]["url"], format!("{host}/chat/completions"));
    assert_eq!((&first["target"]["model"], &first["target"]["refusal"]), (&json!("gpt-4o"), &json!(null)));
    let settings = &first["settings"];
    assert_eq!((&settings["retry"]["attempts"], &settings["request_timeout"]), (&json!(2), &json!(4000)));
    assert_eq!(settings["config_id"], "checkout", "its only effect");
    assert_eq!((&settings["hedge"], &settings["override_params"]), (&json!({ "after_ms": 300 }), &json!(["seed"])));
    assert_eq!(told["plan"][1]["target"]["refusal"]["code"], "invalid_provider");
    assert!(told["plan"][1]["why"][0].as_str().unwrap().contains("[429]"), "{told}");
    assert!(!answer.text().contains("sk-never-shown"), "a credential is nobody's business");
    assert!(stack.mock.requests().is_empty(), "nobody was asked");
}

#[tokio::test]
async fn a_saved_config_is_told_with_its_version_and_none_as_none() {
    let stack = Stack::start().await;
    let made = stack
        .administrator()
        .post(
            "/configs",
            &json!({
                "name": "Explained", "workspace_id": stack.home.workspace_id,
                "config": { "provider": "openai", "api_key": "k", "retry": { "attempts": 1 } },
            }),
        )
        .await;
    assert_eq!(made.status, 200, "{}", made.text());
    let slug = made.json()["slug"].clone();
    let asked = json!({ "path": "/v1/embeddings", "headers": { "x-gateway-config": slug }, "body": { "model": "m", "input": "i" } });
    stack.until("the config is known", async || explain(&stack, asked.clone()).await.status == 200).await;
    let told = explain(&stack, asked).await.json();
    assert_eq!((&told["config"]["source"], &told["config"]["slug"]), (&json!("request"), &slug));
    assert!(told["config"]["version_id"].is_string() && told["config"]["id"].is_string(), "{told}");
    let none =
        explain(&stack, json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-provider": "openai" } }))
            .await
            .json();
    assert_eq!((&none["config"]["source"], &none["plan"][0]["option"]), (&json!("none"), &json!("config")));
    let relayed =
        explain(&stack, json!({ "method": "GET", "path": "/v1/files", "headers": { "x-gateway-provider": "openai" } }))
            .await
            .json();
    assert_eq!((&relayed["lane"], &relayed["plan"][0]["target"]["provider"]), (&json!("relay"), &json!("openai")));
}

#[tokio::test]
async fn the_limits_that_would_speak_of_a_request_are_told_and_nothing_is_taken_of_them() {
    let stack = patient().await;
    integrate(&stack, "mine", "openai").await;
    let admin = stack.administrator();
    let on_provider = json!({ "rate_limits": requests("rph", 7), "usage_limits": { "credit_limit": 2.5 } });
    let path = format!("/providers/mine?workspace_id={}", stack.home.workspace_id);
    let answer = admin.put(&path, &on_provider).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let dry = json!({
        "name": "Trial", "type": "tokens", "unit": "rpd", "value": 100000, "dry_run": true, "group_by": [{ "key": "workspace_id" }],
        "conditions": [{ "key": "workspace_id", "value": stack.home.workspace_id.to_string() }],
    });
    policy(&stack, "/policies/rate-limits", dry).await;
    let scopes = ["completions.write", "logs.view", "configs.read"];
    let key = json!({ "name": "k", "workspace_id": stack.home.workspace_id, "scopes": scopes, "rate_limits": requests("rpd", 1) });
    let made = admin.post("/api-keys/workspace/service", &key).await;
    let key = made.json()["key"].as_str().unwrap().to_owned();
    stack.until_known(&key).await;
    let client = stack.anonymous().with_key(&key);
    let asked = json!({
        "path": "/v1/chat/completions", "headers": { "x-gateway-provider": "@mine" },
        "body": { "model": "gpt-4o-mini", "messages": [], "max_tokens": 10 },
    });
    let limits =
        async || client.post("/explain", &asked).await.json()["limits"].as_array().cloned().unwrap_or_default();
    stack.until("all are known", async || limits().await.len() == 4).await;
    let told = limits().await;
    let row = |limit: &Value| {
        let text = |name: &str| limit[name].as_str().unwrap_or("-").to_owned();
        [text("scope"), text("option"), text("kind"), text("type"), text("window")].join(" ")
    };
    let rows: Vec<String> = told.iter().map(row).collect();
    let expected = [
        "api_key - rate requests day",
        "policy - rate tokens day",
        "virtual_key config rate requests hour",
        "virtual_key config budget cost -",
    ];
    assert_eq!(rows, expected);
    assert_eq!((&told[0]["cap"], &told[0]["wanted"], &told[3]["cap"]), (&json!(1), &json!(1), &json!(2.5)));
    assert!(told[1]["whose"].as_str().unwrap().contains("`Trial`") && told[1]["dry_run"] == true, "{}", told[1]);
    assert!(told[1]["wanted"].as_u64() >= Some(10) && told[0]["resets_at"].is_string(), "{told:?}");
    assert!(told[3]["wanted"].as_f64().is_some_and(|dollars| dollars > 0.0 && dollars < 0.01), "{}", told[3]);
    let used = client.with("x-gateway-provider", "@mine");
    assert_eq!(used.post("/chat/completions", &chat("Hello")).await.status, 200, "asking used nothing");
    assert_eq!(used.post("/chat/completions", &chat("Hello")).await.status, 429);
    let told = limits().await;
    assert_eq!((&told[0]["verdict"], &told[0]["remaining"]), (&json!("refuses"), &json!(0)), "{}", told[0]);
    assert!(told[0]["message"].as_str().unwrap().contains("the rate limit of this API key is reached"), "{}", told[0]);
    assert_eq!((&told[2]["verdict"], &told[2]["remaining"]), (&json!("passes"), &json!(6)), "{}", told[2]);
}

#[tokio::test]
async fn a_bad_question_is_400_and_a_key_without_the_scopes_403() {
    let stack = Stack::start().await;
    for (asked, status) in [
        (json!({}), 400),
        (json!({ "path": "/v1/configs" }), 400),
        (json!({ "path": "/v1/chat/completions", "nonsense": 1 }), 400),
        (json!({ "path": "/v1/chat/completions", "headers": { "bad name": "x" } }), 400),
        (json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-config": "{" } }), 400),
        (json!({ "path": "/v1/chat/completions", "body": "not json" }), 400),
        (json!({ "request_id": null }), 400),
        (json!({ "request_id": "018f" }), 404),
        (json!({ "request_id": "x", "path": "/v1/chat/completions" }), 400),
        (json!({ "request_id": "x".repeat(10_000) }), 400),
    ] {
        let answer = explain(&stack, asked.clone()).await;
        assert_eq!(answer.status, status, "{asked} {}", answer.text());
        assert_eq!(answer.json()["success"], false, "{asked}");
    }
    for scopes in [&["completions.write"][..], &["completions.write", "logs.view"], &["configs.read"]] {
        let key = stack.key(scopes).await;
        let answer =
            stack.anonymous().with_key(&key).post("/explain", &json!({ "path": "/v1/chat/completions" })).await;
        assert_eq!(answer.status, 403, "{scopes:?}");
    }
    for asked in [json!({}), json!({ "request_id": "018f" }), json!({ "path": "x".repeat(10_000) })] {
        assert_eq!(stack.anonymous().post("/explain", &asked).await.status, 401, "{asked:.80}");
    }
}

#[tokio::test]
async fn whoever_may_read_configs_and_logs_may_ask_and_an_admin_key_names_the_workspace() {
    let stack = Stack::start().await;
    let workspace = stack.home.workspace_id;
    let ask = async |key: &str, workspace: Value| {
        let mut asked = json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-provider": "openai" } });
        if !workspace.is_null() {
            asked["workspace_id"] = workspace;
        }
        stack.anonymous().with_key(key).post("/explain", &asked).await
    };
    let reader = stack.key(&["logs.view", "configs.read"]).await;
    for (key, named) in [(&reader, json!(null)), (&reader, json!(workspace)), (&stack.home.admin_key, json!(workspace))]
    {
        let answer = ask(key, named.clone()).await;
        assert_eq!(answer.status, 200, "{named}: {}", answer.text());
        let told = answer.json();
        assert_eq!((&told["plan"][0]["target"]["provider"], &told["guardrails"]), (&json!("openai"), &json!([])));
    }
    let other = stack.organisation().await;
    for (key, named, status) in [
        (&stack.home.admin_key, json!(null), 400),
        (&stack.home.admin_key, json!(other.workspace_id), 404),
        (&stack.home.admin_key, json!("nowhere"), 404),
        (&reader, json!(other.workspace_id), 404),
    ] {
        let answer = ask(key, named.clone()).await;
        assert_eq!(answer.status, status, "{named}: {}", answer.text());
    }
    let narrow = json!({ "name": "narrow", "scopes": ["logs.view"] });
    let narrow = stack.administrator().post("/api-keys/organisation/service", &narrow).await.json();
    let narrow = narrow["key"].as_str().unwrap().to_owned();
    stack.until("the key is known", async || ask(&narrow, json!(workspace)).await.status == 403).await;
}

#[tokio::test]
async fn guardrails_of_a_config_are_told_with_what_they_check() {
    let stack = Stack::start().await;
    let config = json!({
        "strategy": { "mode": "fallback" },
        "targets": [{ "provider": "openai", "api_key": "k", "input_guardrails": ["pg-one", { "notNull": {}, "deny": true }] }, { "provider": "openai", "api_key": "k" }],
    });
    let told = explain(&stack, question(&config)).await.json();
    let check = json!({ "id": "default.notNull", "verdict": false, "transformed": false, "error": null,
        "data": { "isNull": true, "not": false, "explanation": "The answer is empty.", "textExcerpt": "" } });
    let says = json!({ "verdict": false, "deny": true, "transformed": false, "checks": [check] });
    let short = json!({ "id": "input_guardrail_1", "checks": ["default.notNull"], "deny": true, "async": false,
                        "stream": "hold", "says": says });
    let expected = json!([{ "option": "config.targets[0]", "is_reached": true, "is_run": true, "input": [short],
                            "output": [] }]);
    assert_eq!(told["guardrails"], expected, "{told}");
    assert_eq!(stack.mock.requests().len(), 0);
}

#[tokio::test]
async fn hooks_are_tried_out_on_the_body_that_is_asked_about_and_ask_nobody() {
    let stack = Stack::start().await;
    let word = |deny: bool| json!({ "contains": { "words": ["bad"], "operator": "none" }, "deny": deny });
    let elsewhere = json!({ "webhook": { "webhookURL": "https://guard.invalid/judge" } });
    let redact = json!({ "regexReplace": { "rule": "bad", "redactText": "-" } });
    let config = json!({ "provider": "openai", "api_key": "k", "input_guardrails": [word(true), word(false), elsewhere, redact],
                         "output_guardrails": [word(true)] });
    let ask = async |body: Value| {
        let asked = json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-config": config }, "body": body });
        let told = explain(&stack, asked).await.json()["guardrails"][0].take();
        let says =
            |side: &str| told[side].as_array().unwrap().iter().map(|hook| hook["says"].clone()).collect::<Vec<_>>();
        (says("input"), says("output"))
    };
    let brief = |says: &[Value]| -> Vec<Value> {
        says.iter().map(|one| json!([one["verdict"], one["deny"], one["transformed"]])).collect()
    };
    let chat = |text: &str| json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
    let (input, output) = ask(chat("a bad word")).await;
    let nothing = json!([null, null, null]);
    let (denied, failed, changed) =
        (json!([false, true, false]), json!([false, false, false]), json!([true, false, true]));
    assert_eq!(brief(&input), [denied, failed, nothing.clone(), changed], "{input:?}");
    assert_eq!(output, [Value::Null]);
    let (input, _) = ask(chat("a good word")).await;
    let passed = json!([true, false, false]);
    assert_eq!(brief(&input), [passed.clone(), passed.clone(), nothing, passed], "{input:?}");
    let (input, _) = ask(Value::Null).await;
    assert!(input.iter().all(Value::is_null), "{input:?}");
}

#[tokio::test]
async fn a_config_of_another_tenant_is_not_explained() {
    let stack = Stack::start().await;
    let other = stack.organisation().await;
    let config = json!({ "name": "Theirs", "workspace_id": other.workspace_id, "config": { "provider": "openai", "api_key": "k" } });
    let slug = other.create("/configs", config).await["slug"].clone();
    let asked = json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-config": slug } });
    let theirs = stack.anonymous().with_key(&other.workspace_key);
    stack.until("their config is known", async || theirs.post("/explain", &asked).await.status == 200).await;
    let answer = explain(&stack, asked).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
}

#[tokio::test]
async fn a_request_of_the_past_is_told_with_every_target_it_tried() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "status": 429 }, { "status": 429 }, {}])).unwrap();
    let retry = json!({ "attempts": 1, "jitter": "full", "budget_percent": 100 });
    let config = json!({ "strategy": { "mode": "fallback" }, "retry": retry, "targets": [target(&stack, json!({})), target(&stack, json!({}))] });
    let answer = with_config(&stack, &config).post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.header("x-gateway-request-id");
    let asked = json!({ "request_id": id });
    stack.until("its logs are there", async || explain(&stack, asked.clone()).await.status == 200).await;
    let told = explain(&stack, asked.clone()).await.json();
    assert_eq!((&told["object"], &told["config"]["source"]), (&json!("explanation"), &json!("inline")), "{told}");
    let statuses: Vec<&Value> =
        told["plan"].as_array().unwrap().iter().map(|stop| &stop["outcome"]["status"]).collect();
    assert_eq!(statuses, [429, 200]);
    let retries: Vec<&Value> =
        told["plan"].as_array().unwrap().iter().map(|stop| &stop["outcome"]["retries"]).collect();
    assert_eq!(retries, [-1, 0], "the first was tried twice");
    assert_eq!(
        (&told["outcome"]["request_id"], &told["outcome"]["answered_by"]),
        (&json!(id), &json!("config.targets[1]"))
    );
    // An admin key may ask too, though it may not send requests; and a body need not say how long it is.
    let admin = stack.anonymous().with_key(&stack.home.admin_key);
    assert_eq!(admin.post("/explain", &asked).await.status, 200);
    let pieces =
        asked.to_string().into_bytes().chunks(7).map(|piece| Ok(piece.to_vec())).collect::<Vec<std::io::Result<_>>>();
    let body = reqwest::Body::wrap_stream(futures::stream::iter(pieces));
    let request = admin.request(Method::POST, "/explain").header("content-type", "application/json").body(body);
    assert_eq!(whole(request).await.status, 200);
    let scopes = ["logs.view", "configs.read"];
    let reader = stack.anonymous().with_key(&stack.key(&scopes).await);
    assert_eq!(reader.post("/explain", &asked).await.status, 200);
    let other = stack.organisation().await;
    let stranger = stack.anonymous().with_key(&other.workspace_key);
    let answer = stranger.post("/explain", &asked).await;
    assert_eq!(answer.status, 404, "{}", answer.text());
    assert!(answer.text().contains("logs arrive within seconds"), "{}", answer.text());
}

#[tokio::test]
async fn while_admin_is_away_only_the_past_is_not_told() {
    let stack = Stack::builder().without_admin().start().await;
    assert_eq!(explain(&stack, json!({ "request_id": "018f" })).await.status, 503);
    let asked = json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-provider": "openai" } });
    assert_eq!(explain(&stack, asked).await.status, 200);
}

#[tokio::test]
async fn that_there_is_no_prompt_is_told_only_to_those_who_may_send_requests() {
    let stack = Stack::start().await;
    let run = json!({ "variables": { "name": "Ada" } });
    let answer = stack.client().post("/prompts/pp-greeting/completions", &run).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (404, &json!("not_found")));
    assert_eq!(stack.anonymous().post("/prompts/pp-greeting/completions", &run).await.status, 401);
    let key = stack.key(&["logs.view"]).await;
    let answer = stack.anonymous().with_key(&key).post("/prompts/pp-greeting/completions", &run).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(stack.mock.requests().is_empty(), "nobody was asked");
}
