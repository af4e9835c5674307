//! Gathers an answer while it is delivered, and keeps it once it has come to its end. It is told of the same bytes as the
//! log, decides nothing about the answer, and is dropped where the answer must not be kept: an error, a cut stream, a
//! client that left before the provider was done.
//!
//! Streams are assembled from what the provider sent, so that what is kept of them is what a plain answer would have been.

use super::entry::{CacheKey, Entry, Tags};
use super::flight::Flight;
use super::semantic::Learnt;
use super::store::{Cache, now_ms};
use crate::limits::usage::rough_tokens;
use crate::request::receive::OwnedShare;
use crate::runtime::heavy::SMALL;
use crate::wire::codecs::{AnswerOptions, Codec, StreamReader, WireEvent};
use crate::wire::conversation::{Answer, Assembler, WireFormat};
use crate::wire::json;
use crate::wire::sse;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use memchr::memmem;
use parking_lot::Mutex;
use shared::model::id::OrganisationId;
use std::sync::Arc;
use std::time::Duration;

/// What may be kept of an answer that is about to leave.
#[derive(Debug, Clone)]
pub enum CachedBody {
    /// What the client gets.
    Passed,
    /// The client gets more than its answer.
    Instead(Bytes),
    Nothing,
}

/// In which formats an answer comes and goes. None where it is no conversation.
pub struct AnswerForm {
    pub client: Option<&'static dyn Codec>,
    /// Another than the client's where the call is translated.
    pub provider: Option<&'static dyn Codec>,
    pub options: AnswerOptions<'static>,
    /// Only then may it be something else than JSON.
    pub is_speech: bool,
}

/// What is known of an answer before it comes.
pub struct StoreTerms {
    pub organisation: OrganisationId,
    pub key: CacheKey,
    pub tags: Tags,
    pub max_age: Duration,
    pub form: AnswerForm,
    /// The request, for answers that do not say what they used.
    pub asked: Bytes,
}

pub struct Keeper {
    cache: Arc<Cache>,
    /// A purge during the call is about its answer too.
    asked_at_ms: i64,
    terms: StoreTerms,
    /// Others wait for it.
    flight: Option<Flight>,
    /// It may answer requests in other words.
    learnt: Option<Learnt>,
    content_type: String,
    gathered: Gathered,
    room: Option<KeeperRoom>,
    instead: Option<Bytes>,
    usage: Vec<String>,
    model: Option<String>,
    service_tier: Option<String>,
}

enum Gathered {
    Nothing,
    Plain(Vec<u8>),
    Stream(Box<Assembly>),
    /// It cannot be kept any more.
    Spoilt,
}

/// A stream on its way to a whole answer.
struct Assembly {
    /// Never locked: it makes a reader part of what threads may share.
    reader: Mutex<Box<dyn StreamReader>>,
    assembler: Assembler,
    /// Bytes of events so far.
    length: usize,
    /// Of a format whose last event repeats the answer.
    repeated: Option<Bytes>,
}

/// What is gathered counts as memory of bodies, once it is worth it.
struct KeeperRoom {
    share: OwnedShare,
    counted: usize,
}

/// A stream takes many times the bytes of its text.
const MAX_EVENTS: usize = 16;
/// Of the bytes of events one in so many is taken to stay behind in what is not a text.
const EVENTS_PER_HELD: usize = 8;
/// Up to here what is gathered is not counted, and beyond it in steps of this.
const UNCOUNTED: usize = 64 << 10;
/// Cookies of the networks in front of providers: they say nothing of who asked.
const COOKIES_OF_NETWORKS: &[&[u8]] = &[b"__cf_bm=", b"_cfuvid=", b"__cflb=", b"AWSALB", b"GCLB="];

impl Keeper {
    pub fn new(cache: Arc<Cache>, terms: StoreTerms, flight: Option<Flight>) -> Self {
        Self {
            asked_at_ms: cache.database_now_ms(),
            cache,
            terms,
            flight,
            learnt: None,
            content_type: String::new(),
            gathered: Gathered::Nothing,
            room: None,
            instead: None,
            usage: Vec::new(),
            model: None,
            service_tier: None,
        }
    }

