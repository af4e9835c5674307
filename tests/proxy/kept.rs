//! Files, batches and fine-tuning of providers that keep them in forms of their own, through a running proxy: each question
//! goes to its place with its credential, and the answer is OpenAI's object. And every family that has a path made for each
//! request reaches it.

use crate::families::{FORM_TYPE, application, integrate};
use bench::mock::Recorded;
use harness::client::whole;
use harness::{Answer, Client, Stack, chat};
use http::Method;
use serde_json::{Value, json};
use shared::providers::{Family, ProviderEntry, Providers, Way};

fn client(stack: &Stack, provider: &str) -> Client {
    let client = application(stack).with("authorization", "Bearer sk-own").with("x-gateway-provider", provider);
    let client = client.with("x-gateway-custom-host", stack.mock.origin()).with("x-gateway-aws-s3-bucket", "bkt");
    let client = client.with("x-gateway-vertex-project-id", "p").with("x-gateway-vertex-region", "r");
    client.with("x-gateway-vertex-storage-bucket-name", "bkt").with("x-gateway-fireworks-account-id", "acc")
}

fn says(stack: &Stack, answers: &[Value]) {
    stack.mock.reset();
    let faults = answers.iter().map(|answer| json!({ "body": answer.to_string(), "content_type": "application/json" }));
    stack.mock.script(faults.collect()).unwrap();
}

fn asked(stack: &Stack) -> Vec<String> {
    let line = |request: &Recorded| match &request.query {
        Some(query) => format!("{} {}?{query}", request.method, request.path),
        None => format!("{} {}", request.method, request.path),
    };
    stack.mock.requests().iter().map(line).collect()
}

async fn upload(client: &Client, purpose: &str, file: &str) -> Answer {
    let form = format!(
        "--xYz\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\n{purpose}\r\n--xYz\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n{file}\r\n--xYz--\r\n"
    );
    whole(client.request(Method::POST, "/files").header("content-type", FORM_TYPE).body(form)).await
}

#[tokio::test]
async fn a_batch_of_anthropic_is_made_watched_stopped_and_read() {
    let stack = Stack::start().await;
    let client = client(&stack, "anthropic");
    let told = json!({ "id": "msgbatch_1", "type": "message_batch", "processing_status": "in_progress",
        "created_at": "2025-01-01T00:00:00Z", "request_counts": { "processing": 1 } });
    let row = json!({ "custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": chat("Hello") });
    says(&stack, &[told.clone(), told.clone(), json!({ "data": [told], "has_more": false }), told.clone()]);
    let made = client
        .post("/batches", &json!({ "requests": [row], "endpoint": "/v1/chat/completions", "completion_window": "24h" }))
        .await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!((&made.json()["object"], &made.json()["status"]), (&json!("batch"), &json!("in_progress")));
    assert_eq!(made.header("x-gateway-provider"), "anthropic");
    let sent: Value = serde_json::from_slice(&stack.mock.requests()[0].body).unwrap();
    assert_eq!(sent["requests"][0]["params"]["messages"][0]["role"], "user", "{sent}");
    assert_eq!(stack.mock.requests()[0].header("x-api-key"), "sk-own");
    assert_eq!(client.get("/batches/msgbatch_1").await.json()["id"], "msgbatch_1");
    assert_eq!(client.get("/batches?limit=5").await.json()["data"][0]["id"], "msgbatch_1");
    client.post("/batches/msgbatch_1/cancel", &json!({})).await;
    assert_eq!(
        asked(&stack),
        [
            "POST /messages/batches",
            "GET /messages/batches/msgbatch_1",
            "GET /messages/batches?limit=5",
            "POST /messages/batches/msgbatch_1/cancel"
        ]
    );
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "Hi" }], "usage": { "input_tokens": 3, "output_tokens": 1 } });
    says(&stack, &[json!({ "custom_id": "1", "result": { "type": "succeeded", "message": message } })]);
    let output = client.get("/batches/msgbatch_1/output").await;
    assert_eq!(output.header("content-type"), "application/jsonl");
    assert_eq!(output.json()["response"]["body"]["choices"][0]["message"]["content"], "Hi", "{}", output.text());
    let refused = client.post("/batches", &json!({ "input_file_id": "f" })).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["param"]),
        (400, &json!("requests")),
        "{}",
        refused.text()
    );
    stack.mock.script(json!([{ "status": 404 }])).unwrap();
    let missing = client.get("/batches/msgbatch_2").await;
    assert_eq!(
        (missing.status.as_u16(), missing.json()["error"]["message"].is_string()),
        (404, true),
        "{}",
        missing.text()
    );
}

