//! The beginning of a relayed body, read before a target is chosen: a JSON body names its model, and by that a provider
//! may be chosen, a model forbidden, a policy met. No body is held: what is read is what Pingora can send again, or
//! little more.

use super::asked_model::AskedModel;
use super::judge_relay::RelayJudge;
use super::relayed_body::RelayedBody;
use super::{BatchesRequest, Engine, Passage, RelayAsk, Router, batches};
use crate::batches::new_batch;
use crate::catalog::target::{Credential, Target};
use crate::metrics::Lane;
use crate::net::downstream::{ClientGone, Downstream};
use crate::refusal::Refusal;
use crate::request::body::model_reader::ModelReader;
use crate::request::headers::GatewayHeaders;
use crate::request::multipart::{self, MAX_HELD};
use crate::request::receive::NotReceived;
use crate::routing::plan::ProviderSource;
use crate::runtime::timeout::with_timeout;
use crate::signing::AccountCredential;
use crate::visit::Visit;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Version, header};
use pingora_http::RequestHeader;
use std::pin::pin;

/// As far as the model is looked for; Pingora keeps as much to send it again.
pub const MOST: usize = 64 << 10;

/// A relayed request whose body may have to be looked at before it has a target.
#[derive(Debug)]
pub struct Departure {
    ask: RelayAsk,
    /// Known from the head alone.
    target: Option<Target>,
    need: BodyNeed,
    /// It may have to be signed, and so it is read whole if it is short.
    is_signed: bool,
    /// Guardrails look into it, and so it is read whole if it is short.
    judge: Option<RelayJudge>,
    /// It asks for a new batch: over a file of ours it is ours to run, so it is read whole if it is short.
    is_batch: bool,
}

