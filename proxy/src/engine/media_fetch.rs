//! Getting an image, a sound or a file from an address that a caller names. It is dialled under the rules of custom hosts, and so
//! is each address that it redirects to; nothing of the caller's is sent there, and a budget is asked for every piece that comes.

use crate::net::dial::{Dialer, Upstream, internal_call};
use crate::request::refusal::Refusal;
use crate::wire::codecs::type_of_name;
use bytes::Bytes;
use http::{HeaderValue, header};
use parking_lot::Mutex;
use pingora_http::RequestHeader;
use std::time::Duration;

/// Between two pieces. Whoever fetches has a deadline for all of it.
const LIMIT: Duration = Duration::from_secs(20);
const REDIRECTS: usize = 3;
/// Bytes are held as they came, in base64, and in the body that is written.
pub const COPIES: usize = 4;

pub struct FetchedMedia {
    pub bytes: Vec<u8>,
    /// Without its parameters, in small letters.
    pub stated_type: String,
}

enum Response {
    Media(FetchedMedia),
    /// It is elsewhere.
    Moved(String),
}

#[derive(Debug)]
pub enum Unfetched {
    /// In words for the caller. The address itself is not repeated: it may hold a signature.
    Because(String),
    /// The gateway has no room for it.
    Refused(Refusal),
}

impl From<String> for Unfetched {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

impl From<&str> for Unfetched {
    fn from(why: &str) -> Self {
        Self::Because(why.to_owned())
    }
}

/// What is left for media that are fetched together.
pub trait FetchBudget: Send {
    fn take(&mut self, bytes: usize) -> Result<(), Unfetched>;
}

pub async fn fetch<B: FetchBudget>(
    dialer: &Dialer,
    mut url: String,
    budget: &Mutex<B>,
) -> Result<FetchedMedia, Unfetched> {
    for _ in 0..=REDIRECTS {
        match ask(dialer, &url, budget).await? {
            Response::Media(media) if media.bytes.is_empty() => return Err("it is empty".into()),
            Response::Media(media) => return Ok(media),
            Response::Moved(location) => url = moved(&url, &location).ok_or("it redirects to no address")?,
        }
    }
    Err("it redirects too often".into())
}

async fn ask<B: FetchBudget>(dialer: &Dialer, url: &str, budget: &Mutex<B>) -> Result<Response, Unfetched> {
    let url = url.split('#').next().unwrap_or(url);
    let (origin, path) = dialer.custom_url(url).map_err(|rule| rule.to_string())?;
    let connected = dialer.connect(&origin, true).await;
    let mut upstream = connected.map_err(|error| internal_call::spoken(error.class()))?;
    upstream.set_timeouts(LIMIT, LIMIT);
    let head = head(path.as_str()).ok_or("its path is not valid")?;
    match internal_call::send(&mut upstream, head, Bytes::new()).await? {
        200 => read(upstream, budget).await.map(Response::Media),
        301 | 302 | 303 | 307 | 308 => {
            let location = upstream.head().headers.get(header::LOCATION);
            let location = location.and_then(|value| value.to_str().ok()).unwrap_or_default();
            Ok(Response::Moved(location.to_owned()))
        }
        status => Err(format!("it is answered with the status {status}").into()),
    }
}

async fn read<B: FetchBudget>(mut upstream: Upstream, budget: &Mutex<B>) -> Result<FetchedMedia, Unfetched> {
    // The window of a decoder is a copy of what the budget counts.
    upstream.inflate(None).map_err(|encoding| format!("it is compressed ({encoding})"))?;
    let stated = upstream.head().headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = stated.and_then(|stated| stated.split(';').next()).unwrap_or_default();
    let stated_type = essence.trim().to_ascii_lowercase();
    let mut bytes = Vec::new();
    while let Some(piece) = upstream.read_body().await.map_err(|error| internal_call::spoken(error.class()))? {
        budget.lock().take(piece.len())?;
        bytes.extend_from_slice(&piece);
    }
    Ok(FetchedMedia { bytes, stated_type })
}

/// What it is, which must be what it was said to be. Servers that do not know say nothing, or `octet-stream`.
pub fn checked_type(kind: &str, declared: Option<&str>, fetched: &FetchedMedia, url: &str) -> Result<String, String> {
    let stated = match &*fetched.stated_type {
        "" | "application/octet-stream" | "binary/octet-stream" => None,
        stated => Some(stated),
    };
    let known = stated.or_else(|| recognised(&fetched.bytes)).or(declared).or_else(|| type_of_name(url));
    let Some(known) = known else { return Err("its type is not known".into()) };
    let is_page = known == "text/html" && declared.is_some_and(|declared| declared != known);
    match kind {
        "image" | "audio" if !known.starts_with(kind) => Err(format!("it is {}, and no {kind}", shown(known))),
        "file" if is_page => Err("it is a page, and no file of the type that was said".into()),
        _ => Ok(known.to_owned()),
    }
}

/// A server may say anything.
fn shown(media_type: &str) -> String {
    media_type.chars().filter(|c| c.is_ascii_graphic()).take(64).collect()
}

/// By its first bytes.
fn recognised(bytes: &[u8]) -> Option<&'static str> {
    const BEGINNINGS: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF-", "application/pdf"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    BEGINNINGS.into_iter().find(|(beginning, _)| bytes.starts_with(beginning)).map(|(_, media_type)| media_type)
}

