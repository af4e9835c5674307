//! The tokens of a request before it is made, read from what the provider will be sent: the caller's body with the
//! target's edits. A guess for most limits, and for strict budgets a bound: a token is at least a byte, an answer is as
//! long as the largest maximum that is named, and a request that refers to input elsewhere has no bound.

use super::Amounts;
use super::inline_text::{is_inline, refers_elsewhere};
use crate::request::body::Fields;
use crate::request::body::edit::Edits;
use crate::request::classify::Endpoint;
use http::{HeaderMap, HeaderValue};
use serde_json::value::RawValue;
use shared::providers::Family;
use std::borrow::Cow;
use std::collections::HashMap;

/// What a target will be sent, without writing it: bodies can be large.
#[derive(Clone, Copy)]
pub struct SentBody<'s> {
    body: &'s [u8],
    fields: &'s Fields<'s>,
    edits: Option<&'s Edits>,
    /// It came at a vendor's own route, in the words of that vendor.
    is_native: bool,
    /// What came with it.
    headers: Option<&'s HeaderMap>,
}

/// Tokens of a request: in and out, guessed and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub input: u64,
    pub output: u64,
    pub most_input: u64,
    pub most_output: u64,
    /// Whether the bounds hold.
    pub is_bounded: bool,
}

impl<'s> SentBody<'s> {
    pub fn new(body: &'s [u8], fields: &'s Fields<'s>, edits: Option<&'s Edits>) -> Self {
        Self { body, fields, edits: edits.filter(|edits| !edits.is_empty()), is_native: false, headers: None }
    }

    pub fn at(self, endpoint: Endpoint) -> Self {
        Self { is_native: endpoint.native_route().is_some(), ..self }
    }

    pub fn with_headers(self, headers: &'s HeaderMap) -> Self {
        Self { headers: Some(headers), ..self }
    }

    /// Of a header that came with it, whether or not it is passed on.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &'s HeaderValue> + use<'s> {
        self.headers.map(|headers| headers.get_all(name)).into_iter().flatten()
    }

    /// Every field as it will be sent, also those of the same name.
    pub fn each_field(&self, mut look: impl FnMut(&str, &[u8])) {
        match self.edits {
            Some(edits) => edits.each_sent(self.fields, look),
            None => self.fields.each(|key, value| look(key, value)),
        }
    }
}

impl Expected {
    /// `is_strict`: whether the bounds are wanted, which takes a look at everything that is said.
    pub fn estimate(family: Family, sent: &SentBody<'_>, is_strict: bool) -> Self {
        let mut found = FieldTotals { times: 1, prompts: 1, is_native: sent.is_native, ..FieldTotals::default() };
        sent.each_field(|key, value| found.look(family, key, value, is_strict));
        let times = found.times.saturating_mul(found.prompts);
        let output = found.maximum.map(|most| most.saturating_mul(times));
        let (output, has_bound) = match family {
            Family::Embed | Family::Moderate | Family::Rerank | Family::CountTokens => (Some(0), true),
            Family::Chat | Family::Complete | Family::Messages | Family::Responses => (output, found.has_own_maximum),
            // Priced by other things than tokens.
            _ => (output, false),
        };
        let bytes = if sent.edits.is_some() { found.bytes } else { sent.body.len() as u64 };
        // Four bytes are about a token. Nobody waits for a closer guess: what is used is settled.
        let (input, output) = (bytes / 4, output.unwrap_or(0));
        let is_bounded = has_bound && !found.is_unbounded;
        Self { input, output, most_input: bytes, most_output: output, is_bounded }
    }

    pub fn amounts(&self) -> Amounts {
        let most = self.most_input.saturating_add(self.most_output);
        Amounts {
            tokens: Some(self.input.saturating_add(self.output).max(1)),
            most_tokens: self.is_bounded.then_some(most),
            most_answer: if self.is_bounded { self.most_output } else { 0 },
            ..Amounts::default()
        }
    }
}

/// What the fields of a request come to.
#[derive(Default)]
struct FieldTotals {
    bytes: u64,
    /// The largest of all names it goes by: which of them counts is for the provider to say.
    maximum: Option<u64>,
    /// One of those that this endpoint knows. What a provider does not know it may well pass over.
    has_own_maximum: bool,
    /// Answers to one prompt, and prompts.
    times: u64,
    prompts: u64,
    is_unbounded: bool,
    is_native: bool,
}

