//! `GET /invites/accept`: where the link of an invitation leads. A small page that asks for a name and accepts; the token
//! stands behind the `#` of the address, which browsers send to nobody, so the page reads it and posts it once. Nothing
//! comes from elsewhere, and its policy names its own script and style by their hashes.

use crate::http::page::{PagePolicy, page_headers};
use axum::http::HeaderValue;
use axum::response::{Html, IntoResponse};
use std::sync::LazyLock;

const PAGE: &str = include_str!("invite_page/page.html");

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
        assert!(PAGE.contains("/v1/admin/users/invites/accept"));
    }
}
