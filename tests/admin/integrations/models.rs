//! Models of an integration: which are allowed, which are the operator's own.

use super::{account, refused};
use crate::service::Service;
use harness::{Client, client::whole};
use http::Method;
use serde_json::{Value, json};

const PATH: &str = "/integrations/main/models";

async fn model(client: &Client, slug: &str) -> Option<Value> {
    let list = client.get(PATH).await.json();
    let models = list["models"].as_array().unwrap_or_else(|| panic!("{list}"));
    assert_eq!(list["total"], models.len());
    models.iter().find(|one| one["slug"] == slug).cloned()
}

#[tokio::test]
async fn own_models_are_added_changed_and_taken_away() {
    let service = Service::start().await;
    let client = service.administrator();
    account(&client, "main").await;
    assert_eq!(client.get(PATH).await.json()["allow_all_models"], true);
    let body = json!({ "allow_all_models": false, "key": "sk-0123456789abc", "models": [
        {
            "slug": "house/model-1", "enabled": true, "is_custom": true, "base_model_slug": "gpt-4o",
            "configurations": { "custom_host": "https://llm.example.com", "custom_headers": { "x-a": "model-secret" } },
            "pricing_config": { "type": "static", "pay_as_you_go": { "request_token": { "price": 0.001 } } },
        },
        { "slug": "ft:1", "enabled": false, "is_finetune": true },
    ] });
    assert_eq!(client.put(PATH, &body).await.json(), json!({}));
    let shown = model(&client, "house/model-1").await.unwrap();
    let expected = json!({
        "slug": "house/model-1", "name": "house/model-1", "enabled": true, "is_custom": true, "is_finetune": false,
        "base_model_slug": "gpt-4o",
        "pricing_config": { "type": "static", "pay_as_you_go": { "request_token": { "price": 0.001 } } },
        "configurations": { "custom_host": "https://llm.example.com", "masked_custom_headers": { "x-a": "mo*****ret" } },
        "created_at": shown["created_at"], "last_updated_at": shown["last_updated_at"],
    });
    assert_eq!(shown, expected);
    assert_eq!(client.get(PATH).await.json()["allow_all_models"], false);
    assert!(model(&client, "ft:1").await.unwrap().get("base_model_slug").is_none());

    let change = json!({ "models": [{ "slug": "house/model-1", "enabled": false, "pricing_config": null }] });
    assert_eq!(client.put("/integrations/main/integration-models", &change).await.status, 200);
    let changed = model(&client, "house/model-1").await.unwrap();
    assert_eq!((&changed["enabled"], &changed["pricing_config"]), (&json!(false), &Value::Null));
    assert_eq!(changed["configurations"], expected["configurations"], "what was not sent stays");

    assert_eq!(client.delete(&format!("{PATH}?slugs=ft:1,unknown")).await.json(), json!({}));
    let body = json!({ "models": ["house/model-1"] });
    assert_eq!(whole(client.request(Method::DELETE, PATH).json(&body)).await.json(), json!({}));
    assert_eq!((model(&client, "ft:1").await, model(&client, "house/model-1").await), (None, None));
}

#[tokio::test]
async fn models_of_the_catalogue_are_offered_and_switched_but_not_taken_away() {
    let service = Service::start().await;
    let client = service.administrator();
    account(&client, "main").await;
    let offered = client.get(PATH).await.json();
    assert!(offered["total"].as_u64().unwrap() > 20, "{}", offered["total"]);
    assert_eq!(model(&client, "default").await, None);
    let shown = model(&client, "gpt-4o").await.unwrap();
    assert_eq!((&shown["enabled"], &shown["is_custom"]), (&json!(true), &json!(false)));
    let change = json!({ "models": [{ "slug": "gpt-4o", "enabled": false }] });
    assert_eq!(client.put(PATH, &change).await.status, 200);
    assert_eq!(model(&client, "gpt-4o").await.unwrap()["enabled"], false);
    assert_eq!(model(&client, "gpt-4o-mini").await.unwrap()["enabled"], true);
    assert_eq!(client.get(PATH).await.json()["total"], offered["total"]);
    assert_eq!(client.put(PATH, &json!({ "allow_all_models": false })).await.status, 200);
    assert_eq!(model(&client, "gpt-4o-mini").await.unwrap()["enabled"], false, "what was not said follows the rest");
    for slug in ["gpt-4o", "gpt-4o-mini"] {
        let answer = client.delete(&format!("{PATH}?slugs={slug}")).await;
        assert_eq!(refused(&answer), (400, "AB01".into(), "slugs".into()), "{slug}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_model_is_named_and_nothing_is_written() {
    let service = Service::start().await;
    let client = service.administrator();
    account(&client, "main").await;
    for (second, field) in [
        (json!({ "slug": "no-such-model", "enabled": true }), "models[1].slug"),
        (json!({ "slug": "", "enabled": true, "is_custom": true }), "models[1].slug"),
        (json!({ "slug": "a", "is_custom": true }), "models[1].enabled"),
        (
            json!({ "slug": "a", "enabled": true, "is_custom": true, "configurations": { "custom_host": "http://10.1.1.1" } }),
            "models[1].configurations.custom_host",
        ),
        (
            json!({ "slug": "a", "enabled": true, "is_custom": true, "pricing_config": { "type": "x" } }),
            "models[1].pricing_config.type",
        ),
    ] {
        let body = json!({ "models": [{ "slug": "fine", "enabled": true, "is_custom": true }, second] });
        assert_eq!(refused(&client.put(PATH, &body).await), (400, "AB01".into(), field.into()), "{body}");
        assert_eq!(model(&client, "fine").await, None);
    }
    assert_eq!(refused(&client.put(PATH, &json!({})).await).2, "models");
    assert_eq!(refused(&client.delete(PATH).await).2, "slugs");
}
