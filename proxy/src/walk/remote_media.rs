//! Images, sounds and files that a request names by address, for targets whose wire takes bytes alone (the row of the
//! provider says so): they are fetched before the request is written.
//!
//! An address is a caller's word. It is dialled under the rules of custom hosts, and so is each address that it redirects
//! to; nothing of the caller's is sent there. Number, bytes and time are bounded, and what is held counts as body.

use super::ProviderCalls;
use crate::codecs::type_of_name;
use crate::conversation::{Media, MediaSource, Part, Request, WireFormat};
use crate::net::dial::{Upstream, errand};
use crate::refusal::Refusal;
use crate::request::receive::MemoryShare;
use crate::runtime::timeout::with_deadline;
use bytes::Bytes;
use futures::future::try_join_all;
use http::{HeaderValue, header};
use parking_lot::Mutex;
use pingora_http::RequestHeader;
use std::pin::pin;
use std::time::{Duration, Instant};

/// Of one request.
const MOST: usize = 20;
const MOST_BYTES: usize = 20 << 20;
const LIMIT: Duration = Duration::from_secs(20);
/// Fetched side by side.
const TOGETHER: usize = 4;
const REDIRECTS: usize = 3;
/// Bytes are held as they came, in base64, and in the body that is written.
const COPIES: usize = 4;

struct RemoteMedia<'r> {
    /// Its place in the conversation.
    field: String,
    kind: &'static str,
    url: String,
    media: &'r mut Media,
}

struct FetchedMedia {
    bytes: Vec<u8>,
    /// Without its parameters, in small letters.
    stated_type: String,
}

enum Response {
    Media(FetchedMedia),
    /// It is elsewhere.
    Moved(String),
}

enum Unfetched {
    /// In words for the caller.
    Because(String),
    /// The gateway has no room for it.
    Refused(Refusal),
}

impl From<String> for Unfetched {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

/// What is left for all media of a request.
struct FetchBudget<'b, 'm> {
    bytes: usize,
    share: &'b mut MemoryShare<'m>,
}

impl FetchBudget<'_, '_> {
    fn take(&mut self, bytes: usize) -> Result<(), Unfetched> {
        let too_large = || format!("all media of a request may have {MOST_BYTES} bytes together");
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_large)?;
        self.share.grow(bytes.saturating_mul(COPIES)).map_err(Unfetched::Refused)
    }
}

impl ProviderCalls {
    /// Puts the bytes of media in place of their addresses, as far as the target does not read these itself.
    pub(super) async fn fetch_media(
        &self,
        request: &mut Request,
        format: WireFormat,
        share: &mut MemoryShare<'_>,
        deadline: Option<Instant>,
    ) -> Result<(), Refusal> {
        let mut remote = remote_media(request, format);
        if let Some(beyond) = remote.get(MOST) {
            let message = format!("at most {MOST} images and files of a request can be fetched for this provider");
            return Err(Refusal::invalid_parameter(message, &beyond.field));
        }
        let latest = Instant::now() + LIMIT;
        let limit = deadline.map_or(latest, |deadline| deadline.min(latest));
        let budget = Mutex::new(FetchBudget { bytes: MOST_BYTES, share });
        for some in remote.chunks_mut(TOGETHER) {
            let fetching: Vec<_> =
                some.iter().map(|one| self.fetch_one(one.url.clone(), one.field.clone(), &budget)).collect();
            let fetched = match with_deadline(limit, pin!(try_join_all(fetching))).await {
                Ok(fetched) => fetched?,
                Err(_) => {
                    let field = some.first().map(|one| one.field.clone()).unwrap_or_default();
                    return Err(unfetched(&field, "it did not come in time"));
                }
            };
            for (one, fetched) in some.iter_mut().zip(fetched) {
                one.put(fetched)?;
            }
        }
        Ok(())
    }

    async fn fetch_one(
        &self,
        mut url: String,
        field: String,
        budget: &Mutex<FetchBudget<'_, '_>>,
    ) -> Result<FetchedMedia, Refusal> {
        let told = |why: Unfetched| match why {
            Unfetched::Because(why) => unfetched(&field, &why),
            Unfetched::Refused(refusal) => refusal,
        };
        for _ in 0..=REDIRECTS {
            match self.ask(&url, budget).await.map_err(told)? {
                Response::Media(media) => return Ok(media),
                Response::Moved(location) => {
                    url = moved(&url, &location).ok_or_else(|| unfetched(&field, "it redirects to no address"))?;
                }
            }
        }
        Err(unfetched(&field, "it redirects too often"))
    }

    async fn ask(&self, url: &str, budget: &Mutex<FetchBudget<'_, '_>>) -> Result<Response, Unfetched> {
        let url = url.split('#').next().unwrap_or(url);
        let (origin, path) = self.dialer.custom_url(url).map_err(|rule| rule.to_string())?;
        let connected = self.dialer.connect(&origin, true).await;
        let mut upstream = connected.map_err(|error| errand::spoken(error.class()))?;
        upstream.set_timeouts(LIMIT, LIMIT);
        let head = head(path.as_str()).ok_or_else(|| "its path is not valid".to_owned())?;
        match errand::send(&mut upstream, head, Bytes::new()).await? {
            200 => read(upstream, budget).await.map(Response::Media),
            301 | 302 | 303 | 307 | 308 => {
                let location = upstream.head().headers.get(header::LOCATION);
                let location = location.and_then(|value| value.to_str().ok()).unwrap_or_default();
                Ok(Response::Moved(location.to_owned()))
            }
            status => Err(format!("it is answered with the status {status}").into()),
        }
    }
}

