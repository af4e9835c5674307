//! The calls that can report the usage of a vector: each dialect in its own words.

use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use std::fmt;

/// One call: where it goes, what is sent and answered, and the sum in cents.
pub struct Call {
    pub rule: String,
    pub form: &'static str,
    pub path: String,
    pub provider: String,
    pub is_stream: bool,
    /// None for a form.
    pub body: Option<Value>,
    pub answer: String,
    pub cents: Decimal,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.rule, self.form)
    }
}

pub const ALL: [&str; 17] = [
    "chat",
    "chat stream",
    "completions",
    "embeddings",
    "responses",
    "responses stream",
    "messages",
    "messages stream",
    "gemini",
    "gemini stream",
    "converse",
    "cohere",
    "cohere stream",
    "rerank",
    "images",
    "image tokens",
    "transcription",
];

/// What all calls for one vector have in common.
struct Maker<'v> {
    rule: &'v str,
    vector: &'v Value,
    usage: Value,
}

pub fn calls(provider: &str, vector: &Value) -> Vec<Call> {
    let rule = vector["rule"].as_str().unwrap();
    if rule == super::TOO_DEAR {
        return Vec::new();
    }
    let mut usage = vector["usage"].clone();
    if let Some(searches) = usage["units"]["web_search"].as_str() {
        usage["num_search_queries"] = json!(searches.parse::<u64>().unwrap());
    }
    let maker = Maker { rule, vector, usage };
    let has = |name: &str| !maker.usage[name].is_null();
    // Anthropic counts what it cached beside the prompt.
    let is_message = has("input_tokens") && (has("cache_creation_input_tokens") || has("cache_read_input_tokens"));
    match () {
        () if has("promptTokenCount") => maker.gemini(),
        () if has("inputTokens") => maker.converse(),
        () if has("billed_units") => maker.cohere(),
        () if has("images") => maker.images(),
        () if is_message => maker.messages(),
        () if has("input_tokens") => maker.responses(),
        () if has("completion_tokens") => maker.chat(),
        () if has("prompt_tokens") => maker.embeddings(),
        () if !maker.usage["units"]["audio_seconds"].is_null() => maker.transcription(provider),
        () => Vec::new(),
    }
}

