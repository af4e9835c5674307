//! The beginning of a relayed body, read before a target is chosen: a JSON body names its model, and by that a provider
//! may be chosen, a model forbidden, a policy met. No body is held: what is read is what Pingora can send again, or
//! little more. Only what guardrails judge is held, up to `MAX_JUDGED_BODY`.

use super::RelayLane;
use super::asked_model::AskedModel;
use super::held_relay::HeldRequest;
use super::judge_relay::{JudgedRequest, MAX_JUDGED_BODY, RelayJudge};
use super::relayed_body::RelayedBody;
use super::{Passage, RelayAsk};
use crate::catalog::signing::AccountCredential;
use crate::catalog::target::{Credential, Target};
use crate::context::Visit;
use crate::context::metrics::Lane;
use crate::engine::{Delivered, Router};
use crate::identity::identify::Principal;
use crate::net::downstream::Downstream;
use crate::request::batch_creation;
use crate::request::body::model_reader::ModelReader;
use crate::request::headers::GatewayHeaders;
use crate::request::multipart::{self, MAX_HELD};
use crate::request::receive::has_body;
use crate::request::receive::{BodyPieces, NotReceived, OwnedShare};
use crate::request::refusal::Refusal;
use crate::routing::plan::ProviderSource;
use crate::runtime::timeout::with_timeout;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Version, header};
use pingora_http::RequestHeader;
use std::pin::pin;

/// As far as the model is looked for; Pingora keeps as much to send it again.
pub const MAX_READ_AHEAD: usize = 64 << 10;

/// A relayed request whose body may have to be looked at before it has a target.
#[derive(Debug)]
pub struct Departure {
    ask: RelayAsk,
    /// Known from the head alone.
    target: Option<Target>,
    need: BodyNeed,
    /// It may have to be signed, and so it is read whole if it is short.
    is_signed: bool,
    /// Guardrails look into it or its answer, and so it is read whole up to `MAX_JUDGED_BODY`.
    judge: Option<RelayJudge>,
    /// It asks for a new batch: over a file of ours it is ours to run, so it is read whole if it is short.
    is_batch: bool,
    /// Others may come to wait for its place, which it must give back though Pingora waits for its client: it is read whole if
    /// it is short, so that the engine can carry it.
    is_contended: bool,
}

/// Where a request goes once its body was looked at.
#[derive(Debug)]
pub enum Departed {
    Passage(Box<Passage>),
    /// The engine had to carry it: it went its way already.
    Answered(Delivered),
    /// It asks for a batch over a file that the gateway keeps.
    Batch {
        caller: Box<Principal>,
        body: Bytes,
    },
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
    /// What it takes in memory, where guardrails judge it.
    share: Option<OwnedShare>,
}

impl Router {
    pub fn departure(
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
        let is_batch = has_body(head) && batch_creation::is_creation(&ask.path, head);
        // Who does not read over HTTP/1.1 is given up by its connection.
        let is_contended = head.version == Version::HTTP_2
            && head.method != Method::HEAD
            && !is_event_stream(headers)
            && self.may_take_turns(&ask, target.as_ref(), headers, need);
        Departure { ask, target, need, is_signed, judge, is_batch, is_contended }
    }

