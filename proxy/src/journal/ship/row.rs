//! A record as a row of `request_logs`: everything that was left for later is worked out, what Postgres does not store in
//! a text (NUL) is taken out, and what no index takes is cut.

use super::copied::{Copied, Unwritable};
use super::intents::CallKey;
use super::price::Priced;
use crate::journal::Charge;
use crate::journal::record::Record;
use crate::journal::traces::span;
use crate::request::text_bounds::{self, cut, cut_bytes};
use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use serde_json::Value;
use shared::log_store::body_path;
use shared::model::id::{ApiKeyId, Id};
use std::borrow::Cow;
use uuid::Uuid;

pub struct LogRow<'r> {
    record: Record<'r>,
    created_at: DateTime<Utc>,
    api_key_id: Option<ApiKeyId>,
    model: Option<Cow<'r, str>>,
    requested: Option<Cow<'r, str>>,
    texts: Texts<'r>,
    status: i32,
    response_time: i32,
    upstream_time: i32,
    gateway_time: i32,
    first_token_time: Option<i32>,
    parts: [Option<i32>; 4],
    tokens: [i64; 7],
    is_estimated: bool,
    usage: Option<Json<'r>>,
    cost: Option<Decimal>,
    price_model: Option<String>,
    unit_prices: Option<Json<'r>>,
    price_version: Option<String>,
    retries: i16,
    attempt: i16,
    metadata: Json<'r>,
    mode: &'static str,
    /// Where its bodies are, or will be.
    body_key: Option<String>,
    dropped_params: Option<Json<'r>>,
    hook_results: Option<Json<'r>>,
    saved: Option<Decimal>,
}

/// In the order in which `LogRow::write` puts them.
pub const COLUMNS: &str = "id, created_at, organisation_id, workspace_id, api_key_id, user_id, virtual_key, \
    integration_id, ai_org, ai_model, requested_model, config, config_id, config_version_id, mode, \
    last_used_option_index, request_url, request_method, response_status_code, error_code, response_time, \
    upstream_response_time, gateway_processing_time, time_to_first_token, req_units, res_units, \
    cache_read_tokens, cache_write_tokens, reasoning_tokens, audio_input_tokens, audio_output_tokens, \
    usage_estimated, usage, cost, price_model, unit_prices, price_version, retry_success_count, attempt, \
    stream_mode, is_proxy_call, trace_id, span_id, span_name, parent_span_id, internal_trace_id, metadata, \
    runtime, runtime_version, sdk_version, body_key, request_parsing_time, pre_processing_time, \
    cache_processing_time, response_parsing_time, dropped_params, hook_results, prompt_id, prompt_version_id, \
    prompt_slug, cache_status, cache_type, cache_saved_cost";

const COUNT: u16 = 63;

/// Texts from outside, clean.
struct Texts<'r> {
    virtual_key: Option<Cow<'r, str>>,
    ai_org: Option<Cow<'r, str>>,
    config: Option<Cow<'r, str>>,
    option: Option<Cow<'r, str>>,
    url: Cow<'r, str>,
    method: Cow<'r, str>,
    error_code: Option<Cow<'r, str>>,
    trace_id: Cow<'r, str>,
    span_id: Option<Cow<'r, str>>,
    span_name: Option<Cow<'r, str>>,
    parent_span_id: Option<Cow<'r, str>>,
    runtime: Option<Cow<'r, str>>,
    runtime_version: Option<Cow<'r, str>>,
    sdk_version: Option<Cow<'r, str>>,
    prompt_slug: Option<Cow<'r, str>>,
    cache_type: Option<Cow<'r, str>>,
}

