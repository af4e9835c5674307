//! Paths of a provider that have the name of something of the gateway: `/v1/proxy/` leads to them, and who forgets it is told.

use crate::families::{application, integrate};
use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use serde_json::{Value, json};

/// Method, path, and the body that is sent.
type Call = (&'static str, &'static str, Option<Value>);

fn qdrant() -> Vec<Call> {
    vec![
        ("GET", "/collections", None),
        ("PUT", "/collections/books", Some(json!({ "vectors": { "size": 4, "distance": "Cosine" } }))),
        (
            "PUT",
            "/collections/books/points?wait=true",
            Some(json!({ "points": [{ "id": 1, "vector": [0, 1, 2, 3] }] })),
        ),
        ("POST", "/collections/books/points/search", Some(json!({ "vector": [0, 1, 2, 3], "limit": 1 }))),
        ("PATCH", "/collections/books", Some(json!({ "optimizers_config": {} }))),
        ("DELETE", "/collections/books", None),
    ]
}

fn replicate() -> Vec<Call> {
    vec![
        ("GET", "/collections/text-to-image", None),
        ("POST", "/deployments/acme/upscaler/predictions", Some(json!({ "input": { "scale": 2 } }))),
        ("PATCH", "/deployments/acme/upscaler", Some(json!({ "min_instances": 1 }))),
        ("DELETE", "/deployments/acme/upscaler", None),
        ("GET", "/deployments", None),
    ]
}

async fn send(client: &Client, path: &str, call: &Call) -> harness::Answer {
    let method: Method = call.0.parse().unwrap();
    let request = client.request(method, path);
    whole(match &call.2 {
        Some(body) => request.json(body),
        None => request,
    })
    .await
}

#[tokio::test]
async fn collections_and_deployments_of_a_provider_are_below_proxy() {
    let stack = Stack::start().await;
    for (provider, header, key, calls) in [
        ("qdrant", "api-key", "Bearer own-key", qdrant()),
        ("replicate", "authorization", "Bearer own-key", replicate()),
    ] {
        let client = application(&stack).with("x-gateway-provider", provider).with("authorization", "Bearer own-key");
        let client = client.with("x-gateway-custom-host", stack.mock.origin());
        for call in &calls {
            let (method, path, body) = call;
            stack.mock.reset();
            let answer = send(&client, &format!("/proxy{path}"), call).await;
            let arrived = stack.mock.requests();
            assert_eq!(arrived.len(), 1, "{method} {path}: {}", answer.text());
            let whole = arrived[0].query.as_ref().map(|query| format!("{}?{query}", arrived[0].path));
            let seen = (&*arrived[0].method, whole.unwrap_or(arrived[0].path.clone()), arrived[0].header(header));
            assert_eq!(seen, (*method, (*path).to_owned(), key));
            let sent = body.as_ref().map(Value::to_string).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&arrived[0].body), sent, "{method} {path}");
        }
    }
    integrate(&stack, "vectors", "qdrant").await;
    let stored = application(&stack).with("x-gateway-provider", "@vectors");
    stack.mock.reset();
    send(&stored, "/proxy/collections", &("GET", "", None)).await;
    assert!(stack.mock.requests()[0].path.ends_with("/collections"));
}

#[tokio::test]
async fn whoever_names_a_provider_at_a_path_of_the_gateway_is_told_of_proxy() {
    let stack = Stack::start().await;
    let vectors = json!({ "vectors": { "size": 4 } });
    for key in [&stack.home.workspace_key, &stack.home.admin_key] {
        let plain = stack.anonymous().with_key(key);
        for named in [plain.with("x-gateway-provider", "qdrant"), plain.with("x-gateway-provider", "@vectors")] {
            for (call, status) in [
                (("PUT", "/collections/books", Some(vectors.clone())), None),
                (("GET", "/collections/books", None), None),
                (("POST", "/labels", Some(json!({ "x": 1 }))), None),
                (("PATCH", "/collections/books", Some(json!({}))), Some(405)),
            ] {
                let told = send(&named, call.1, &call).await;
                assert!((400..500).contains(&told.status.as_u16()), "{}", told.text());
                assert!(status.is_none_or(|status| told.status == status), "{}", told.text());
                for message in [&told.json()["message"], &told.json()["error"]["message"]] {
                    assert!(message.as_str().unwrap().contains("/v1/proxy/"), "{message}");
                }
                let untold = send(&plain, call.1, &call).await;
                assert_eq!(untold.status, told.status);
                assert!(!untold.text().contains("/v1/proxy/"), "{}", untold.text());
            }
        }
    }
    assert!(stack.mock.requests().is_empty(), "nothing of it is the provider's");
}