    /// With what is to be learnt of the answer.
    pub fn learning(self, learnt: Option<Learnt>) -> Self {
        Self { learnt, ..self }
    }

    /// With what it gathers counted in this share. Where there is no room the answer is not kept; it is delivered all the same.
    pub fn counted_in(self, share: OwnedShare) -> Self {
        Self { room: Some(KeeperRoom { share, counted: 0 }), ..self }
    }

    /// The client gets this head. Whether what follows may be kept.
    pub fn begins(&mut self, status: u16, head: &HeaderMap) -> bool {
        let Some(kind) = head.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) else { return false };
        let is_encoded = head.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
        if status != 200 || is_encoded || is_personal(head) {
            return false;
        }
        self.gathered = match (kind.starts_with("text/event-stream"), self.terms.form.provider) {
            (false, _) if !self.may_be(kind) => return false,
            (false, _) => Gathered::Plain(Vec::with_capacity(announced(head))),
            (true, None) => return false,
            (true, Some(codec)) => Gathered::Stream(Box::new(Assembly::new(codec))),
        };
        self.content_type = match &self.gathered {
            Gathered::Stream(_) => "application/json".to_owned(),
            _ => kind.to_owned(),
        };
        true
    }

    /// Pages of whatever stands before a provider come with a success too.
    fn may_be(&self, kind: &str) -> bool {
        is_json(kind) || (self.terms.form.is_speech && !kind.starts_with("text/"))
    }

    /// A piece of a plain answer. Copied: pieces are parts of larger buffers.
    pub fn plain(&mut self, piece: &Bytes) {
        let Gathered::Plain(gathered) = &mut self.gathered else { return };
        let length = gathered.len().saturating_add(piece.len());
        // As what has grown to this length may take.
        if length > self.cache.largest_entry() || !has_room(&mut self.room, length.saturating_mul(2)) {
            self.spoil();
            return;
        }
        gathered.extend_from_slice(piece);
    }

    /// It will not be kept: what it took is given back, and those who wait for it go on by themselves.
    fn spoil(&mut self) {
        self.gathered = Gathered::Spoilt;
        (self.room, self.flight) = (None, None);
    }

    /// In place of what the client gets.
    pub fn take_instead(&mut self, body: Bytes) {
        self.instead = Some(body);
    }

    /// A whole answer that was changed: what the provider sent, and what the client gets, which may be a stream.
    pub fn changed(&mut self, read: &Bytes, passed: &Bytes) {
        let whole = match (&self.gathered, self.instead.take()) {
            (Gathered::Plain(..), None) => Some(passed.clone()),
            (Gathered::Plain(..), instead) => instead,
            (Gathered::Stream(_), _) => {
                let answer = self.terms.form.provider.and_then(|codec| codec.read_answer(read).ok());
                answer.and_then(|answer| self.written(&answer))
            }
            (Gathered::Nothing | Gathered::Spoilt, _) => None,
        };
        self.gathered = match whole {
            Some(whole) if whole.len() <= self.cache.largest_entry() && has_room(&mut self.room, whole.len()) => {
                Gathered::Plain(whole.to_vec())
            }
            _ => Gathered::Spoilt,
        };
    }

    /// Whole events of a stream, as the provider sent them.
    pub fn events(&mut self, whole: &[u8]) {
        let Gathered::Stream(assembly) = &mut self.gathered else { return };
        let is_held = assembly.push(whole, self.cache.largest_entry());
        if is_held.is_none_or(|held| !has_room(&mut self.room, held)) {
            self.spoil();
        }
    }

    /// What the answer said that it used.
    pub fn learns(&mut self, usage: &[String], model: Option<&str>, service_tier: Option<&str>) {
        self.usage = usage.to_vec();
        self.model = model.map(str::to_owned);
        self.service_tier = service_tier.map(str::to_owned);
    }

    /// The whole answer has come.
    pub fn keep(mut self) {
        let body = match std::mem::replace(&mut self.gathered, Gathered::Spoilt) {
            Gathered::Plain(mut body) => {
                body.shrink_to_fit();
                Some(Bytes::from(body)).filter(|body| self.is_answer(body))
            }
            Gathered::Stream(assembly) => match assembly.finish(self.terms.form.client) {
                Some(Whole::Answer(answer)) => self.written(&answer),
                Some(Whole::Body(body)) => Some(body),
                None => None,
            },
            Gathered::Nothing | Gathered::Spoilt => None,
        };
        let Some(body) = body.filter(|body| self.is_whole(body)) else { return };
        let now = now_ms();
        let age = i64::try_from(self.terms.max_age.as_millis()).unwrap_or(i64::MAX);
        let is_reported = !self.usage.is_empty() || self.terms.form.client.is_none();
        let entry = Entry {
            asked_at_ms: self.asked_at_ms,
            expires_at_ms: now.saturating_add(age),
            tags: self.terms.tags,
            content_type: self.content_type,
            estimate: (!is_reported).then(|| (rough_tokens(&self.terms.asked), rough_tokens(&body))),
            body,
            usage: self.usage,
            model: self.model,
            service_tier: self.service_tier,
        };
        let shared = self.flight.as_ref().map(|_| Arc::new(entry.clone()));
        if let Some(learnt) = self.learnt {
            for key in learnt.replaced().iter().filter(|key| **key != self.terms.key) {
                self.cache.store(self.terms.organisation, *key, entry.clone());
            }
            learnt.remember(self.terms.key, entry.expires_at_ms);
        }
        self.cache.store(self.terms.organisation, self.terms.key, entry);
        if let (Some(flight), Some(entry)) = (self.flight, shared) {
            flight.land(entry);
        }
    }

    fn written(&self, answer: &Answer) -> Option<Bytes> {
        let client = self.terms.form.client?;
        let mut out = Vec::new();
        client.write_answer(answer, &self.terms.form.options, &mut out);
        out.shrink_to_fit();
        Some(Bytes::from(out))
    }

    /// Whether somebody says something in it: not all JSON with a success is an answer. What is large is no notice.
    fn is_answer(&self, body: &[u8]) -> bool {
        let Some(codec) = self.terms.form.client.filter(|_| body.len() <= SMALL) else { return true };
        match codec.format() {
            WireFormat::Chat => has_message(body),
            _ => codec.read_answer(body).is_ok_and(|answer| !answer.choices.is_empty()),
        }
    }

    /// Whether it is all of an answer. JSON was looked at before it left, unless it is large.
    fn is_whole(&self, body: &[u8]) -> bool {
        const LOOKED_AT: usize = 256 << 10;
        if body.is_empty() || (is_json(&self.content_type) && body.len() > LOOKED_AT && json::check(body).is_err()) {
            return false;
        }
        // One that is worked on in the background is no answer yet.
        let is_response = self.terms.form.client.is_some_and(|codec| codec.format() == WireFormat::Responses);
        !is_response || field(body, "status").is_some_and(|status| matches!(status, "\"completed\"" | "\"incomplete\""))
    }
}

