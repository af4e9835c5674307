//! The public price list over HTTP: at both addresses, without a credential, from every source.

use crate::service::Service;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use harness::Client;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;

/// Digit for digit, so that no float stands between.
fn price_text(body: &str, key: &str) -> String {
    let (_, rest) = body.split_once(&format!("\"{key}\":{{\"price\":")).unwrap_or_else(|| panic!("{key} in {body}"));
    rest.split('}').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_price_is_public_exact_and_at_the_root_as_well() {
    let service = Service::start().await;
    let root = Client::new(&service.origin);
    for client in [service.client(), root] {
        let answer = client.get("/model-configs/pricing/openai/gpt-4o").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.json()["currency"], "USD");
        for (key, price) in
            [("request_token", "0.00025"), ("response_token", "0.001"), ("cache_read_input_token", "0.000125")]
        {
            assert_eq!(price_text(&answer.text(), key), price);
        }
    }
}

#[tokio::test]
async fn a_model_is_found_by_name_by_the_longest_it_continues_and_with_slashes() {
    let service = Service::start().await;
    let client = service.client();
    for (path, price) in [
        ("openai/gpt-4o-mini", "0.000015"),
        ("openai/gpt-4o-mini-2049-01-01", "0.000015"),
        ("openrouter/anthropic/claude-sonnet-4.5", "0.0003"),
        ("openrouter/anthropic%2Fclaude-sonnet-4.5", "0.0003"),
        ("bedrock/us.anthropic.claude-3-5-haiku-20241022-v1:0", "0.00008"),
        ("deepseek/deepseek-chat", "0.000028"),
    ] {
        let answer = client.get(&format!("/model-configs/pricing/{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(price_text(&answer.text(), "request_token"), price, "{path}");
    }
}

#[tokio::test]
async fn whole_files_are_served_and_what_is_not_known_is_404_with_a_plain_error() {
    let service = Service::start().await;
    let client = service.client();
    let all = client.get("/model-configs/pricing/anthropic").await.json();
    assert!(all.as_object().unwrap().len() > 20, "{all}");
    assert!(all["claude-sonnet-4-5"]["pricing_config"]["pay_as_you_go"]["request_token"]["price"].is_number());
    let general = client.get("/model-configs/general/anthropic").await.json();
    assert_eq!((&general["name"], &general["default"]["type"]["primary"]), (&json!("anthropic"), &json!("chat")));
    for path in [
        "pricing/openai/nothing-of-the-kind",
        "pricing/nobody/gpt-4o",
        "pricing/nobody",
        "pricing/..%2Fopenai",
        "general/nobody",
        // A provider of the table that has no files.
        "general/qdrant",
    ] {
        let answer = client.get(&format!("/model-configs/{path}")).await;
        let body = answer.json();
        assert_eq!((answer.status.as_u16(), &body["data"]["errorCode"]), (404, &json!("AB08")), "{path}: {body}");
        assert!(body["error"].as_str().is_some_and(|text| text == body["message"]), "{path}: {body}");
    }
}

/// A service of the operator's that knows one provider, and counts who asks.
async fn configs_service() -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let file = r#"{"m":{"pricing_config":{"pay_as_you_go":{"request_token":{"price":"0.000000125"}}}}}"#;
    let answer = move || {
        count.fetch_add(1, Ordering::Relaxed);
        async move { file }
    };
    let router = Router::new()
        .route("/configs/pricing/groq", get(answer))
        .fallback(async || (StatusCode::NOT_FOUND, "nothing here"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/configs", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, asked)
}

#[tokio::test]
async fn the_operators_service_is_asked_first_and_once_and_local_files_before_what_is_bundled() {
    let (url, asked) = configs_service().await;
    let folder = tempfile::tempdir().unwrap();
    let own = r#"{"mine":{"pricing_config":{"pay_as_you_go":{"request_token":{"price":7}}}}}"#;
    std::fs::write(folder.path().join("openai.json"), own).unwrap();
    let service = Service::start_with(&[
        "--model-configs-proxy-fetch-enabled=ON",
        &format!("--model-configs-proxy-url={url}/"),
        &format!("--model-configs-pricing-local-path={}", folder.path().display()),
    ])
    .await;
    let client = service.client();
    for _ in 0..3 {
        let fetched = client.get("/model-configs/pricing/groq/m").await;
        assert_eq!(price_text(&fetched.text(), "request_token"), "0.000000125");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let local = client.get("/model-configs/pricing/openai/mine").await;
    assert_eq!(price_text(&local.text(), "request_token"), "7");
    assert_eq!(
        client.get("/model-configs/pricing/openai/gpt-4o").await.status,
        404,
        "the local file stands for the whole"
    );
    let bundled = client.get("/model-configs/pricing/anthropic/claude-sonnet-4-5").await;
    assert_eq!(price_text(&bundled.text(), "request_token"), "0.0003");
}
