//! Every endpoint family of the interface, named in every way a provider can be named: the provider is asked at the
//! right path with the right credential and the caller's own bytes, and its answer comes back untouched.

use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use serde_json::json;

pub const KEY: &str = "sk-stored-and-sealed";

/// As odd as JSON may be, with the model in the middle.
const JSON: &str =
    "{ \"zebra\":1.0,\n\"model\" : \"MODEL\", \"input\":\"\\u00e9 \\/\",\"messages\":[], \"n\":1e2,\"n\":2 } ";
const FORM: &str = "--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"model\"\r\n\r\n\0MODEL\r\n--x\r\n\
    --xYz\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nMODEL\r\n--xYz--\r\n";
pub const FORM_TYPE: &str = "multipart/form-data; boundary=xYz";

#[derive(Clone, Copy, PartialEq)]
pub enum Body {
    None,
    Json,
    /// JSON without a model that decides anything.
    Plain,
    Form,
    Binary,
}

/// Method, path, body, and a provider that offers it as it is.
pub const ROWS: &[(&str, &str, Body, &str)] = &[
    ("POST", "/chat/completions", Body::Json, "openai"),
    ("POST", "/completions", Body::Json, "openai"),
    ("POST", "/embeddings", Body::Json, "openai"),
    ("POST", "/messages", Body::Json, "anthropic"),
    ("POST", "/messages/count_tokens", Body::Json, "anthropic"),
    ("POST", "/responses", Body::Json, "openai"),
    ("GET", "/responses/resp_1", Body::None, "openai"),
    ("DELETE", "/responses/resp_1", Body::None, "openai"),
    ("GET", "/responses/resp_1/input_items?limit=2", Body::None, "openai"),
    ("POST", "/audio/speech", Body::Json, "openai"),
    ("POST", "/audio/transcriptions", Body::Form, "openai"),
    ("POST", "/audio/translations", Body::Form, "openai"),
    ("POST", "/images/generations", Body::Json, "openai"),
    ("POST", "/images/edits", Body::Form, "openai"),
    ("POST", "/images/edits", Body::Json, "openai"),
    ("POST", "/images/variations", Body::Form, "openai"),
    ("POST", "/moderations", Body::Json, "openai"),
    ("POST", "/rerank", Body::Json, "jina"),
    ("POST", "/rerank", Body::Json, "openai"),
    ("POST", "/ocr", Body::Json, "mistral-ai"),
    ("POST", "/files", Body::Form, "openai"),
    ("GET", "/files?purpose=batch", Body::None, "openai"),
    ("GET", "/files/file-1", Body::None, "openai"),
    ("DELETE", "/files/file-1", Body::None, "openai"),
    ("GET", "/files/file-1/content", Body::None, "openai"),
    ("POST", "/batches", Body::Plain, "openai"),
    ("GET", "/batches?limit=1", Body::None, "openai"),
    ("GET", "/batches/b-1", Body::None, "openai"),
    ("POST", "/batches/b-1/cancel", Body::Plain, "openai"),
    ("POST", "/fine_tuning/jobs", Body::Plain, "openai"),
    ("GET", "/fine_tuning/jobs", Body::None, "openai"),
    ("GET", "/fine_tuning/jobs/j-1", Body::None, "openai"),
    ("POST", "/fine_tuning/jobs/j-1/cancel", Body::Plain, "openai"),
    ("GET", "/fine_tuning/jobs/j-1/events", Body::None, "openai"),
    ("GET", "/fine_tuning/jobs/j-1/checkpoints", Body::None, "openai"),
    ("POST", "/assistants", Body::Plain, "openai"),
    ("DELETE", "/assistants/a-1", Body::None, "openai"),
    ("POST", "/threads", Body::Plain, "openai"),
    ("POST", "/threads/runs", Body::Plain, "openai"),
    ("POST", "/threads/t-1/runs/r-1/submit_tool_outputs", Body::Plain, "openai"),
    ("GET", "/threads/t-1/runs/r-1/steps", Body::None, "openai"),
    ("POST", "/vector_stores", Body::Plain, "openai"),
    ("POST", "/vector_stores/v-1/search", Body::Plain, "openai"),
    ("DELETE", "/models/ft-1", Body::None, "openai"),
    ("PUT", "/anything/else", Body::Binary, "openai"),
    ("PATCH", "/anything/else", Body::Plain, "openai"),
];

