//! The same over HTTP/2, whose framing is binary but whose headers can still lie: to a provider that speaks HTTP/1,
//! they would be written as text.

use crate::frames::{Ending, Frames};
use crate::framing::{BODY, ENGINE, RELAY};
use harness::Stack;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

struct Base {
    key: String,
    host: String,
}

impl Base {
    fn pseudo(&self, path: &str) -> Pairs {
        pairs(&[(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "gateway.test")])
    }

    fn regular(&self) -> Pairs {
        pairs(&[
            ("x-gateway-api-key", &self.key),
            ("x-gateway-provider", "openai"),
            ("x-gateway-custom-host", &self.host),
            ("authorization", "Bearer sk-mock"),
            ("content-type", "application/json"),
        ])
    }

    fn whole(&self, path: &str) -> Pairs {
        [self.pseudo(path), self.regular()].concat()
    }
}

fn pairs(of: &[(&str, &str)]) -> Pairs {
    of.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn without(mut of: Pairs, name: &str) -> Pairs {
    of.retain(|(found, _)| found != name.as_bytes());
    of
}

fn with(mut of: Pairs, name: &str, value: &str) -> Pairs {
    of.push((name.into(), value.into()));
    of
}

fn replaced(mut of: Pairs, name: &str, value: &str) -> Pairs {
    for pair in of.iter_mut().filter(|(found, _)| found == name.as_bytes()) {
        pair.1 = value.into();
    }
    of
}

/// What no honest client sends.
fn lies(base: &Base, path: &str) -> Vec<(&'static str, Pairs)> {
    let (whole, pseudo, regular) = (base.whole(path), base.pseudo(path), base.regular());
    let poison = format!("{path} HTTP/1.1\r\nhost: x\r\n\r\nGET /v1/smuggled");
    vec![
        ("no :path", without(whole.clone(), ":path")),
        ("an empty :path", replaced(whole.clone(), ":path", "")),
        ("no :method", without(whole.clone(), ":method")),
        ("no :scheme", without(whole.clone(), ":scheme")),
        ("two :path", [pairs(&[(":path", "/v1/smuggled")]), whole.clone()].concat()),
        ("two :method", [pairs(&[(":method", "GET")]), whole.clone()].concat()),
        ("two :authority", [pairs(&[(":authority", "other.test")]), whole.clone()].concat()),
        (
            "a pseudo-header after the others",
            [without(pseudo.clone(), ":path"), regular, pairs(&[(":path", path)])].concat(),
        ),
        ("an unknown pseudo-header", [pairs(&[(":smuggled", "1")]), whole.clone()].concat()),
        (":status in a request", [pairs(&[(":status", "200")]), whole.clone()].concat()),
        ("no authority at all", without(whole.clone(), ":authority")),
        ("another host than :authority", with(whole.clone(), "host", "other.test")),
        ("credentials in :authority", replaced(whole.clone(), ":authority", "user@gateway.test")),
        ("a request line in :path", replaced(whole.clone(), ":path", &poison)),
        ("a space in :path", replaced(whole.clone(), ":path", "/v1/smuggled HTTP/1.1")),
        ("a line feed in :path", replaced(whole.clone(), ":path", "/v1/smuggled\nx: y")),
        ("an absolute :path", replaced(whole.clone(), ":path", "http://other.test/v1/smuggled")),
        ("a request line in :method", replaced(whole.clone(), ":method", "GET /v1/smuggled HTTP/1.1\r\nx: ")),
        ("an upper-case name", with(whole.clone(), "X-Upper", "1")),
        ("transfer-encoding", with(whole.clone(), "transfer-encoding", "chunked")),
        ("connection", with(whole.clone(), "connection", "close")),
        ("keep-alive", with(whole.clone(), "keep-alive", "timeout=5")),
        ("proxy-connection", with(whole.clone(), "proxy-connection", "keep-alive")),
        ("upgrade", with(whole.clone(), "upgrade", "websocket")),
        ("te other than trailers", with(whole.clone(), "te", "chunked")),
        ("a line end in a value", with(whole.clone(), "x-a", "b\r\nx-smuggled: 1")),
        ("a line feed in a value", with(whole.clone(), "x-a", "b\nx-smuggled: 1")),
        ("a carriage return in a value", with(whole.clone(), "x-a", "b\rx-smuggled: 1")),
        ("a NUL in a value", with(whole.clone(), "x-a", "b\0c")),
        ("a line end in a name", with(whole.clone(), "x-a: b\r\nx-smuggled", "1")),
        ("a colon in a name", with(whole.clone(), "x-a:b", "1")),
        ("a space in a name", with(whole.clone(), "x-a b", "1")),
        ("an empty name", with(whole.clone(), "", "1")),
        ("a length beyond the body", with(whole.clone(), "content-length", &(BODY.len() + 10).to_string())),
        ("a length short of the body", with(whole.clone(), "content-length", "5")),
        ("two lengths", with(with(whole.clone(), "content-length", &BODY.len().to_string()), "content-length", "5")),
        ("a length that is no number", with(whole, "content-length", "5x")),
    ]
}

fn borrowed(headers: &Pairs) -> Vec<(&[u8], &[u8])> {
    headers.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect()
}

#[tokio::test]
async fn headers_that_lie_never_reach_the_provider_and_spoil_no_other_stream() {
    let stack = Stack::start().await;
    let base = Base { key: stack.home.workspace_key.clone(), host: stack.mock.url() };
    for path in [ENGINE, RELAY] {
        for (name, headers) in lies(&base, path) {
            let what = format!("{name}, to {path}");
            stack.mock.reset();
            let mut frames = Frames::open(stack.proxy_port).await;
            frames.request(1, &borrowed(&headers), BODY.as_bytes()).await;
            let ending = frames.ending(1).await;
            assert_ne!(ending, Ending::Answered(200), "{what}");
            assert!(stack.mock.requests().is_empty(), "{what}: {:?}", stack.mock.requests());
            if ending != Ending::ConnectionClosed {
                frames.request(3, &borrowed(&base.whole(path)), BODY.as_bytes()).await;
                assert_eq!(frames.ending(3).await, Ending::Answered(200), "after {what}");
                assert_eq!(stack.mock.requests().len(), 1, "after {what}");
            }
        }
    }
}

#[tokio::test]
async fn honest_headers_pass_as_they_are() {
    let stack = Stack::start().await;
    let base = Base { key: stack.home.workspace_key.clone(), host: stack.mock.url() };
    for path in [ENGINE, RELAY] {
        let whole = base.whole(path);
        for (name, headers) in [
            ("nothing odd", whole.clone()),
            ("the right length", with(whole.clone(), "content-length", &BODY.len().to_string())),
            ("te: trailers", with(whole.clone(), "te", "trailers")),
            ("the same host", with(whole.clone(), "host", "gateway.test")),
            ("a host in place of :authority", with(without(whole.clone(), ":authority"), "host", "gateway.test")),
        ] {
            stack.mock.reset();
            let mut frames = Frames::open(stack.proxy_port).await;
            frames.request(1, &borrowed(&headers), BODY.as_bytes()).await;
            assert_eq!(frames.ending(1).await, Ending::Answered(200), "{name}, to {path}");
            let arrived = stack.mock.requests();
            assert_eq!(arrived.len(), 1, "{name}, to {path}");
            assert_eq!((&arrived[0].path[..], &arrived[0].body[..]), (path, BODY.as_bytes()), "{name}");
            assert_eq!(arrived[0].header("host"), stack.mock.address().to_string(), "{name}, to {path}");
        }
    }
}

#[tokio::test]
async fn trailers_cannot_bring_headers_in() {
    let stack = Stack::start().await;
    let base = Base { key: stack.home.workspace_key.clone(), host: stack.mock.url() };
    for path in [ENGINE, RELAY] {
        for trailer in
            [("x-gateway-provider", "anthropic"), ("authorization", "Bearer other"), (":path", "/v1/smuggled")]
        {
            stack.mock.reset();
            let mut frames = Frames::open(stack.proxy_port).await;
            let trailers = pairs(&[trailer]);
            let headers = base.whole(path);
            frames.request_with_trailers(1, &borrowed(&headers), BODY.as_bytes(), &borrowed(&trailers)).await;
            let ending = frames.ending(1).await;
            let arrived = stack.mock.requests();
            assert!(arrived.len() <= 1, "{trailer:?} to {path}: {ending:?} {arrived:?}");
            for request in arrived {
                assert_eq!(
                    (&request.path[..], request.header("authorization")),
                    (path, "Bearer sk-mock"),
                    "{trailer:?}"
                );
            }
        }
    }
}