enum Whole {
    Answer(Box<Answer>),
    Body(Bytes),
}

impl Assembly {
    fn new(codec: &'static dyn Codec) -> Self {
        Self { reader: Mutex::new(codec.stream_reader()), assembler: Assembler::default(), length: 0, repeated: None }
    }

    /// How much it holds; none once it can no longer be assembled to an answer of at most so many bytes.
    fn push(&mut self, whole: &[u8], most: usize) -> Option<usize> {
        self.length = self.length.saturating_add(whole.len());
        if self.length > most.saturating_mul(MAX_EVENTS) {
            return None;
        }
        let whole = sse::with_blank_line(Bytes::copy_from_slice(whole));
        let mut deltas = Vec::new();
        for event in sse::events(&whole) {
            self.reader
                .get_mut()
                .push(&WireEvent { name: event.name.as_deref(), data: &event.data }, &mut deltas)
                .ok()?;
            if let Some(response) = repeated(&event.data) {
                self.repeated = Some(response);
            }
        }
        deltas.into_iter().try_for_each(|delta| self.assembler.push(delta).ok())?;
        let texts = self.assembler.size().max(self.repeated.as_ref().map_or(0, Bytes::len));
        let held = self.assembler.size() + self.length / EVENTS_PER_HELD;
        (texts <= most).then_some(held.max(texts))
    }

