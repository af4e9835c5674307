//! Images, rankings, embeddings and counts of providers that have forms of their own, as a client of OpenAI's meets them.
//! The mock plays the vendors, and refuses what is not of their wire.

use crate::journal::calls::rows;
use harness::{Client, Stack};
use serde_json::{Value, json};
use shared::providers::{Family, Providers, Way};

/// As the mock's address would be the provider's, with what stands before its paths.
fn at(stack: &Stack, provider: &str, base: &str) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    let client = client.with("x-gateway-provider", provider);
    let client = client.with("x-gateway-custom-host", format!("{}{base}", stack.mock.origin()));
    client.with("x-gateway-vertex-project-id", "p").with("x-gateway-vertex-region", "r")
}

#[tokio::test]
async fn images_of_every_vendor_come_in_openais_form() {
    const BYTES: &str = "iVBORw0KGgptb2Nr";
    const ADDRESS: &str = "https://images.test/mock.png";
    let stack = Stack::start().await;
    for (provider, base, model, path, image) in [
        (
            "stability-ai",
            "",
            "stable-diffusion-xl-1024-v1-0",
            "/v1/generation/stable-diffusion-xl-1024-v1-0/text-to-image",
            BYTES,
        ),
        ("stability-ai", "", "core", "/v2beta/stable-image/generate/core", BYTES),
        ("stability-ai", "", "sd3.5-large", "/v2beta/stable-image/generate/sd3", BYTES),
        ("segmind", "/segmind/v1", "sdxl1.0-txt2img", "/segmind/v1/sdxl1.0-txt2img", BYTES),
        ("fireworks-ai", "", "accounts/f/models/sdxl", "/image_generation/accounts/f/models/sdxl", BYTES),
        (
            "fireworks-ai",
            "",
            "accounts/fireworks/models/flux-1-schnell-fp8",
            "/workflows/accounts/fireworks/models/flux-1-schnell-fp8/text_to_image",
            BYTES,
        ),
        ("siliconflow", "", "black-forest-labs/FLUX.1", "/black-forest-labs/FLUX.1/text-to-image", ADDRESS),
        ("hyperbolic", "", "SDXL1.0-base", "/v1/image/generation", BYTES),
        ("fal-ai", "/fal", "fal-ai/flux/dev", "/fal/fal-ai/flux/dev", ADDRESS),
        ("workers-ai", "", "@cf/bfl/flux-1-schnell", "/run/%40cf/bfl/flux-1-schnell", BYTES),
        ("workers-ai", "", "@cf/stabilityai/sdxl", "/run/%40cf/stabilityai/sdxl", BYTES),
        ("bedrock", "", "amazon.nova-canvas-v1:0", "/model/amazon.nova-canvas-v1%3A0/invoke", BYTES),
        ("bedrock", "", "us.stability.sd3-5-large-v1:0", "/model/us.stability.sd3-5-large-v1%3A0/invoke", BYTES),
        (
            "vertex-ai",
            "",
            "imagen-4.0",
            "/v1/projects/p/locations/r/publishers/google/models/imagen-4.0:predict",
            BYTES,
        ),
        ("google", "", "imagen-4.0", "/v1beta/models/imagen-4.0:predict", BYTES),
    ] {
        stack.mock.reset();
        let asked = json!({ "model": model, "prompt": "a cat", "size": "1024x1024", "seed": 7 });
        let answer = at(&stack, provider, base).post("/images/generations", &asked).await;
        let what = format!("{provider} {model}: {}", answer.text());
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"), "{what}");
        assert_eq!(stack.mock.requests()[0].path, path, "{what}");
        let told = answer.json();
        let found = &told["data"][0];
        assert_eq!(found["b64_json"].as_str().or(found["url"].as_str()), Some(image), "{what}");
        assert_eq!((&told["provider"], told["created"].is_u64()), (&json!(provider), true), "{what}");
    }
}