impl FieldTotals {
    fn look(&mut self, family: Family, key: &str, value: &[u8], is_strict: bool) {
        // Quotes, a colon and a comma stand around them.
        self.bytes = self.bytes.saturating_add((key.len() + value.len() + 4) as u64);
        if value == b"null" {
            return;
        }
        match key {
            "max_tokens"
            | "max_completion_tokens"
            | "max_output_tokens"
            | "max_tokens_to_sample"
            | "max_new_tokens" => {
                if let Some(most) = self.number(value) {
                    self.maximum = self.maximum.max(Some(most));
                    self.has_own_maximum |= !self.is_native && bounds(family, key);
                }
            }
            "n" | "best_of" | "num_generations" => {
                if let Some(times) = self.number(value) {
                    self.times = self.times.max(times);
                }
            }
            // Those of a vendor's own route stand together with other settings.
            "generationConfig" | "generation_config" | "inferenceConfig" if self.is_native => self.nested(value),
            // Its answer comes when nobody waits for it, and says then what it used.
            "background" if value == b"true" => self.is_unbounded = true,
            // Each of several is answered.
            "prompt" if family == Family::Complete => self.prompts = self.prompts.max(prompts(value)),
            _ if is_strict && !self.is_unbounded => {
                self.is_unbounded = match self.is_native {
                    true => refers_natively(key, value),
                    false => refers(family, key, value),
                }
            }
            _ => {}
        }
    }

    fn nested(&mut self, value: &[u8]) {
        let Ok(settings) = serde_json::from_slice::<HashMap<Cow<'_, str>, &RawValue>>(value) else {
            self.is_unbounded = true;
            return;
        };
        for (name, value) in settings.iter().filter(|(_, value)| value.get() != "null") {
            match &**name {
                "maxOutputTokens" | "max_output_tokens" | "maxTokens" => {
                    if let Some(most) = self.number(value.get().as_bytes()) {
                        self.maximum = self.maximum.max(Some(most));
                        self.has_own_maximum = true;
                    }
                }
                "candidateCount" | "candidate_count" => {
                    if let Some(times) = self.number(value.get().as_bytes()) {
                        self.times = self.times.max(times);
                    }
                }
                // An answer that is spoken or drawn has prices of its own.
                "responseModalities" | "response_modalities" => self.is_unbounded = true,
                _ => {}
            }
        }
    }

    /// What is no plain number (`1e5`, `"9"`) may mean one to somebody, so there is no bound.
    fn number(&mut self, value: &[u8]) -> Option<u64> {
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        self.is_unbounded |= number.is_none();
        number
    }
}

/// Whether the endpoint of a family heeds this name.
fn bounds(family: Family, key: &str) -> bool {
    match family {
        Family::Chat => matches!(key, "max_tokens" | "max_completion_tokens"),
        Family::Responses => key == "max_output_tokens",
        _ => key == "max_tokens",
    }
}

fn refers(family: Family, key: &str, value: &[u8]) -> bool {
    match key {
        "messages" | "input" | "system" => !is_inline(value),
        // Of these endpoints it names one that is stored.
        "prompt" => matches!(family, Family::Chat | Family::Responses | Family::Messages),
        _ => refers_elsewhere(key, value),
    }
}

/// The same in the words of Google and of Bedrock.
fn refers_natively(key: &str, value: &[u8]) -> bool {
    match key {
        "contents" | "messages" | "system" => !is_inline(value),
        "cachedContent" | "cached_content" => true,
        // Functions are the caller's; all else reads what it likes.
        "tools" => !are_only(value, &["functionDeclarations", "function_declarations"]),
        "toolConfig" => {
            let Ok(config) = Fields::parse_object(value) else { return true };
            let mut is_found = false;
            config.each(|name, tools| is_found |= name == "tools" && !are_only(tools, &["toolSpec", "cachePoint"]));
            is_found
        }
        _ => false,
    }
}

/// Whether tools are of these kinds, each named by a field.
fn are_only(tools: &[u8], kinds: &[&str]) -> bool {
    let tools = serde_json::from_slice::<Vec<HashMap<Cow<'_, str>, &RawValue>>>(tools);
    tools.is_ok_and(|tools| tools.iter().flat_map(HashMap::keys).all(|name| kinds.contains(&&**name)))
}

