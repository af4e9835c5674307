//! Files of the console: their types, their tags, and each compressed once, when the first is asked for.

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::LazyLock;

/// What `admin/build.rs` found in `console/dist`.
pub const FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// The page itself, which is served under every other address.
pub const INDEX: &str = "index.html";

/// A file under this name never changes: another content has another name.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

static ASSETS: LazyLock<HashMap<&'static str, Asset>> =
    LazyLock::new(|| FILES.iter().map(|(name, bytes)| (*name, Asset::new(name, bytes))).collect());

/// A file in both forms in which it is sent.
pub struct Asset {
    content_type: &'static str,
    plain: Bytes,
    pub gzipped: Bytes,
    tag: HeaderValue,
}

impl Asset {
    pub fn new(name: &str, bytes: &'static [u8]) -> Self {
        let digest = hex::encode(Sha256::digest(bytes));
        // Weak: both forms have the same one.
        let tag = HeaderValue::try_from(format!("W/\"{}\"", &digest[..16]));
        Self {
            content_type: content_type(name),
            plain: Bytes::from_static(bytes),
            gzipped: gzipped(bytes),
            tag: tag.unwrap_or(HeaderValue::from_static("W/\"\"")),
        }
    }

    /// The file, or that the browser has it already.
    pub fn answer(&self, request: &HeaderMap, cache: HeaderValue) -> Response {
        let headers: [(HeaderName, HeaderValue); 4] = [
            (header::ETAG, self.tag.clone()),
            (header::CACHE_CONTROL, cache),
            (header::VARY, HeaderValue::from_static("accept-encoding")),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        if names(request, header::IF_NONE_MATCH, |tag| self.tag.as_bytes() == tag.as_bytes()) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type))];
        if names(request, header::ACCEPT_ENCODING, is_gzip) {
            let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
            return (headers, content_type, encoding, Body::from(self.gzipped.clone())).into_response();
        }
        (headers, content_type, Body::from(self.plain.clone())).into_response()
    }
}

pub async fn show(Path(name): Path<String>, request: HeaderMap) -> Response {
    match ASSETS.get(name.as_str()).filter(|_| name != INDEX) {
        Some(asset) => asset.answer(&request, IMMUTABLE),
        // An older page asks for files of an older program: it learns so, and loads itself again.
        None => (StatusCode::NOT_FOUND, [(header::CACHE_CONTROL, "no-store")], "no such file").into_response(),
    }
}

/// Whether a header that is a list with commas has an entry like this.
fn names(request: &HeaderMap, header: HeaderName, is_meant: impl Fn(&str) -> bool) -> bool {
    let values = request.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|entry| is_meant(entry.trim()))
}

/// `gzip`, with any weight but none.
fn is_gzip(entry: &str) -> bool {
    let (coding, weight) = entry.split_once(';').unwrap_or((entry, ""));
    let is_refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
    coding.trim().eq_ignore_ascii_case("gzip") && !is_refused
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

fn gzipped(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing into memory does not fail.
    let written = encoder.write_all(bytes);
    encoder.finish().ok().filter(|_| written.is_ok()).unwrap_or_default().into()
}
