//! The usage that an answer reports, found while the same bytes are passed on: the `usage` object as the provider wrote
//! it, the model's name, and how much text a stream has brought so far. Nothing is parsed that need not be, and nothing
//! here can fail: an answer in no known form reports nothing.
//!
//! For streams: `stream_options` asks for usage, `context::settle::attempt` feeds this reader what the provider sent,
//! `estimate` counts what was not reported, and `journal::ship::price` makes it money.

pub mod audio;
mod estimate;
mod hosted_tools;
pub mod images;
pub mod invoked;
mod native_counts;
pub mod native_model;
mod outermost;
mod piece_tools;
mod report;
pub mod requested_units;
mod scan;
pub mod stream_options;

pub use estimate::{
    AnsweredText, UncountedCall, prompt_tokens, rough_tokens, rough_tokens_of_any, rough_tokens_of_beginning,
};

use crate::request::text_bounds;
use crate::wire::framing::end_markers;
use crate::wire::sse::events;
use hosted_tools::ToolCounts;
use memchr::memmem;
use native_counts::NativeCounts;
use outermost::{OuterField, OutermostScan};
use piece_tools::PieceTools;
use report::{Report, has_tool_objects};
use scan::{ScannedKey, ScannedValue};
use shared::cost::{Counts, Usage};
use std::sync::LazyLock;

static MODEL: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"model\""));
static SERVICE_TIER: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"service_tier\""));
static TYPED_TIER: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"serviceTier\""));
static USAGE: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"usage\""));
static USAGE_METADATA: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"usageMetadata\""));
static MODEL_VERSION: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"modelVersion\""));
/// Reka's; others keep other things there.
static METADATA: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"metadata\""));
static META: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"meta\""));
/// Mistral's, of pages.
static USAGE_INFO: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"usage_info\""));

/// What stands in it; others keep other things there.
const PAGES: &[u8] = b"\"pages_processed\"";

/// Longest object that is taken for usage.
const MAX_USAGE_LENGTH: usize = 8 << 10;
/// Usage objects that are read in one event, which has one or two: each one costs a search for its end.
const MAX_REPORTS: usize = 64;
/// What is kept of the text of a stream, for the case that it never says how long it was.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// Gathers what one answer says.
#[derive(Debug, Default)]
pub struct UsageReader {
    /// The first and the last mention: Anthropic reports what was read at the start, what was written at the end.
    pub usage: Vec<String>,
    /// What the one mention of a plain answer counts, where that was seen on the way.
    counts: Counts,
    is_counted: bool,
    pub model: Option<String>,
    pub service_tier: Option<String>,
    /// The text of a stream so far, as JSON writes it.
    text: Vec<u8>,
    /// How long it is; more than is kept if it is very long.
    text_length: u64,
    /// Of a plain answer that comes in pieces.
    outermost: Option<Box<OutermostScan>>,
    /// The same, of the provider's own tools.
    piece_tools: Option<Box<PieceTools>>,
    native: NativeCounts,
    /// Which of the fields that may hold usage it stood in: the first of them counts.
    usage_field: Option<OuterField>,
    is_begun: bool,
    /// Calls of the provider's own tools that the answer shows.
    tools: ToolCounts,
    /// The answer is of something that was made before.
    pub is_look_up: bool,
    /// Of what is looked up: it was made in the background.
    pub is_background: bool,
    /// Whether a stream has said everything about its usage.
    pub is_final: bool,
}

/// The tier of service of a fast mode.
const FAST: &str = "fast";