impl<'r> LogRow<'r> {
    pub fn new(record: Record<'r>, priced: Priced<'r>) -> Self {
        let text = |text: Option<&'r str>, most: usize| text.map(|text| clean(cut(text, most)));
        let slug = |text: Option<&'r str>| text.map(|text| clean(cut_bytes(text, text_bounds::SLUG)));
        let model = |name| text(name, text_bounds::MODEL);
        let (requested, answered) = (model(record.requested_model), model(record.answered_model));
        let usage = &priced.usage;
        let prompt = usage.prompt_tokens();
        let tokens = [
            prompt,
            usage.completion_tokens(),
            usage.cache_read.saturating_add(usage.cache_read_audio).saturating_add(usage.cache_read_image),
            usage.cache_write,
            usage.reasoning,
            usage.audio_input.saturating_add(usage.cache_read_audio),
            usage.audio_output,
        ];
        Self {
            created_at: record.created_at(),
            api_key_id: (!record.api_key_id.uuid().is_nil()).then_some(record.api_key_id),
            requested: requested.clone().filter(|requested| answered.as_ref().is_some_and(|model| model != requested)),
            model: answered.or(requested),
            texts: Texts {
                virtual_key: slug(record.virtual_key),
                ai_org: slug(record.ai_org),
                config: slug(record.config),
                option: text(record.option, text_bounds::NAME),
                url: clean(cut(record.url, text_bounds::URL)),
                method: clean(cut(record.method, text_bounds::METHOD)),
                error_code: text(record.error_code, text_bounds::NAME),
                trace_id: clean(cut(record.trace_id, text_bounds::NAME)),
                span_id: Some(text(record.span_id, text_bounds::NAME).unwrap_or_else(|| span::id(&record).into())),
                span_name: text(record.span_name, text_bounds::NAME),
                parent_span_id: text(record.parent_span_id, text_bounds::NAME),
                runtime: text(record.runtime, text_bounds::NAME),
                runtime_version: text(record.runtime_version, text_bounds::NAME),
                sdk_version: text(record.sdk_version, text_bounds::NAME),
                prompt_slug: slug(record.prompt_slug),
                cache_type: text(record.cache_type, text_bounds::WORD),
            },
            status: record.status.into(),
            response_time: millis(record.response_time),
            upstream_time: millis(record.upstream_time),
            gateway_time: millis(record.gateway_time),
            first_token_time: record.first_token_time.map(millis),
            parts: parts(&record).map(|part| part.map(millis)),
            tokens: tokens.map(count),
            is_estimated: priced.is_estimated,
            usage: priced.reported.and_then(Json::of_provider),
            cost: priced.cost,
            price_model: priced.price_model.map(|model| clean(cut(&model, text_bounds::MODEL)).into_owned()),
            unit_prices: priced.unit_prices.map(|text| Json(text.into())),
            price_version: priced.price_version,
            retries: record.retries.into(),
            attempt: record.attempt.into(),
            metadata: Json::clean(record.metadata.unwrap_or("{}").into()),
            mode: record.mode.name(),
            body_key: record.has_body.then(|| {
                body_path(record.organisation_id.uuid(), record.workspace_id.uuid(), record.created_at(), record.id)
            }),
            dropped_params: record.dropped_params.map(|names| Json::clean(names.into())),
            hook_results: record.hook_results.map(|results| Json::clean(results.into())),
            saved: priced.saved,
            record,
        }
    }

    pub fn charges(&self) -> impl Iterator<Item = (Uuid, Charge<'_>)> {
        self.record.charges.iter().map(|charge| (self.record.id, charge))
    }

    /// In place of what hooks had said when the record was made.
    pub fn with_hook_results(mut self, results: Option<String>) -> Self {
        if let Some(results) = results {
            self.hook_results = Some(Json::clean(results.into()));
        }
        self
    }

    /// Whether a guardrail has something to say on its trace.
    pub fn has_feedback(&self) -> bool {
        self.hook_results.as_ref().is_some_and(|results| results.text().contains("\"feedback\":{"))
    }

    /// Whether a guardrail denied something that the audit trail is to know of.
    pub fn is_audited(&self) -> bool {
        self.hook_results.as_ref().is_some_and(|results| results.text().contains("\"audit\":true"))
    }

    /// Whether a budget is charged with it, so that something may have been promised to it.
    pub fn is_of_a_budget(&self) -> bool {
        self.record.charges.iter().any(|charge| charge.sort.window.is_none())
    }

    pub fn call_key(&self) -> CallKey {
        (self.record.internal_trace_id, self.record.attempt.into())
    }

    pub fn day(&self) -> NaiveDate {
        self.created_at.date_naive()
    }

