//! What is plain, what is left to Pingora, and that every plain head says what was sent.

use super::*;

const PLAIN: &str = "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.example:8080\r\nContent-Type: application/json\r\n\
    X-Gateway-Metadata: {\"a\": 1}\r\nContent-Length: 12\r\n\r\n";

fn found(text: &str) -> Found {
    find(&BytesMut::from(text))
}

fn with(line: &str) -> String {
    PLAIN.replacen("Content-Type: application/json", line, 1)
}

#[test]
fn a_plain_head_is_read_with_all_its_headers_and_taken_off() {
    let mut bytes = BytesMut::from(format!("{PLAIN}{{\"model\":1}}POST").as_str());
    let Found::Plain(plain) = find(&bytes) else { panic!("it is plain") };
    assert_eq!((plain.length, plain.body_length, plain.is_kept_alive), (PLAIN.len(), 12, true));
    assert_eq!((plain.head.method.as_str(), plain.head.uri.path()), ("POST", "/v1/chat/completions"));
    let told = |name: &str| plain.head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(told("host").as_deref(), Some("gateway.example:8080"));
    assert_eq!(told("x-gateway-metadata").as_deref(), Some("{\"a\": 1}"));
    assert_eq!(plain.head.headers.len(), 4);
    take(&mut bytes, &plain);
    assert_eq!(&bytes[..], b"{\"model\":1}POST");
}

#[test]
fn every_beginning_of_a_plain_head_waits_for_the_rest() {
    for length in 0..PLAIN.len() {
        assert!(matches!(found(&PLAIN[..length]), Found::Part), "{length}");
    }
}

#[test]
fn a_client_says_whether_it_comes_again() {
    for (line, is_kept_alive) in [("Connection: Keep-Alive", true), ("connection: close", false), ("A: b", true)] {
        let Found::Plain(plain) = found(&with(line)) else { panic!("{line}") };
        assert_eq!(plain.is_kept_alive, is_kept_alive, "{line}");
    }
}

#[test]
fn values_of_one_name_are_all_kept_in_order() {
    let Found::Plain(plain) = found(&with("A: 1\r\na: 2\r\nA:  3 ")) else { panic!("it is plain") };
    let values: Vec<&[u8]> = plain.head.headers.get_all("a").iter().map(HeaderValue::as_bytes).collect();
    assert_eq!(values, [b"1", b"2", b"3"]);
}

/// Whatever two readers could take for two things, and whatever needs more than a body of a known length.
#[test]
fn all_that_is_unusual_is_left_to_pingora() {
    for line in [
        "Transfer-Encoding: chunked",
        "transfer-encoding: identity",
        "Content-Length: 12",
        "Content-Length: 13",
        "Host: other.example",
        "Expect: 100-continue",
        "Upgrade: websocket",
        "Connection: upgrade",
        "Connection: keep-alive, te",
        "TE: trailers",
        "Trailer: x",
        "A b: c",
        "A : b",
        "A: b\r\n c",
        "A: b\nC: d",
        "A: b\rC: d",
        "A: \u{0}",
        ": b",
        "A",
    ] {
        assert!(matches!(found(&with(line)), Found::Other), "{line:?}");
    }
    for (from, to) in [
        ("POST", "GET"),
        ("POST", "post"),
        ("POST", " POST"),
        ("POST", "\r\nPOST"),
        ("HTTP/1.1", "HTTP/1.0"),
        ("HTTP/1.1", "HTTP/2.0"),
        ("/v1/chat/completions", "/v1/chat/completions?a=b"),
        ("/v1/chat/completions", "/v1/chat/../chat/completions"),
        ("/v1/chat/completions", "//v1/chat/completions"),
        ("/v1/chat/completions", "http://a/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions/"),
        ("/v1/chat/completions", "/v1/audio/transcriptions"),
        ("/v1/chat/completions", "/v1/files"),
        ("Content-Length: 12", "Content-Length: +12"),
        ("Content-Length: 12", "Content-Length: 1 2"),
        ("Content-Length: 12", "Content-Length: 0x12"),
        ("Content-Length: 12", "Content-Length: 12, 12"),
        ("Content-Length: 12", "Content-Length: "),
        ("Content-Length: 12", "Content-Length: 1234567890123456"),
        ("Content-Length: 12\r\n", ""),
        ("Host: gateway.example:8080\r\n", ""),
        ("gateway.example:8080", ""),
        ("gateway.example:8080", "a@b"),
        ("gateway.example:8080", "a/b"),
        ("gateway.example:8080", "[::1]:8080"),
        ("\r\n", "\n"),
    ] {
        let text = PLAIN.replacen(from, to, 1);
        assert!(matches!(found(&text), Found::Other), "{text:?}");
    }
    let many: String = (0..MOST_HEADERS).map(|n| format!("a{n}: b\r\n")).collect();
    assert!(matches!(found(&with(many.trim_end())), Found::Other), "too many headers");
    let long = with(&format!("A: {}", "b".repeat(LONGEST)));
    assert!(matches!(found(&long), Found::Other), "too long");
    assert!(matches!(found(&long[..LONGEST - 1]), Found::Part));
    assert!(matches!(found(&long[..LONGEST]), Found::Other), "too long before its end has come");
    assert!(matches!(found("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Found::Other));
}
