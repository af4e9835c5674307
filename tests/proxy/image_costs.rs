//! What images cost at vendors that have forms of their own. None of them reports a usage: quality and size are priced as they
//! were asked for, and as many images as came.

use crate::journal::calls::rows;
use harness::{Client, Stack};
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Cents by the image.
fn entry() -> Value {
    let price = |cents: &str| json!({ "price": cents });
    json!({ "pricing_config": { "pay_as_you_go": { "image": {
        "standard": { "1024x1024": price("4"), "default": price("6") },
        "hd": { "1024x1024": price("8"), "default": price("12") },
        "default": { "default": price("5") },
    } } } })
}

struct Vector {
    provider: &'static str,
    /// What stands before its paths.
    base: &'static str,
    model: &'static str,
    asked: Value,
    cents: u32,
}

fn vector(provider: &'static str, base: &'static str, model: &'static str, asked: Value, cents: u32) -> Vector {
    Vector { provider, base, model, asked, cents }
}

fn vectors() -> Vec<Vector> {
    let two = || json!({ "n": 2, "size": "1024x1024" });
    vec![
        vector("stability-ai", "", "stable-diffusion-xl-1024-v1-0", two(), 8),
        // Its newer models make one at a time.
        vector("stability-ai", "", "core", two(), 4),
        vector("stability-ai", "", "sd3.5-large", json!({}), 4),
        vector("segmind", "/segmind/v1", "sdxl1.0-txt2img", json!({ "size": "512x512" }), 6),
        vector("fireworks-ai", "", "accounts/f/models/sdxl", json!({ "size": "1024x1024" }), 4),
        vector("fireworks-ai", "", "accounts/fireworks/models/flux-1-schnell-fp8", json!({}), 4),
        vector("siliconflow", "", "black-forest-labs/FLUX.1", json!({ "n": 3 }), 12),
        vector("hyperbolic", "", "SDXL1.0-base", json!({ "n": 3, "quality": "hd" }), 8),
        vector("fal-ai", "/fal", "fal-ai/flux/dev", json!({ "n": 3, "quality": "ultra" }), 15),
        vector("workers-ai", "", "@cf/bfl/flux-1-schnell", json!({}), 4),
        vector("bedrock", "", "amazon.nova-canvas-v1:0", json!({ "n": 2, "quality": "hd", "size": "1024x1024" }), 16),
        vector("bedrock", "", "us.stability.sd3-5-large-v1:0", json!({ "n": 4 }), 4),
        vector("vertex-ai", "", "imagen-4.0", json!({ "n": 2 }), 8),
        vector("google", "", "imagen-4.0", json!({ "n": 1, "quality": "hd", "size": "1792x1024" }), 12),
    ]
}

/// Every vendor lists its models at the same price.
fn prices(vectors: &[Vector]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for vector in vectors {
        let of_provider = vectors.iter().filter(|one| one.provider == vector.provider);
        let list: Map<String, Value> = of_provider.map(|one| (one.model.to_owned(), entry())).collect();
        let path = folder.path().join(format!("{}.json", vector.provider));
        std::fs::write(path, serde_json::to_string(&list).unwrap()).unwrap();
    }
    folder
}

fn client(stack: &Stack, vector: &Vector) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    let client = client.with("x-gateway-provider", vector.provider);
    let client = client.with("x-gateway-custom-host", format!("{}{}", stack.mock.origin(), vector.base));
    client.with("x-gateway-vertex-project-id", "p").with("x-gateway-vertex-region", "r")
}

#[tokio::test]
async fn images_of_every_vendor_cost_what_came_in_the_quality_and_size_that_were_asked_for() {
    let vectors = vectors();
    let prices = prices(&vectors);
    let folder = prices.path().to_str().unwrap();
    let stack = Stack::builder().proxy("MODEL_CONFIGS_PRICING_LOCAL_PATH", folder).start().await;
    for vector in &vectors {
        let mut body = vector.asked.clone();
        body["model"] = json!(vector.model);
        body["prompt"] = json!("a cat");
        let answer = client(&stack, vector).post("/images/generations", &body).await;
        assert_eq!(answer.status, 200, "{} {}: {}", vector.provider, vector.model, answer.text());
    }
    let rows = rows(&stack, vectors.len()).await;
    let wrong: Vec<String> = rows
        .iter()
        .zip(&vectors)
        .map(|(row, vector)| (row.get::<_, Option<Decimal>>("cost"), vector))
        .filter(|(cost, vector)| *cost != Some(Decimal::from(vector.cents)))
        .map(|(cost, vector)| format!("{} {}: {cost:?}, not {}", vector.provider, vector.model, vector.cents))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn images_that_a_vendor_holds_back_cost_nothing() {
    let vectors = [vector("vertex-ai", "", "imagen-4.0", json!({ "n": 4 }), 0)];
    let prices = prices(&vectors);
    let folder = prices.path().to_str().unwrap();
    let stack = Stack::builder().proxy("MODEL_CONFIGS_PRICING_LOCAL_PATH", folder).start().await;
    let image = json!({ "bytesBase64Encoded": "AAAA", "mimeType": "image/png" });
    let answers = [
        json!({ "predictions": [image, { "raiFilteredReason": "no" }] }),
        json!({ "predictions": [image, image, image] }),
    ];
    let asked = json!({ "model": "imagen-4.0", "prompt": "a cat", "n": 4, "size": "1024x1024" });
    for answer in &answers {
        let fault = json!([{ "body": answer.to_string(), "content_type": "application/json" }]);
        stack.mock.script(fault).unwrap();
        let got = client(&stack, &vectors[0]).post("/images/generations", &asked).await;
        assert_eq!(got.status, 200, "{}", got.text());
    }
    let costs: Vec<Option<Decimal>> = rows(&stack, 2).await.iter().map(|row| row.get("cost")).collect();
    assert_eq!(costs, [Some(Decimal::from(4)), Some(Decimal::from(12))]);
}
