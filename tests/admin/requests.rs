//! What holds for every request whatever it asks: ids, sizes, paths, health, metrics, the document.

use crate::service::Service;
use harness::{Client, client::whole};
use http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

/// Of `POST /configs`.
const LIMIT: usize = 4 << 20;
const GIVEN: &str = "0190b0c1-8a52-7c0e-8f0e-7a1f2f1f0a11";

#[tokio::test]
async fn an_id_is_taken_from_a_trusted_proxy_and_from_nobody_else() {
    let loopback = Service::start().await;
    let nobody = Service::start_with(&["--trusted-proxies=192.0.2.1/32"]).await;
    for (service, is_kept) in [(&loopback, true), (&nobody, false)] {
        let answer = service.client().with("x-request-id", GIVEN).get("/configs").await;
        let id = answer.header("x-gateway-request-id");
        assert_eq!(id == GIVEN, is_kept, "{id}");
        assert_eq!(answer.json()["request_id"], id);
    }
    let (one, two) = (loopback.client().get("/configs").await, loopback.client().get("/configs").await);
    let id: Uuid = one.header("x-gateway-request-id").parse().unwrap();
    assert_eq!(id.get_version_num(), 4);
    assert_ne!(one.header("x-gateway-request-id"), two.header("x-gateway-request-id"));
}

#[tokio::test]
async fn a_trace_id_is_echoed_and_made_when_absent() {
    let service = Service::start().await;
    let traced = service.client().with("x-gateway-trace-id", "my-trace").get("/configs").await;
    assert_eq!(traced.header("x-gateway-trace-id"), "my-trace");
    assert!(!service.client().get("/configs").await.header("x-gateway-trace-id").is_empty());
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_however_it_is_framed() {
    let service = Service::start().await;
    let send =
        async |client: Client, body: reqwest::Body| whole(client.request(Method::POST, "/configs").body(body)).await;
    let chunked = |size: usize| {
        let pieces = (0..size).step_by(1 << 20).map(move |at| vec![b'x'; (size - at).min(1 << 20)]);
        reqwest::Body::wrap_stream(futures::stream::iter(pieces.map(Ok::<_, std::io::Error>)))
    };
    for (body, status, code) in [
        (vec![b'x'; LIMIT].into(), 400, "AB01"),
        (chunked(LIMIT), 400, "AB01"),
        (vec![b'x'; LIMIT + 1].into(), 413, "AB01"),
        (chunked(LIMIT + 1), 413, "AB01"),
    ] {
        let answer = send(service.administrator(), body).await;
        assert_eq!((answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str()), (status, Some(code)));
    }
}

/// Closing the connection on a sender resets it, and the reset can overtake the answer.
#[tokio::test]
async fn a_refused_sender_may_finish_sending_and_still_reads_why() {
    let service = Service::start().await;
    let address = service.origin.strip_prefix("http://").unwrap();
    let key = &service.home.admin_key.key;
    for (key, framing, status) in [
        ("unknown", format!("content-length: {}", 2 * LIMIT), "HTTP/1.1 401"),
        (key, format!("content-length: {}", 2 * LIMIT), "HTTP/1.1 413"),
        (key, "transfer-encoding: chunked".to_owned(), "HTTP/1.1 413"),
    ] {
        let mut sender = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /v1/configs HTTP/1.1\r\nhost: x\r\nx-gateway-api-key: {key}\r\nconnection: close\r\n{framing}\r\n\r\n"
        );
        sender.write_all(head.as_bytes()).await.unwrap();
        if framing.ends_with("chunked") {
            sender.write_all(format!("{:x}\r\n", 2 * LIMIT).as_bytes()).await.unwrap();
        }
        sender.write_all(&vec![b'x'; 2 * LIMIT]).await.expect("the whole body can be sent");
        if framing.ends_with("chunked") {
            sender.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        }
        let mut answer = String::new();
        sender.read_to_string(&mut answer).await.expect("the answer can be read");
        assert!(answer.starts_with(status), "{framing}: {answer}");
    }
}

#[tokio::test]
async fn a_key_that_calls_too_often_waits_for_the_next_minute_and_no_other_does() {
    let service = Service::start_with(&["--admin-requests-per-minute=5"]).await;
    let (hasty, calm) = (service.administrator(), service.workspace_client(service.home.workspace_id).await);
    // A minute of the clock may end on the way: of eleven calls no minute can hold all.
    let mut answers = Vec::new();
    for _ in 0..11 {
        answers.push(hasty.post("/labels", &serde_json::json!({ "name": 7 })).await);
    }
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!((1..=6).contains(&refused.len()), "{answers:?}");
    for answer in refused {
        let body = answer.json();
        assert_eq!((&body["data"]["errorCode"], &body["error"]["type"]), (&"AB06".into(), &"rate_limit_error".into()));
        let wait: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    }
    assert_eq!(calm.get("/api-keys/self").await.status, 200);
    let recorded = service.trail(service.home.organisation_id).await;
    assert!(recorded.iter().all(|row| row["response_status_code"] != 429), "{recorded:?}");
}

#[tokio::test]
async fn one_trailing_slash_is_ignored_and_the_query_is_not_part_of_the_path() {
    let service = Service::start().await;
    for path in ["/api-keys/self/", "/labels?search=/y", "/labels/?search=1"] {
        assert_eq!(service.administrator().get(path).await.status, 200, "{path}");
    }
    assert_eq!(service.administrator().get("/api-keys/self//").await.status, 404);
}

#[tokio::test]
async fn prices_are_also_looked_for_at_the_hosts_root() {
    let service = Service::start().await;
    let root = Client::new(&service.origin);
    assert_eq!(root.get("/model-configs/pricing/openai/gpt-4o").await.status, 200);
    assert_eq!(root.get("/model-configs/general/openai").await.status, 200);
}

#[tokio::test]
async fn health_and_metrics_need_no_key_and_count_by_operation() {
    let service = Service::start().await;
    let root = Client::new(&service.origin);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(root.get(path).await.status, 200, "{path}");
    }
    service.administrator().get("/configs/pc-secret-name").await;
    service.client().get("/configs").await;
    whole(service.client().request(Method::from_bytes(b"INVENTED").unwrap(), "/configs")).await;
    let text = root.get("/metrics").await.text();
    for line in [
        r#"gateway_admin_requests_total{method="GET",operation="/configs/{slug}",status="404"} 1"#,
        r#"gateway_admin_requests_total{method="GET",operation="/configs",status="401"} 1"#,
        r#"gateway_admin_requests_total{method="other",operation="none",status="405"} 1"#,
        r#"gateway_admin_refused_total{code="AB05"} 1"#,
        "gateway_admin_in_flight_requests 1",
        "gateway_admin_db_connections{",
    ] {
        assert!(text.lines().any(|one| one.starts_with(line)), "{line}\n{text}");
    }
    assert!(!text.contains("pc-secret-name") && !text.contains("INVENTED"), "{text}");
}

#[tokio::test]
async fn the_document_is_public_and_lists_what_is_served() {
    let service = Service::start().await;
    let answer = service.client().get("/openapi.json").await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
    let document = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/admin/workspaces/{workspaceId}"]["put"].is_object());
    assert_eq!(document["paths"]["/chat/completions"]["post"]["tags"][0], "inference");
}
