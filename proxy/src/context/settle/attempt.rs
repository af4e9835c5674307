//! One target that was tried: what it is, how its answer is listened to, and what that said.

use crate::cache::Entry;
use crate::catalog::target::{Credential, Target};
use crate::context::PaidAnswer;
use crate::limits::admission::admitted::Used;
use crate::limits::admission::amounts::Item;
use crate::limits::usage;
use crate::limits::usage::UsageReader;
use crate::request::text_bounds::{self, cut};
use crate::runtime::memory::{HeldSize, MemoryOwner};
use crate::wire::framing::EventStream;
use crate::wire::framing::compression::{ContentEncoding, Decoder};
use crate::wire::sse::{Splitter, with_blank_line};
use bytes::Bytes;
use chrono::NaiveDate;
use http::{HeaderMap, HeaderValue, header};
use shared::model::id::IntegrationId;
use shared::providers::ProviderEntry;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Attempt {
    pub began: Instant,
    /// What the whole request had waited for providers when this target was turned to.
    pub waited_before: Duration,
    pub ai_org: String,
    pub virtual_key: Option<Arc<shared::model::Provider>>,
    pub integration: Option<IntegrationId>,
    pub model: Option<String>,
    /// The model that is called in truth, where that is another one.
    called: Option<String>,
    pub option: HeaderValue,
    /// Parameters that it was not told.
    pub dropped: Vec<String>,
    pub found: UsageReader,
    /// How many images its answer holds, where steps have read it.
    pub images: Option<u64>,
    /// What the head of its answer says that it used, where the body does not.
    pub head_usage: Option<String>,
    /// A plain answer that came in one piece and does not say what it used.
    pub silent: Bytes,
    /// How much of an answer that may hold text has come, where it did not come in one piece.
    pub answered_bytes: u64,
    /// Tokens that a strict budget promised to its answer; 0 without one.
    pub promised_answer: u64,
    /// What it would say of its usage cannot be read.
    pub is_unread: bool,
    /// It is text of no form that is known.
    pub is_text: bool,
    /// The provider has answered and is paid, whatever became of its answer.
    pub is_paid: bool,
    /// All of it was sent, and nothing that the provider would have answered was heard.
    pub is_unheard: bool,
    /// What it used was neither told nor asked for: it is a guess by the size of what was sent.
    pub is_guessed: bool,
    /// Which of its paths cost something; none of what is no provider.
    pub row: Option<Arc<ProviderEntry>>,
    pub is_stream: bool,
    pub is_relayed: bool,
    pub first_token: Option<Duration>,
    pub watch: Watch,
    /// Of a relayed answer that is compressed.
    decoder: Option<Box<Decoder>>,
    /// Of a session: what it is guessed to have used that it did not say.
    pub unheard: Option<(u64, u64)>,
    /// What strict budgets promised it stands in the journal.
    pub is_promised: bool,
    /// What it costs if it is answered, in nano-cents, where that stands on the call itself.
    pub own_price: Option<u64>,
    /// What its answer reports was counted when it was made.
    pub is_counted_before: bool,
    /// The cache answered in its place; what the answer once used is known.
    pub is_hit: bool,
    /// What its answer says was read before its head left.
    pub is_read: bool,
    /// What it costs in nano-cents, with the guess that this rests on, where the answer tells it.
    pub priced: Option<(u64, Option<(u64, u64)>)>,
    /// The deprecation date of its model, if that is past; the outer none where nobody has looked.
    pub past_date: Option<Option<NaiveDate>>,
}

/// How the answer of a relayed call is watched.
pub enum Watch {
    Not,
    Plain,
    /// What it is shows in its first piece.
    Unknown(Splitter),
    Events(Splitter),
    /// Of AWS.
    Frames(Box<EventStream>),
}

/// Whether an answer of this type may say what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerForm {
    Json,
    Events,
    Frames,
    /// Sound, pictures, archives.
    Binary,
    /// Nothing that is known, or nothing at all.
    Other,
}

