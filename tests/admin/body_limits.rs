//! Every operation reads as much of a body as it can need, and one that asks for no credential next to nothing.

use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::json;
use shared::model::KeyKind::{OrganisationService, WorkspaceService, WorkspaceUser};
use shared::routes::{Access, Operation, PUBLIC_BODY, operations};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const ACCEPT: &str = "/admin/users/invites/accept";

async fn send(client: &Client, operation: &Operation, body: Vec<u8>) -> Answer {
    let path = operation.path.replace('{', "").replace(['}', '*'], "");
    let method = Method::from_bytes(operation.method.as_str().as_bytes()).unwrap();
    whole(client.request(method, &path).body(body)).await
}

fn in_pieces(size: usize) -> reqwest::Body {
    let pieces = (0..size).step_by(1 << 14).map(move |at| vec![b' '; (size - at).min(1 << 14)]);
    reqwest::Body::wrap_stream(futures::stream::iter(pieces.map(Ok::<_, std::io::Error>)))
}

#[tokio::test]
async fn every_operation_refuses_a_body_over_its_own_limit_and_says_the_limit() {
    let service = Service::start().await;
    let every_scope: Vec<&str> = shared::identity::scopes::SCOPES.iter().map(|scope| scope.name).collect();
    let mut clients = Vec::new();
    for kind in [OrganisationService, WorkspaceService, WorkspaceUser] {
        clients.push((kind, service.client().with_key(&service.key(kind, &every_scope).await.key)));
    }
    for operation in operations() {
        let client = match operation.access {
            Access::ScimToken | Access::Session => continue,
            Access::Public => service.client(),
            Access::Keys(kinds) => clients.iter().find(|(kind, _)| kinds.contains(*kind)).unwrap().1.clone(),
        };
        let answer = send(&client, operation, vec![b' '; operation.body_limit + 1]).await;
        let said = format!("The body is larger than {} bytes", operation.body_limit);
        assert_eq!((answer.status.as_u16(), &answer.json()["message"]), (413, &json!(said)), "{operation:?}");
        assert_eq!(answer.json()["data"]["errorCode"], "AB01", "{operation:?}");
    }
}

#[tokio::test]
async fn a_stranger_is_read_16_kib_of_and_no_more() {
    let service = Service::start().await;
    let stranger = service.client();
    let sent = async |body: reqwest::Body| whole(stranger.request(Method::POST, ACCEPT).body(body)).await;
    let of = |size: usize| format!("{}{}", " ".repeat(size - 13), r#"{"token":"x"}"#);
    for (body, status) in [
        (of(PUBLIC_BODY).into(), 400),
        (of(PUBLIC_BODY + 1).into(), 413),
        (of(14 << 20).into(), 413),
        (in_pieces(PUBLIC_BODY + 1), 413),
        (in_pieces(14 << 20), 413),
    ] {
        let answer = sent(body).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
        let field = &answer.json()["error"]["param"];
        assert_eq!(*field == json!("token"), status == 400, "{}", answer.text());
    }
}

/// Whatever stands beside the gate, by its methods that take a body: the rule is the router's, not a page's.
const BESIDE_THE_GATE: [(&str, &str); 8] = [
    ("POST", "/oauth/register"),
    ("POST", "/oauth/token"),
    ("POST", "/oauth/authorize"),
    ("POST", "/mcp-oauth/start"),
    ("GET", "/mcp-oauth/callback"),
    ("GET", "/oauth/authorize"),
    ("GET", "/auth/link"),
    ("GET", "/openapi.json"),
];

#[tokio::test]
async fn pages_beside_the_gate_read_little_and_do_not_wait_for_it() {
    let service = Service::start().await;
    let address = service.origin.strip_prefix("http://").unwrap();
    let slow = BESIDE_THE_GATE.map(async |(method, path)| {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 20\r\n\r\nbegun");
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut begin = [0; 12];
        connection.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 400", "{method} {path}");
    });
    futures::future::join_all(slow).await;
    for (method, path) in BESIDE_THE_GATE {
        let client = Client::new(&service.origin);
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        // This client sends no body in pieces by GET.
        let pieces = (method == Method::POST).then(|| in_pieces(PUBLIC_BODY + 1));
        for body in [vec![b' '; PUBLIC_BODY + 1].into()].into_iter().chain(pieces) {
            let answer = whole(client.request(method.clone(), path).body(body)).await;
            assert_eq!(answer.status, 413, "{method} {path}");
        }
    }
}
