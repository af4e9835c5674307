//! Keys that are bound to their config, and organisations that accept saved configs and providers alone.

use super::{saved::save, target};
use harness::{Answer, Client, Stack, chat};
use serde_json::json;

async fn ask(client: &Client) -> Answer {
    client.post("/chat/completions", &chat("Hello")).await
}

fn refusal(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    let message = body["error"]["message"].as_str().unwrap_or_default();
    let named = ["allow_config_override", "block_inline_config"].into_iter().find(|name| message.contains(name));
    (answer.status.as_u16(), named.unwrap_or(message).to_owned())
}

#[tokio::test]
async fn a_key_whose_config_is_locked_uses_no_other() {
    let stack = Stack::start().await;
    let own = save(&stack, "own", target(&stack, json!({})), json!({})).await;
    let other = save(&stack, "other", target(&stack, json!({ "retry": { "attempts": 1 } })), json!({})).await;
    let new_key = async |is_locked: bool| {
        let defaults = json!({ "config_id": own, "allow_config_override": !is_locked });
        let body = json!({
            "name": "k", "workspace_id": stack.home.workspace_id.to_string(), "scopes": ["completions.write"], "defaults": defaults,
        });
        let made = stack.administrator().post("/api-keys/workspace/service", &body).await;
        assert_eq!(made.status, 200, "{}", made.text());
        let key = made.json()["key"].as_str().unwrap().to_owned();
        stack.until_known(&key).await;
        stack.anonymous().with_key(&key)
    };
    let (locked, free) = (new_key(true).await, new_key(false).await);
    stack
        .until("the configs are known", async || ask(&free.with("x-gateway-config", &*other)).await.status == 200)
        .await;
    let id = stack.administrator().get(&format!("/configs/{own}")).await.json()["id"].as_str().unwrap().to_owned();
    let inline = target(&stack, json!({})).to_string();
    assert_eq!(ask(&locked).await.status, 200);
    for same in [&own, &id] {
        assert_eq!(ask(&locked.with("x-gateway-config", same)).await.status, 200, "its own by name");
    }
    let before = stack.mock.requests().len();
    for another in [&other, &inline] {
        let client = locked.with("x-gateway-config", another);
        assert_eq!(refusal(&ask(&client).await), (400, "allow_config_override".into()), "{another}");
        assert_eq!(refusal(&client.post("/elsewhere", &chat("x")).await), (400, "allow_config_override".into()));
    }
    assert_eq!(stack.mock.requests().len(), before, "nobody was asked");
    assert_eq!(ask(&free.with("x-gateway-config", &*inline)).await.status, 200);
}

/// Whatever header could lead a call elsewhere than the config does, on both lanes.
#[tokio::test]
async fn headers_lead_no_call_elsewhere_where_a_request_must_keep_to_its_config() {
    let stack = Stack::start().await;
    let own = save(&stack, "own", target(&stack, json!({})), json!({})).await;
    let body = json!({
        "name": "k", "workspace_id": stack.home.workspace_id.to_string(), "scopes": ["completions.write"],
        "defaults": { "config_id": own, "allow_config_override": false },
    });
    let made = stack.administrator().post("/api-keys/workspace/service", &body).await;
    let key = made.json()["key"].as_str().unwrap().to_owned();
    stack.until_known(&key).await;
    let locked = stack.anonymous().with_key(&key);
    stack.until("the config is known", async || ask(&locked).await.status == 200).await;
    let plain = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", &*own);
    let host = target(&stack, json!({}))["custom_host"].as_str().unwrap().to_owned();
    let check = async |client: &Client, name: &str| {
        let before = stack.mock.requests().len();
        for (header, value) in [
            ("x-gateway-custom-host", "http://127.0.0.1:9/v1"),
            ("x-gateway-provider", "anthropic"),
            ("x-gateway-aws-region", "eu-central-1"),
            ("x-gateway-azure-resource-name", "elsewhere"),
        ] {
            let client = client.with(header, value);
            assert_eq!(refusal(&ask(&client).await), (400, name.into()), "{header}");
            assert_eq!(refusal(&client.post("/elsewhere", &chat("x")).await), (400, name.into()), "{header}");
        }
        assert_eq!(stack.mock.requests().len(), before, "nobody was asked");
        assert_eq!(ask(&client.with("x-gateway-custom-host", &*host)).await.status, 200, "the same address");
    };
    check(&locked, "allow_config_override").await;
    assert_eq!(ask(&plain.with("x-gateway-custom-host", &*host)).await.status, 200, "who is not bound may say it");
    let block = json!({ "settings": { "block_inline_config": true } });
    assert_eq!(stack.administrator().put("/admin/organisation", &block).await.status, 200);
    let elsewhere = plain.with("x-gateway-aws-region", "eu-central-1");
    stack.until("the setting holds", async || ask(&elsewhere).await.status == 400).await;
    check(&plain, "block_inline_config").await;
}

#[tokio::test]
async fn an_organisation_that_blocks_inline_configs_accepts_saved_configs_and_providers_alone() {
    let stack = Stack::start().await;
    let saved = save(&stack, "saved", target(&stack, json!({})), json!({})).await;
    let application = stack.anonymous().with_key(&stack.home.workspace_key);
    let by_name = application.with("x-gateway-config", &*saved);
    let inline = application.with("x-gateway-config", target(&stack, json!({})).to_string());
    stack.until("the config is known", async || ask(&by_name).await.status == 200).await;
    for client in [&inline, &stack.client()] {
        assert_eq!(ask(client).await.status, 200);
    }
    let block = json!({ "settings": { "block_inline_config": true } });
    assert_eq!(stack.administrator().put("/admin/organisation", &block).await.status, 200);
    stack.until("the setting holds", async || ask(&inline).await.status == 400).await;
    let before = stack.mock.requests().len();
    for client in [&inline, &stack.client()] {
        assert_eq!(refusal(&ask(client).await), (400, "block_inline_config".into()));
        assert_eq!(refusal(&client.post("/elsewhere", &chat("x")).await), (400, "block_inline_config".into()));
    }
    let plain = application.with("x-gateway-config", &*saved);
    for (client, code, field) in [
        (inline.clone(), "inline_config_blocked", "x-gateway-config"),
        (application.with("x-gateway-provider", "openai"), "inline_provider_blocked", "x-gateway-provider"),
        (plain.with("x-gateway-provider", "anthropic"), "inline_provider_blocked", "x-gateway-provider"),
        (
            plain.with("x-gateway-custom-host", "http://127.0.0.1:9"),
            "inline_custom_host_blocked",
            "x-gateway-custom-host",
        ),
        (plain.with("x-gateway-aws-region", "eu-central-1"), "inline_provider_url_blocked", "x-gateway-aws-region"),
        (plain.with("x-gateway-forward-headers", "x-a"), "inline_forward_headers_blocked", "x-gateway-forward-headers"),
    ] {
        for answer in [ask(&client).await, client.post("/elsewhere", &chat("x")).await] {
            let error = &answer.json()["error"];
            assert_eq!(
                (answer.status.as_u16(), &error["code"], &error["param"]),
                (400, &json!(code), &json!(field)),
                "{error}"
            );
        }
    }
    assert_eq!(stack.mock.requests().len(), before, "nobody was asked");
    assert_eq!(ask(&by_name).await.status, 200);
    let other = stack.organisation().await;
    assert_eq!(ask(&stack.as_application(&other.workspace_key)).await.status, 200, "another organisation's choice");
}
