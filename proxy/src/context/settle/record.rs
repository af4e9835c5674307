//! The record of a target that was tried: everything the log of a request says, gathered into one line of the journal.

use super::attempt::Attempt;
use super::paid_route::PaidRoute;
use super::{Log, LoggedConfig, RecordFacts};
use crate::identity::metadata::parent_span;
use crate::journal::logged_body::LoggedExchange;
use crate::journal::{Charges, Record};
use crate::limits::usage;
use crate::limits::usage::{AnsweredText, UncountedCall};
use crate::request::headers::{self, GatewayHeaders};
use crate::request::path_spelling::canonical;
use crate::request::refusal::RefusalCode;
use crate::request::text_bounds;
use crate::request::text_bounds::{cut, cut_bytes};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::headers::gateway_headers::RECORDED;
use shared::providers::BilledBy;
use std::time::Duration;
use uuid::Uuid;

const SPAN_NAME: &str = "span-name";
const PARENT_SPAN_ID: &str = "parent-span-id";
const AUDIO_DURATION: &str = "audio-file-duration";

impl Log {
    /// Returns what the record guesses.
    pub fn write(
        &mut self,
        facts: &RecordFacts<'_>,
        id: Uuid,
        mut attempt: Option<&mut Attempt>,
        [time, upstream, own]: [Duration; 3],
        charges: Charges<'_>,
    ) -> Option<(u64, u64)> {
        let is_answered = |attempt: &Attempt| !attempt.is_counted_before && (facts.status < 400 || attempt.is_paid);
        if let Some(attempt) =
            attempt.as_deref_mut().filter(|attempt| attempt.found.usage.is_empty() && is_answered(attempt))
        {
            self.tell_usage(attempt);
        }
        let dropped = attempt.as_deref().and_then(|attempt| listed(&attempt.dropped));
        let estimate = attempt.as_deref_mut().and_then(|attempt| self.estimate(attempt, id, facts.status));
        let attempt = attempt.as_deref();
        let found = attempt.map(|attempt| &attempt.found);
        let body = self.sheet.as_mut().and_then(LoggedExchange::parts);
        let (config, config_id, version) = match &self.config {
            Some(LoggedConfig::Saved(saved)) => {
                (Some(cut_bytes(&saved.row.slug, text_bounds::SLUG)), Some(saved.row.id), Some(saved.row.version_id))
            }
            Some(LoggedConfig::Inline) => (Some("inline"), None, None),
            None => (None, None, None),
        };
        let header =
            |name| self.caller_headers.iter().find(|(known, _)| *known == name).and_then(|(_, value)| short(value));
        let record = Record {
            id,
            internal_trace_id: facts.request_id,
            organisation_id: self.caller.workspace.organisation_id,
            workspace_id: self.caller.workspace.id,
            api_key_id: self.caller.key.id,
            user_id: self.caller.key.user_id,
            virtual_key: attempt
                .and_then(|attempt| attempt.virtual_key.as_ref())
                .map(|key| cut_bytes(&key.slug, text_bounds::SLUG)),
            integration_id: attempt.and_then(|attempt| attempt.integration),
            ai_org: attempt.map(|attempt| cut_bytes(&attempt.ai_org, text_bounds::SLUG)),
            requested_model: attempt.and_then(|attempt| attempt.model.as_deref()),
            answered_model: attempt.and_then(Attempt::answered_model),
            config,
            config_id,
            config_version_id: version,
            mode: self.mode,
            option: attempt.and_then(|attempt| attempt.option.to_str().ok()).map(|path| cut(path, text_bounds::NAME)),
            method: cut(self.method.as_str(), text_bounds::METHOD),
            url: cut(self.uri.path(), text_bounds::URL),
            status: facts.status,
            error_code: facts.error_code.map(RefusalCode::as_str),
            response_time: millis(time),
            upstream_time: millis(upstream),
            gateway_time: millis(own),
            first_token_time: attempt.and_then(|attempt| attempt.first_token).map(millis),
            usage: found.map(|found| found.usage.iter().map(String::as_str).collect()).unwrap_or_default(),
            estimate,
            service_tier: found.and_then(|found| found.service_tier.as_deref()),
            retries: facts.retries,
            attempt: self.attempts,
            is_stream: attempt.is_some_and(|attempt| attempt.is_stream),
            is_relayed: attempt.is_some_and(|attempt| attempt.is_relayed),
            trace_id: cut(facts.trace_id, text_bounds::NAME),
            span_id: header("span-id"),
            span_name: header(SPAN_NAME),
            parent_span_id: header(PARENT_SPAN_ID),
            metadata: self.metadata.as_deref(),
            runtime: header("runtime"),
            runtime_version: header("runtime-version"),
            sdk_version: header("package-version"),
            turned_after: attempt.map_or(0, |attempt| millis(attempt.began.saturating_duration_since(facts.started))),
            has_body: body.is_some(),
            charges,
            parsed_after: facts.parsed_after.map(millis),
            dropped_params: dropped.as_deref(),
            hook_results: self.hook_results.as_deref(),
            prompt_id: facts.prompt.map(|run| run.prompt.id),
            prompt_version_id: facts.prompt.map(|run| run.version.row.id),
            prompt_slug: facts.prompt.map(|run| cut_bytes(&run.prompt.slug, text_bounds::SLUG)),
            cache_status: facts.cache.status,
            cache_type: facts.cache.mode,
            cache_time: millis(facts.cache.took),
        };
        // Those of a target that another one replaced are run with the last.
        if id == facts.request_id
            && let Some(late) = self.late.take()
        {
            self.journal.late(id, late);
        }
        if let Some(copies) = &self.copies {
            copies.keep(&record);
        }
        self.journal.append_with(&record, body.as_ref());
        estimate
    }

