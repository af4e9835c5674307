//! `GET /auth/link`: where a one-time link leads. A page with one button, because programs that look at mail follow links
//! too, and must not use them up. As with invitations, the token stands behind the `#` and is posted once.

use crate::http::page::{PagePolicy, page_headers};
use axum::http::HeaderValue;
use axum::response::{Html, IntoResponse};
use std::sync::LazyLock;

const PAGE: &str = include_str!("link_page/page.html");

pub async fn show() -> impl IntoResponse {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| PagePolicy::of_file(PAGE).header());
    (page_headers(POLICY.clone(), "no-referrer"), Html(PAGE))
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
        assert!(PAGE.contains("/v1/auth/sessions"));
    }
}