    /// Whether a target may limit its concurrency, as far as that is said before the body is read.
    fn may_take_turns(
        &self,
        ask: &RelayAsk,
        target: Option<&Target>,
        headers: &GatewayHeaders<'_>,
        need: BodyNeed,
    ) -> bool {
        let of_stored = |slug: &str| {
            let provider = self.snapshot.provider(ask.caller.workspace.id, slug);
            provider.is_some_and(|provider| provider.concurrency.is_some())
        };
        if let Some(Target { credential, .. }) = target {
            return matches!(credential, Credential::Stored(stored) if stored.provider.concurrency.is_some());
        }
        ask.plan.leaves().any(|leaf| match &leaf.source {
            ProviderSource::Named(_) => false,
            ProviderSource::Stored(slug) => of_stored(slug),
            ProviderSource::Request => match (header_text(headers.virtual_key), header_text(headers.provider)) {
                (Some(slug), _) => of_stored(slug.trim_start_matches('@')),
                (None, Some(name)) => name.strip_prefix('@').is_some_and(of_stored),
                // Its model may say it.
                (None, None) => need == BodyNeed::Model,
            },
        })
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

impl RelayLane {
    /// To the first target that can be asked, once it is known what for.
    pub async fn depart(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        departure: Departure,
    ) -> Result<Departed, NotReceived> {
        let Departure { mut ask, target, need, is_signed, mut judge, is_batch, is_contended } = departure;
        let mut body = RelayedBody::default();
        let mut held = None;
        // All of it, where nobody judges it and the engine may have to carry it.
        let mut unjudged = (!has_body(client.head()) || client.is_body_read()).then(Bytes::new);
        let waits = client.head().headers.contains_key(header::EXPECT);
        if let Some(found) = judge.take() {
            judge = found.once_known(!client.is_body_read())?;
        }
        if let Some(unread) = judge.take_if(|_| announced(client.head()).is_some_and(|length| length > MAX_JUDGED_BODY))
        {
            unread.check_long()?;
        }
        let is_read_whole = is_signed || is_batch || is_contended && unjudged.is_none() || judge.is_some();
        if need == BodyNeed::Model || is_read_whole || (need == BodyNeed::Glance && !waits) {
            if waits {
                client.write_continue().await?;
                body.is_permitted = true;
            }
            let share = judge.is_some().then(|| OwnedShare::none(self.body_limits.memory.clone(), ask.caller.tenant()));
            let how = ReadHow { need, is_whole: is_read_whole, share, pieces: BodyPieces::new(self.body_limits.pace) };
            let reading = with_timeout(self.body_limits.timeout, pin!(read_ahead(client, how))).await;
            let mut ahead = reading.map_err(|_| Refusal::body_timeout())??;
            if is_batch && ahead.is_whole {
                let body = ahead.joined();
                if batch_creation::names_managed_file(&body) {
                    visit.enter(Lane::Own, &self.metrics);
                    return Ok(Departed::Batch { caller: Box::new(ask.caller), body });
                }
                if batch_creation::is_immediate(&body) {
                    return Err(Refusal::only_managed_is_immediate().into());
                }
            }
            let judged = match judge {
                Some(judge) => self.judge_ahead(client.head(), visit, &ask, judge, &mut ahead).await?,
                None => None,
            };
            let is_json = client.head().headers.get(header::CONTENT_TYPE).is_none_or(|value| is_json(value.as_bytes()));
            if need != BodyNeed::Nothing {
                ask.model = ahead.model(need, is_json);
            }
            if judged.is_none() && ahead.is_whole && (is_contended || ahead.length > MAX_READ_AHEAD) {
                unjudged = Some(ahead.joined());
            }
            if judged.is_some() {
                let whole = ahead.joined();
                body.whole = Some(whole.clone());
                held = Some(HeldRequest { body: whole, judged, _share: ahead.share.take() });
            } else if unjudged.is_none() && ahead.length > MAX_READ_AHEAD {
                body.ahead = std::mem::take(&mut ahead.pieces);
                body.share = ahead.share.take();
            } else if is_signed && ahead.is_whole {
                body.whole = Some(ahead.joined());
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
        // What Pingora cannot send again must not be left to it.
        let is_carried = |whole: &Bytes| is_contended && passage.takes_turns() || whole.len() > MAX_READ_AHEAD;
        if held.is_none()
            && let Some(whole) = unjudged.filter(is_carried)
        {
            let mut share = OwnedShare::none(self.body_limits.memory.clone(), passage.asked().1.tenant());
            share.grow(whole.len())?;
            body.whole = Some(whole.clone()).filter(|whole| !whole.is_empty());
            held = Some(HeldRequest { body: whole, judged: None, _share: Some(share) });
        }
        passage.begin_body(body);
        match held {
            Some(held) => Ok(Departed::Answered(Box::pin(self.relay_held(client, visit, passage, held)).await)),
            None => Ok(Departed::Passage(Box::new(passage))),
        }
    }

    /// Judges what was read of a body. None where Pingora can carry the rest of the call: it has not read the body to its end,
    /// or can send it again, and nobody judges the answer.
    async fn judge_ahead(
        &self,
        head: &RequestHeader,
        visit: &mut Visit,
        ask: &RelayAsk,
        judge: RelayJudge,
        ahead: &mut Ahead,
    ) -> Result<Option<(RelayJudge, JudgedRequest)>, Refusal> {
        if !ahead.is_whole || ahead.length > MAX_JUDGED_BODY {
            judge.check_long()?;
            return Ok(Some((judge, JudgedRequest::default())).filter(|_| ahead.is_whole));
        }
        if judge.is_unsaid() && ahead.length == 0 {
            return Ok(None);
        }
        let body = ahead.joined();
        let about = (ask.path.as_str(), &ask.caller, &ask.metadata);
        let judged = Box::pin(self.judge_relayed(&judge, about, head, &body, visit)).await?;
        visit.routing.is_body_marked = judged.is_failed();
        let is_held = judge.reads_answer || ahead.length > MAX_READ_AHEAD;
        Ok(is_held.then_some((judge, judged)))
    }
}

/// How far a body is read.
struct ReadHow {
    need: BodyNeed,
    /// To its end, unless it is too long to be held.
    is_whole: bool,
    /// Where it counts, if guardrails judge it.
    share: Option<OwnedShare>,
    pieces: BodyPieces,
}

async fn read_ahead(client: &mut impl Downstream, how: ReadHow) -> Result<Ahead, NotReceived> {
    let ReadHow { need, is_whole, share, mut pieces } = how;
    let most = if share.is_some() { MAX_JUDGED_BODY } else { MAX_READ_AHEAD };
    let mut ahead = Ahead { reader: ModelReader::default(), pieces: Vec::new(), length: 0, is_whole: false, share };
    loop {
        let is_large = ahead.share.as_ref().is_some_and(OwnedShare::is_large);
        let piece = match is_large {
            true => pieces.next_piece(client).await?,
            false => client.read_body().await?,
        };
        let Some(piece) = piece else {
            ahead.is_whole = true;
            return Ok(ahead);
        };
        ahead.reader.push(&piece);
        ahead.length += piece.len();
        if let Some(share) = &mut ahead.share {
            share.grow(piece.len())?;
        }
        ahead.pieces.push(piece);
        let is_known = need != BodyNeed::Model || ahead.reader.found().is_some() || ahead.reader.is_over();
        // One byte more than is held tells that it is too long to be.
        let is_enough = if is_whole { ahead.length > most } else { is_known || ahead.length >= MAX_READ_AHEAD };
        if is_enough {
            ahead.is_whole = is_whole && client.is_body_read();
            return Ok(ahead);
        }
    }
}

fn announced(head: &RequestHeader) -> Option<usize> {
    head.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

impl Ahead {
    /// All of it, as one piece from here on.
    fn joined(&mut self) -> Bytes {
        if self.pieces.len() != 1 {
            self.pieces = vec![Bytes::from(self.pieces.concat())];
        }
        self.pieces.first().cloned().unwrap_or_default()
    }

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
            false => unknown(format!("it does not stand in the first {MAX_READ_AHEAD} bytes of the body")),
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