impl UsageReader {
    /// A piece of a plain answer.
    pub fn plain(&mut self, piece: &[u8], is_last: bool) {
        let is_whole = is_last && !self.is_begun;
        self.is_begun = true;
        if !is_whole {
            self.piece(piece);
            return;
        }
        if self.is_look_up || has_tool_objects(piece) {
            self.reported(piece);
            if self.is_look_up {
                self.uses_tools(hosted_tools::in_response(piece));
            }
            return;
        }
        if native_counts::ends_as_ollamas(piece) {
            return self.scan_outermost(piece);
        }
        let beginning = &piece[..piece.len().min(MAX_USAGE_LENGTH)];
        self.model = scan::name_after(beginning, &MODEL, text_bounds::MODEL);
        self.service_tier = scan::name_after(piece, &SERVICE_TIER, text_bounds::WORD).or(self.service_tier.take());
        self.note_last(piece);
        if self.usage.is_empty() && native_counts::may_have_details(piece) {
            self.scan_outermost(piece);
        }
        // Only answers in the words of Converse are searched for its object.
        if self.usage.last().is_some_and(|usage| usage.contains("\"inputTokens\""))
            && let Some(tier) = scan::last_object(piece, &TYPED_TIER, text_bounds::WORD, |_| None)
        {
            self.name_tier(tier);
        }
        // What is counted at a glance holds no texts.
        if !self.is_counted
            && let Some(tier) = self.usage.last().and_then(|usage| hosted_tools::tier_of_usage(usage.as_bytes()))
        {
            self.service_tier = Some(tier.to_owned());
        }
        self.uses_tools(hosted_tools::in_response(piece));
    }

    /// One of several: whether tool calls are in the others is not known.
    fn piece(&mut self, piece: &[u8]) {
        self.scan_outermost(piece);
        let tools = self.piece_tools.get_or_insert_default();
        tools.push(piece);
        let counts = tools.counts();
        self.uses_tools(counts);
    }

    fn scan_outermost(&mut self, piece: &[u8]) {
        let mut scan = self.outermost.take().unwrap_or_default();
        scan.push(piece, |field, value| self.outer(field, value));
        self.outermost = Some(scan);
    }

    fn outer(&mut self, field: OuterField, value: &[u8]) {
        match field {
            OuterField::Model | OuterField::ModelVersion => {
                self.model = self.model.take().or_else(|| scan::name(value, text_bounds::MODEL));
            }
            OuterField::ServiceTier => self.service_tier = scan::name(value, text_bounds::WORD),
            OuterField::TypedTier => self.name_tier(value),
            OuterField::Background => self.is_background = true,
            // Cohere's; others keep other things there.
            OuterField::Meta if memmem::find(value, b"\"billed_units\"").is_none() => {}
            OuterField::UsageInfo if memmem::find(value, PAGES).is_none() => {}
            OuterField::Details => {
                if let Some(usage) = native_counts::usage_of_details(value) {
                    self.outer_usage(field, usage.as_bytes());
                }
            }
            OuterField::PromptEvalCount | OuterField::EvalCount => {
                self.native.note(field, value);
                // Both are one report.
                self.outer_usage(OuterField::PromptEvalCount, self.native.report().as_bytes());
            }
            OuterField::Usage | OuterField::UsageMetadata | OuterField::Meta | OuterField::UsageInfo => {
                self.outer_usage(field, value);
            }
        }
    }

    fn outer_usage(&mut self, field: OuterField, value: &[u8]) {
        if self.usage_field.is_some_and(|noted| noted < field) {
            return;
        }
        self.usage_field = Some(field);
        self.replace(value);
        if self.service_tier.is_none() {
            self.service_tier =
                report::tier_of_usage(value).and_then(|tier| scan::name(tier.as_bytes(), text_bounds::WORD));
        }
    }

    /// From an object such as `{"type": "priority"}`.
    fn name_tier(&mut self, typed: &[u8]) {
        let named = report::typed_tier(typed).and_then(|tier| scan::name(tier.as_bytes(), text_bounds::WORD));
        self.service_tier = named.or(self.service_tier.take());
    }

    /// Whether some of a plain answer has come.
    pub fn has_begun(&self) -> bool {
        self.is_begun
    }

    /// Whole events of a stream.
    pub fn events(&mut self, whole: &[u8]) {
        for event in events(whole) {
            self.event(&event.data);
        }
    }

    /// The same of a stream whose frames were taken off: what a model of Bedrock says stands in them in its own format.
    pub fn framed_events(&mut self, whole: &[u8]) {
        for event in events(whole) {
            match invoked::unwrapped(&event.data) {
                Some(inner) => self.event(&inner),
                None => self.event(&event.data),
            }
        }
    }

