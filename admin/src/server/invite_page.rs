//! `GET /invites/accept`: where the link of an invitation leads. A small page that asks for a name and accepts; the token
//! stands behind the `#` of the address, which browsers send to nobody, so the page reads it and posts it once. Nothing
//! comes from elsewhere, and its policy names its own script and style by their hashes.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse};
use base64::Engine as _;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

const PAGE: &str = include_str!("invite_page/page.html");

pub async fn show() -> impl IntoResponse {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy(PAGE));
    guarded(PAGE, &POLICY)
}

/// A page that nobody frames, keeps or tells others of.
pub fn guarded(page: &'static str, policy: &HeaderValue) -> impl IntoResponse + use<> {
    let headers: [(HeaderName, HeaderValue); 5] = [
        (header::CONTENT_SECURITY_POLICY, policy.clone()),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Html(page))
}

/// Names the page's own script and style by their hashes.
pub fn policy(page: &str) -> HeaderValue {
    let hash = |tag: &str| {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let inside = page.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
        let hash = Sha256::digest(inside.map_or("", |(inside, _)| inside));
        base64::engine::general_purpose::STANDARD.encode(hash)
    };
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash("script"),
        hash("style")
    );
    HeaderValue::from_str(&policy).expect("base64 and plain words are a valid header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_nothing_its_policy_forbids() {
        for forbidden in ["http://", "https://", "src=", "href=", "style=\"", "onclick", "innerHTML", "eval("] {
            assert!(!PAGE.contains(forbidden), "{forbidden}");
        }
        for tag in ["<script>", "</script>", "<style>", "</style>"] {
            assert_eq!(PAGE.matches(tag).count(), 1, "{tag}");
        }
        assert!(PAGE.contains("/v1/admin/users/invites/accept"));
    }
}