/// Where a redirect leads.
fn moved(from: &str, location: &str) -> Option<String> {
    let (scheme, rest) = from.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    match location {
        _ if location.starts_with("https://") || location.starts_with("http://") => Some(location.to_owned()),
        _ if location.starts_with("//") => Some(format!("{scheme}:{location}")),
        _ if location.starts_with('/') => Some(format!("{scheme}://{authority}{location}")),
        _ => None,
    }
}

fn head(path: &str) -> Option<RequestHeader> {
    let mut head = RequestHeader::build("GET", path.as_bytes(), Some(4)).ok()?;
    for (name, value) in
        [(header::USER_AGENT, "portcullis"), (header::ACCEPT, "*/*"), (header::ACCEPT_ENCODING, "identity")]
    {
        head.insert_header(name, HeaderValue::from_static(value)).ok()?;
    }
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_must_be_what_was_said() {
        let png: &[u8] = b"\x89PNG\r\n\x1a\nxx";
        for (kind, declared, stated, bytes, expected) in [
            ("image", None, "image/jpeg", &b"x"[..], Some("image/jpeg")),
            ("image", None, "", png, Some("image/png")),
            ("image", None, "application/octet-stream", b"RIFFxxxxWEBP", Some("image/webp")),
            ("image", None, "text/html", b"<html>", None),
            ("image", Some("image/png"), "text/html", b"<html>", None),
            ("file", Some("application/pdf"), "text/html", b"<html>", None),
            ("file", None, "text/html", b"<html>", Some("text/html")),
            ("file", None, "", b"%PDF-1.7", Some("application/pdf")),
            ("file", None, "", b"?", Some("text/csv")),
            ("audio", None, "audio/wav", b"x", Some("audio/wav")),
        ] {
            let fetched = FetchedMedia { bytes: bytes.to_vec(), stated_type: stated.to_owned() };
            let found = checked_type(kind, declared, &fetched, "https://a.test/t.csv").ok();
            assert_eq!(found.as_deref(), expected, "{kind} {declared:?} {stated}");
        }
    }

    #[test]
    fn a_redirect_leads_to_a_whole_address() {
        for (location, expected) in [
            ("https://b.test/x", Some("https://b.test/x")),
            ("//b.test/x", Some("https://b.test/x")),
            ("/x?y", Some("https://a.test:8/x?y")),
            ("x", None),
            ("file:///etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(moved("https://a.test:8/p?q", location).as_deref(), expected, "{location}");
        }
    }
}