fn prompts(value: &[u8]) -> u64 {
    let Ok(list) = serde_json::from_slice::<Vec<&RawValue>>(value) else { return 1 };
    // The numbers of one prompt are its tokens.
    let is_token = |item: &&RawValue| item.get().starts_with(|first: char| first.is_ascii_digit());
    if list.iter().all(is_token) { 1 } else { list.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::classify::{Route, classify};
    use serde_json::{Value, json};
    use shared::config::ParamPath;

    fn expected(family: Family, body: &str) -> Expected {
        let fields = Fields::parse_object(body.as_bytes()).unwrap();
        Expected::estimate(family, &SentBody::new(body.as_bytes(), &fields, None), true)
    }

    #[test]
    fn a_request_is_bounded_when_it_says_how_long_the_answer_may_be() {
        for (family, body, tokens, is_bounded) in [
            (Family::Chat, r#"{"messages":[{"content":"12345678"}]}"#, 9, false),
            (Family::Chat, r#"{"messages":[{"content":"12345678"}],"max_tokens":10}"#, 23, true),
            (Family::Chat, r#"{"messages":[{"content":"12345678"}],"max_completion_tokens":10,"n":3}"#, 47, true),
            (Family::Responses, r#"{"input":"1234","max_output_tokens":5}"#, 14, true),
            (Family::Embed, r#"{"input":"12345678"}"#, 5, true),
            (Family::Image, r#"{"prompt":"1234","n":2}"#, 5, false),
            (Family::Chat, r#"{"max_tokens":18446744073709551615,"n":9}"#, u64::MAX, true),
        ] {
            let amounts = expected(family, body).amounts();
            assert_eq!((amounts.tokens, amounts.most_tokens.is_some()), (Some(tokens), is_bounded), "{body}");
            assert!(amounts.most_tokens.is_none_or(|most| most >= tokens), "{body}");
        }
    }

    #[test]
    fn the_largest_maximum_counts_and_only_one_that_the_endpoint_heeds_is_a_bound() {
        for (family, body, most_output) in [
            (Family::Chat, r#"{"max_completion_tokens":1,"max_tokens":100000}"#, Some(100_000)),
            (Family::Chat, r#"{"max_tokens":1,"max_output_tokens":700}"#, Some(700)),
            (Family::Chat, r#"{"max_output_tokens":7}"#, None),
            (Family::Responses, r#"{"max_tokens":7}"#, None),
            (Family::Messages, r#"{"max_tokens":7}"#, Some(7)),
            (Family::Chat, r#"{"max_tokens":1,"max_completion_tokens":1e5}"#, None),
            (Family::Chat, r#"{"max_tokens":"9"}"#, None),
            (Family::Chat, r#"{"max_tokens":5,"n":2.0}"#, None),
            (Family::Chat, r#"{"max_tokens":5,"n":8,"n":1}"#, Some(40)),
            (Family::Chat, r#"{"max_tokens":5,"n":null}"#, Some(5)),
            (Family::Complete, r#"{"prompt":["a","b","c"],"max_tokens":5,"n":2}"#, Some(30)),
            (Family::Complete, r#"{"prompt":[[1,2],[3]],"max_tokens":5,"best_of":4}"#, Some(40)),
            (Family::Complete, r#"{"prompt":[1,2,3],"max_tokens":5}"#, Some(5)),
        ] {
            let found = expected(family, body);
            assert_eq!(found.is_bounded.then_some(found.most_output), most_output, "{body}");
        }
    }

    #[test]
    fn a_vendors_own_route_has_its_own_words_for_bounds() {
        let route = |path: &str| match classify(&http::Method::POST, path) {
            Route::Engine(endpoint) => endpoint,
            other => panic!("{other:?}"),
        };
        let (gemini, converse) = (route("/v1beta/models/m:generateContent"), route("/model/m/converse"));
        let chat = route("/v1/chat/completions");
        for (endpoint, body, most_output) in [
            (gemini, r#"{"generationConfig":{"maxOutputTokens":5,"candidateCount":2}}"#, Some(10)),
            (gemini, r#"{"max_tokens":5}"#, None),
            (gemini, r#"{"generationConfig":7}"#, None),
            (converse, r#"{"inferenceConfig":{"maxTokens":7}}"#, Some(7)),
            (chat, r#"{"inferenceConfig":{"maxTokens":7}}"#, None),
            (
                gemini,
                r#"{"generationConfig":{"maxOutputTokens":5},"contents":[{"parts":[{"text":"fileData"}]}]}"#,
                Some(5),
            ),
            (gemini, r#"{"generationConfig":{"maxOutputTokens":5},"contents":[{"parts":[{"inlineData":{}}]}]}"#, None),
            (gemini, r#"{"generationConfig":{"maxOutputTokens":5},"cachedContent":"c"}"#, None),
            (gemini, r#"{"generationConfig":{"maxOutputTokens":5},"tools":[{"googleSearch":{}}]}"#, None),
            (gemini, r#"{"generationConfig":{"maxOutputTokens":5},"tools":[{"functionDeclarations":[]}]}"#, Some(5)),
            (
                converse,
                r#"{"inferenceConfig":{"maxTokens":7},"messages":[{"content":[{"toolResult":{"content":[{"image":{}}]}}]}]}"#,
                None,
            ),
            (converse, r#"{"inferenceConfig":{"maxTokens":7},"toolConfig":{"tools":[{"toolSpec":{}}]}}"#, Some(7)),
            (converse, r#"{"inferenceConfig":{"maxTokens":7},"toolConfig":{"tools":[{"systemTool":{}}]}}"#, None),
            (converse, r#"{"inferenceConfig":{"maxTokens":7},"toolConfig":{"tools":[{"\u0073ystemTool":{}}]}}"#, None),
        ] {
            let fields = Fields::parse_object(body.as_bytes()).unwrap();
            let sent = SentBody::new(body.as_bytes(), &fields, None).at(endpoint);
            let found = Expected::estimate(Family::Chat, &sent, true);
            assert_eq!(found.is_bounded.then_some(found.most_output), most_output, "{body}");
        }
    }

    #[test]
    fn a_request_that_refers_to_input_elsewhere_has_no_bound() {
        let image = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://x/y.png" } }] }]);
        let text = json!([{ "role": "user", "content": [{ "type": "text", "text": "image_url" }, { "type": "text", "text": "b" }] }]);
        let inner = json!([{ "role": "user", "content": [{ "type": "tool_result", "content": [{ "type": "image", "source": {} }] }] }]);
        for (family, name, value, is_bounded) in [
            (Family::Chat, "messages", text, true),
            (Family::Chat, "messages", image, false),
            (Family::Messages, "messages", inner, false),
            (Family::Chat, "messages", json!([{ "role": "assistant", "content": null, "audio": null }]), true),
            (Family::Chat, "messages", json!([{ "role": "assistant", "audio": { "id": "audio_1" } }]), false),
            (Family::Chat, "messages", json!([{ "content": [{ "file": { "file_id": "f" } }] }]), false),
            (
                Family::Responses,
                "input",
                json!([{ "role": "user", "content": [{ "type": "input_text", "text": "a" }] }]),
                true,
            ),
            (Family::Responses, "input", json!([{ "type": "item_reference", "id": "msg_1" }]), false),
            (
                Family::Responses,
                "input",
                json!([{ "role": "user", "content": [{ "type": "input_file", "file_id": "f" }] }]),
                false,
            ),
            (Family::Responses, "previous_response_id", json!("resp_1"), false),
            (Family::Responses, "previous_response_id", Value::Null, true),
            (Family::Responses, "background", json!(false), true),
            (Family::Responses, "background", json!(true), false),
            (Family::Responses, "prompt", json!({ "id": "pmpt_1" }), false),
            (
                Family::Responses,
                "tools",
                json!([{ "type": "function", "name": "f", "parameters": { "type": "object" } }]),
                true,
            ),
            (Family::Responses, "tools", json!([{ "type": "web_search" }]), false),
            (Family::Messages, "tools", json!([{ "name": "f", "input_schema": { "type": "object" } }]), true),
            (Family::Messages, "tools", json!([{ "type": "web_search_20250305", "name": "web_search" }]), false),
            (Family::Chat, "modalities", json!(["text"]), true),
            (Family::Chat, "modalities", json!(["text", "audio"]), false),
            (Family::Embed, "input", json!(["a", [1, 2]]), true),
            (Family::Embed, "input", json!([{ "image": "https://x/y.png" }]), false),
        ] {
            let mut body = json!({ "max_tokens": 5, "max_output_tokens": 5 });
            body[name] = value;
            let body = body.to_string();
            assert_eq!(expected(family, &body).is_bounded, is_bounded, "{body}");
        }
    }

    #[test]
    fn what_is_looked_at_is_what_the_target_is_sent() {
        let body = r#"{"messages":[{"content":"1234"}],"max_tokens":10,"web_search_options":{}}"#;
        let fields = Fields::parse_object(body.as_bytes()).unwrap();
        for (overrides, defaults, drops, most_output) in [
            (json!({}), json!({}), vec!["web_search_options"], Some(10)),
            (json!({}), json!({}), vec![], None),
            (json!({ "max_tokens": 5000 }), json!({}), vec!["web_search_options"], Some(5000)),
            (json!({ "max_completion_tokens": 700 }), json!({}), vec!["web_search_options"], Some(700)),
            (json!({}), json!({ "n": 3 }), vec!["web_search_options"], Some(30)),
            (json!({}), json!({}), vec!["web_search_options", "max_tokens"], None),
            (json!({ "web_search_options": null }), json!({}), vec![], Some(10)),
        ] {
            let drops = drops.iter().map(|path| ParamPath::parse(path).unwrap()).collect();
            let edits = Edits::new(overrides.as_object(), defaults.as_object(), drops);
            let found = Expected::estimate(Family::Chat, &SentBody::new(body.as_bytes(), &fields, Some(&edits)), true);
            assert_eq!(found.is_bounded.then_some(found.most_output), most_output, "{overrides} {defaults}");
        }
        let longer = Edits::new(json!({ "messages": [{ "content": "x".repeat(4000) }] }).as_object(), None, Vec::new());
        let found = Expected::estimate(Family::Chat, &SentBody::new(body.as_bytes(), &fields, Some(&longer)), true);
        assert!(found.most_input >= 4000, "{found:?}");
    }
}