    /// What the head and the request say of an answer that does not say what it used.
    pub(super) fn tell_usage(&self, attempt: &mut Attempt) {
        let found = &mut attempt.found.usage;
        found.extend(attempt.head_usage.take());
        if !found.is_empty() {
            return;
        }
        let path = &*canonical(self.uri.path());
        found.extend(usage::images::asked_for(path, &self.body, attempt.images));
        let declared = self.caller_headers.iter().find(|(known, _)| *known == AUDIO_DURATION);
        found.extend(declared.and_then(|(_, value)| usage::audio::declared(path, value.as_bytes())));
        found.extend(usage::requested_units::of_speech(path, &self.body));
        found.extend(usage::requested_units::of_rerank(&attempt.ai_org, path, &self.body));
        found.extend(usage::requested_units::of_video(path, &attempt.silent));
        if found.is_empty() {
            found.extend(usage::audio::shown(path, &attempt.silent));
        }
        if found.is_empty() {
            let seconds = self.sound.unwrap_or_else(|| usage::audio::length_of_bytes(self.received_bytes));
            found.extend(usage::audio::guessed(path, seconds));
            attempt.is_guessed = !found.is_empty();
        }
    }

    /// Prompt and completion tokens of what has not said everything: a rough figure for the record, and the texts for
    /// whoever counts them. Whoever received half of a stream pays for half of it. A session has its own guess.
    fn estimate(&self, attempt: &mut Attempt, id: Uuid, status: u16) -> Option<(u64, u64)> {
        if attempt.unheard.is_some() || attempt.is_hit || attempt.is_counted_before {
            return attempt.unheard;
        }
        if attempt.is_own_price_due_unheard(status) {
            // Something was used, at the price that stands on the call.
            return Some((0, 0));
        }
        let is_reported = !attempt.found.usage.is_empty();
        let is_known =
            is_reported && !attempt.is_unheard && !attempt.is_guessed && (!attempt.is_stream || attempt.found.is_final);
        let row = attempt.row.clone().filter(|_| !is_known)?;
        let path = canonical(self.uri.path());
        let route = PaidRoute::find(&self.method, &path, &row);
        if (200..300).contains(&status) && !is_reported {
            self.count_unreported(&route, attempt, &path);
        }
        let billed = match route {
            PaidRoute::Paid(_, billed) if attempt.is_paid || attempt.is_stream || status < 400 => billed,
            // What is looked up was made before, and paid for then.
            PaidRoute::Free | PaidRoute::Unpriced if attempt.is_stream && !attempt.found.is_look_up => BilledBy::Text,
            _ => return None,
        };
        if billed == BilledBy::Other && !attempt.is_stream {
            // Something was used, and nobody can say how much.
            return Some((0, 0));
        }
        let unread = if attempt.is_unread { attempt.answered_bytes / BYTES_PER_TOKEN } else { 0 };
        let (rough, answered) = match attempt.is_stream {
            true => {
                let rough = attempt.found.rough_tokens().max(unread);
                let (text, length) = attempt.found.take_text();
                (rough, AnsweredText::Stream(text, length))
            }
            false => {
                let body = std::mem::take(&mut attempt.silent);
                match billed {
                    BilledBy::Text if body.is_empty() => {
                        let heard = attempt.answered_bytes / BYTES_PER_TOKEN;
                        // What nobody heard may have been made all the same, and a strict budget holds for the bill.
                        let rough = if attempt.is_unheard { heard.max(attempt.promised_answer) } else { heard };
                        (rough, AnsweredText::Plain(body))
                    }
                    BilledBy::Text => (usage::rough_tokens_of_any(&body), AnsweredText::Plain(body)),
                    BilledBy::Prompt | BilledBy::Other => (0, AnsweredText::Plain(Bytes::new())),
                }
            }
        };
        let model = attempt.found.model.clone().or_else(|| attempt.model.clone());
        let is_exact = match &answered {
            AnsweredText::Stream(..) => unread == 0,
            AnsweredText::Plain(body) => rough == 0 || !body.is_empty(),
        };
        let (asked, prompt) = self.asked_text();
        // What was not held whole cannot be counted later.
        if is_exact && (!asked.is_empty() || prompt == 0) {
            self.journal.note_uncounted(id, UncountedCall { model, asked, answered });
        }
        Some((prompt, rough))
    }