impl AnswerForm {
    fn from_headers(head: &HeaderMap) -> Self {
        let kind = head.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
        match &essence[..] {
            b"text/event-stream" => Self::Events,
            b"application/vnd.amazon.eventstream" => Self::Frames,
            b"application/json" | b"application/x-ndjson" => Self::Json,
            other if other.ends_with(b"+json") => Self::Json,
            other if is_binary(other) => Self::Binary,
            _ => Self::Other,
        }
    }
}

fn is_binary(essence: &[u8]) -> bool {
    const KINDS: [&[u8]; 4] = [b"audio/", b"image/", b"video/", b"font/"];
    const TYPES: [&[u8]; 4] =
        [b"application/octet-stream", b"application/pdf", b"application/zip", b"application/gzip"];
    KINDS.iter().any(|kind| essence.starts_with(kind)) || TYPES.contains(&essence)
}

/// What an answer is that does not say it, by its first bytes.
fn sniffed(beginning: &[u8]) -> AnswerForm {
    let beginning = beginning.trim_ascii_start();
    let is_event = |field: &&[u8]| beginning.starts_with(field);
    match beginning.first() {
        Some(b'{' | b'[') => AnswerForm::Json,
        _ if [&b"data:"[..], b"event:", b"id:", b": "].iter().any(is_event) => AnswerForm::Events,
        _ if beginning.iter().take(512).any(|byte| *byte == 0) => AnswerForm::Binary,
        _ => AnswerForm::Other,
    }
}

impl Attempt {
    /// A target that is turned to, for a call to this path.
    pub fn new(target: &Target, model: Option<&str>, path: &str, option: &HeaderValue, waited: Duration) -> Self {
        let stored = match &target.credential {
            Credential::Stored(stored) => Some(stored),
            Credential::Given(_) => None,
        };
        Self {
            waited_before: waited,
            virtual_key: stored.map(|stored| stored.provider.clone()),
            integration: stored.map(|stored| stored.integration.id),
            called: target.called.as_deref().map(|model| cut(model, text_bounds::MODEL).to_owned()),
            row: Some(target.provider.row.clone()),
            ..Self::of_service(
                &target.provider.name,
                model.map(str::to_owned).or_else(|| usage::native_model::in_path(path)).as_deref(),
                option,
            )
        }
    }

    /// Something that is no provider's, and has no price.
    pub fn of_service(ai_org: &str, model: Option<&str>, option: &HeaderValue) -> Self {
        Self {
            began: Instant::now(),
            waited_before: Duration::ZERO,
            ai_org: ai_org.to_owned(),
            virtual_key: None,
            integration: None,
            model: model.map(|model| cut(model, text_bounds::MODEL).to_owned()),
            called: None,
            option: option.clone(),
            dropped: Vec::new(),
            found: UsageReader::default(),
            images: None,
            head_usage: None,
            silent: Bytes::new(),
            answered_bytes: 0,
            promised_answer: 0,
            is_unread: false,
            is_text: false,
            is_paid: false,
            is_unheard: false,
            is_guessed: false,
            row: None,
            is_stream: false,
            is_relayed: false,
            first_token: None,
            watch: Watch::Not,
            decoder: None,
            unheard: None,
            is_promised: false,
            own_price: None,
            is_counted_before: false,
            is_hit: false,
            is_read: false,
            priced: None,
            past_date: None,
        }
    }

    /// A call of the same target beside it, of which nothing was read.
    pub fn sibling(&self) -> Self {
        Self {
            began: self.began,
            waited_before: self.waited_before,
            virtual_key: self.virtual_key.clone(),
            integration: self.integration,
            called: self.called.clone(),
            dropped: self.dropped.clone(),
            row: self.row.clone(),
            is_paid: true,
            is_unheard: true,
            ..Self::of_service(&self.ai_org, self.model.as_deref(), &self.option)
        }
    }

