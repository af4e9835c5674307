//! Guardrails through the whole engine lane, with providers on loopback: what is denied is not sent or not passed on, what fails
//! is marked, what is transformed is what arrives, and a plan may go on after each.

use crate::cache::Cache;
use crate::context::Visit;
use crate::engine::guards::{DefaultHooks, GuardrailDirectory, SavedContent, SavedGuardrail};
use crate::engine::lab::{ask, ask_text, open, services};
use crate::engine::{Engine, Guards, Opened, Relayed};
use crate::identity::identify::Principal;
use crate::net::dial::lab::{End, Server};
use crate::net::downstream::Downstream as _;
use crate::net::downstream::lab::LabClient;
use crate::relay::{RelayAsk, RelayLane};
use crate::request::headers::GatewayHeaders;
use crate::request::receive::NotReceived;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use uuid::Uuid;

/// A provider that gives these answers in turn, closes after each, and remembers what it was asked.
struct Provider {
    server: Server,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    async fn start(answers: &[String]) -> Self {
        let answers = Arc::new(Mutex::new(VecDeque::from(answers.to_vec())));
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let bodies = asked.clone();
        let server = Server::start(move |stream, _| {
            let (answers, bodies) = (answers.clone(), bodies.clone());
            async move {
                let mut end = End::new(stream);
                let Some(request) = end.request().await else { return };
                bodies.lock().push(serde_json::from_slice(&request.body).unwrap());
                let answer = answers.lock().pop_front();
                end.say(&answer.expect("one answer for each request")).await;
            }
        });
        Self { server: server.await, asked }
    }

    /// A target with these hooks beside.
    fn target(&self, more: Value) -> Value {
        let mut target = json!({ "provider": "openai", "api_key": "k", "custom_host": format!("http://{}/v1", self.server.address) });
        target.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        target
    }

    fn asked(&self) -> usize {
        self.asked.lock().len()
    }

    fn last(&self) -> Value {
        self.asked.lock().last().cloned().unwrap_or_default()
    }
}

fn plain(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn answer(text: &str) -> String {
    plain(
        &json!({ "id": "1", "object": "chat.completion", "choices": [{ "index": 0, "message": { "role": "assistant",
        "content": text }, "finish_reason": "stop" }] })
        .to_string(),
    )
}

fn stream(pieces: &[&str]) -> String {
    let said =
        pieces.iter().map(|text| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }).to_string());
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string();
    let events: String = said.chain([end, "[DONE]".into()]).map(|data| format!("data: {data}\n\n")).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}")
}

fn none_of(word: &str, more: Value) -> Value {
    let mut hook = json!({ "default.contains": { "words": [word], "operator": "none" } });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hook
}

async fn chat(config: &Value, text: &str, is_stream: bool) -> LabClient {
    let body = json!({ "model": "m", "stream": is_stream, "messages": [{ "role": "user", "content": text }] });
    ask(&services(None, |_| ()), "/v1/chat/completions", &body, config).await
}

fn json(client: &LabClient) -> Value {
    serde_json::from_str(&client.text()).unwrap_or_else(|_| panic!("{}", client.text()))
}

