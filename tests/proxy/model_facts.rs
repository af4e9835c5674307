//! Facts of models beside their prices: the list of models tells them, and an answer of a model past its deprecation date
//! says so.

use crate::families::application;
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};
use tempfile::TempDir;

const PAST: &str = "model: old-1 is past its deprecation date 2020-02-29";

/// Prices and facts of three models, of which one is past its date and one long before it.
fn folders() -> (TempDir, TempDir) {
    let (prices, facts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let rates = json!({ "pricing_config": { "pay_as_you_go": {
        "request_token": { "price": "0.1" }, "response_token": { "price": "0.1" } } } });
    let list = json!({ "old-1": rates, "new-1": rates, "undated-1": rates });
    std::fs::write(prices.path().join("openai.json"), list.to_string()).unwrap();
    let known = json!({
        "old-1": { "facts": { "deprecation_date": "2020-02-29" } },
        "new-1": { "facts": { "context_tokens": 8192, "max_output_tokens": 1024, "input": ["text", "image"],
            "output": ["text"], "deprecation_date": "9999-12-31" } },
        "undated-1": {},
    });
    std::fs::write(facts.path().join("openai.json"), known.to_string()).unwrap();
    (prices, facts)
}

async fn stack_with(more: &[(&str, &str)]) -> (Stack, (TempDir, TempDir)) {
    let folders = folders();
    let mut builder = Stack::builder()
        .proxy("MODEL_CONFIGS_PRICING_LOCAL_PATH", folders.0.path().to_str().unwrap())
        .proxy("MODEL_CONFIGS_CAPABILITIES_LOCAL_PATH", folders.1.path().to_str().unwrap());
    for (name, value) in more {
        builder = builder.proxy(name, *value);
    }
    (builder.start().await, folders)
}

async fn integrate(stack: &Stack) {
    let body = json!({
        "name": "prod", "slug": "prod", "ai_provider_id": "openai", "key": "sk-stored", "default_provider_slug": "prod",
        "workspace_id": stack.home.workspace_id.to_string(), "configurations": { "custom_host": stack.mock.url() },
    });
    let answer = stack.administrator().post("/integrations", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let models =
        ["old-1", "new-1", "undated-1"].map(|slug| json!({ "slug": slug, "enabled": true, "is_custom": true }));
    let mut models = models.to_vec();
    models.push(json!({ "slug": "mine", "enabled": true, "is_custom": true, "base_model_slug": "old-1" }));
    let answer = stack.administrator().put("/integrations/prod/models", &json!({ "models": models })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn ask(client: &Client, model: &str, more: Value) -> Answer {
    let mut body = chat("Hello");
    body["model"] = json!(format!("@prod/{model}"));
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.post("/chat/completions", &body).await
}

fn warnings(answer: &Answer) -> Option<&str> {
    answer.headers.get("x-gateway-warnings").map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn the_list_of_models_tells_what_is_known_of_each() {
    let (stack, _folders) = stack_with(&[]).await;
    integrate(&stack).await;
    let client = application(&stack);
    let model = async |name: &str| client.get(&format!("/models/@prod/{name}")).await.json();
    stack.until("the file was read", async || model("new-1").await["context_window"] == 8192).await;
    let listed = client.get("/models?provider=prod").await.json();
    let of_list = |id: &str| listed["data"].as_array().unwrap().iter().find(|model| model["id"] == id).unwrap().clone();
    for (name, facts) in [
        (
            "new-1",
            json!({ "context_window": 8192, "max_output_tokens": 1024, "input_modalities": ["text", "image"],
                "output_modalities": ["text"], "deprecation_date": "9999-12-31" }),
        ),
        ("old-1", json!({ "deprecation_date": "2020-02-29" })),
        ("undated-1", json!({})),
        ("mine", json!({ "deprecation_date": "2020-02-29" })),
    ] {
        let mut shown = of_list(&format!("@prod/{name}"));
        assert_eq!(shown, model(name).await, "{name}: one model is shown as the list shows it");
        let usual = ["id", "slug", "canonical_slug", "object", "created", "owned_by"];
        usual.iter().for_each(|field| drop(shown.as_object_mut().unwrap().remove(*field)));
        assert_eq!(shown, facts, "{name}");
    }
}

#[tokio::test]
async fn an_answer_of_a_model_past_its_deprecation_date_says_so() {
    let (stack, _folders) = stack_with(&[]).await;
    integrate(&stack).await;
    let client = application(&stack);
    stack.until("the dates are known", async || warnings(&ask(&client, "old-1", json!({})).await) == Some(PAST)).await;
    // Calls are answered before the models of an integration are known.
    let listed = async || client.get("/models/@prod/mine").await.json()["deprecation_date"] == "2020-02-29";
    stack.until("the model of one's own is known", listed).await;
    let mine = "model: mine is past its deprecation date 2020-02-29";
    for (model, more, warned) in [
        ("old-1", json!({}), Some(PAST)),
        ("old-1", json!({ "stream": true }), Some(PAST)),
        ("new-1", json!({}), None),
        ("new-1", json!({ "stream": true }), None),
        ("undated-1", json!({}), None),
        ("mine", json!({}), Some(mine)),
        ("mine", json!({ "stream": true }), Some(mine)),
        // Not a continuation of the name: that is another model.
        ("old-1-2021", json!({}), None),
    ] {
        let answer = ask(&client, model, more.clone()).await;
        assert_eq!((answer.status.as_u16(), warnings(&answer)), (200, warned), "{model} {more}");
    }
    stack.mock.script(json!([{ "status": 404 }])).unwrap();
    let gone = ask(&client, "old-1", json!({})).await;
    assert_eq!((gone.status.as_u16(), warnings(&gone)), (404, Some(PAST)), "{}", gone.text());
    let told = ask(&client.with("x-gateway-metdata", "{}"), "old-1", json!({})).await;
    let all = warnings(&told).unwrap();
    assert!(all.contains("x-gateway-metdata") && all.ends_with(PAST), "{all}");
}

#[tokio::test]
async fn an_answer_that_does_not_tell_its_cost_warns_too() {
    let (stack, _folders) = stack_with(&[("COST_HEADERS", "OFF")]).await;
    integrate(&stack).await;
    let client = application(&stack);
    stack.until("the dates are known", async || warnings(&ask(&client, "old-1", json!({})).await) == Some(PAST)).await;
    let answer = ask(&client, "new-1", json!({})).await;
    assert_eq!((warnings(&answer), answer.headers.get("x-gateway-cost")), (None, None));
}