    /// The provider has answered with this, and the client does not get it.
    pub fn pays(&mut self, paid: &PaidAnswer) {
        // An error inside an answer is billed only if it says so.
        self.is_paid |= !paid.is_error;
        self.is_unheard = paid.is_unheard;
        if paid.is_unheard {
            return;
        }
        match paid.is_stream {
            true => {
                self.is_stream |= !paid.is_error;
                self.found.events(&with_blank_line(paid.read.clone()));
            }
            false => self.reads(&paid.read, true),
        }
    }

    /// Its answer is this one.
    pub fn hits(&mut self, entry: &Entry) {
        self.is_hit = true;
        self.found.usage.clone_from(&entry.usage);
        self.found.model.clone_from(&entry.model);
        self.found.service_tier.clone_from(&entry.service_tier);
        self.unheard = entry.estimate;
    }

    /// All of it was sent: it is paid for, until an answer tells otherwise.
    pub fn sent_whole(&mut self) {
        (self.is_unheard, self.is_paid) = (true, true);
    }

    /// The provider has not worked on it.
    pub fn not_worked_on(&mut self) {
        (self.is_unheard, self.is_paid) = (false, false);
    }

    /// Its bytes are not ours to change; its answer begins with this head. A stream of an error is none that is paid for.
    pub fn relays(&mut self, head: &HeaderMap, is_success: bool, owner: MemoryOwner<'_>) {
        self.is_relayed = true;
        (self.is_unheard, self.is_paid) = (false, is_success);
        let form = AnswerForm::from_headers(head);
        self.is_stream = is_success && matches!(form, AnswerForm::Events | AnswerForm::Frames);
        self.head_usage = usage::invoked::usage_of_head(head);
        self.found.service_tier = usage::invoked::tier_of_head(head);
        self.watch = match form {
            AnswerForm::Events => Watch::Events(Splitter::new(owner)),
            AnswerForm::Frames => Watch::Frames(Box::new(EventStream::new(owner))),
            AnswerForm::Json => Watch::Plain,
            AnswerForm::Other if is_success => Watch::Unknown(Splitter::new(owner)),
            AnswerForm::Binary | AnswerForm::Other => return,
        };
        match ContentEncoding::from_headers(head) {
            Ok(encoding) => {
                self.decoder = encoding.map(|encoding| Box::new(Decoder::new(encoding, HeldSize::new(owner))))
            }
            Err(_) => self.stop_reading(),
        }
    }

    /// Bytes of a relayed answer pass.
    pub fn relayed(&mut self, piece: &Bytes, is_last: bool, after: Duration) {
        let plain = match &mut self.decoder {
            None => piece.clone(),
            Some(decoder) => match decoder.push(piece, false) {
                Ok(plain) => plain,
                Err(_) => return self.stop_reading(),
            },
        };
        if matches!(self.watch, Watch::Unknown(_)) && !plain.trim_ascii_start().is_empty() {
            self.recognises(&plain);
        }
        match &mut self.watch {
            Watch::Not if self.is_text => self.answered_bytes += plain.len() as u64,
            Watch::Not if self.is_unread => self.answered_bytes += piece.len() as u64,
            Watch::Not | Watch::Unknown(_) => {}
            Watch::Plain => self.reads(&plain, is_last),
            Watch::Events(splitter) => match splitter.push(plain) {
                Ok(whole) => {
                    self.first_token.get_or_insert(after);
                    self.found.events(&whole);
                    if is_last {
                        self.found.events(&with_blank_line(splitter.rest()));
                    }
                }
                Err(_) => self.stop_reading(),
            },
            Watch::Frames(frames) => match frames.push(&plain) {
                Ok(whole) => {
                    self.first_token.get_or_insert(after);
                    self.found.framed_events(&whole);
                }
                Err(_) => self.stop_reading(),
            },
        }
    }