#[tokio::test]
async fn the_number_of_images_and_their_kind_are_as_asked_for_and_the_rest_is_told_to_be_dropped() {
    let stack = Stack::start().await;
    let asked = json!({ "model": "m", "prompt": "a cat", "n": 3, "response_format": "b64_json", "user": "u" });
    for (provider, base, count) in [("fal-ai", "/fal", 3), ("siliconflow", "", 3), ("hyperbolic", "", 1)] {
        let told = at(&stack, provider, base).post("/images/generations", &asked).await.json();
        assert_eq!(told["data"].as_array().map(Vec::len), Some(count), "{provider}: {told}");
        assert_eq!(told["data"][0]["b64_json"].is_string(), provider != "siliconflow", "{provider}: {told}");
    }
    let dropped: Vec<Value> = rows(&stack, 3).await.iter().map(|row| row.get("dropped_params")).collect();
    assert_eq!(dropped, [json!(["user"]), json!(["user"]), json!(["n", "user"])]);
    let answer = at(&stack, "segmind", "/segmind/v1").post("/images/generations", &json!({ "model": "m" })).await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status.as_u16(), &error["param"]), (400, &json!("prompt")), "{error}");
}

#[tokio::test]
async fn a_form_is_sent_where_a_vendor_takes_no_json() {
    let stack = Stack::start().await;
    let asked = json!({ "model": "sd3.5-large", "prompt": "a \"cat\"\r\n--x", "size": "1792x1024", "seed": 7 });
    let answer = at(&stack, "stability-ai", "").post("/images/generations", &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let arrived = &stack.mock.requests()[0];
    let kind = arrived.header("content-type");
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap_or_else(|| panic!("{kind}"));
    let body = String::from_utf8_lossy(&arrived.body).into_owned();
    assert!(body.contains("name=\"prompt\"\r\n\r\na \"cat\"\r\n--x\r\n"), "{body}");
    assert!(
        body.contains("name=\"aspect_ratio\"\r\n\r\n16:9\r\n") && body.contains("name=\"model\"\r\n\r\nsd3.5-large")
    );
    assert!(body.ends_with(&format!("--{boundary}--\r\n")), "{body}");
    assert_eq!(arrived.header("accept"), "application/json");
}

#[tokio::test]
async fn errors_of_images_keep_their_words_and_rubbish_is_no_image() {
    let stack = Stack::start().await;
    let client = at(&stack, "fal-ai", "/fal");
    let asked = json!({ "model": "m", "prompt": "a cat" });
    stack.mock.script(json!([{ "status": 422, "body": "{\"detail\":\"too rude\"}" }])).unwrap();
    let answer = client.post("/images/generations", &asked).await;
    let message = answer.json()["error"]["message"].clone();
    assert_eq!((answer.status.as_u16(), message), (422, json!("fal-ai error: too rude")));
    for body in ["{}", "<html>", "{\"images\":[]}", "{\"images\":[{\"url\":\"<svg>\"}]}"] {
        stack.mock.script(json!([{ "body": body, "content_type": "application/json" }])).unwrap();
        let answer = client.post("/images/generations", &asked).await;
        let code = answer.json()["error"]["code"].clone();
        assert_eq!((answer.status.as_u16(), code), (502, json!("invalid_upstream_response")), "{body}");
    }
}

#[tokio::test]
async fn rankings_come_in_the_common_form_the_nearest_first() {
    let stack = Stack::start().await;
    for (provider, model, path) in [
        ("bedrock", "cohere.rerank-v3-5:0", "/model/cohere.rerank-v3-5%3A0/invoke"),
        ("vertex-ai", "semantic-ranker", "/v1/projects/p/locations/global/rankingConfigs/default_ranking_config:rank"),
        ("azure-ai", "cohere.rerank-v4", "/providers/cohere/v2/rerank"),
    ] {
        stack.mock.reset();
        let asked =
            json!({ "model": model, "query": "red cat", "documents": ["a dog", { "text": "a red cat" }], "top_n": 2 });
        let answer = at(&stack, provider, "").post("/rerank", &asked).await;
        let told = answer.json();
        assert_eq!(answer.status, 200, "{provider}: {told}");
        assert_eq!(stack.mock.requests()[0].path, path);
        let order: Vec<&Value> = told["results"].as_array().unwrap().iter().map(|one| &one["index"]).collect();
        assert_eq!(order, [&json!(1), &json!(0)], "{provider}: {told}");
        assert_eq!((&told["object"], &told["provider"]), (&json!("list"), &json!(provider)));
    }
    let body: Value = serde_json::from_slice(&stack.mock.requests()[0].body).unwrap();
    assert_eq!(body["model"], "rerank-v4", "without the prefix");
}

#[tokio::test]
async fn tokens_are_counted_on_vertex_and_texts_embedded_at_ai21() {
    let stack = Stack::start().await;
    for (model, path) in [
        ("gemini-2.5-pro", "/v1/projects/p/locations/r/publishers/google/models/gemini-2.5-pro:countTokens"),
        ("anthropic.claude-x", "/v1/projects/p/locations/r/publishers/anthropic/models/count-tokens:rawPredict"),
    ] {
        stack.mock.reset();
        let asked = json!({ "model": model, "messages": [{ "role": "user", "content": "Hello there" }] });
        let answer = at(&stack, "vertex-ai", "").post("/messages/count_tokens", &asked).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({ "input_tokens": 3 })), "{model}");
        assert_eq!(stack.mock.requests()[0].path, path);
    }
    let asked = json!({ "model": "m", "input": ["a", "b"] });
    let answer = at(&stack, "ai21", "/studio/v1").post("/embeddings", &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["data"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn foundry_is_asked_at_its_own_paths_with_the_callers_bytes() {
    let stack = Stack::start().await;
    for (path, expected) in [
        ("/images/generations", "/images/generations?api-version=2025-01-01"),
        ("/audio/speech", "/audio/speech?api-version=2025-01-01"),
        ("/ocr", "/providers/mistral/azure/ocr?api-version=2025-01-01"),
    ] {
        stack.mock.reset();
        let client = at(&stack, "azure-ai", "").with("x-gateway-azure-api-version", "2025-01-01");
        let asked = json!({ "model": "m", "input": "Hello", "prompt": "a cat" });
        client.post(path, &asked).await;
        let arrived = &stack.mock.requests()[0];
        assert_eq!(format!("{}?{}", arrived.path, arrived.query.as_deref().unwrap_or_default()), expected);
        assert_eq!(serde_json::from_slice::<Value>(&arrived.body).unwrap(), asked);
    }
}

#[tokio::test]
async fn a_ranking_of_googles_has_an_address_of_its_own_unless_the_caller_says_one() {
    let stack = Stack::start().await;
    const PLACE: &str = "/v1/projects/p/locations/global/rankingConfigs/default_ranking_config:rank";
    for (host, expected) in [
        (None, format!("https://discoveryengine.googleapis.com{PLACE}")),
        (Some(stack.mock.origin()), format!("{}{PLACE}", stack.mock.origin())),
    ] {
        let mut headers = json!({ "x-gateway-provider": "vertex-ai", "x-gateway-vertex-project-id": "p",
            "x-gateway-vertex-region": "us-central1", "authorization": "Bearer t" });
        if let Some(host) = host {
            headers["x-gateway-custom-host"] = json!(host);
        }
        let body = json!({ "model": "semantic-ranker", "query": "q", "documents": ["a"] });
        let question = json!({ "path": "/v1/rerank", "headers": headers, "body": body });
        let client = stack.anonymous().with_key(&stack.home.workspace_key);
        let explained = client.post("/explain", &question).await;
        let target = &explained.json()["plan"][0]["target"];
        assert_eq!((&target["url"], &target["translated_to"]), (&json!(expected), &json!("vertex_rerank")), "{target}");
    }
}

/// No family of any row is refused because its form is not written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_of_every_row_reaches_its_provider() {
    let stack = Stack::start().await;
    let mut walked = 0;
    for row in Providers::bundled().unwrap().iter() {
        for family in Family::ALL {
            let Some(Way::Reshaped(wire)) = row.way(family, "m") else { continue };
            let asked = match family {
                Family::CountTokens => json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }] }),
                Family::Rerank => json!({ "model": "m", "query": "q", "documents": ["a"] }),
                Family::Image => json!({ "model": "m", "prompt": "a cat" }),
                _ => json!({ "model": "m", "input": "a" }),
            };
            stack.mock.reset();
            let answer = at(&stack, &row.slug, "").post(family.path(), &asked).await;
            let arrived = stack.mock.requests();
            let what = format!("{} {} {}: {}", row.slug, family.name(), wire.codec, answer.text());
            assert_eq!(arrived.len(), 1, "{what}");
            let filled = wire.path.fill(|place| match place {
                "model" | "model_path" => Some("m"),
                "project" => Some("p"),
                "region" => Some("r"),
                _ => None,
            });
            assert_eq!(Ok(&*arrived[0].path), filled.as_deref().map_err(|place| *place), "{what}");
            walked += 1;
        }
    }
    assert!(walked >= 20, "only {walked} objects");
}