fn text_of(client: &LabClient) -> String {
    let data =
        client.text().lines().filter_map(|line| line.strip_prefix("data: ").map(str::to_owned)).collect::<Vec<_>>();
    let read = data.iter().filter_map(|data| serde_json::from_str::<Value>(data).ok());
    read.filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_request_is_denied_marked_or_passed_by_its_hooks() {
    for (hook, text, status, asked) in [
        (none_of("bad", json!({ "deny": true })), "bad", 446, 0),
        (none_of("bad", json!({})), "bad", 246, 1),
        (none_of("bad", json!({ "deny": true })), "good", 200, 1),
        (none_of("bad", json!({ "deny": true, "async": true })), "bad", 200, 1),
    ] {
        let provider = Provider::start(&[answer("fine")]).await;
        let client = chat(&provider.target(json!({ "input_guardrails": [hook] })), text, false).await;
        assert_eq!((client.status(), provider.asked()), (status, asked), "{hook}");
        let body = json(&client);
        let results = &body["hook_results"]["before_request_hooks"];
        let told = (hook["async"] != true).then_some(1);
        assert_eq!(results.as_array().map(Vec::len), told, "{body}");
        if status == 446 {
            assert_eq!((&body["error"]["type"], &body["error"]["code"]), (&json!("hooks_failed"), &json!(null)));
            assert_eq!((&results[0]["verdict"], &results[0]["deny"]), (&json!(false), &json!(true)));
        }
    }
}

#[tokio::test]
async fn an_answer_is_denied_marked_or_passed_by_its_hooks() {
    for (hook, text, status) in [
        (none_of("bad", json!({ "deny": true })), "bad", 446),
        (none_of("bad", json!({})), "bad", 246),
        (none_of("bad", json!({ "deny": true })), "good", 200),
    ] {
        let provider = Provider::start(&[answer(text)]).await;
        let client = chat(&provider.target(json!({ "output_guardrails": [hook] })), "hi", false).await;
        assert_eq!(client.status(), status, "{hook}");
        let body = json(&client);
        assert_eq!(body["hook_results"]["after_request_hooks"][0]["verdict"], json!(status == 200));
        assert_eq!(client.text().contains("\"content\":\"bad\""), status == 246, "{body}");
        assert_eq!(client.header("content-length"), Some(&*client.text().len().to_string()));
    }
}

#[tokio::test]
async fn every_answer_of_success_is_judged() {
    let hook = json!({ "output_guardrails": [none_of("bad", json!({ "deny": true }))] });
    for (said, status) in [("bad", 446), ("good", 201)] {
        let provider = Provider::start(&[answer(said).replacen("200", "201", 1)]).await;
        assert_eq!(chat(&provider.target(hook.clone()), "hi", false).await.status(), status, "{said}");
    }
}

#[tokio::test]
async fn what_a_hook_transforms_is_what_is_sent_and_values_come_back() {
    let redact = json!({ "default.pii": { "reversible": true } });
    for (is_stream, said) in
        [(false, answer("I wrote to [EMAIL_1].")), (true, stream(&["I wrote to [EMA", "IL_1", "]."]))]
    {
        let provider = Provider::start(&[said]).await;
        let client =
            chat(&provider.target(json!({ "input_guardrails": [redact] })), "write to ann@example.com", is_stream)
                .await;
        assert_eq!(provider.last()["messages"][0]["content"], "write to [EMAIL_1]");
        let got =
            if is_stream { text_of(&client) } else { json(&client)["choices"][0]["message"]["content"].to_string() };
        assert!(got.contains("I wrote to ann@example.com."), "{}", client.text());
    }
}

#[tokio::test]
async fn a_plan_goes_on_after_246_and_446_where_it_is_told_to() {
    let first = Provider::start(&[answer("bad")]).await;
    let second = Provider::start(&[answer("good")]).await;
    for (strategy, hook, status) in [
        (json!({ "mode": "fallback" }), none_of("bad", json!({ "deny": true })), 200),
        (json!({ "mode": "fallback", "on_status_codes": [246] }), none_of("bad", json!({})), 200),
        (json!({ "mode": "fallback" }), none_of("bad", json!({})), 246),
    ] {
        let (first, second) = (Provider::start(&[answer("bad")]).await, Provider::start(&[answer("good")]).await);
        let config = json!({ "strategy": strategy, "output_guardrails": [hook],
            "targets": [first.target(json!({})), second.target(json!({}))] });
        let client = chat(&config, "hi", false).await;
        assert_eq!((client.status(), second.asked()), (status, usize::from(status == 200)), "{config}");
    }
    drop((first, second));
    let provider = Provider::start(&[answer("bad"), answer("good")]).await;
    let retry = json!({ "attempts": 1, "on_status_codes": [446], "jitter": "full" });
    let hooks = json!({ "output_guardrails": [none_of("bad", json!({ "deny": true }))], "retry": retry });
    let client = chat(&provider.target(hooks), "hi", false).await;
    assert_eq!((client.status(), provider.asked()), (200, 2));
}

#[tokio::test]
async fn a_stream_that_is_held_is_denied_before_its_first_content_or_ended_with_one_event() {
    let hold = json!({ "output_guardrails": [none_of("bad", json!({ "deny": true, "stream": "hold" }))] });
    let provider = Provider::start(&[stream(&["ba", "d"])]).await;
    let client = chat(&provider.target(hold.clone()), "hi", true).await;
    assert_eq!(client.status(), 446);
    assert_eq!(json(&client)["error"]["type"], "hooks_failed");
    // Longer than what is read at once, so that the beginning is out before its end is known.
    let long = "x".repeat(256 << 10);
    let provider = Provider::start(&[stream(&["a good beginning", " and on", &long, " and then ba", "d"])]).await;
    let client = chat(&provider.target(hold.clone()), "hi", true).await;
    assert_eq!(client.status(), 200);
    assert!(!text_of(&client).contains("bad") && text_of(&client).starts_with("a good beginning"), "{}", client.text());
    assert_eq!(client.text().matches("hooks_failed").count(), 1, "{}", client.text());
    assert!(client.is_ended);
    let good = stream(&["a good beginning", " and end"]);
    let provider = Provider::start(std::slice::from_ref(&good)).await;
    let client = chat(&provider.target(hold), "hi", true).await;
    assert_eq!((client.status(), client.text()), (200, good.split_once("\r\n\r\n").unwrap().1.to_owned()));
}

#[tokio::test]
async fn what_cannot_be_read_of_a_held_stream_or_follows_its_end_does_not_pass() {
    let hold = json!({ "output_guardrails": [none_of("bad", json!({ "deny": true, "stream": "hold" }))] });
    let bad = json!({ "choices": [{ "index": 0, "delta": { "content": "bad" } }] });
    for (before, after, status) in [
        (format!("data: \t {bad}\n\n"), String::new(), 446),
        ("data: bad\n\n".into(), String::new(), 502),
        ("data: [\"bad\"]\n\n".into(), String::new(), 502),
        (": fine\n\ndata:\n\n".into(), format!("data: {bad}\n\ndata: bad\n\n"), 200),
    ] {
        let said = stream(&["a good beginning"]).replace("data: [DONE]", &format!("{before}data: [DONE]")) + &after;
        let provider = Provider::start(&[said]).await;
        let client = chat(&provider.target(hold.clone()), "hi", true).await;
        assert_eq!(client.status(), status, "{before}{after}");
        assert_eq!(text_of(&client), if status == 200 { "a good beginning" } else { "" }, "{before}{after}");
        assert!(status != 200 || client.text().ends_with("data: [DONE]\n\n"), "{}", client.text());
    }
}

#[tokio::test]
async fn a_stream_that_is_reported_passes_and_tells_at_its_end_where_clients_can_take_it() {
    let report = json!({ "output_guardrails": [none_of("bad", json!({ "deny": true, "stream": "report" }))],
        "input_guardrails": [none_of("x", json!({}))], "strict_open_ai_compliance": false });
    let provider = Provider::start(&[stream(&["ba", "d"])]).await;
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let client = ask(&services(None, |_| ()), "/v1/chat/completions", &body, &provider.target(report)).await;
    assert_eq!((client.status(), text_of(&client)), (200, "bad".to_owned()));
    let text = client.text();
    assert!(text.find("before_request_hooks") < text.find("\"content\""), "{text}");
    assert!(text.contains("hook_results") && text.find("[DONE]") < text.find("after_request_hooks"), "{text}");
    let provider = Provider::start(&[stream(&["fine"])]).await;
    let strict = json!({ "input_guardrails": [none_of("x", json!({}))] });
    let client = ask(&services(None, |_| ()), "/v1/chat/completions", &body, &provider.target(strict)).await;
    assert!(!client.text().contains("hook_results"), "a strict stream has no events of ours: {}", client.text());
}

#[tokio::test]
async fn a_soft_denial_is_an_answer_in_the_clients_format() {
    let hook = none_of("bad", json!({ "deny": true, "soft_deny_200": true, "message": "Not here." }));
    let config = json!({ "provider": "openai", "api_key": "k", "input_guardrails": [hook] });
    let services = services(None, |_| ());
    for (path, body, place) in [
        (
            "/v1/chat/completions",
            json!({ "model": "m", "messages": [{ "role": "user", "content": "bad" }] }),
            "/choices/0/message/content",
        ),
        (
            "/v1/messages",
            json!({ "model": "m", "max_tokens": 5, "messages": [{ "role": "user", "content": "bad" }] }),
            "/content/0/text",
        ),
        ("/v1/responses", json!({ "model": "m", "input": "bad" }), "/output/0/content/0/text"),
    ] {
        let client = ask(&services, path, &body, &config).await;
        let body = json(&client);
        assert_eq!((client.status(), body.pointer(place)), (200, Some(&json!("Not here."))), "{path} {body}");
        assert_eq!(body["hook_results"]["before_request_hooks"][0]["deny"], true);
    }
    let client = chat(&config, "bad", true).await;
    assert_eq!((client.status(), text_of(&client)), (200, "Not here.".to_owned()));
}

#[tokio::test]
async fn kinds_of_requests_are_judged_on_every_route() {
    let kinds = json!({ "default.allowedRequestTypes": { "blockedTypes": ["embed", "moderate"] }, "deny": true });
    let config = json!({ "provider": "openai", "api_key": "k", "input_guardrails": [kinds] });
    let services = services(None, |_| ());
    for (path, body) in
        [("/v1/embeddings", json!({ "model": "m", "input": "a" })), ("/v1/moderations", json!({ "input": "a" }))]
    {
        let client = ask(&services, path, &body, &config).await;
        assert_eq!(client.status(), 446, "{path}");
    }
}

/// One saved guardrail, which may run by default.
struct OneSaved {
    is_default: bool,
    check: Value,
}

impl GuardrailDirectory for OneSaved {
    fn find(&self, _: &Principal, name: &str, _: Option<&str>) -> Option<SavedGuardrail> {
        (name == "pg-one").then(|| saved(&self.check))
    }

    fn defaults_at(&self, _: &Principal) -> Option<u64> {
        self.is_default.then_some(0)
    }

    fn defaults(&self, _: &Principal) -> Option<DefaultHooks> {
        self.is_default.then(|| DefaultHooks { input: vec![saved(&self.check)], output: Vec::new() })
    }
}

fn saved(check: &Value) -> SavedGuardrail {
    let row = json!({
        "id": Uuid::from_u128(7), "organisation_id": Uuid::from_u128(9), "workspace_id": null, "slug": "pg-one",
        "status": "active", "version_id": Uuid::from_u128(8), "content": { "checks": [check], "actions": { "deny": true } },
    });
    let row = Arc::new(serde_json::from_value(row).unwrap());
    SavedGuardrail { slug: "pg-one".into(), version: Uuid::from_u128(8), content: SavedContent::Current(row) }
}

#[tokio::test]
async fn saved_guardrails_and_defaults_run_and_one_that_was_deleted_is_passed_over() {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "bad" }] });
    for (is_default, hooks, status) in [
        (false, json!({ "input_guardrails": ["pg-one"] }), 446),
        (false, json!({ "input_guardrails": [{ "id": "pg-one", "deny": false }] }), 446),
        (false, json!({ "before_request_hooks": [{ "id": "pg-one" }] }), 446),
        (false, json!({ "input_guardrails": ["pg-gone"] }), 200),
        (true, json!({}), 446),
        (false, json!({}), 200),
    ] {
        let provider = Provider::start(&[answer("fine")]).await;
        let mut services = services(None, |_| ());
        let check = json!({ "id": "default.contains", "parameters": { "words": ["bad"], "operator": "none" } });
        let directory = Arc::new(OneSaved { is_default, check });
        Arc::get_mut(&mut services.router).unwrap().guards =
            Guards::new(directory, services.metrics.guardrails.clone(), true);
        let client = ask(&services, "/v1/chat/completions", &body, &provider.target(hooks.clone())).await;
        assert_eq!(client.status(), status, "{hooks}");
        Arc::get_mut(&mut services.router).unwrap().guards.is_enabled = false;
        let provider = Provider::start(&[answer("fine")]).await;
        let client = ask(&services, "/v1/chat/completions", &body, &provider.target(hooks)).await;
        assert_eq!(client.status(), 200, "switched off by the operator");
    }
}