    /// It did not say what it is, and begins so.
    fn recognises(&mut self, beginning: &[u8]) {
        let form = match sniffed(beginning) {
            // What is looked up was made before, and paid for then.
            AnswerForm::Events if self.found.is_look_up => AnswerForm::Other,
            form => form,
        };
        self.is_stream = form == AnswerForm::Events;
        self.is_text = form == AnswerForm::Other;
        let unknown = std::mem::replace(&mut self.watch, Watch::Not);
        self.watch = match (form, unknown) {
            (AnswerForm::Json, _) => Watch::Plain,
            (AnswerForm::Events, Watch::Unknown(splitter)) => Watch::Events(splitter),
            _ => Watch::Not,
        };
        if matches!(self.watch, Watch::Not) && !self.is_text {
            self.decoder = None;
        }
    }

    /// What it would still say of its usage cannot be read.
    fn stop_reading(&mut self) {
        self.watch = Watch::Not;
        self.decoder = None;
        self.is_unread = self.found.usage.is_empty();
    }

    /// A piece of a plain answer.
    pub fn reads(&mut self, piece: &Bytes, is_last: bool) {
        if self.is_hit || self.is_read {
            return;
        }
        let is_whole = is_last && !self.found.has_begun();
        self.answered_bytes += piece.len() as u64;
        self.found.plain(piece, is_last);
        if is_whole && self.found.usage.is_empty() {
            self.silent = piece.clone();
        }
    }

    /// The model that answered: as the answer says, unless that only repeats what was asked for.
    pub fn answered_model(&self) -> Option<&str> {
        let reported = self.found.model.as_deref();
        let is_repeated = reported.is_none() || reported == self.model.as_deref();
        self.called.as_deref().filter(|_| is_repeated).or(reported)
    }

    /// Whether a price of its own is due although no answer came, or none that is of use.
    pub fn is_own_price_due_unheard(&self, status: u16) -> bool {
        self.is_unheard && !(200..300).contains(&status) && self.own_price.is_some_and(|price| price > 0)
    }

    /// For its limits; `guess` where it has not said everything.
    pub fn used(&self, guess: Option<(u64, u64)>, status: u16) -> Used<'_> {
        // As the logs say it: what failed costs nothing.
        let is_due = (200..300).contains(&status) || self.is_own_price_due_unheard(status);
        let own_price = self.own_price.map(|price| if is_due { price } else { 0 });
        let item = Item {
            service: &self.ai_org,
            integration: self.integration,
            requested: self.model.as_deref(),
            answered: self.answered_model(),
            tier: self.found.service_tier.as_deref(),
        };
        let priced = self.priced.filter(|(_, of)| *of == guess).map(|(nano_cents, _)| nano_cents);
        Used { found: &self.found, guess, item, own_price, priced }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_it_says_or_what_it_begins_with() {
        let form = |kind: Option<&'static str>| {
            let mut head = HeaderMap::new();
            kind.into_iter().for_each(|kind| drop(head.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind))));
            AnswerForm::from_headers(&head)
        };
        for (kind, expected) in [
            (Some("application/json; charset=utf-8"), AnswerForm::Json),
            (Some("application/stream+json"), AnswerForm::Json),
            (Some("Text/Event-Stream"), AnswerForm::Events),
            (Some("audio/mpeg"), AnswerForm::Binary),
            (Some("application/octet-stream"), AnswerForm::Binary),
            (Some("text/plain"), AnswerForm::Other),
            (Some("application/x-something"), AnswerForm::Other),
            (None, AnswerForm::Other),
        ] {
            assert_eq!(form(kind), expected, "{kind:?}");
        }
        for (beginning, expected) in [
            (&b" {\"a\":1}"[..], AnswerForm::Json),
            (b"[1]", AnswerForm::Json),
            (b"data: {}", AnswerForm::Events),
            (b"event: x", AnswerForm::Events),
            (b"words", AnswerForm::Other),
            (b"RIFF\0\0", AnswerForm::Binary),
        ] {
            assert_eq!(sniffed(beginning), expected, "{beginning:?}");
        }
    }
}