    /// What the provider was asked, if it is here as a whole, and about how many tokens it has. A relayed body is not held
    /// for us; it may have been kept for its log, and its beginning is here.
    fn asked_text(&self) -> (Bytes, u64) {
        let asked = match self.body.is_empty() {
            true => self.sheet.as_ref().map(LoggedExchange::asked).unwrap_or_default(),
            false => self.body.clone(),
        };
        if !asked.is_empty() || self.beginning.is_empty() {
            let tokens = usage::rough_tokens_of_any(&asked);
            return (asked, tokens);
        }
        let beginning = Bytes::from(self.beginning.concat());
        match beginning.len() as u64 >= self.received_bytes {
            true => {
                let tokens = usage::rough_tokens_of_any(&beginning);
                (beginning, tokens)
            }
            false => (Bytes::new(), usage::rough_tokens_of_beginning(&beginning, self.received_bytes)),
        }
    }

    /// An answer came and does not say what it used.
    fn count_unreported(&self, route: &PaidRoute<'_>, attempt: &Attempt, path: &str) {
        let meters = self.journal.paid_meters();
        match route {
            PaidRoute::Paid(name, _) => meters.count_unreported(&attempt.ai_org, name),
            PaidRoute::Unpriced if attempt.is_relayed => meters.count_unpriced(&attempt.ai_org, path),
            PaidRoute::Unpriced | PaidRoute::Free => {}
        }
    }
}

/// Of text in JSON, about.
const BYTES_PER_TOKEN: u64 = 4;

/// What the client's SDK says of itself, and where the call belongs in its trace.
pub fn caller_headers(head: &RequestHeader, headers: &GatewayHeaders<'_>) -> Vec<(&'static str, HeaderValue)> {
    let prefixes = [Some(headers::PREFIX), headers.alias.as_deref()];
    let mut found = Vec::new();
    for (name, value) in &head.headers {
        let suffix = prefixes.iter().flatten().find_map(|prefix| HeaderName::as_str(name).strip_prefix(prefix));
        let Some(suffix) = suffix else { continue };
        if let Some(known) = RECORDED.iter().find(|known| **known == suffix) {
            found.push((*known, value.clone()));
        }
    }
    if let Some(parent) = parent_span(headers) {
        below(&mut found, parent, head);
    }
    found
}

/// Metadata as JSON. Of more than a record takes, as many pairs as there is room for.
pub fn written(metadata: &Map<String, Value>) -> String {
    let whole = serde_json::to_string(metadata).unwrap_or_default();
    if whole.len() <= text_bounds::METADATA {
        return whole;
    }
    let mut room = text_bounds::METADATA;
    let mut fields = metadata.clone();
    fields.retain(|name, value| {
        let size = serde_json::to_string(&(name, value)).map_or(usize::MAX, |pair| pair.len());
        let has_room = size <= room;
        room -= if has_room { size } else { 0 };
        has_room
    });
    serde_json::to_string(&fields).unwrap_or_default()
}

/// Names as a JSON list, as many as a log shows.
fn listed(names: &[String]) -> Option<String> {
    const MAX_NAMES: usize = 32;
    let names: Vec<&str> = names.iter().take(MAX_NAMES).map(|name| cut(name, text_bounds::NAME)).collect();
    (!names.is_empty()).then(|| serde_json::to_string(&names).unwrap_or_default())
}

/// The call belongs below a span of the caller's, and has a name there. What our own headers say wins.
fn below(found: &mut Vec<(&'static str, HeaderValue)>, parent: &str, head: &RequestHeader) {
    let name = format!("{} {}", head.method, head.uri.path());
    for (known, text) in [(PARENT_SPAN_ID, parent), (SPAN_NAME, name.as_str())] {
        if found.iter().all(|(other, _)| *other != known) {
            found.extend(HeaderValue::from_str(text).ok().map(|value| (known, value)));
        }
    }
}

fn short(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(|text| cut(text, text_bounds::NAME))
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_beyond_its_bound_loses_what_has_no_room() {
        let long = "x".repeat(text_bounds::METADATA);
        let metadata: Map<String, Value> = [("a", "1"), ("long", &long), ("b", "2")]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into_iter()
            .collect();
        assert_eq!(written(&metadata), r#"{"a":"1","b":"2"}"#);
    }
}