    /// In the order of the columns. An error is one of a value that Postgres has no form for.
    pub fn write(&self, out: &mut Copied) -> Result<(), Unwritable> {
        let (record, texts) = (&self.record, &self.texts);
        let [prompt, completion, cache_read, cache_write, reasoning, audio_input, audio_output] = self.tokens;
        let mut row = out.row(COUNT);
        row.uuid(Some(record.id));
        row.time(self.created_at);
        row.uuid(Some(record.organisation_id.uuid()));
        row.uuid(Some(record.workspace_id.uuid()));
        row.uuid(self.api_key_id.map(Id::uuid));
        row.uuid(record.user_id.map(Id::uuid));
        row.text(texts.virtual_key.as_deref())?;
        row.uuid(record.integration_id.map(Id::uuid));
        row.text(texts.ai_org.as_deref())?;
        row.text(self.model.as_deref())?;
        row.text(self.requested.as_deref())?;
        row.text(texts.config.as_deref())?;
        row.uuid(record.config_id.map(Id::uuid));
        row.uuid(record.config_version_id);
        row.text(Some(self.mode))?;
        row.text(texts.option.as_deref())?;
        row.text(Some(&texts.url))?;
        row.text(Some(&texts.method))?;
        row.int4(Some(self.status));
        row.text(texts.error_code.as_deref())?;
        row.int4(Some(self.response_time));
        row.int4(Some(self.upstream_time));
        row.int4(Some(self.gateway_time));
        row.int4(self.first_token_time);
        for tokens in [prompt, completion, cache_read, cache_write, reasoning, audio_input, audio_output] {
            row.int8(tokens);
        }
        row.bool(self.is_estimated);
        row.json(self.usage.as_ref().map(Json::text))?;
        row.numeric(self.cost)?;
        row.text(self.price_model.as_deref())?;
        row.json(self.unit_prices.as_ref().map(Json::text))?;
        row.text(self.price_version.as_deref())?;
        row.int2(self.retries);
        row.int2(self.attempt);
        row.bool(record.is_stream);
        row.bool(record.is_relayed);
        row.text(Some(&texts.trace_id))?;
        row.text(texts.span_id.as_deref())?;
        row.text(texts.span_name.as_deref())?;
        row.text(texts.parent_span_id.as_deref())?;
        row.uuid(Some(record.internal_trace_id));
        row.json(Some(self.metadata.text()))?;
        row.text(texts.runtime.as_deref())?;
        row.text(texts.runtime_version.as_deref())?;
        row.text(texts.sdk_version.as_deref())?;
        row.text(self.body_key.as_deref())?;
        for part in self.parts {
            row.int4(part);
        }
        row.json(self.dropped_params.as_ref().map(Json::text))?;
        row.json(self.hook_results.as_ref().map(Json::text))?;
        row.uuid(record.prompt_id);
        row.uuid(record.prompt_version_id);
        row.text(texts.prompt_slug.as_deref())?;
        row.text(Some(record.cache_status.name()))?;
        row.text(texts.cache_type.as_deref())?;
        row.numeric(self.saved)?;
        row.end()
    }
}

/// The parts of the gateway's own time: reading the request, what comes before the target, the cache, and the rest. The record of a target that was replaced has no such parts: it does not begin with the request.
fn parts(record: &Record<'_>) -> [Option<u32>; 4] {
    let Some(parsed) = record.parsed_after.filter(|_| record.id == record.internal_trace_id) else { return [None; 4] };
    let own = record.gateway_time;
    let parsing = parsed.min(own);
    let before = record.turned_after.saturating_sub(parsed).min(own - parsing);
    let cache = record.cache_time.min(own - parsing - before);
    [parsing, before, cache, own - parsing - before - cache].map(Some)
}

/// JSON as it was written, by our own serialiser or by a provider.
#[derive(Debug)]
struct Json<'r>(Cow<'r, str>);

impl<'r> Json<'r> {
    /// What a provider wrote is well-formed, and yet not all of it can be stored: `jsonb` wants escapes to be characters,
    /// spells numbers out, and reads no depth that it likes. None when nothing of it can be.
    fn of_provider(text: Cow<'r, str>) -> Option<Self> {
        if is_plain(&text) {
            return Some(Self(text));
        }
        let value = serde_json::from_str(&text).ok()?;
        Some(Self(clean_value(value).to_string().into()))
    }

    /// NUL can only stand in it as an escape; hardly anybody writes one.
    fn clean(text: Cow<'r, str>) -> Self {
        if !text.contains("\\u0000") {
            return Self(text);
        }
        Self(serde_json::from_str(&text).map(clean_value).unwrap_or_default().to_string().into())
    }

    fn text(&self) -> &str {
        &self.0
    }
}

/// Whether JSON has no escape, no number with an exponent, and few things inside each other.
fn is_plain(json: &str) -> bool {
    const MAX_DEPTH: usize = 16;
    let (mut depth, mut before) = (0_usize, b' ');
    for byte in json.bytes() {
        match byte {
            b'\\' => return false,
            b'e' | b'E' if before.is_ascii_digit() => return false,
            b'{' | b'[' if depth == MAX_DEPTH => return false,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = byte;
    }
    true
}

fn clean(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "").into() } else { text.into() }
}

fn clean_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text).into_owned()),
        Value::Array(items) => Value::Array(items.into_iter().map(clean_value).collect()),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(key, value)| (clean(&key).into_owned(), clean_value(value))).collect(),
        ),
        other => other,
    }
}