    fn finish(mut self, client: Option<&'static dyn Codec>) -> Option<Whole> {
        let mut deltas = Vec::new();
        self.reader.get_mut().finish(&mut deltas).ok()?;
        deltas.into_iter().try_for_each(|delta| self.assembler.push(delta).ok())?;
        let answer = self.assembler.finish().ok()?;
        let is_finished = !answer.choices.is_empty() && answer.choices.iter().all(|choice| choice.finish.is_some());
        if !is_finished {
            return None;
        }
        let is_response = client.is_some_and(|codec| codec.format() == WireFormat::Responses);
        match self.repeated.filter(|_| is_response) {
            Some(body) => Some(Whole::Body(body)),
            None => Some(Whole::Answer(Box::new(answer))),
        }
    }
}

/// Room for an answer that says its length. A long one gets its room as it comes.
fn announced(head: &HeaderMap) -> usize {
    let length = head.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    length.filter(|length| *length <= UNCOUNTED).unwrap_or(0)
}

/// Whether so many bytes may be held.
fn has_room(room: &mut Option<KeeperRoom>, held: usize) -> bool {
    let Some(room) = room else { return true };
    if held <= room.counted.max(UNCOUNTED) {
        return true;
    }
    let more = (held - room.counted).max(UNCOUNTED);
    room.counted += more;
    room.share.grow(more).is_ok()
}

fn is_json(kind: &str) -> bool {
    const JSON: &str = "application/json";
    kind.get(..JSON.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(JSON))
}

/// The last event of a stream of responses repeats all of it, in words that are the provider's own.
fn repeated(data: &[u8]) -> Option<Bytes> {
    let beginning = &data[..data.len().min(128)];
    let is_last = [&b"\"response.completed\""[..], b"\"response.incomplete\""]
        .iter()
        .any(|word| memmem::find(beginning, word).is_some());
    let response = if is_last { field(data, "response") } else { None };
    response.map(|response| Bytes::copy_from_slice(response.as_bytes()))
}

/// A field of the outermost object, as it is written.
fn field<'b>(body: &'b [u8], name: &str) -> Option<&'b str> {
    let members = json::members(body).ok()?;
    members.into_iter().rev().find(|member| member.name().is_some_and(|own| own == name)).map(|member| member.value)
}

/// Whether the first choice of a chat has a message. Most answers that are kept are chats: all of one would be read into
/// values only to learn this, and of those that are written as usual not even the rest is looked at.
fn has_message(body: &[u8]) -> bool {
    let is_object = |message: &[u8]| message.starts_with(b"{");
    let usual = || first_nested(first_nested(body, b"\"choices\"")?.strip_prefix(b"[")?, b"\"message\"");
    let other = || {
        let choices = json::items(field(body, "choices")?).ok()?;
        field(choices.first()?.as_bytes(), "message").map(str::as_bytes)
    };
    usual().or_else(other).is_some_and(is_object)
}

/// The first value of an object that has something inside, from its bracket on, if the object names it so. Its text was
/// looked at before. A bracket within a text hides what follows it.
fn first_nested<'b>(object: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
    let members = object.trim_ascii_start().strip_prefix(b"{")?;
    let at = members.iter().position(|byte| matches!(byte, b'{' | b'[' | b'}' | b']'))?;
    let (before, nested) = members.split_at(at);
    let before = before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end().strip_suffix(name)?.trim_ascii_end();
    (before.is_empty() || before.ends_with(b",")).then_some(nested)
}

/// Whether an answer has headers for the one who asked. Cookies of networks are everybody's.
fn is_personal(head: &HeaderMap) -> bool {
    let is_of_network = |cookie: &HeaderValue| {
        let cookie = cookie.as_bytes().trim_ascii_start();
        COOKIES_OF_NETWORKS.iter().any(|name| cookie.starts_with(name))
    };
    head.contains_key("set-cookie2") || head.get_all(header::SET_COOKIE).iter().any(|cookie| !is_of_network(cookie))
}

#[cfg(test)]
mod tests;
