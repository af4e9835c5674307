//! `GET /invites/accept`: where the link of an invitation leads. A small page that asks for a name and accepts; the token
//! stands behind the `#` of the address, which browsers send to nobody, so the page reads it and posts it once. Nothing
//! comes from elsewhere, and its policy names its own script and style by their hashes. A browser is led to the console's own
//! screen where this program has one, and takes the token along.

use crate::console;
use crate::http::page::{PagePolicy, page_headers};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use std::sync::LazyLock;

const PAGE: &str = include_str!("invite_page/page.html");

pub async fn show(request: HeaderMap) -> Response {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| PagePolicy::of_file(PAGE).header());
    if console::is_built() && is_browser(&request) {
        let headers = [(header::LOCATION, console::INVITATION), (header::CACHE_CONTROL, "no-store")];
        return (StatusCode::SEE_OTHER, headers).into_response();
    }
    (page_headers(POLICY.clone(), "no-referrer"), Html(PAGE)).into_response()
}

fn is_browser(request: &HeaderMap) -> bool {
    let accepted = request.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn browsers_are_led_to_the_console_that_was_built_and_programs_are_not() {
        let sent = |accept: &'static str| HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
        let browser = show(sent("text/html,application/xhtml+xml")).await;
        assert_eq!(browser.status() == StatusCode::SEE_OTHER, console::is_built());
        for request in [HeaderMap::new(), sent("*/*")] {
            assert_eq!(show(request).await.status(), StatusCode::OK);
        }
    }

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
