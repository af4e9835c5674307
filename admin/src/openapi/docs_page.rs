//! `GET /docs`: the OpenAPI document as a page to read and to try. One file without anything from elsewhere; its policy
//! names the page's own script and style by their hashes, so that nothing else could run even if it got in, and lets it
//! call this service and the proxy, nobody else.

use crate::http::page::PagePolicy;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse};
use axum::routing::{MethodRouter, get};
use std::sync::Arc;

const PAGE: &str = include_str!("docs_page/page.html");
const STYLE: &str = include_str!("docs_page/page.css");
const SCRIPT: &str = include_str!("docs_page/page.js");

/// The page of a service whose proxy is reached at `gateway`, an address without a slash at its end.
pub fn route<S: Clone + Send + Sync + 'static>(gateway: &str) -> MethodRouter<S> {
    let page: Arc<str> = page(gateway).into();
    let policy = policy(gateway);
    get(move || {
        let (page, policy) = (page.clone(), policy.clone());
        async move { answer(&page, policy) }
    })
}

fn answer(page: &str, policy: HeaderValue) -> impl IntoResponse + use<> {
    let headers: [(HeaderName, HeaderValue); 4] = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Html(page.to_owned()))
}

fn page(gateway: &str) -> String {
    let escaped = gateway.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    PAGE.replacen("{gateway}", &escaped, 1).replacen("{style}", STYLE, 1).replacen("{script}", SCRIPT, 1)
}

fn policy(gateway: &str) -> HeaderValue {
    // An origin has neither blanks nor semicolons, so it cannot say anything else.
    let origin = url::Url::parse(gateway).ok().map(|url| url.origin()).filter(url::Origin::is_tuple);
    let calls = match origin {
        Some(origin) => format!("'self' {}", origin.ascii_serialization()),
        None => "'self'".to_owned(),
    };
    PagePolicy { script: Some(SCRIPT), style: Some(STYLE), calls: Some(&calls), has_form: false }.header()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest as _, Sha256};

    fn between<'p>(page: &'p str, open: &str, close: &str) -> &'p str {
        page.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map(|(inside, _)| inside).unwrap()
    }

    #[test]
    fn the_policy_names_what_stands_in_the_page_and_whom_it_may_call() {
        let page = page("https://gateway.example.com/base");
        let policy = policy("https://gateway.example.com/base");
        let policy = policy.to_str().unwrap();
        for (tag, rule) in [("script", "script-src"), ("style", "style-src")] {
            let inside = between(&page, &format!("<{tag}>"), &format!("</{tag}>"));
            let hash = STANDARD.encode(Sha256::digest(inside));
            assert!(policy.contains(&format!("{rule} 'sha256-{hash}'")), "{policy}");
        }
        assert!(policy.contains("connect-src 'self' https://gateway.example.com;"), "{policy}");
        assert!(page.contains("content=\"https://gateway.example.com/base\""));
    }

    #[test]
    fn an_address_cannot_leave_its_place() {
        let page = page("http://x/\"><b>");
        assert!(page.contains("content=\"http://x/&quot;>&lt;b>\""));
        assert!(policy("nonsense; script-src *").to_str().unwrap().contains("connect-src 'self';"));
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_nothing_its_policy_forbids() {
        let page = page("");
        for forbidden in ["http://", "https://", "src=", "href=\"/", "style=\"", "onclick", "innerHTML", "eval("] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        for tag in ["<script>", "</script>", "<style>", "</style>"] {
            assert_eq!(page.matches(tag).count(), 1, "{tag}");
        }
    }
}