    /// What Bedrock counted, at the end of a stream of any model. What the model's own format said is more exact.
    fn invoked(&mut self, metrics: &[u8]) {
        self.is_final = true;
        if self.usage.is_empty()
            && let Some(usage) = invoked::usage_of_metrics(metrics)
        {
            self.note(usage.as_bytes());
        }
    }

    fn event(&mut self, data: &[u8]) {
        if !data.starts_with(b"{") {
            self.is_final |= data == b"[DONE]";
            return;
        }
        // Responses repeat all their text in events that end a part.
        let is_response = memmem::find(&data[..data.len().min(64)], b"\"response.").is_some();
        let is_forgeable = has_tool_objects(data);
        if is_forgeable {
            self.reported(data);
        }
        let mut reports = 0;
        let mut tools = ToolCounts::default();
        let was_final = self.is_final;
        for (key, value) in scan::keys(data) {
            match (key, value) {
                (b"delta", ScannedValue::Text(text)) if is_response => self.says(text),
                (
                    b"content" | b"text" | b"reasoning_content" | b"reasoning" | b"thinking" | b"partial_json"
                    | b"arguments" | b"refusal" | b"generation" | b"outputText" | b"completion" | b"text_output"
                    | b"response",
                    ScannedValue::Text(text),
                ) if !is_response => self.says(text),
                (b"usage" | b"usageMetadata" | b"model" | b"modelVersion" | b"service_tier" | b"speed", _)
                    if is_forgeable => {}
                (b"serviceTier", ScannedValue::Object(object)) if !is_forgeable && reports < MAX_REPORTS => {
                    reports += 1;
                    object.whole(text_bounds::WORD).into_iter().for_each(|tier| self.name_tier(tier));
                }
                (b"trafficType" | hosted_tools::QUERIES | hosted_tools::CHUNKS, _) if is_forgeable => {}
                (b"usage" | b"usageMetadata", ScannedValue::Object(object)) if reports < MAX_REPORTS => {
                    reports += 1;
                    if let Some(object) = object.whole(MAX_USAGE_LENGTH) {
                        self.note(object);
                    }
                }
                (b"details", ScannedValue::Object(object)) if !is_forgeable && reports < MAX_REPORTS => {
                    reports += 1;
                    let details = object.whole(MAX_USAGE_LENGTH);
                    if let Some(usage) = details.and_then(native_counts::usage_of_details) {
                        self.is_final = true;
                        self.note(usage.as_bytes());
                    }
                }
                (b"model" | b"modelVersion", ScannedValue::Text(text)) if self.model.is_none() => {
                    self.model = scan::name(text, text_bounds::MODEL);
                }
                // Answers name a fast mode in a field of its own.
                (b"speed", ScannedValue::Text(b"fast")) => self.service_tier = Some(FAST.to_owned()),
                (b"service_tier" | b"trafficType", ScannedValue::Text(text))
                    if self.service_tier.as_deref() != Some(FAST) =>
                {
                    self.service_tier = scan::name(text, text_bounds::WORD);
                }
                (hosted_tools::QUERIES | hosted_tools::CHUNKS, _) if reports < MAX_REPORTS => {
                    reports += 1;
                    tools = hosted_tools::grounding(data);
                }
                (b"type", ScannedValue::Text(kind)) => {
                    self.is_final |= end_markers::is_end(kind);
                    if let Some(unit) = hosted_tools::unit_of_item(kind).filter(|_| is_response) {
                        tools[unit] += 1;
                    }
                }
                // Gemini's streams end without a word of their own, Converse's with how long they took.
                (b"finishReason", ScannedValue::Text(_)) | (b"latencyMs", ScannedValue::Other) => self.is_final = true,
                (invoked::METRICS, ScannedValue::Object(object)) if reports < MAX_REPORTS => {
                    reports += 1;
                    if let Some(object) = object.whole(MAX_USAGE_LENGTH) {
                        self.invoked(object);
                    }
                }
                _ => {}
            }
        }
        // The last event of a response repeats all its items.
        if !is_response || (self.is_final && !was_final) {
            self.uses_tools(tools);
        }
    }