impl Maker<'_> {
    fn call(&self, form: &'static str, path: impl Into<String>, provider: &str, answer: String) -> Call {
        let is_stream = answer.starts_with("data:");
        Call {
            rule: self.rule.to_owned(),
            form,
            path: path.into(),
            provider: provider.to_owned(),
            is_stream,
            body: Some(json!({
                "model": self.rule, "stream": is_stream, "max_tokens": 10, "input": "Hello", "prompt": "Hello",
                "messages": [{ "role": "user", "content": "Hello" }],
            })),
            answer,
            // Stored with ten decimals.
            cents: (self.vector["usd"].as_str().unwrap().parse::<Decimal>().unwrap() * Decimal::ONE_HUNDRED)
                .round_dp(10),
        }
    }

    fn tier(&self) -> &str {
        self.vector["mode"].as_str().unwrap_or("default")
    }

    fn chat(&self) -> Vec<Call> {
        let (rule, usage, tier) = (self.rule, &self.usage, self.tier());
        let with = |choices: Value, object: &str| {
            json!({ "id": "c", "object": object, "model": rule, "choices": choices, "usage": usage, "service_tier": tier })
                .to_string()
        };
        let chunk = |choices: Value, usage: &Value| {
            json!({ "id": "c", "object": "chat.completion.chunk", "model": rule, "choices": choices, "usage": usage,
                    "service_tier": tier })
        };
        let said = json!([{ "index": 0, "delta": { "content": "Hello" }, "finish_reason": null }]);
        let streamed = stream(&[chunk(said, &Value::Null), chunk(json!([]), usage)]) + "data: [DONE]\n\n";
        let message =
            json!([{ "index": 0, "message": { "role": "assistant", "content": "Hello" }, "finish_reason": "stop" }]);
        let text = json!([{ "index": 0, "text": "Hello", "finish_reason": "stop" }]);
        vec![
            self.call("chat", "/chat/completions", "openai", with(message, "chat.completion")),
            self.call("chat stream", "/chat/completions", "openai", streamed),
            self.call("completions", "/completions", "openai", with(text, "text_completion")),
        ]
    }

    fn embeddings(&self) -> Vec<Call> {
        let list = json!({ "object": "list", "model": self.rule, "data": [], "usage": self.usage });
        vec![self.call("embeddings", "/embeddings", "openai", list.to_string())]
    }

    fn responses(&self) -> Vec<Call> {
        let response =
            json!({ "id": "r", "object": "response", "model": self.rule, "output": [], "usage": self.usage });
        let events = [
            json!({ "type": "response.created", "response": { "model": self.rule, "usage": null } }),
            json!({ "type": "response.output_text.delta", "delta": "Hello" }),
            json!({ "type": "response.completed", "response": response }),
        ];
        let mut calls = vec![
            self.call("responses", "/responses", "openai", response.to_string()),
            self.call("responses stream", "/responses", "openai", stream(&events)),
        ];
        if !self.usage["output_tokens_details"]["image_tokens"].is_null() {
            let made = json!({ "created": 1, "data": [{ "b64_json": "aGVsbG8=" }], "usage": self.usage });
            calls.push(self.call("image tokens", "/images/generations", "openai", made.to_string()));
        }
        calls
    }

    fn messages(&self) -> Vec<Call> {
        let mut usage = self.usage.as_object().unwrap().clone();
        usage.insert("service_tier".into(), json!(self.tier()));
        let message = json!({ "id": "m", "type": "message", "role": "assistant", "model": self.rule, "content": [],
                              "usage": usage });
        // What was read is said at the start, what was written and done at the end.
        let is_late = |name: &&String| ["output_tokens", "server_tool_use"].contains(&name.as_str());
        let part = |late: bool| -> Map<String, Value> {
            let fields = usage.iter().filter(|(name, _)| is_late(name) == late);
            fields.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let mut start = part(false);
        start.insert("output_tokens".into(), json!(0));
        let start = json!({ "type": "message", "model": self.rule, "content": [], "usage": start });
        let events = stream(&[
            json!({ "type": "message_start", "message": start }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hello" } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": part(true) }),
            json!({ "type": "message_stop" }),
        ]);
        vec![
            self.call("messages", "/messages", "anthropic", message.to_string()),
            self.call("messages stream", "/messages", "anthropic", events),
        ]
    }

    /// In Google's own interface, which the gateway passes on.
    fn gemini(&self) -> Vec<Call> {
        let part =
            |text: &str, end: Value| json!([{ "content": { "parts": [{ "text": text }] }, "finishReason": end }]);
        let whole = json!({ "candidates": part("Hello", json!("STOP")), "usageMetadata": self.usage,
                            "modelVersion": self.rule });
        let begun = json!({ "candidates": part("Hel", Value::Null),
                            "usageMetadata": { "promptTokenCount": 1, "totalTokenCount": 1 } });
        let path = |method: &str| format!("/v1beta/models/{}:{method}", self.rule);
        let calls = [
            self.call("gemini", path("generateContent"), "google", whole.to_string()),
            self.call("gemini stream", path("streamGenerateContent?alt=sse"), "google", stream(&[begun, whole])),
        ];
        let asked = json!({ "contents": [{ "parts": [{ "text": "Hello" }] }] });
        calls.map(|call| Call { body: Some(asked.clone()), ..call }).into()
    }

    /// Bedrock's own; its streams are no events.
    fn converse(&self) -> Vec<Call> {
        let answer = json!({ "output": { "message": { "role": "assistant", "content": [{ "text": "Hello" }] } },
                             "stopReason": "end_turn", "usage": self.usage, "service_tier": self.tier() });
        let call = self.call("converse", format!("/model/{}/converse", self.rule), "bedrock", answer.to_string());
        // The path alone names the model.
        let asked = json!({ "messages": [{ "role": "user", "content": [{ "text": "Hello" }] }] });
        vec![Call { body: Some(asked), ..call }]
    }

    fn cohere(&self) -> Vec<Call> {
        if !self.usage["billed_units"]["search_units"].is_null() {
            let answer = json!({ "id": "r", "results": [], "meta": self.usage });
            return vec![self.call("rerank", "/rerank", "cohere", answer.to_string())];
        }
        let said = json!({ "role": "assistant", "content": [{ "type": "text", "text": "Hello" }] });
        let whole = json!({ "id": "c", "message": said, "finish_reason": "COMPLETE", "usage": self.usage });
        let events = [
            json!({ "type": "content-delta", "index": 0, "delta": { "message": { "content": { "text": "Hello" } } } }),
            json!({ "type": "message-end", "delta": { "finish_reason": "COMPLETE", "usage": self.usage } }),
        ];
        vec![
            self.call("cohere", "/v2/chat", "cohere", whole.to_string()),
            self.call("cohere stream", "/v2/chat", "cohere", stream(&events)),
        ]
    }

    /// Paid by the piece: the answer says nothing, the request does.
    fn images(&self) -> Vec<Call> {
        let images = &self.usage["images"];
        let made = json!({ "created": 1, "data": [{ "url": "https://images.test/1" }] });
        let mut call = self.call("images", "/images/generations", "openai", made.to_string());
        call.body = Some(json!({ "model": self.rule, "prompt": "a cat", "n": images["count"],
                                 "quality": images["quality"], "size": images["size"] }));
        vec![call]
    }

    fn transcription(&self, provider: &str) -> Vec<Call> {
        let seconds: f64 = self.usage["units"]["audio_seconds"].as_str().unwrap().parse().unwrap();
        let answer = json!({ "text": "Hello", "usage": { "type": "duration", "seconds": seconds } });
        let call = self.call("transcription", "/audio/transcriptions", provider, answer.to_string());
        vec![Call { body: None, ..call }]
    }
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}
