//! Calls of the control plane go to admin as they are, and admin's absence is nobody else's trouble.

use crate::raw::Wire;
use crate::upstream::RawUpstream;
use harness::client::whole;
use harness::{Stack, chat};
use http::Method;
use serde_json::json;

#[tokio::test]
async fn admin_answers_through_the_proxy_as_it_does_by_itself() {
    let stack = Stack::start().await;
    let direct = harness::Client::new(&stack.admin_url);
    // Admin keys, no key, an unknown key; built and unbuilt operations, a wrong method.
    for path in ["/api-keys/self", "/admin/users", "/configs", "/guardrails?page_size=5&x=%2F"] {
        for key in [&stack.home.admin_key, "pk_unknown", ""] {
            let (through, by_itself) = match key {
                "" => (stack.anonymous().get(path).await, direct.get(path).await),
                key => (stack.anonymous().with_key(key).get(path).await, direct.with_key(key).get(path).await),
            };
            assert_eq!(through.status, by_itself.status, "{path} {key}");
            let (mut through_body, mut body) = (through.json(), by_itself.json());
            for id in [&mut through_body, &mut body] {
                if id.get("request_id").is_some() {
                    id["request_id"] = json!(null);
                }
            }
            assert_eq!(through_body, body, "{path}");
            assert_ne!(through.header("x-gateway-request-id"), "", "{path}");
        }
    }
    let missing = stack.administrator().get("/mcp-servers/none/connections").await;
    assert_eq!(missing.status, 404, "{}", missing.text());
    assert_eq!(missing.json()["success"], false, "{}", missing.text());
    // Provider headers, which SDKs send on every call, change nothing.
    let with_provider =
        stack.administrator().with("x-gateway-provider", "openai").with("authorization", "Bearer sk-mock");
    assert_eq!(with_provider.get("/configs").await.status, 200);
}

/// Admin answers before it has read what is too large, while the client still sends.
#[tokio::test]
async fn a_body_that_admin_does_not_read_is_413_through_the_proxy_however_it_is_framed() {
    let stack = Stack::start().await;
    let pieces = |size: usize| {
        let pieces = (0..size).step_by(1 << 14).map(move |at| vec![b' '; (size - at).min(1 << 14)]);
        reqwest::Body::wrap_stream(futures::stream::iter(pieces.map(Ok::<_, std::io::Error>)))
    };
    let (stranger, administrator) = (stack.anonymous(), stack.administrator());
    for (client, path, limit) in
        [(&stranger, "/admin/users/invites/accept", 16 << 10), (&administrator, "/labels", 1 << 20)]
    {
        for size in [limit + 1, 14 << 20] {
            for body in [reqwest::Body::from(vec![b' '; size]), pieces(size)] {
                let answer = whole(client.request(Method::POST, path).body(body)).await;
                assert_eq!(answer.status, 413, "{path} {size}: {}", answer.text());
                assert_eq!(answer.json()["data"]["errorCode"], "AB01", "{path} {size}: {}", answer.text());
            }
        }
    }
}

#[tokio::test]
async fn admin_learns_the_peers_address_and_the_request_id_and_no_forged_internal_header() {
    let admin = RawUpstream::start().await;
    let address = admin.url().replace("http://", "").replace("/v1", "");
    let stack = Stack::builder().without_admin().proxy("ADMIN_ADDRESSES", address).start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    let forged = "X-Forwarded-For: 6.6.6.6\r\nx-forwarded-for: 7.7.7.7\r\nX-Request-Id: forged\r\n\
                  x-gateway-default-input-guardrails: []\r\nx-gateway-gateway-exception: true\r\n";
    wire.send(format!(
        "PUT /v1/policies/rate-limits/a%2Fb?x=%20&y HTTP/1.1\r\nHost: gateway.test\r\nx-gateway-api-key: k\r\n{forged}\
         Cookie: session=1\r\nContent-Length: 2\r\n\r\n{{}}"
    ))
    .await;
    let answer = wire.answer().await.expect("an answer");
    assert_eq!(answer.status, 200);
    let seen = admin.only();
    assert!(seen.starts_with("PUT /v1/policies/rate-limits/a%2Fb?x=%20&y HTTP/1.1\r\n"), "{seen}");
    let of = |name: &str| -> Vec<&str> {
        let lines = seen.split("\r\n").filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    };
    assert_eq!(of("x-forwarded-for"), ["6.6.6.6, 7.7.7.7, 127.0.0.1"], "{seen}");
    assert_eq!(of("x-request-id"), [answer.header("x-gateway-request-id")], "{seen}");
    assert_eq!((of("x-gateway-api-key"), of("cookie")), (vec!["k"], vec!["session=1"]), "{seen}");
    assert_eq!(of("x-gateway-default-input-guardrails").len() + of("x-gateway-gateway-exception").len(), 0, "{seen}");
}

#[tokio::test]
async fn a_country_is_believed_from_a_trusted_peer_alone() {
    for (trusted, expected) in [("10.0.0.0/8", 0), ("127.0.0.0/8", 1)] {
        let admin = RawUpstream::start().await;
        let address = admin.url().replace("http://", "").replace("/v1", "");
        let builder = Stack::builder().without_admin().proxy("ADMIN_ADDRESSES", address);
        let stack = builder.proxy("TRUSTED_PROXIES", trusted).start().await;
        for name in ["CF-IPCountry", "cloudfront-viewer-country", "x-client-country"] {
            let mut wire = Wire::open(stack.proxy_port).await;
            wire.send(format!("GET /v1/configs HTTP/1.1\r\nHost: gateway.test\r\n{name}: DE\r\n\r\n")).await;
            assert_eq!(wire.answer().await.map(|answer| answer.status), Some(200));
            let seen = admin.only().to_ascii_lowercase();
            assert_eq!(seen.matches(&name.to_ascii_lowercase()).count(), expected, "{name} with {trusted}: {seen}");
        }
    }
}

#[tokio::test]
async fn without_admin_inference_goes_on_and_admin_is_found_again_when_it_is_back() {
    let mut stack = Stack::start().await;
    let admin = async |stack: &Stack| stack.administrator().get("/configs").await;
    assert_eq!(admin(&stack).await.status, 200);
    drop(stack.admin.take());
    // The first may still fail on a connection that was alive a moment ago; none may hang or be answered by others.
    for _ in 0..5 {
        let answer = admin(&stack).await;
        let body = answer.json();
        assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"), "{body}");
        assert_eq!((&body["success"], &body["data"]["errorCode"]), (&json!(false), &json!("AB04")), "{body}");
        assert_eq!(body["request_id"], answer.header("x-gateway-request-id"), "{body}");
        assert_eq!(stack.client().post("/chat/completions", &chat("x")).await.status, 200);
        assert_eq!(stack.client().post("/rerank", &chat("x")).await.status, 200);
    }
    stack.start_admin().await;
    stack.until("the proxy finds admin again", async || admin(&stack).await.status == 200).await;
}
