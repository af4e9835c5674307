//! What a client sent and got is what the log store holds of it, and nothing that should not be there.

mod packs;
mod store;

use crate::routing::{client as with_config, target};
use bench::process::Signal;
use harness::client::whole;
use harness::{Answer, Stack, chat};
use http::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// All bodies of the stack with the paths of the objects that hold them, once its proxy has left and so sent everything.
async fn objects(stack: &mut Stack) -> Vec<(String, Value)> {
    stack.proxy.signal(Signal::TERM);
    stack.proxy.ended_within(PATIENCE).await;
    found(&stack.folder.path().join("logs"))
}

fn found(store: &Path) -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = Vec::new();
    let mut folders = vec![store.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "zst") {
                let object = shared::log_store::unpack(&std::fs::read(&path).unwrap(), 1 << 30).unwrap();
                let name = path.strip_prefix(store).unwrap().display().to_string();
                // A pack holds one after the other.
                let bodies = serde_json::Deserializer::from_slice(&object).into_iter::<Value>();
                found.extend(bodies.map(|body| (name.clone(), body.unwrap())));
            }
        }
    }
    found.sort_by(|one, other| one.1["_id"].as_str().cmp(&other.1["_id"].as_str()));
    found
}

/// The object of this answer.
fn of<'o>(objects: &'o [(String, Value)], answer: &Answer) -> &'o Value {
    let id = answer.header("x-gateway-request-id");
    let found = objects.iter().find(|(_, object)| object["_id"] == id);
    &found.unwrap_or_else(|| panic!("no object of {id}: {objects:?}")).1
}

fn anthropic(stack: &Stack) -> harness::Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", "anthropic");
    client.with("authorization", "Bearer sk-mock").with("x-gateway-custom-host", stack.mock.url())
}

#[tokio::test]
async fn what_was_sent_and_got_is_kept_in_every_dialect_plain_and_streamed() {
    let mut stack = Stack::start().await;
    let mut answers = Vec::new();
    for path in ["/chat/completions", "/completions", "/messages", "/responses"] {
        for is_stream in [false, true] {
            let body = json!({
                "model": "gpt-4o-mini", "messages": [{"role": "user", "content": "How are you?"}],
                "prompt": "How are you?", "input": "How are you?", "max_tokens": 50, "stream": is_stream,
            });
            let client = if path == "/messages" { anthropic(&stack) } else { stack.client() };
            let answer = client.post(path, &body).await;
            assert_eq!(answer.status, 200, "{path} {}", answer.text());
            answers.push((path, is_stream, body, answer));
        }
    }
    let objects = objects(&mut stack).await;
    assert_eq!(objects.len(), answers.len());
    for (path, is_stream, body, answer) in answers {
        let object = of(&objects, &answer);
        assert_eq!(object["request"]["body"], body, "{path}");
        assert_eq!(
            (&object["request"]["url"], &object["request"]["method"]),
            (&json!(format!("/v1{path}")), &json!("POST"))
        );
        assert_eq!(object["response"]["status"], 200);
        match is_stream {
            true => assert_eq!(object["response"]["body"], answer.text(), "{path}"),
            false => assert_eq!(object["response"]["body"], answer.json(), "{path}"),
        }
        assert_eq!(object["response"]["headers"]["x-gateway-request-id"], object["_id"]);
        assert_eq!(object["request"]["gatewayHeaders"]["x-gateway-custom-host"], stack.mock.url());
        assert_eq!(object["log_format"], "v1");
        let asks = object.pointer("/transformedRequest/body/stream_options/include_usage");
        assert_eq!(asks.is_some(), is_stream && path.contains("completions"), "{path} {asks:?}");
    }
}