/// A provider that reports absurd figures must not make sums overflow.
fn count(tokens: u64) -> i64 {
    const MAX_TOKENS: u64 = 1 << 40;
    tokens.min(MAX_TOKENS).cast_signed()
}

fn millis(millis: u32) -> i32 {
    i32::try_from(millis).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_each_column() {
        assert_eq!(COLUMNS.split(',').count(), usize::from(COUNT));
        LogRow::new(Record::default(), Priced::default()).write(&mut Copied::default()).unwrap();
    }

    #[test]
    fn what_postgres_cannot_store_is_taken_out() {
        let value = serde_json::json!({"a\0b": ["\0", {"c": "d\0"}], "n": 1});
        assert_eq!(clean_value(value), serde_json::json!({"ab": ["", {"c": "d"}], "n": 1}));
        assert_eq!(clean("\0a\0"), "a");
        for (written, kept) in [
            (r#"{"a\u0000":"\u0000b"}"#, r#"{"a":"b"}"#),
            (r#"{"a":"\\u0000"}"#, r#"{"a":"\\u0000"}"#),
            (r#"{ "a": 1.50 }"#, r#"{ "a": 1.50 }"#),
        ] {
            assert_eq!(Json::clean(written.into()).0, kept);
        }
    }

    #[test]
    fn of_a_providers_words_what_jsonb_does_not_take_is_left_out() {
        let deep = |levels: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels));
        for (written, kept) in [
            (r#"{"a": 1.50}"#.to_owned(), Some(r#"{"a": 1.50}"#.to_owned())),
            (r#"{"a":"\u00e9\ud83d\ude00\u0000"}"#.to_owned(), Some("{\"a\":\"\u{e9}\u{1F600}\"}".to_owned())),
            (r#"{"a":"\ud800"}"#.to_owned(), None),
            (r#"{"a":1e3}"#.to_owned(), Some(r#"{"a":1000.0}"#.to_owned())),
            (r#"{"a":1e100000}"#.to_owned(), None),
            (deep(15), Some(deep(15))),
            (deep(100), Some(deep(100))),
            (deep(4000), None),
        ] {
            let json = Json::of_provider(written.clone().into());
            assert_eq!(json.as_ref().map(Json::text), kept.as_deref(), "{written}");
        }
    }

    #[test]
    fn a_row_has_no_text_that_an_index_does_not_take() {
        let long = "\u{1F600}".repeat(5000);
        let text = Some(long.as_str());
        let record = Record {
            virtual_key: text,
            ai_org: text,
            requested_model: text,
            config: text,
            prompt_slug: text,
            url: &long,
            method: &long,
            trace_id: &long,
            ..Record::default()
        };
        let row = LogRow::new(record, Priced { price_model: Some(long.clone()), ..Priced::default() });
        let slugs = [&row.texts.virtual_key, &row.texts.ai_org, &row.texts.config, &row.texts.prompt_slug];
        assert!(slugs.iter().all(|slug| slug.as_ref().is_some_and(|slug| slug.len() == 252)));
        assert_eq!(row.model.map(|model| model.chars().count()), Some(text_bounds::MODEL));
        assert_eq!(row.price_model.map(|model| model.chars().count()), Some(text_bounds::MODEL));
        let [url, method, trace] =
            [row.texts.url, row.texts.method, row.texts.trace_id].map(|text| text.chars().count());
        assert_eq!([url, method, trace], [text_bounds::URL, text_bounds::METHOD, text_bounds::NAME]);
    }

    #[test]
    fn the_parts_of_the_gateways_own_time_add_up_to_it() {
        let record = |parsed, turned, own| Record {
            parsed_after: parsed,
            turned_after: turned,
            gateway_time: own,
            cache_time: 1,
            ..Record::default()
        };
        for (parsed, turned, own, expected) in [
            (Some(3), 5, 9, [Some(3), Some(2), Some(1), Some(3)]),
            (Some(3), 500, 9, [Some(3), Some(6), Some(0), Some(0)]),
            (Some(30), 0, 9, [Some(9), Some(0), Some(0), Some(0)]),
            (None, 5, 9, [None; 4]),
        ] {
            assert_eq!(parts(&record(parsed, turned, own)), expected);
        }
        let replaced = Record { id: Uuid::from_u128(1), ..record(Some(3), 5, 9) };
        assert_eq!(parts(&replaced), [None; 4]);
    }

    #[test]
    fn absurd_counts_are_bounded() {
        let most = count(u64::MAX);
        assert!(most.checked_add(most).is_some_and(|sum| sum.checked_mul(1000).is_some()));
    }
}