async fn read(mut upstream: Upstream, budget: &Mutex<FetchBudget<'_, '_>>) -> Result<FetchedMedia, Unfetched> {
    upstream.inflate().map_err(|encoding| format!("it is compressed ({encoding})"))?;
    let stated = upstream.head().headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = stated.and_then(|stated| stated.split(';').next()).unwrap_or_default();
    let stated_type = essence.trim().to_ascii_lowercase();
    let mut bytes = Vec::new();
    while let Some(piece) = upstream.read_body().await.map_err(|error| errand::spoken(error.class()))? {
        budget.lock().take(piece.len())?;
        bytes.extend_from_slice(&piece);
    }
    Ok(FetchedMedia { bytes, stated_type })
}

impl RemoteMedia<'_> {
    fn put(&mut self, fetched: FetchedMedia) -> Result<(), Refusal> {
        if fetched.bytes.is_empty() {
            return Err(unfetched(&self.field, "it is empty"));
        }
        let said = self.media.media_type.as_deref();
        let media_type = match checked_type(self.kind, said, &fetched, &self.url) {
            Ok(media_type) => media_type,
            Err(why) => return Err(unfetched(&self.field, &why)),
        };
        self.media.media_type = Some(media_type);
        self.media.source = MediaSource::Base64(openssl::base64::encode_block(&fetched.bytes));
        Ok(())
    }
}

/// What it is, which must be what it was said to be. Servers that do not know say nothing, or `octet-stream`.
fn checked_type(kind: &str, said: Option<&str>, fetched: &FetchedMedia, url: &str) -> Result<String, String> {
    let stated = match &*fetched.stated_type {
        "" | "application/octet-stream" | "binary/octet-stream" => None,
        stated => Some(stated),
    };
    let known = stated.or_else(|| recognised(&fetched.bytes)).or(said).or_else(|| type_of_name(url));
    let Some(known) = known else { return Err("its type is not known".into()) };
    let is_page = known == "text/html" && said.is_some_and(|said| said != known);
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

/// Puts something in the place of what would be fetched, for who only wants to know what would be written.
pub(super) fn stand_in(request: &mut Request, format: WireFormat) {
    for one in remote_media(request, format) {
        let usual = match one.kind {
            "image" => "image/png",
            "audio" => "audio/wav",
            _ => "application/pdf",
        };
        one.media.media_type.get_or_insert_with(|| usual.to_owned());
        one.media.source = MediaSource::Base64("AAAA".to_owned());
    }
}

fn remote_media(request: &mut Request, format: WireFormat) -> Vec<RemoteMedia<'_>> {
    let mut found = Vec::new();
    for (turn, content) in request.turns.iter_mut().enumerate() {
        for (place, part) in content.parts.iter_mut().enumerate() {
            gather(part, (turn, place), format, &mut found);
        }
    }
    found
}

fn gather<'r>(part: &'r mut Part, at: (usize, usize), format: WireFormat, found: &mut Vec<RemoteMedia<'r>>) {
    let kind = part.kind();
    match part {
        Part::Image(media) | Part::Audio(media) | Part::File(media) => {
            let MediaSource::Url(url) = &media.source else { return };
            if is_fetched(url, format) {
                let (field, url) = (format!("messages[{}].content[{}]", at.0, at.1), url.clone());
                found.push(RemoteMedia { field, kind, url, media });
            }
        }
        Part::ToolResult(result) => {
            result.parts.iter_mut().for_each(|part| gather(part, at, format, found));
        }
        _ => {}
    }
}

/// Google reads files of its own and videos of YouTube by their addresses; buckets are read by who owns them.
fn is_fetched(url: &str, format: WireFormat) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#', ':']).next().unwrap_or_default().to_ascii_lowercase();
    let is_in = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let is_googles = ["googleapis.com", "youtube.com", "youtu.be"].iter().any(|domain| is_in(domain));
    matches!(scheme, "https" | "http") && !(format == WireFormat::Gemini && is_googles)
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

/// The address itself is not repeated: it may hold a signature.
fn unfetched(field: &str, why: &str) -> Refusal {
    let message = format!("`{field}` could not be fetched for a provider that takes bytes alone: {why}");
    Refusal::invalid_parameter(message, field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Role, ToolResult, Turn};

    #[test]
    fn addresses_are_found_wherever_they_stand_and_left_to_those_who_read_them() {
        let image = |url: &str| Part::Image(Media::new(MediaSource::Url(url.into()), None));
        let result = ToolResult {
            id: "t".into(),
            name: None,
            parts: vec![image("https://a.test/2.png")],
            is_error: false,
            cache: None,
        };
        let parts = vec![
            Part::text("https://no.test"),
            image("https://a.test/1.png"),
            image("s3://b/k"),
            image("https://generativelanguage.googleapis.com/v1beta/files/f"),
            Part::ToolResult(result),
        ];
        let mut request = Request { turns: vec![Turn::new(Role::User, parts)], ..Request::default() };
        let mut found = |format| -> Vec<String> {
            remote_media(&mut request, format).iter().map(|one| format!("{} {}", one.field, one.url)).collect()
        };
        let expected = ["messages[0].content[1] https://a.test/1.png", "messages[0].content[4] https://a.test/2.png"];
        assert_eq!(found(WireFormat::Gemini), expected);
        assert_eq!(found(WireFormat::Converse).len(), 3);
    }

    #[test]
    fn a_type_must_be_what_was_said() {
        let png: &[u8] = b"\x89PNG\r\n\x1a\nxx";
        for (kind, said, stated, bytes, expected) in [
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
            let found = checked_type(kind, said, &fetched, "https://a.test/t.csv").ok();
            assert_eq!(found.as_deref(), expected, "{kind} {said:?} {stated}");
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
