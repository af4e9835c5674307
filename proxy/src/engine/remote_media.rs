//! Images, sounds and files that a request names by address, for targets whose wire takes bytes alone (the row of the
//! provider says so): they are fetched before the request is written.
//!
//! An address is a caller's word, and is dialled as such (`media_fetch`). Number, bytes and time are bounded, and what is held counts
//! as body.

use super::ProviderCalls;
use super::media_fetch::{COPIES, FetchBudget, FetchedMedia, Unfetched, checked_type, fetch};
use crate::request::receive::MemoryShare;
use crate::request::refusal::Refusal;
use crate::runtime::timeout::with_deadline;
use crate::wire::conversation::{Media, MediaSource, Part, Request, WireFormat};
use futures::future::try_join_all;
use parking_lot::Mutex;
use std::pin::pin;
use std::time::{Duration, Instant};

/// Of one request.
const MAX_MEDIA: usize = 20;
const MAX_BYTES: usize = 20 << 20;
const LIMIT: Duration = Duration::from_secs(20);
/// Fetched side by side.
const TOGETHER: usize = 4;

struct RemoteMedia<'r> {
    /// Its place in the conversation.
    field: String,
    kind: &'static str,
    url: String,
    media: &'r mut Media,
}

/// What is left for all media of a request.
struct RequestBudget<'b, 'm> {
    bytes: usize,
    share: &'b mut MemoryShare<'m>,
}

impl FetchBudget for RequestBudget<'_, '_> {
    fn take(&mut self, bytes: usize) -> Result<(), Unfetched> {
        let too_large = || format!("all media of a request may have {MAX_BYTES} bytes together");
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_large)?;
        self.share.grow(bytes.saturating_mul(COPIES)).map_err(|why| Unfetched::Refused(why.into()))
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
        if let Some(beyond) = remote.get(MAX_MEDIA) {
            let message = format!("at most {MAX_MEDIA} images and files of a request can be fetched for this provider");
            return Err(Refusal::invalid_parameter(message, &beyond.field));
        }
        let latest = Instant::now() + LIMIT;
        let limit = deadline.map_or(latest, |deadline| deadline.min(latest));
        let budget = Mutex::new(RequestBudget { bytes: MAX_BYTES, share });
        for some in remote.chunks_mut(TOGETHER) {
            let fetching = some.iter().map(|one| {
                let (url, field, budget) = (one.url.clone(), one.field.clone(), &budget);
                async move { fetch(&self.dialer, url, budget).await.map_err(|why| not_fetched(&field, why)) }
            });
            let fetching: Vec<_> = fetching.collect();
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
}

impl RemoteMedia<'_> {
    fn put(&mut self, fetched: FetchedMedia) -> Result<(), Refusal> {
        let declared = self.media.media_type.as_deref();
        let media_type = match checked_type(self.kind, declared, &fetched, &self.url) {
            Ok(media_type) => media_type,
            Err(why) => return Err(unfetched(&self.field, &why)),
        };
        self.media.media_type = Some(media_type);
        self.media.source = MediaSource::Base64(openssl::base64::encode_block(&fetched.bytes));
        Ok(())
    }
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

pub(super) fn has_remote_media(request: &mut Request, format: WireFormat) -> bool {
    !remote_media(request, format).is_empty()
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

fn not_fetched(field: &str, why: Unfetched) -> Refusal {
    match why {
        Unfetched::Because(why) => unfetched(field, &why),
        Unfetched::Refused(refusal) => refusal,
    }
}

/// The address itself is not repeated: it may hold a signature.
fn unfetched(field: &str, why: &str) -> Refusal {
    let message = format!("`{field}` could not be fetched for a provider that takes bytes alone: {why}");
    Refusal::invalid_parameter(message, field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::conversation::{Role, ToolResult, Turn};

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
}