/// What is said of a file by headers is said by a target as well, which comes first.
#[tokio::test]
async fn a_target_says_under_which_name_for_which_model_and_how_encrypted_a_file_is_kept() {
    let stack = Stack::start().await;
    let row = json!({ "custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {
        "messages": [{ "role": "user", "content": "Hi" }] } })
    .to_string();
    let place = json!({ "provider": "bedrock", "custom_host": stack.mock.origin(), "aws_region": "us-east-1",
        "api_key": "sk-own", "aws_s3_bucket": "bkt" });
    for (model, name) in [("aws_bedrock_model", "aws_s3_object_key"), ("provider_model", "provider_file_name")] {
        let mut config = place.clone();
        config[model] = json!("anthropic.claude-x");
        config[name] = json!("said.jsonl");
        config["amz_server_side_encryption"] = json!("aws:kms");
        config["amz_server_side_encryption_aws_kms_key_id"] = json!("key-1");
        let client = application(&stack).with("x-gateway-config", config.to_string());
        let client = client.with("x-gateway-provider-file-name", "other.jsonl");
        says(&stack, &[json!({})]);
        let kept = upload(&client, "batch", &row).await;
        assert_eq!(kept.status, 200, "{}", kept.text());
        assert!(kept.json()["id"].as_str().unwrap().ends_with("said.jsonl"), "{}", kept.text());
        let arrived = &stack.mock.requests()[0];
        assert!(arrived.path.ends_with("/said.jsonl"), "{}", arrived.path);
        assert_eq!(arrived.header("x-amz-server-side-encryption"), "aws:kms");
        assert_eq!(arrived.header("x-amz-server-side-encryption-aws-kms-key-id"), "key-1");
        let written: Value = serde_json::from_slice(&arrived.body).unwrap();
        assert_eq!(written["modelInput"]["anthropic_version"], "bedrock-2023-05-31", "it is the model's format");
    }
}