#[tokio::test]
async fn an_object_lies_under_its_tenant_and_day_and_holds_no_key() {
    let mut stack = Stack::start().await;
    let other = stack.organisation().await;
    let homes = [
        (stack.home.workspace_key.clone(), stack.home.id, stack.home.workspace_id),
        (other.workspace_key.clone(), other.id, other.workspace_id),
    ];
    let mut answers = Vec::new();
    for (key, ..) in &homes {
        let client =
            stack.as_application(key).with("x-mine", "hidden-value").with("x-gateway-sensitive-headers", "X-Mine");
        let answer = client.post("/chat/completions?api_key=in-the-query&a=b", &chat("Hello")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answers.push(answer);
    }
    let rows = stack.database.client().await;
    let objects = objects(&mut stack).await;
    assert_eq!(objects.len(), 2);
    for ((key, organisation, workspace), answer) in homes.iter().zip(&answers) {
        let object = of(&objects, answer);
        let (path, _) = objects.iter().find(|(_, one)| one == object).unwrap();
        const KEPT: &str = "SELECT body_key FROM request_logs WHERE id = $1";
        let id: uuid::Uuid = answer.header("x-gateway-request-id").parse().unwrap();
        let row = rows.query_one(KEPT, &[&id]).await.unwrap();
        let (pack, _) = row.get::<_, &str>(0).split_once('#').unwrap();
        assert_eq!(pack, path, "its row knows where it is");
        let day = &object["created_at"].as_str().unwrap()[..10];
        assert!(path.starts_with(&format!("bodies/{organisation}/{workspace}/{day}/")), "{path}");
        assert_eq!(object["organisation_id"], organisation.to_string());
        let text = object.to_string();
        for secret in [key.as_str(), "sk-mock", "hidden-value", "in-the-query"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert_eq!(object["request"]["headers"]["authorization"], "*****");
        assert_eq!(object["request"]["headers"]["x-mine"], "*****");
        assert_eq!(object["transformedRequest"]["headers"]["authorization"], "*****");
        assert_eq!(object["request"]["url"], "/v1/chat/completions?api_key=*****&a=b");
    }
}

#[tokio::test]
async fn failures_are_kept_with_what_the_provider_said_to_each_attempt() {
    let mut stack = Stack::start().await;
    let config = json!({
        "strategy": {"mode": "fallback"},
        "targets": [target(&stack, json!({})), target(&stack, json!({"override_params": {"model": "gpt-4o"}}))],
    });
    stack.mock.script(json!([{ "status": 500, "times": 1 }])).unwrap();
    let mended = with_config(&stack, &config).post("/chat/completions", &chat("Hello")).await;
    assert_eq!(mended.status, 200, "{}", mended.text());
    let refused = stack.anonymous().with_key(&stack.home.workspace_key).post("/chat/completions", &chat("Hello")).await;
    assert_eq!(refused.status, 400);
    let garbled = whole(
        stack
            .client()
            .request(Method::POST, "/chat/completions")
            .body("{\"model\":")
            .header("content-type", "application/json"),
    )
    .await;
    assert_eq!(garbled.status, 400, "{}", garbled.text());
    let objects = objects(&mut stack).await;
    assert_eq!(objects.len(), 4);
    let last = of(&objects, &mended);
    assert_eq!(last["transformedRequest"]["body"]["model"], "gpt-4o");
    assert_eq!(last["request"]["body"]["model"], "gpt-4o-mini");
    assert_eq!(last["response"]["lastUsedOptionJsonPath"], "config.targets[1]");
    let failed = objects.iter().map(|(_, object)| object).find(|object| object["response"]["status"] == 500).unwrap();
    assert!(failed["response"]["body"]["error"].is_object(), "{failed}");
    assert_eq!(failed["request"]["body"], chat("Hello"));
    assert_eq!(of(&objects, &refused)["response"]["body"], refused.json());
    assert_eq!(of(&objects, &refused)["request"]["body"], chat("Hello"));
    assert_eq!(of(&objects, &garbled)["response"]["body"], garbled.json());
    assert_eq!(of(&objects, &garbled)["request"]["body"], "{\"model\":");
}

#[tokio::test]
async fn without_debug_only_a_failed_answer_is_kept() {
    let mut stack = Stack::start().await;
    let quiet = stack.client().with("x-gateway-debug", "false");
    assert_eq!(quiet.post("/chat/completions", &chat("Do not keep this")).await.status, 200);
    assert_eq!(quiet.post("/another/path", &chat("Do not keep this")).await.status, 200);
    stack.mock.script(json!([{ "status": 400, "times": 1 }])).unwrap();
    let failed = quiet.post("/chat/completions", &chat("Do not keep this")).await;
    assert_eq!(failed.status, 400);
    let objects = objects(&mut stack).await;
    assert_eq!(objects.len(), 1, "{objects:?}");
    assert_eq!(of(&objects, &failed)["response"]["body"], failed.json());
    assert_eq!(of(&objects, &failed)["request"], json!({ "url": "/v1/chat/completions", "method": "POST" }));
}

#[tokio::test]
async fn of_a_metrics_only_workspace_or_organisation_nothing_is_kept() {
    for path in ["/admin/workspaces/{}", "/admin/organisation"] {
        let mut stack = Stack::start().await;
        let path = path.replace("{}", &stack.home.workspace_id.to_string());
        let answer = stack.administrator().put(&path, &json!({ "settings": { "debug_log": 0 } })).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        // A key that was made later is known later.
        let client = stack.as_application(&stack.key(&["completions.write"]).await);
        assert_eq!(client.post("/chat/completions", &chat("Hello")).await.status, 200);
        stack.mock.script(json!([{ "status": 400, "times": 1 }])).unwrap();
        assert_eq!(client.post("/chat/completions", &chat("Hello")).await.status, 400);
        let rows = stack.database.client().await;
        assert!(objects(&mut stack).await.is_empty(), "{path}");
        let count: i64 =
            rows.query_one("SELECT count(*) FROM request_logs WHERE body_key IS NULL", &[]).await.unwrap().get(0);
        assert_eq!(count, 2);
    }
}

#[tokio::test]
async fn bodies_can_be_switched_off() {
    let mut stack = Stack::builder().proxy("LOG_BODIES", "OFF").start().await;
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    assert!(objects(&mut stack).await.is_empty());
}

#[tokio::test]
async fn a_long_body_is_cut_and_says_so() {
    let mut stack = Stack::builder().proxy("LOG_BODY_BYTES", "100").start().await;
    let body = chat(&"é".repeat(500));
    let plain = stack.client().post("/chat/completions", &body).await;
    let relayed = stack.client().post("/another/path", &body).await;
    let (sent, got) = (body.to_string(), plain.text());
    let objects = objects(&mut stack).await;
    for answer in [&plain, &relayed] {
        let kept = of(&objects, answer)["request"]["body"].as_str().unwrap();
        let (beginning, marker) = kept.split_once('…').unwrap();
        assert!(sent.starts_with(beginning) && (98..=100).contains(&beginning.len()), "{kept}");
        assert_eq!(marker, format!("[truncated: 100 of {} bytes kept]", sent.len()));
    }
    let kept = of(&objects, &plain)["response"]["body"].as_str().unwrap();
    assert!(kept.ends_with(&format!("[truncated: 100 of {} bytes kept]", got.len())), "{kept}");
}

#[tokio::test]
async fn passed_through_calls_are_kept_and_what_is_no_text_is_measured() {
    let mut stack = Stack::start().await;
    let body = json!({ "model": "gpt-4o-mini", "prompt": "How are you?" });
    let text = stack.client().post("/relayed/completions", &body).await;
    let upload =
        stack.client().request(Method::POST, "/another/path").header("content-type", "audio/mpeg").body(vec![7; 5000]);
    let upload = whole(upload).await;
    let vectors = stack.client().post("/embeddings", &json!({ "model": "m", "input": "Hello" })).await;
    assert_eq!(
        (text.status, upload.status, vectors.status),
        (http::StatusCode::OK, http::StatusCode::OK, http::StatusCode::OK)
    );
    let objects = objects(&mut stack).await;
    let object = of(&objects, &text);
    assert_eq!((&object["request"]["body"], &object["response"]["body"]), (&body, &text.json()));
    assert_eq!(object["transformedRequest"]["headers"]["authorization"], "*****");
    assert_eq!(of(&objects, &upload)["request"]["body"], "[audio/mpeg: 5000 bytes not kept]");
    let kept = of(&objects, &vectors)["response"]["body"]["data"][0]["embedding"].as_str().unwrap();
    assert!(kept.ends_with("not kept]"), "{kept}");
}

#[tokio::test]
async fn a_credential_that_a_provider_repeats_is_taken_out() {
    let mut stack = Stack::start().await;
    let key = "sk-repeated-by-the-provider";
    let fault = json!({ "status": 401, "body": format!("{{\"error\":{{\"message\":\"Incorrect key: {key}.\"}}}}"), "content_type": "application/json" });
    stack.mock.script(json!([fault])).unwrap();
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", "openai");
    let client = client.with("authorization", format!("Bearer {key}")).with("x-gateway-custom-host", stack.mock.url());
    let answer = client.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 401, "{}", answer.text());
    let objects = objects(&mut stack).await;
    assert_eq!(of(&objects, &answer)["response"]["body"]["error"]["message"], "Incorrect key: *****.");
}

#[tokio::test]
async fn a_config_that_came_with_a_request_is_shown_with_its_secrets_masked_inside() {
    let mut stack = Stack::start().await;
    let config = json!({ "retry": { "attempts": 1 }, "targets": [
        { "provider": "openai", "api_key": "sk-in-the-config", "custom_host": stack.mock.url() }],
        "strategy": { "mode": "fallback" } });
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config.to_string());
    let answer = client.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let objects = objects(&mut stack).await;
    let object = of(&objects, &answer);
    let shown = object["request"]["gatewayHeaders"]["x-gateway-config"].as_str().unwrap();
    let shown: Value = serde_json::from_str(shown).unwrap();
    assert_eq!((&shown["retry"], &shown["targets"][0]["provider"]), (&json!({ "attempts": 1 }), &json!("openai")));
    assert_eq!(shown["targets"][0]["api_key"], "*****", "{shown}");
    assert!(!object.to_string().contains("sk-in-the-config"), "{object}");
}