/// Where a request goes once its body was looked at.
#[derive(Debug)]
pub enum Departed {
    Passage(Box<Passage>),
    /// It asks for a batch over a file that the gateway keeps.
    Batch(Box<BatchesRequest>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyNeed {
    Nothing,
    /// The model is good to know, if the first piece names it.
    Glance,
    /// Something may depend on it.
    Model,
}

struct Ahead {
    reader: ModelReader,
    pieces: Vec<Bytes>,
    length: usize,
    is_whole: bool,
}

impl Router {
    pub(super) fn departure(
        &self,
        mut ask: RelayAsk,
        target: Option<Target>,
        judge: Option<RelayJudge>,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
    ) -> Departure {
        let mut need = match &ask.model {
            AskedModel::Nothing if has_body(head) => self.need(&ask, target.as_ref(), headers),
            _ => BodyNeed::Nothing,
        };
        if need == BodyNeed::Model
            && let Some(why) = unreadable(&ask.path, &head.headers)
        {
            (ask.model, need) = (AskedModel::Unknown(why.into()), BodyNeed::Nothing);
        }
        let is_signed = has_body(head) && !is_event_stream(headers) && self.may_sign(&ask, target.as_ref(), headers);
        let is_batch = has_body(head) && batches::is_creation(&ask.path, head);
        Departure { ask, target, need, is_signed, judge, is_batch }
    }

    /// Whether a target may want its body signed, as far as that is said before the body is read.
    fn may_sign(&self, ask: &RelayAsk, target: Option<&Target>, headers: &GatewayHeaders<'_>) -> bool {
        let stored = |slug: &str| {
            let provider = self.snapshot.provider(ask.caller.workspace.id, slug)?;
            self.snapshot.integration(&provider.integration_id)
        };
        let of_stored =
            |slug: &str| stored(slug).is_some_and(|account| AccountCredential::signs_bodies(&account.ai_provider_id));
        let named = |name: &str| match name.strip_prefix('@') {
            Some(slug) => of_stored(slug),
            None => AccountCredential::signs_bodies(name),
        };
        if let Some(target) = target {
            return AccountCredential::signs_bodies(&target.provider.name);
        }
        ask.plan.leaves().any(|leaf| match &leaf.source {
            ProviderSource::Named(name) => AccountCredential::signs_bodies(name),
            ProviderSource::Stored(slug) => of_stored(slug),
            ProviderSource::Request => match header_text(headers.virtual_key) {
                Some(slug) => of_stored(slug.trim_start_matches('@')),
                None => header_text(headers.provider).is_some_and(named),
            },
        })
    }

    fn need(&self, ask: &RelayAsk, target: Option<&Target>, headers: &GatewayHeaders<'_>) -> BodyNeed {
        let is_needed = match target {
            Some(Target { credential: Credential::Given(_), .. }) => self.has_model_policies(&ask.caller),
            _ => self.may_need_model(&ask.plan, headers, &ask.caller),
        };
        match is_needed {
            true => BodyNeed::Model,
            false if headers.content_type.is_none_or(|value| is_json(value.as_bytes())) => BodyNeed::Glance,
            false => BodyNeed::Nothing,
        }
    }
}

impl Engine {
    /// To the first target that can be asked, once it is known what for.
    pub async fn depart(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        departure: Departure,
    ) -> Result<Departed, NotReceived> {
        let Departure { mut ask, target, need, is_signed, judge, is_batch } = departure;
        let mut body = RelayedBody::default();
        let waits = client.head().headers.contains_key(header::EXPECT);
        let is_read_whole = is_signed || is_batch || judge.is_some();
        if need == BodyNeed::Model || is_read_whole || (need == BodyNeed::Glance && !waits) {
            if waits {
                client.write_continue().await?;
                body.is_permitted = true;
            }
            let reading = with_timeout(self.body_limits.timeout, pin!(read_ahead(client, need, is_read_whole))).await;
            let ahead = reading.map_err(|_| Refusal::body_timeout())??;
            if is_batch && ahead.is_whole {
                let body = Bytes::from(ahead.pieces.concat());
                if new_batch::names_managed_file(&body) {
                    visit.enter(Lane::Own, &self.metrics);
                    return Ok(Departed::Batch(Box::new(BatchesRequest::creation(ask.caller, body))));
                }
                if new_batch::is_immediate(&body) {
                    return Err(Refusal::only_managed_is_immediate().into());
                }
            }
            if let Some(judge) = &judge {
                match ahead.is_whole && ahead.length <= MOST {
                    true => {
                        let body = Bytes::from(ahead.pieces.concat());
                        let about = (ask.path.as_str(), &ask.caller, &ask.metadata);
                        let judging = self.judge_relayed(judge, about, client.head(), &body, visit);
                        visit.routing.is_body_marked = Box::pin(judging).await?;
                    }
                    false => judge.check_unread()?,
                }
            }
            let is_json = client.head().headers.get(header::CONTENT_TYPE).is_none_or(|value| is_json(value.as_bytes()));
            if need != BodyNeed::Nothing {
                ask.model = ahead.model(need, is_json);
            }
            if is_signed && ahead.is_whole && ahead.length <= MOST {
                body.whole = Some(Bytes::from(ahead.pieces.concat()));
            }
            if ahead.length > MOST {
                body.ahead = ahead.pieces;
            }
            if need == BodyNeed::Model && !ahead.reader.is_over() && !ahead.is_whole {
                body.reader = Some(ahead.reader);
            }
        }
        let headers = GatewayHeaders::from_headers(&client.head().headers, &self.aliases)?;
        let mut passage = match target {
            Some(target) => self.router.passage_to(target, ask, client.head(), visit)?,
            None => self.router.passage(ask, client.head(), &headers, visit)?,
        };
        passage.begin_body(body);
        Ok(Departed::Passage(Box::new(passage)))
    }
}

async fn read_ahead(client: &mut impl Downstream, need: BodyNeed, is_whole: bool) -> Result<Ahead, ClientGone> {
    let mut ahead = Ahead { reader: ModelReader::default(), pieces: Vec::new(), length: 0, is_whole: false };
    loop {
        let Some(piece) = client.read_body().await? else {
            ahead.is_whole = true;
            return Ok(ahead);
        };
        ahead.reader.push(&piece);
        ahead.length += piece.len();
        ahead.pieces.push(piece);
        let is_known = need != BodyNeed::Model || ahead.reader.found().is_some() || ahead.reader.is_over();
        // One byte more than Pingora keeps tells that it is too long to be held.
        let is_enough = if is_whole { ahead.length > MOST } else { is_known || ahead.length >= MOST };
        if is_enough {
            return Ok(ahead);
        }
    }
}

impl Ahead {
    fn model(&self, need: BodyNeed, is_json: bool) -> AskedModel {
        let unknown = |why: String| match need {
            BodyNeed::Model => AskedModel::Unknown(why.into()),
            BodyNeed::Glance | BodyNeed::Nothing => AskedModel::Nothing,
        };
        if let Some(fault) = self.reader.fault() {
            return unknown(fault.to_string());
        }
        if let Some(found) = self.reader.found() {
            return AskedModel::in_body(found.clone());
        }
        match self.reader.is_over() {
            // Text in another encoding is JSON to some readers; so is what begins with a mark of its order.
            true if is_json && !self.begins_like_json() => unknown("the body is not JSON in UTF-8".into()),
            true => AskedModel::Nothing,
            false if self.is_whole && self.length == 0 => AskedModel::Nothing,
            false if self.is_whole => unknown("the body is not whole JSON".into()),
            false => unknown(format!("it does not stand in the first {MOST} bytes of the body")),
        }
    }

    fn begins_like_json(&self) -> bool {
        let mut bytes = self.pieces.iter().flatten().copied();
        let first = bytes.by_ref().find(|byte| !byte.is_ascii_whitespace());
        first.is_some_and(|byte| matches!(byte, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'))
            && bytes.next() != Some(0)
    }
}

/// Of which the client may send no more before it is answered.
fn is_event_stream(headers: &GatewayHeaders<'_>) -> bool {
    headers.content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"application/vnd.amazon.eventstream"))
}

fn header_text(value: Option<&HeaderValue>) -> Option<&str> {
    value.and_then(|value| value.to_str().ok()).map(str::trim)
}

pub(super) fn has_body(head: &RequestHeader) -> bool {
    match head.headers.get(header::CONTENT_LENGTH) {
        Some(length) => length.as_bytes() != b"0",
        None => head.headers.contains_key(header::TRANSFER_ENCODING) || head.version == Version::HTTP_2,
    }
}

/// Why a body cannot be looked into at all.
fn unreadable(path: &str, headers: &HeaderMap) -> Option<String> {
    const FORMS: [&str; 4] = ["/transcriptions", "/translations", "/edits", "/variations"];
    let is_encoded = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    let is_form = multipart::is_form(headers.get(header::CONTENT_TYPE));
    if is_encoded {
        Some("the body is compressed".into())
    } else if is_form && FORMS.iter().any(|ending| path.ends_with(ending)) {
        Some(format!(
            "it stands in a form that is not held: one of more than {MAX_HELD} bytes, or at a path of its own"
        ))
    } else {
        None
    }
}

fn is_json(content_type: &[u8]) -> bool {
    content_type.to_ascii_lowercase().windows(4).any(|part| part == b"json")
}
