//! The one page of the console, for every screen: what a browser may do with it stands in its headers. Nothing comes from
//! elsewhere, nothing runs that is not one of our files, and no text becomes markup (Trusted Types without a policy).

use super::assets::{Asset, FILES, INDEX};
use crate::http::page::page_headers;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use std::sync::LazyLock;

const NOT_BUILT: &[u8] = include_bytes!("page/not_built.html");
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);
const PERMISSIONS: HeaderValue = HeaderValue::from_static(
    "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self)",
);

static PAGE: LazyLock<Asset> = LazyLock::new(|| {
    let built = FILES.iter().find(|(name, _)| *name == INDEX).map(|(_, bytes)| *bytes);
    Asset::new(INDEX, built.unwrap_or(NOT_BUILT))
});

pub async fn show(request: HeaderMap) -> Response {
    // Asked for each time, and mostly answered by its tag: it names the files of this program.
    let mut response = PAGE.answer(&request, HeaderValue::from_static("no-cache"));
    let headers = response.headers_mut();
    for (name, value) in page_headers(POLICY, "same-origin") {
        // A page without anything of anybody's may be kept.
        if name != header::CACHE_CONTROL {
            headers.insert(name, value);
        }
    }
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("permissions-policy"), PERMISSIONS);
    response
}
