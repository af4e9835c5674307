//! Pages that are made of a few sentences and perhaps a form, without scripts. Whatever is put into one is escaped by
//! whoever puts it there; nothing is loaded from elsewhere, and no other site may frame it.

use crate::http::page::{PagePolicy, page_headers};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use std::sync::LazyLock;
use url::Url;

const STYLE: &str = ":root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 30rem; margin: 4rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
button { margin-top: 1.5rem; padding: .5rem 1.5rem; font: inherit; }";

pub fn page(status: StatusCode, title: &str, content: &str) -> Response {
    static POLICY: LazyLock<HeaderValue> =
        LazyLock::new(|| PagePolicy { style: Some(STYLE), has_form: true, ..PagePolicy::default() }.header());
    // Not `no-referrer`: with that, browsers keep the origin of our own forms to themselves.
    let headers = page_headers(POLICY.clone(), "same-origin");
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{content}\n</main>\n</body>\n</html>\n"
    );
    (status, headers, Html(html)).into_response()
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// Whether a form was submitted by our own page. Another site could otherwise agree in a visitor's name.
pub fn is_own_form(headers: &HeaderMap, public_url: &str) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let own = Url::parse(public_url).map(|url| url.origin().ascii_serialization());
    own.is_ok_and(|own| text("origin") == Some(own.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn with(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_our_own_page_may_agree() {
        for (headers, expected) in [
            (with(&[("sec-fetch-site", "same-origin")]), true),
            (with(&[("sec-fetch-site", "cross-site"), ("origin", "https://gw.example")]), false),
            (with(&[("sec-fetch-site", "none")]), false),
            (with(&[("origin", "https://gw.example")]), true),
            (with(&[("origin", "https://evil.example")]), false),
            (with(&[("origin", "null")]), false),
            (with(&[]), false),
        ] {
            assert_eq!(is_own_form(&headers, "https://gw.example/sub"), expected, "{headers:?}");
        }
    }
}
