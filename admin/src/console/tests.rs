//! What every answer below `/console` says of itself, and how much of it there may be. No Node is needed for these.

use super::assets::{Asset, FILES, INDEX};
use super::router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use std::io::Read as _;
use tower::ServiceExt as _;

/// Compressed: all files together, and those that a browser loads before it shows the first screen.
const MAX_ALL: usize = 300 * 1024;
const MAX_FIRST: usize = 90 * 1024;

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn asked(method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = router::<()>().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Answer { status: parts.status, headers: parts.headers, body }
}

async fn got(path: &str, headers: &[(&str, &str)]) -> Answer {
    asked(Method::GET, path, headers).await
}

/// All but the page itself.
fn assets() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().copied().filter(|(name, _)| *name != INDEX)
}

#[tokio::test]
async fn every_screen_is_the_same_page_which_runs_nothing_foreign() {
    let page = got("/console", &[]).await;
    assert_eq!((page.status, page.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    for screen in [
        "/console/",
        "/console/logs",
        "/console/logs/0b0cb1f4?x=1",
        "/console/mcp",
        "/console/a/b/c",
        "/console/index.html",
    ] {
        let other = got(screen, &[]).await;
        assert_eq!((other.status, other.body == page.body), (StatusCode::OK, true), "{screen}");
        let policy = other.header("content-security-policy");
        for rule in
            ["default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"]
        {
            assert!(policy.split("; ").any(|one| one == rule), "{screen}: {rule}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cache-control", "no-cache"),
        ] {
            assert_eq!(other.header(name), value, "{screen}: {name}");
        }
    }
}

#[tokio::test]
async fn what_a_browser_has_is_not_sent_again_and_heads_have_no_body() {
    for path in
        std::iter::once("/console/logs".to_owned()).chain(assets().map(|(name, _)| format!("/console/assets/{name}")))
    {
        let whole = got(&path, &[]).await;
        assert_eq!((whole.status, whole.header("content-encoding")), (StatusCode::OK, ""), "{path}");
        let tag = whole.header("etag");
        for sent in [tag.to_owned(), format!("\"other\", {tag}")] {
            let again = got(&path, &[("if-none-match", &sent)]).await;
            assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
        }
        assert_eq!(got(&path, &[("if-none-match", "\"other\"")]).await.status, StatusCode::OK);
        let head = asked(Method::HEAD, &path, &[]).await;
        assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0), "{path}");
        assert_eq!(head.header("content-length"), whole.body.len().to_string(), "{path}");
    }
}

#[tokio::test]
async fn compressed_is_the_same_and_only_for_who_takes_it() {
    let plain = got("/console", &[]).await.body;
    for (sent, is_compressed) in
        [("gzip", true), ("br, GZIP;q=0.5", true), ("gzip;q=0", false), ("br", false), ("", false), ("identity", false)]
    {
        let answer = got("/console", &[("accept-encoding", sent)]).await;
        assert_eq!(answer.header("vary"), "accept-encoding");
        assert_eq!(answer.header("content-encoding") == "gzip", is_compressed, "{sent}");
        let mut body = Vec::new();
        match is_compressed {
            true => flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut body).map(drop).unwrap(),
            false => body = answer.body,
        }
        assert_eq!(body, plain, "{sent}");
    }
}

#[tokio::test]
async fn files_are_kept_for_ever_because_their_names_change_with_them() {
    for (name, _) in assets() {
        let answer = got(&format!("/console/assets/{name}"), &[]).await;
        assert!(answer.header("cache-control").contains("immutable"), "{name}");
        assert_ne!(answer.header("content-type"), "application/octet-stream", "{name}");
        let hash = name.rsplit('.').nth(1).and_then(|stem| stem.rsplit('-').next()).unwrap();
        assert!(
            hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
            "{name}"
        );
    }
    for unknown in ["app-OLD.js", "index.html", "..%2findex.html", ".gitignore"] {
        let answer = got(&format!("/console/assets/{unknown}"), &[]).await;
        assert_eq!((answer.status, answer.header("cache-control")), (StatusCode::NOT_FOUND, "no-store"), "{unknown}");
    }
}

#[test]
fn the_console_stays_small() {
    let weight = |name: &str, bytes| Asset::new(name, bytes).gzipped.len();
    let index = FILES.iter().find(|(name, _)| *name == INDEX).map_or("", |(_, bytes)| str::from_utf8(bytes).unwrap());
    let all: usize = assets().map(|(name, bytes)| weight(name, bytes)).sum();
    let first: usize = assets().filter(|(name, _)| index.contains(name)).map(|(name, bytes)| weight(name, bytes)).sum();
    assert!(all <= MAX_ALL, "{all} bytes of {MAX_ALL}");
    assert!(first <= MAX_FIRST, "{first} bytes of {MAX_FIRST}");
    // A path of ours alone: no file names another host to load from.
    assert!(!index.contains("//"), "{index}");
}