/// An integration of the workspace with its default provider, both of this name.
pub async fn integrate(stack: &Stack, slug: &str, provider: &str) {
    let body = json!({
        "name": slug, "slug": slug, "ai_provider_id": provider, "key": KEY,
        "workspace_id": stack.home.workspace_id.to_string(), "default_provider_slug": slug,
        "configurations": { "custom_host": stack.mock.url() },
    });
    let answer = stack.administrator().post("/integrations", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let client = application(stack).with("x-gateway-provider", format!("@{slug}"));
    stack.until(slug, async || client.get("/anything").await.status == 200).await;
}

/// An application that has nothing but the gateway's key.
pub fn application(stack: &Stack) -> Client {
    stack.anonymous().with_key(&stack.home.workspace_key)
}

pub fn body(kind: Body, model: &str) -> Vec<u8> {
    match kind {
        Body::None => Vec::new(),
        Body::Json | Body::Plain => JSON.replace("MODEL", model).into_bytes(),
        Body::Form => {
            // The model alone, not the file that looks like one.
            let (file, field) = FORM.rsplit_once("MODEL").unwrap();
            format!("{file}{model}{field}").into_bytes()
        }
        Body::Binary => (0..=255).cycle().take(70_000).collect(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_family_reaches_its_provider_however_that_is_named() {
    let stack = Stack::start().await;
    for provider in ["openai", "anthropic", "mistral-ai", "jina"] {
        integrate(&stack, &format!("my-{provider}"), provider).await;
    }
    let said = "{ \"b\" : 1.0,\n\"a\":\"\\u00e9\", \"a\":2 }\n";
    for (method, path, kind, provider) in ROWS {
        let slug = format!("@my-{provider}");
        let plain = application(&stack)
            .with("x-gateway-provider", *provider)
            .with("authorization", "Bearer sk-mock")
            .with("x-gateway-custom-host", stack.mock.url());
        let config = json!({ "strategy": { "mode": "single" }, "targets": [{ "provider": slug }] }).to_string();
        let mut ways = vec![
            ("plain provider", plain, "m", "sk-mock", "config"),
            ("@slug", application(&stack).with("x-gateway-provider", &slug), "m", KEY, "config"),
            ("config", application(&stack).with("x-gateway-config", config), "m", KEY, "config.targets[0]"),
        ];
        let in_model = format!("{slug}/m");
        if matches!(kind, Body::Json) || *kind == Body::Form && *path != "/files" {
            ways.push(("@slug/model", application(&stack), &in_model, KEY, "config"));
        }
        for (way, client, model, key, option) in ways {
            let what = format!("{method} {path} by {way} of {provider}");
            stack.mock.reset();
            stack.mock.script(json!([{ "body": said, "headers": { "x-own": "kept" } }])).unwrap();
            let mut request = client.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
            let content_type = match kind {
                Body::None => "",
                Body::Json | Body::Plain => "application/json",
                Body::Form => FORM_TYPE,
                Body::Binary => "video/mp4",
            };
            if *kind != Body::None {
                request = request.header("content-type", content_type).body(body(*kind, model));
            }
            let answer = whole(request).await;
            assert_eq!((answer.status.as_u16(), answer.text()), (200, said.to_owned()), "{what}");
            let arrived = stack.mock.requests();
            assert_eq!(arrived.len(), 1, "{what}");
            let arrived = &arrived[0];
            let (path, query) = path.split_once('?').map_or((*path, None), |(path, query)| (path, Some(query)));
            let place = if *provider == "jina" { path.to_owned() } else { format!("/v1{path}") };
            assert!(arrived.path.ends_with(&place), "{what}: {}", arrived.path);
            assert_eq!((&*arrived.method, arrived.query.as_deref()), (*method, query), "{what}");
            assert_eq!(arrived.body, body(*kind, "m"), "{what}");
            assert_eq!(arrived.header("content-type"), content_type, "{what}");
            let (header, credential) = match *provider {
                "anthropic" => ("x-api-key", key.to_owned()),
                _ => ("authorization", format!("Bearer {key}")),
            };
            assert_eq!(arrived.header(header), credential, "{what}");
            assert!(arrived.headers.keys().all(|name| !name.as_str().starts_with("x-gateway-")), "{what}");
            assert_eq!(answer.header("x-gateway-provider"), *provider, "{what}");
            assert_eq!(answer.header("x-gateway-last-used-option-index"), option, "{what}");
            assert_eq!(answer.header("x-own"), "kept", "{what}");
            for name in ["x-gateway-request-id", "x-gateway-trace-id", "x-request-id"] {
                assert_ne!(answer.header(name), "", "{what}: {name}");
            }
        }
    }
}

/// Beside a body that a script dictates, each family's own kind of answer.
#[tokio::test]
async fn binary_and_streamed_answers_of_other_families_come_back_as_they_are() {
    let stack = Stack::start().await;
    let ask = json!({ "model": "tts-1", "input": "Hello", "voice": "alloy" });
    let speech = stack.client().post("/audio/speech", &ask).await;
    assert_eq!((speech.header("content-type"), speech.body.len()), ("audio/mpeg", 40_000));
    let mut expected = vec![0; 40_000];
    bench::mock::pattern::fill(0, &mut expected);
    assert!(speech.body == expected);
    let ask = json!({ "model": "gpt-4o", "input": "Hello", "stream": true });
    let events = stack.client().post("/responses", &ask).await.text();
    assert!(events.starts_with("event: response.created\ndata: ") && !events.contains("[DONE]"), "{events}");
    assert!(events.trim_end().rsplit("\n\n").next().unwrap().starts_with("event: response.completed\n"), "{events}");
    let moderated = stack.client().post("/moderations", &json!({ "input": ["fine", "violence"] })).await.json();
    assert_eq!(moderated["results"].as_array().map(Vec::len), Some(2), "{moderated}");
}

#[tokio::test]
async fn a_moderation_without_a_model_asks_openai_for_the_latest_and_others_for_theirs() {
    let stack = Stack::start().await;
    integrate(&stack, "open", "openai").await;
    integrate(&stack, "french", "mistral-ai").await;
    let by_config = |fields: serde_json::Value| {
        let mut config = json!({ "provider": "@open" });
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        application(&stack).with("x-gateway-config", config.to_string())
    };
    let by_provider = |name: &str| application(&stack).with("x-gateway-provider", name);
    let bare = r#"{ "input" : 1.0 }"#;
    let latest = r#"{ "input" : 1.0,"model":"text-moderation-latest" }"#;
    let named = r#"{"model":"text-moderation-stable","input":"a"}"#;
    for (client, sent, arrives) in [
        (by_provider("@open"), bare, latest),
        (by_provider("@open"), named, named),
        (by_provider("@french"), bare, bare),
        (stack.client(), bare, latest),
        (by_config(json!({})), bare, latest),
        (by_config(json!({ "default_params": { "model": "m" } })), bare, r#"{ "input" : 1.0,"model":"m" }"#),
        (by_config(json!({ "override_params": { "model": "m" } })), bare, r#"{ "input" : 1.0,"model":"m" }"#),
        (by_config(json!({ "drop_params": ["model"] })), bare, bare),
    ] {
        stack.mock.reset();
        let request = client.request(Method::POST, "/moderations").header("content-type", "application/json");
        let answer = whole(request.body(sent)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let arrived = stack.mock.requests().pop().expect("it was asked");
        assert_eq!(String::from_utf8(arrived.body.to_vec()).unwrap(), arrives, "{sent}");
    }
    // A log has the model that was asked for where the answer names another.
    stack.mock.script(json!([{ "body": r#"{"model":"other","results":[]}"# }])).unwrap();
    assert_eq!(by_provider("@open").post("/moderations", &json!({ "input": "a" })).await.status, 200);
    let database = stack.database.client().await;
    stack
        .until("the log names the model", async || {
            let sql = "SELECT count(*) FROM request_logs WHERE requested_model = 'text-moderation-latest'";
            database.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 1
        })
        .await;
}

#[tokio::test]
async fn what_is_meant_for_a_provider_reaches_it_on_both_lanes_under_its_own_name() {
    let stack = Stack::start().await;
    let client = stack
        .client()
        .with("x-gateway-openai-beta", "assistants=v2")
        .with("x-gateway-openai-organization", "org-1")
        .with("x-gateway-openai-project", "proj-1");
    for (method, path) in [(Method::POST, "/chat/completions"), (Method::POST, "/threads")] {
        whole(client.request(method, path).json(&harness::chat("Hello"))).await;
        let arrived = stack.mock.requests().pop().unwrap();
        let told = ["openai-beta", "openai-organization", "openai-project"].map(|name| arrived.header(name));
        assert_eq!(told, ["assistants=v2", "org-1", "proj-1"], "{path}");
    }
    stack.client().with("openai-beta", "assistants=v2").get("/assistants").await;
    assert_eq!(stack.mock.requests().pop().unwrap().header("openai-beta"), "assistants=v2");
}
