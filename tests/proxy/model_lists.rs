//! A provider's own list of models in OpenAI's form, whatever the provider's is: asked where the provider has it, page after
//! page, with its credential.

use crate::families::application;
use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use serde_json::{Value, json};

fn client(stack: &Stack, provider: &str) -> Client {
    let client = application(stack).with("authorization", "Bearer sk-own").with("x-gateway-provider", provider);
    client.with("x-gateway-custom-host", stack.mock.origin())
}

fn places(stack: &Stack) -> Vec<String> {
    let requests = stack.mock.requests();
    let place =
        |path: &str, query: Option<&str>| query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    requests.iter().map(|request| place(&request.path, request.query.as_deref())).collect()
}

fn says(stack: &Stack, pages: &[Value]) {
    stack.mock.reset();
    let faults = pages.iter().map(|page| json!({ "body": page.to_string(), "content_type": "application/json" }));
    stack.mock.script(faults.collect()).unwrap();
}

#[tokio::test]
async fn every_form_becomes_openais_and_pages_are_followed() {
    let stack = Stack::start().await;
    for (provider, pages, asked, ids) in [
        ("openai", vec![json!({ "object": "list", "data": [{ "id": "a" }] })], vec!["/models"], vec!["a"]),
        ("together-ai", vec![json!([{ "id": "a/b", "type": "chat" }])], vec!["/v1/models"], vec!["a/b"]),
        (
            "anthropic",
            vec![
                json!({ "data": [{ "id": "c-1", "created_at": "2025-01-01T00:00:00Z" }], "has_more": true, "last_id": "c-1" }),
                json!({ "data": [{ "id": "c-2" }], "has_more": false, "last_id": "c-2" }),
            ],
            vec!["/models", "/models?after_id=c%2D1"],
            vec!["c-1", "c-2"],
        ),
        (
            "google",
            vec![
                json!({ "models": [{ "name": "models/g-1" }], "nextPageToken": "t/1" }),
                json!({ "models": [{ "name": "models/g-2" }] }),
            ],
            vec!["/v1beta/models?pageSize=1000", "/v1beta/models?pageSize=1000&pageToken=t%2F1"],
            vec!["g-1", "g-2"],
        ),
        (
            "vertex-ai",
            vec![
                json!({ "publisherModels": [{ "name": "publishers/google/models/g" }, { "name": "publishers/meta/models/l" }] }),
            ],
            vec!["/v1beta1/publishers/*/models?pageSize=300"],
            vec!["g", "meta.l"],
        ),
        (
            "bedrock",
            vec![json!({ "modelSummaries": [{ "modelId": "a.b-v1:0" }] })],
            vec!["/foundation-models"],
            vec!["a.b-v1:0"],
        ),
        (
            "cohere",
            vec![json!({ "models": [{ "name": "command" }] })],
            vec!["/v1/models?page_size=1000"],
            vec!["command"],
        ),
        (
            "azure-openai",
            vec![json!({ "data": [{ "id": "gpt-4o" }] })],
            vec!["/models?api-version=2024-10-21"],
            vec!["gpt-4o"],
        ),
        (
            "workers-ai",
            vec![json!({ "result": [{ "name": "@cf/a" }] })],
            vec!["/models/search?per_page=1000"],
            vec!["@cf/a"],
        ),
        ("databricks", vec![json!({ "endpoints": [{ "name": "e" }] })], vec!["/api/2.0/serving-endpoints"], vec!["e"]),
        ("pinecone", vec![json!({ "models": [{ "model": "e5" }] })], vec!["/models"], vec!["e5"]),
    ] {
        says(&stack, &pages);
        let client =
            client(&stack, provider).with("x-gateway-vertex-project-id", "p").with("x-gateway-vertex-region", "r");
        let answer = client.get("/models").await;
        assert_eq!(answer.status, 200, "{provider}: {}", answer.text());
        let list = answer.json();
        let found: Vec<&str> =
            list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
        assert_eq!(
            (found, places(&stack)),
            (ids, asked.iter().map(|place| (*place).to_owned()).collect()),
            "{provider}"
        );
        assert_eq!(
            (&list["object"], &list["provider"], &list["has_more"]),
            (&json!("list"), &json!(provider), &json!(false))
        );
        for model in list["data"].as_array().unwrap() {
            assert_eq!((&model["object"], model["created"].is_i64()), (&json!("model"), true), "{provider}");
            assert!(model["owned_by"].is_string(), "{provider}");
        }
    }
}

#[tokio::test]
async fn a_single_model_an_error_and_a_list_without_end_are_told_as_openai_would() {
    let stack = Stack::start().await;
    let google = client(&stack, "google");
    let list = json!({ "models": [{ "name": "models/g-1" }, { "name": "models/g-2" }] });
    says(&stack, &[list.clone(), list]);
    let one = google.get("/models/g-2").await;
    assert_eq!((one.status.as_u16(), &one.json()["id"]), (200, &json!("g-2")), "{}", one.text());
    let none = google.get("/models/g-3").await;
    assert_eq!((none.status.as_u16(), &none.json()["error"]["code"]), (404, &json!("model_not_found")));
    stack.mock.script(json!([{ "status": 403, "body": r#"{"message":"no access"}"# }])).unwrap();
    let refused = client(&stack, "bedrock").get("/models").await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["message"]),
        (403, &json!("bedrock error: no access"))
    );
    stack.mock.script(json!([{ "body": "<html>", "content_type": "text/html" }])).unwrap();
    let rubbish = google.get("/models").await;
    assert_eq!((rubbish.status.as_u16(), &rubbish.json()["error"]["code"]), (502, &json!("invalid_upstream_response")));
    says(&stack, &vec![json!({ "models": [{ "name": "models/g" }], "nextPageToken": "again" }); 30]);
    let endless = google.get("/models").await.json();
    assert_eq!((endless["data"].as_array().unwrap().len(), &endless["has_more"]), (20, &json!(true)));
    assert_eq!(stack.mock.requests().len(), 20, "it is not asked for ever");
}

#[tokio::test]
async fn an_account_at_its_own_address_is_asked_there_for_its_models() {
    let stack = Stack::start().await;
    let config = json!({ "provider": "huggingface", "api_key": "sk-own", "huggingface_base_url": stack.mock.origin() });
    let client = application(&stack).with("x-gateway-config", config.to_string());
    says(&stack, &[json!({ "data": [{ "id": "mine" }] })]);
    let answer = client.get("/models").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["data"][0]["id"]), (200, &json!("mine")), "{}", answer.text());
    assert_eq!(places(&stack), ["/v1/models"]);
    assert_eq!(stack.mock.requests()[0].header("authorization"), "Bearer sk-own");
}

/// What a client sends all the same is judged by nobody.
#[tokio::test]
async fn a_provider_that_is_asked_for_its_models_gets_no_body() {
    let stack = Stack::start().await;
    for body in [r#"{"messages":[{"role":"user","content":"forbidden"}]}"#, "forbidden"] {
        stack.mock.reset();
        let asked =
            client(&stack, "openai").request(Method::GET, "/models/gpt-4o").header("content-type", "application/json");
        let answer = whole(asked.body(body)).await;
        let heard = stack.mock.requests();
        assert_eq!((answer.status.as_u16(), heard.len()), (200, 1), "{}", answer.text());
        assert!(heard[0].body.is_empty() && heard[0].headers.get("content-length").is_none(), "{body}");
    }
}
