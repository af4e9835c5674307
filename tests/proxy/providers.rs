//! The provider table through a running proxy: every row that needs no code answers on each of its endpoints, at its
//! own path and with its own kind of credential; what needs code says so.

use harness::client::whole;
use harness::{Stack, chat};
use http::Method;
use serde_json::{Value, json};
use shared::providers::{Auth, Family, ProviderEntry, Providers};
use std::sync::Arc;

fn all() -> Vec<Arc<ProviderEntry>> {
    let mut rows: Vec<_> = Providers::bundled().unwrap().iter().cloned().collect();
    rows.sort_by(|one, other| one.slug.cmp(&other.slug));
    rows
}

/// What stands before the row's paths on its own host, so that the mock is asked as the provider would be.
fn base_path(row: &ProviderEntry) -> String {
    let url = row.base_url.as_deref().and_then(|url| url::Url::parse(url).ok());
    url.map_or(String::new(), |url| url.path().trim_end_matches('/').to_owned())
}

fn method(family: Family) -> Method {
    match family {
        Family::Files | Family::Batches | Family::FineTuning | Family::Realtime => Method::GET,
        _ => Method::POST,
    }
}

/// The mock takes a chat for nearly everything, but is strict where only one vendor has the path.
fn body(family: Family) -> Value {
    match family {
        Family::Rerank => json!({ "model": "m", "query": "Hello", "documents": ["Hello", "Goodbye"] }),
        _ => chat("Hello"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_that_needs_no_code_is_asked_at_its_own_path_with_its_own_credential() {
    let stack = Stack::start().await;
    let keyed = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    let mut walked = 0;
    for row in all() {
        let host = format!("{}{}", stack.mock.origin(), base_path(&row));
        let client = keyed.with("x-gateway-provider", &*row.slug).with("x-gateway-custom-host", &host);
        for (family, path) in row.native() {
            let what = format!("{} {}", row.slug, family.name());
            stack.mock.reset();
            let mut request = client.request(method(family), family.path());
            if method(family) == Method::POST {
                request = request.json(&body(family));
            }
            let answer = whole(request).await;
            let arrived = stack.mock.requests();
            assert_eq!(arrived.len(), 1, "{what}: {} {}", answer.status, answer.text());
            let arrived = &arrived[0];
            assert_eq!(arrived.path, format!("{}{path}", base_path(&row)), "{what}");
            let sent: Vec<(&str, &str)> = ["authorization", "x-api-key", "api-key", "x-goog-api-key"]
                .into_iter()
                .map(|name| (name, arrived.header(name)))
                .filter(|(_, value)| !value.is_empty())
                .collect();
            let expected = match &row.auth {
                Auth::None => vec![],
                Auth::Header { name, scheme } if scheme.is_empty() => vec![(name.as_str(), "sk-mock".to_owned())],
                Auth::Header { name, scheme } => vec![(name.as_str(), format!("{scheme} sk-mock"))],
                Auth::Signed => panic!("{what}: a signature is code"),
            };
            let expected: Vec<(&str, &str)> = expected.iter().map(|(name, value)| (*name, &**value)).collect();
            assert_eq!(sent, expected, "{what}");
            // The test's client sends an `accept` of its own, which wins on the relay lane.
            for (name, value) in row.headers.iter().filter(|(name, _)| name != http::header::ACCEPT) {
                assert_eq!(arrived.header(name.as_str()), value.to_str().unwrap(), "{what}");
            }
            assert_eq!(answer.header("x-gateway-provider"), &*row.slug, "{what}");
            // The mock refuses who brings no key, and plain requests where it expects a websocket.
            if row.auth != Auth::None && family != Family::Realtime {
                assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            }
            walked += 1;
        }
    }
    assert!(walked >= 100, "only {walked} endpoints");
}

#[tokio::test]
async fn what_needs_code_or_is_not_offered_is_refused_before_the_provider_is_asked() {
    let stack = Stack::start().await;
    let keyed = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    let keyed = keyed.with("x-gateway-custom-host", stack.mock.url());
    stack.mock.reset();
    for row in all() {
        let client = keyed.with("x-gateway-provider", &*row.slug);
        for family in row.untranslated() {
            let what = format!("{} {}", row.slug, family.name());
            let mut request = client.request(method(family), family.path());
            if method(family) == Method::POST {
                request = request.json(&body(family));
            }
            let answer = whole(request).await;
            assert_eq!(answer.status, 400, "{what}: {}", answer.text());
            let code = answer.json()["error"]["code"].clone();
            assert_eq!(code, "endpoint_not_supported", "{what}");
            assert_eq!(answer.header("x-gateway-provider"), &*row.slug, "{what}");
        }
    }
    for (provider, path) in [("groq", "/embeddings"), ("anthropic", "/embeddings")] {
        let answer = keyed.with("x-gateway-provider", provider).post(path, &chat("Hello")).await;
        let code = answer.json()["error"]["code"].clone();
        assert_eq!((answer.status.as_u16(), code), (400, json!("endpoint_not_supported")), "{provider} {path}");
    }
    assert!(stack.mock.requests().is_empty());
}

#[tokio::test]
async fn a_provider_without_an_address_of_its_own_needs_one_from_the_request() {
    let stack = Stack::start().await;
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", "ollama");
    let answer = client.post("/chat/completions", &chat("Hello")).await;
    let code = answer.json()["error"]["code"].clone();
    assert_eq!((answer.status.as_u16(), code), (400, json!("invalid_custom_host")));
}

#[tokio::test]
async fn an_operators_own_provider_is_a_file_and_no_code() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let row = "[mine]\nname = 'Mine'\nauth = 'x-mine: Token'\nendpoints = ['chat']\npaths = { chat = '/c' }\n";
    std::fs::write(file.path(), row).unwrap();
    let stack = Stack::builder().proxy("PROVIDERS_FILE", file.path().to_string_lossy()).start().await;
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    let client = client.with("x-gateway-provider", "mine").with("x-gateway-custom-host", stack.mock.origin());
    client.post("/chat/completions", &chat("Hello")).await;
    let arrived = &stack.mock.requests()[0];
    assert_eq!((&*arrived.path, arrived.header("x-mine")), ("/c", "Token sk-mock"));
}