#[tokio::test]
async fn files_and_batches_over_a_bucket_are_asked_for_in_two_places() {
    let stack = Stack::start().await;
    let row = |model: &str| {
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": "Hi" }] });
        json!({ "custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": body }).to_string()
    };
    let bedrock = client(&stack, "bedrock");
    says(&stack, &[json!({})]);
    let kept = upload(&bedrock, "batch", &row("anthropic.claude-x")).await;
    assert_eq!(kept.status, 200, "{}", kept.text());
    let id = kept.json()["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("s3%3A%2F%2Fbkt%2F") && id.ends_with("rows.jsonl"), "{id}");
    let arrived = &stack.mock.requests()[0];
    assert_eq!((&*arrived.method, arrived.path.starts_with("/bkt/")), ("PUT", true), "{}", arrived.path);
    let written: Value = serde_json::from_slice(&arrived.body).unwrap();
    assert_eq!(
        (&written["recordId"], &written["modelInput"]["anthropic_version"]),
        (&json!("1"), &json!("bedrock-2023-05-31"))
    );
    let arn = "arn:aws:bedrock:us-east-1:1:model-invocation-job/j1";
    let job = json!({ "jobArn": arn, "status": "Submitted", "inputDataConfig": { "s3InputDataConfig": { "s3Uri": "s3://bkt/x/rows.jsonl" } } });
    says(&stack, &[json!({ "jobArn": arn }), job]);
    let body = json!({ "input_file_id": id, "endpoint": "/v1/chat/completions", "completion_window": "24h",
        "model": "anthropic.claude-x", "role_arn": "arn:aws:iam::1:role/r" });
    let made = bedrock.post("/batches", &body).await;
    assert_eq!((made.status.as_u16(), &made.json()["status"]), (200, &json!("validating")), "{}", made.text());
    let escaped = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Amodel-invocation-job%2Fj1";
    assert_eq!(made.json()["id"], escaped);
    assert_eq!(
        asked(&stack),
        ["POST /model-invocation-job".to_owned(), format!("GET /model-invocation-job/{escaped}")]
    );
    let other = bedrock.get("/files/s3%3A%2F%2Fother%2Fk/content").await;
    assert_eq!(other.status, 400, "another bucket: {}", other.text());
    let vertex = client(&stack, "vertex-ai");
    says(
        &stack,
        &[json!({ "bucket": "bkt", "name": "x/rows.jsonl", "size": "9", "timeCreated": "2025-01-01T00:00:00Z" })],
    );
    let kept = upload(&vertex, "batch", &row("gemini-x")).await;
    assert_eq!(
        (kept.status.as_u16(), &kept.json()["id"]),
        (200, &json!("gs%3A%2F%2Fbkt%2Fx%2Frows.jsonl")),
        "{}",
        kept.text()
    );
    assert!(
        asked(&stack)[0].starts_with("POST /upload/storage/v1/b/bkt/o?uploadType=media&name="),
        "{:?}",
        asked(&stack)
    );
    says(&stack, &[json!({ "name": "projects/1/locations/r/tuningJobs/7", "state": "JOB_STATE_PENDING" })]);
    let job =
        vertex.post("/fine_tuning/jobs", &json!({ "model": "gemini-x", "training_file": "gs%3A%2F%2Fbkt%2Ft" })).await;
    assert_eq!((&job.json()["id"], &job.json()["status"]), (&json!("7"), &json!("queued")), "{}", job.text());
    assert_eq!(asked(&stack), ["POST /v1/projects/p/locations/r/tuningJobs"]);
    let bad = upload(&vertex, "batch", "not json").await;
    assert_eq!((bad.status.as_u16(), bad.text().contains("line 1")), (400, true), "{}", bad.text());
}

#[tokio::test]
async fn what_is_asked_of_a_stored_account_keeps_to_its_models_and_its_bucket() {
    let stack = Stack::start().await;
    integrate(&stack, "claude", "anthropic").await;
    let off = json!({ "models": [{ "slug": "claude-off", "enabled": false, "is_custom": true }] });
    assert_eq!(stack.administrator().put("/integrations/claude/models", &off).await.status, 200);
    let client = application(&stack).with("x-gateway-provider", "@claude");
    let batch = |model: &str| json!({ "requests": [{ "custom_id": "1", "params": { "model": model, "max_tokens": 1, "messages": [] } }] });
    stack.until("the model is off", async || client.post("/batches", &batch("claude-off")).await.status == 403).await;
    stack.mock.reset();
    assert_eq!(client.post("/batches", &batch("claude-off")).await.status, 403);
    let unnamed = client.post("/batches", &json!({ "requests": [{ "custom_id": "1", "params": {} }] })).await;
    assert_eq!(
        (unnamed.status.as_u16(), &unnamed.json()["error"]["code"]),
        (400, &json!("model_unknown")),
        "{}",
        unnamed.text()
    );
    assert!(stack.mock.requests().is_empty());
    says(&stack, &[json!({ "id": "b", "processing_status": "in_progress" })]);
    assert_eq!(client.post("/batches", &batch("claude-on")).await.status, 200);
    assert_eq!(stack.mock.requests()[0].header("x-api-key"), crate::families::KEY);
    let configurations =
        json!({ "custom_host": stack.mock.origin(), "aws_auth_type": "apiKey", "aws_region": "eu-west-1" });
    let body = json!({ "name": "aws", "slug": "aws", "ai_provider_id": "bedrock", "key": "k", "configurations": configurations,
        "workspace_id": stack.home.workspace_id.to_string(), "default_provider_slug": "aws" });
    let made = stack.administrator().post("/integrations", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let aws = application(&stack).with("x-gateway-provider", "@aws").with("x-gateway-aws-s3-bucket", "bkt");
    stack.until("the account is known", async || aws.get("/anything").await.status == 200).await;
    let refused = aws.get("/files/s3%3A%2F%2Fbkt%2Fk").await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["code"]),
        (400, &json!("endpoint_not_supported")),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn a_model_that_is_off_is_off_under_every_name_that_its_provider_knows_it_by() {
    let stack = Stack::start().await;
    let configurations = json!({ "custom_host": stack.mock.origin(), "vertex_auth_type": "basic", "vertex_region": "r",
        "vertex_project_id": "p" });
    let body = json!({ "name": "vertex", "slug": "vertex", "ai_provider_id": "vertex-ai", "key": "k",
        "configurations": configurations, "workspace_id": stack.home.workspace_id.to_string(),
        "default_provider_slug": "vertex" });
    let made = stack.administrator().post("/integrations", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let off = json!({ "models": [{ "slug": "gemini-off", "enabled": false, "is_custom": true }] });
    assert_eq!(stack.administrator().put("/integrations/vertex/models", &off).await.status, 200);
    let client = application(&stack).with("x-gateway-provider", "@vertex");
    let batch =
        |model: &str| json!({ "input_file_id": "gs://b/in.jsonl", "endpoint": "/v1/chat/completions", "model": model });
    stack.until("the model is off", async || client.post("/batches", &batch("gemini-off")).await.status == 403).await;
    stack.mock.reset();
    for name in ["google.gemini-off", "publishers/google/models/gemini-off"] {
        let refused = client.post("/batches", &batch(name)).await;
        let code = refused.json()["error"]["code"].clone();
        assert_eq!((refused.status.as_u16(), code), (403, json!("model_not_allowed")), "{name}: {}", refused.text());
    }
    assert!(stack.mock.requests().is_empty());
    let other = client.post("/batches", &batch("publishers/google/models/gemini-on")).await;
    assert_ne!(other.status, 403, "{}", other.text());
}

fn filled(row: &ProviderEntry, template: &shared::providers::PathTemplate, model: &str) -> String {
    let filled = template.fill(|place| match place {
        "model" | "model_path" | "base_model" | "deployment" | "endpoint" => Some(model),
        "project" => Some("p"),
        "region" => Some("r"),
        "bucket" => Some("bkt"),
        other => row.placed(other, |_| None),
    });
    filled.unwrap_or_else(|place| panic!("{}: {place}", row.slug))
}

/// A body that every codec of a family takes.
fn body(family: Family, model: &str) -> Value {
    match family {
        Family::Embed => json!({ "model": model, "input": "Hello" }),
        Family::Rerank => json!({ "model": model, "query": "Hello", "documents": ["Hello"] }),
        Family::CountTokens => json!({ "model": model, "messages": [{ "role": "user", "content": "Hello" }] }),
        _ => {
            let mut body = chat("Hello");
            body["model"] = json!(model);
            body
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_family_with_a_path_of_its_own_reaches_it() {
    const FORMS: [Family; 4] = [Family::Transcribe, Family::Translate, Family::ImageEdit, Family::ImageVariation];
    const WALKED: [Family; 3] = [Family::Embed, Family::Rerank, Family::CountTokens];
    let stack = Stack::start().await;
    let mut walked = 0;
    for row in Providers::bundled().unwrap().iter() {
        let client = client(&stack, &row.slug);
        let families = Family::ALL.into_iter().filter(|family| !FORMS.contains(family));
        for (family, model) in families.flat_map(|family| [(family, "m"), (family, "cohere.m")]) {
            let (template, path) = match row.way(family, model) {
                Some(Way::Placed(template)) => (template, family.path().to_owned()),
                Some(Way::Reshaped(wire)) if WALKED.contains(&family) => (&wire.path, family.path().to_owned()),
                Some(Way::Mapped(wire)) => match family {
                    Family::FineTuning => (&wire.path, "/fine_tuning/jobs".to_owned()),
                    _ => (&wire.path, family.path().to_owned()),
                },
                _ => continue,
            };
            // Buckets of S3 are not listed.
            if family == Family::Files && &*row.slug == "bedrock" {
                continue;
            }
            stack.mock.reset();
            let is_kept = matches!(family, Family::Files | Family::Batches | Family::FineTuning | Family::Realtime);
            let answer = match is_kept {
                true if family == Family::Realtime => client.get(&format!("{path}?model={model}")).await,
                true => client.get(&path).await,
                false => client.post(&path, &body(family, model)).await,
            };
            let what = format!("{} {}: {}", row.slug, family.name(), answer.text());
            let arrived = stack.mock.requests();
            assert_eq!(arrived.len(), 1, "{what}");
            let place = filled(row, template, model);
            let expected = place.split('?').next().unwrap();
            assert!(arrived[0].path.starts_with(expected), "{what}: {}", arrived[0].path);
            walked += 1;
        }
    }
    assert!(walked > 20, "only {walked}");
}
