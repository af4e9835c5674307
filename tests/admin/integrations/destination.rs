//! A stored credential stays where it was stored for: who leads it elsewhere has to send it again.

use super::{account, refused};
use crate::service::Service;
use serde_json::{Value, json};

const KEY: &str = "sk-0123456789abc";
const MASK: &str = "sk*****abc";

fn told(param: &str) -> (u16, String, String) {
    (400, "AB01".into(), param.into())
}

#[tokio::test]
async fn an_integrations_key_is_sent_again_when_its_host_changes() {
    let service = Service::start().await;
    let client = service.administrator();
    account(&client, "prod").await;
    let host = |host: Value| json!({ "configurations": { "custom_host": host } });
    let with = |mut change: Value, key: &str| {
        change["key"] = json!(key);
        change
    };
    let evil = || host(json!("https://evil.example.com/v1"));
    for change in [
        evil(),
        with(evil(), MASK),
        json!({ "configurations": { "huggingface_base_url": "https://evil.example.com" } }),
    ] {
        assert_eq!(refused(&client.put("/integrations/prod", &change).await), told("key"), "{change}");
    }
    let shown = client.get("/integrations/prod").await.json();
    assert_eq!(shown["configurations"].get("custom_host"), None, "nothing was changed: {shown}");
    assert_eq!(client.put("/integrations/prod", &with(evil(), KEY)).await.status, 200);
    let same = host(json!("https://evil.example.com/v2"));
    assert_eq!(client.put("/integrations/prod", &same).await.status, 200, "another path of the same host");
    assert_eq!(
        refused(&client.put("/integrations/prod", &host(Value::Null)).await),
        told("key"),
        "back is elsewhere too"
    );
    assert_eq!(client.put("/integrations/prod", &json!({ "description": "d" })).await.status, 200);
}

#[tokio::test]
async fn a_virtual_keys_key_is_sent_again_when_its_host_changes() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({ "name": "vk", "provider": "openai", "key": KEY, "workspace_id": service.home.workspace_id });
    let made = client.post("/virtual-keys", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let path =
        format!("/virtual-keys/{}?workspace_id={}", made.json()["slug"].as_str().unwrap(), service.home.workspace_id);
    for name in ["custom_host", "customHost"] {
        let elsewhere = json!({ name: "https://evil.example.com" });
        let answer = client.put(&path, &elsewhere).await;
        assert_eq!(refused(&answer), told("key"), "{elsewhere}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_models_host_takes_the_integrations_key_only_from_who_knows_it() {
    let service = Service::start().await;
    let client = service.administrator();
    account(&client, "prod").await;
    let model = |configurations: Value, more: Value| {
        let mut body = json!({ "models": [{ "slug": "own", "enabled": true, "is_custom": true, "configurations": configurations }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let path = "/integrations/prod/models";
    let host = json!({ "custom_host": "https://evil.example.com" });
    for more in [json!({}), json!({ "key": MASK }), json!({ "key": "sk-guessed" })] {
        let answer = client.put(path, &model(host.clone(), more.clone())).await;
        assert_eq!(refused(&answer), told("models[0].configurations.custom_host"), "{more}: {}", answer.text());
    }
    assert_eq!(client.put(path, &model(json!({ "custom_headers": { "x-a": "s" } }), json!({}))).await.status, 200);
    let led = client.put("/integrations/prod", &json!({ "key": KEY, "configurations": host })).await;
    assert_eq!(refused(&led), told("configurations"), "the model's headers would go along: {}", led.text());
    let led = client.put(path, &model(host.clone(), json!({ "key": KEY }))).await;
    assert_eq!(refused(&led), told("models[0].configurations.custom_headers"), "{}", led.text());
    let mut all = host.clone();
    all["custom_headers"] = json!({ "x-a": "s" });
    let answer = client.put(path, &model(all, json!({ "key": KEY }))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let shown = client.get(path).await.text();
    assert!(!shown.contains(KEY) && shown.contains("evil.example.com"), "{shown}");
}

#[tokio::test]
async fn what_opens_a_manager_is_sent_again_when_its_address_changes() {
    let service = Service::start().await;
    let client = service.administrator();
    let config = json!({ "vault_auth_type": "token", "vault_addr": "https://vault.example.com", "vault_token": "hvs.0123456789" });
    let body = json!({ "name": "r", "slug": "r", "manager_type": "hashicorp_vault", "secret_path": "p", "auth_config": config });
    assert_eq!(client.post("/secret-references", &body).await.status, 200);
    let change = |config: Value| json!({ "auth_config": config });
    let evil = "https://evil.example.com";
    let answer = client.put("/secret-references/r", &change(json!({ "vault_addr": evil }))).await;
    assert_eq!(refused(&answer), told("auth_config.vault_token"), "{}", answer.text());
    let whole = change(json!({ "vault_addr": evil, "vault_token": "hvs.0123456789" }));
    assert_eq!(client.put("/secret-references/r", &whole).await.status, 200);
    for (hosts, status) in [
        (json!(["LLM.example.com", "10.0.0.1:8443"]), 200),
        (json!(["https://llm.example.com"]), 400),
        (json!(vec!["a.test"; 51]), 400),
    ] {
        let answer = client.put("/secret-references/r", &json!({ "allowed_hosts": hosts })).await;
        assert_eq!(answer.status, status, "{hosts}: {}", answer.text());
    }
    let shown = client.get("/secret-references/r").await.json();
    assert_eq!(shown["allowed_hosts"], json!(["llm.example.com", "10.0.0.1:8443"]));
}
