//! `GET /docs`: the OpenAPI document as a page to read. One file without anything from elsewhere; its policy names the
//! page's own script and style by their hashes, so that nothing else could run even if it got in.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse};
use base64::Engine as _;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

const PAGE: &str = include_str!("docs_page/page.html");

pub async fn show() -> impl IntoResponse {
    static POLICY: LazyLock<HeaderValue> =
        LazyLock::new(|| HeaderValue::from_str(&policy(PAGE)).expect("base64 and plain words are a valid header"));
    let headers: [(HeaderName, HeaderValue); 4] = [
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Html(PAGE))
}

fn policy(page: &str) -> String {
    let hash = |tag: &str| {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let inside = page.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
        let hash = Sha256::digest(inside.map_or("", |(inside, _)| inside));
        base64::engine::general_purpose::STANDARD.encode(hash)
    };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash("script"),
        hash("style")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_what_stands_in_the_page() {
        let policy = policy("<style>a</style><script>b</script>");
        assert!(policy.contains("script-src 'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='"), "{policy}");
        assert!(policy.contains("style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"), "{policy}");
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_nothing_its_policy_forbids() {
        for forbidden in ["http://", "https://", "src=", "href=\"/", "style=\"", "onclick", "innerHTML", "eval("] {
            assert!(!PAGE.contains(forbidden), "{forbidden}");
        }
        for tag in ["<script>", "</script>", "<style>", "</style>"] {
            assert_eq!(PAGE.matches(tag).count(), 1, "{tag}");
        }
    }
}