    /// Calls of the provider's own tools, which it does not count itself.
    fn uses_tools(&mut self, tools: ToolCounts) {
        if tools.iter().any(|count| *count > 0) {
            self.tools = tools;
        }
        if let Some(last) = self.usage.last_mut().filter(|_| self.tools.iter().any(|count| *count > 0)) {
            hosted_tools::note(last, &self.tools);
            self.is_counted = false;
        }
    }

    /// Of an answer, or an event of one, whose tool calls could hold anything: what stands outside of them.
    fn reported(&mut self, whole: &[u8]) {
        let report = Report::read(whole);
        if let Some(usage) = report.usage {
            self.note(usage.as_bytes());
        }
        if self.model.is_none() {
            self.model = report.model.and_then(|text| scan::name(text.as_bytes(), text_bounds::MODEL));
        }
        self.is_background |= report.is_background;
        let tier = report.service_tier.and_then(|text| scan::name(text.as_bytes(), text_bounds::WORD));
        self.service_tier = tier.or(self.service_tier.take());
    }

    fn says(&mut self, text: &[u8]) {
        let room = MAX_TEXT_BYTES - self.text.len();
        self.text.extend_from_slice(&text[..text.len().min(room)]);
        self.text_length += text.len() as u64;
    }

    /// Completion tokens by the text of a stream that came.
    pub fn rough_tokens(&self) -> u64 {
        scaled(scan::characters(&self.text).div_ceil(4), self.text.len() as u64, self.text_length)
    }

    /// What a stream has said, for whoever counts it.
    pub fn take_text(&mut self) -> (Vec<u8>, u64) {
        (std::mem::take(&mut self.text), std::mem::take(&mut self.text_length))
    }

    fn note_last(&mut self, bytes: &[u8]) {
        let mut is_counted = false;
        let quick = |rest: &[u8]| {
            let end = self.counts.skim(rest);
            is_counted = end.is_some();
            end
        };
        if let Some(object) = scan::last_object(bytes, &USAGE, MAX_USAGE_LENGTH, quick) {
            self.replace(object);
            self.is_counted = is_counted;
        } else if let Some(object) = scan::last_object(bytes, &USAGE_METADATA, MAX_USAGE_LENGTH, |_| None) {
            self.replace(object);
            self.uses_tools(hosted_tools::grounding(bytes));
            if self.model.is_none() {
                self.model = scan::name_after(bytes, &MODEL_VERSION, text_bounds::MODEL);
            }
        } else if let Some(object) = scan::last_object(bytes, &META, MAX_USAGE_LENGTH, |_| None)
            // Cohere's; others keep other things there.
            && memmem::find(object, b"\"billed_units\"").is_some()
        {
            self.replace(object);
        } else if let Some(object) = scan::last_object(bytes, &METADATA, MAX_USAGE_LENGTH, |_| None)
            && memmem::find(object, b"\"generated_tokens\"").is_some()
        {
            self.replace(object);
        } else if let Some(object) = scan::last_object(bytes, &USAGE_INFO, MAX_USAGE_LENGTH, |_| None)
            && memmem::find(object, PAGES).is_some()
        {
            self.replace(object);
        }
    }

    fn replace(&mut self, object: &[u8]) {
        self.usage.clear();
        self.note(object);
    }

    fn note(&mut self, object: &[u8]) {
        let Ok(text) = str::from_utf8(object) else { return };
        if text.len() > MAX_USAGE_LENGTH || text == "{}" {
            return;
        }
        self.usage.truncate(1);
        self.usage.push(text.to_owned());
        self.is_counted = false;
    }

    /// What was used, as far as the answer says.
    pub fn reported_usage(&self) -> Option<Usage> {
        match &self.usage[..] {
            [whole] if self.is_counted => Usage::counted(&self.counts, whole),
            pieces => Usage::from_reported(pieces),
        }
    }
}

/// What `tokens` of a part make of the whole.
fn scaled(tokens: u64, part: u64, whole: u64) -> u64 {
    if part >= whole || part == 0 {
        return tokens;
    }
    u64::try_from(u128::from(tokens) * u128::from(whole) / u128::from(part)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