#[tokio::test]
async fn a_body_that_says_something_twice_is_not_judged_and_not_sent() {
    let provider = Provider::start(&[answer("fine")]).await;
    let config = provider.target(json!({ "input_guardrails": [none_of("bad", json!({ "deny": true }))] })).to_string();
    let body = r#"{"model":"m","messages":[{"role":"user","content":"bad","content":"good"}]}"#;
    let client = ask_text(&services(None, |_| ()), "/v1/chat/completions", body, &config).await;
    assert_eq!((client.status(), provider.asked()), (400, 0));
}

#[tokio::test]
async fn kinds_of_requests_are_judged_where_a_provider_is_asked_as_it_is() {
    let check = json!({ "id": "default.allowedRequestTypes", "parameters": { "blockedTypes": ["moderate"] } });
    let mut services = services(None, |_| ());
    let directory = Arc::new(OneSaved { is_default: true, check });
    Arc::get_mut(&mut services.router).unwrap().guards =
        Guards::new(directory, services.metrics.guardrails.clone(), true);
    let headers = [("x-gateway-api-key", "pk_lab"), ("x-gateway-provider", "anthropic"), ("authorization", "Bearer k")];
    let mut client = LabClient::post("/v1/moderations", r#"{"input":"a"}"#, &headers);
    let mut visit = Visit::begin();
    let engine = Engine::new(&services, Arc::new(Cache::new(1 << 20)));
    let Opened::Relayed(relayed) = open(&engine, client.head(), &mut visit).await else {
        panic!("it is no request that is passed on as it is");
    };
    let Relayed { path, target, known } = *relayed;
    let ask = RelayAsk::new(path, client.head(), known).unwrap();
    let judge = services.router.relay_judge(&ask, client.head()).unwrap();
    let head = client.head().clone();
    let headers = GatewayHeaders::from_headers(&head.headers, &services.aliases).unwrap();
    let departure = services.router.departure(ask, target, judge, &head, &headers);
    match RelayLane::new(&services).depart(&mut client, &mut visit, departure).await {
        Err(NotReceived::Refused(refusal)) => assert_eq!(refusal.status, 446, "{refusal:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_hooks_keep_of_a_request_counts_while_it_is_under_way() {
    let services = services(None, |_| ());
    let memory = services.body_limits.memory.clone();
    let seen = Arc::new(AtomicUsize::new(0));
    let (held, used) = (memory.clone(), seen.clone());
    let server = Server::start(move |stream, _| {
        let (held, used) = (held.clone(), used.clone());
        async move {
            let mut end = End::new(stream);
            if end.request().await.is_some() {
                used.store(held.used(), SeqCst);
                end.say(&answer("fine")).await;
            }
        }
    })
    .await;
    let text = none_of("bad", json!({}));
    let whole = json!({ "default.notNull": {} });
    // Of a request whose text alone is looked at nothing more is kept.
    for (hooks, values, status, is_kept) in [
        (json!([text, whole]), 1000, 200, true),
        (json!([text, whole]), 8000, 503, false),
        (json!([text]), 8000, 200, false),
    ] {
        let config = json!({ "provider": "openai", "api_key": "k", "input_guardrails": hooks,
            "custom_host": format!("http://{}/v1", server.address) });
        seen.store(0, SeqCst);
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "x": vec![0; values] });
        let client = ask(&services, "/v1/chat/completions", &body, &config).await;
        assert_eq!(client.status(), status, "{hooks} {values}");
        assert_eq!(seen.load(SeqCst) > values * 100, is_kept, "{} for {values}", seen.load(SeqCst));
        assert_eq!(memory.used(), 0, "all of it is given back");
    }
}
