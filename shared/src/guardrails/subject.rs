//! What a check looks at: a request, or a request and its answer.

use super::text::{Scope, TextPlaces, with_readings};
use http::HeaderMap;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// When a check runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    BeforeRequest,
    AfterRequest,
}

impl Hook {
    /// The event's name, as webhooks and clients know it.
    pub fn event(self) -> &'static str {
        match self {
            Self::BeforeRequest => "beforeRequestHook",
            Self::AfterRequest => "afterRequestHook",
        }
    }
}

/// Where the texts stand in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Chat,
    Completions,
    Messages,
    Responses,
    Embeddings,
    /// Google's own route.
    Gemini,
    /// Bedrock's own route.
    Converse,
    /// A body of no form that is known here: every text in it is looked at, and none is the last message.
    Other,
    /// A request that nobody looks into: only its kind is judged.
    Unread,
}

/// Everything a check may know. Made by the proxy from a call, by admin from what an author sends to try a guardrail out.
pub struct Subject<'s> {
    pub hook: Hook,
    pub shape: Shape,
    /// One of `REQUEST_TYPES`.
    pub request_type: &'s str,
    pub request: &'s Value,
    /// With `Hook::AfterRequest`.
    pub response: Option<&'s Value>,
    pub metadata: &'s Map<String, Value>,
    pub headers: &'s HeaderMap,
    /// Seconds since 1970, for tokens that expire.
    pub now: i64,
    /// In place of what stands in the body: a text that somebody tries out, or one that is still growing.
    pub text: Option<&'s str>,
    /// More of the text may come: what touches its end is not decided yet.
    pub is_growing: bool,
    /// Which texts the check judges.
    pub scope: Scope,
}

/// Some of the texts would not be looked at.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyTexts;

impl<'s> Subject<'s> {
    /// The body that the check is about.
    pub fn json(&self) -> &'s Value {
        match self.hook {
            Hook::BeforeRequest => self.request,
            Hook::AfterRequest => self.response.unwrap_or(&Value::Null),
        }
    }

    /// The text that is judged, its parts joined by a new line; empty when there is none.
    pub fn text(&self) -> Result<Cow<'s, str>, TooManyTexts> {
        match (self.text, self.scope) {
            (Some(text), Scope::Judged) => return Ok(Cow::Borrowed(text)),
            (Some(text), Scope::All) => return Ok(with_readings(text)),
            (None, Scope::Judged) => {
                if let Some(text) = self.plain_text() {
                    return Ok(Cow::Borrowed(text));
                }
            }
            (None, Scope::All) => {}
        }
        let places = self.places(self.scope);
        match self.scope {
            _ if places.is_cut => Err(TooManyTexts),
            Scope::Judged => Ok(places.text(self.json())),
            Scope::All => Ok(places.searched_text(self.json())),
        }
    }

    /// The same where the last message is one text and nothing else, as most are: what `TextPlaces` would find, without writing
    /// down where.
    fn plain_text(&self) -> Option<&'s str> {
        if self.hook != Hook::BeforeRequest || !matches!(self.shape, Shape::Chat | Shape::Messages) {
            return None;
        }
        let last = self.request.get("messages")?.as_array()?.last()?.as_object()?;
        let is_plain = last.keys().all(|key| matches!(key.as_str(), "role" | "content" | "name"));
        last.get("content").filter(|_| is_plain)?.as_str()
    }

    /// All that a stream said: it can be judged, and not changed any more.
    pub fn is_stream(&self) -> bool {
        self.text.is_some() && self.hook == Hook::AfterRequest
    }

    /// Where the texts stand.
    pub fn places(&self, scope: Scope) -> TextPlaces {
        TextPlaces::find(self.json(), self.shape, self.hook, scope)
    }

    /// The model that is asked for.
    pub fn model(&self) -> Option<&'s str> {
        self.request.get("model").and_then(Value::as_str).filter(|model| !model.is_empty())
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;
    use std::sync::LazyLock;

    static NO_METADATA: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    static NO_HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

    /// A chat, before or after it was answered.
    pub fn subject<'s>(request: &'s Value, response: Option<&'s Value>) -> Subject<'s> {
        Subject {
            hook: if response.is_some() { Hook::AfterRequest } else { Hook::BeforeRequest },
            shape: Shape::Chat,
            request_type: "chatComplete",
            request,
            response,
            metadata: &NO_METADATA,
            headers: &NO_HEADERS,
            now: 1_700_000_000,
            text: None,
            is_growing: false,
            scope: Scope::Judged,
        }
    }

    /// Runs a check on a text that a user sends.
    pub fn run_text(id: &str, parameters: &Value, text: &str) -> crate::guardrails::Verdict {
        let request = serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
        run(id, parameters, &request)
    }

    /// Runs a check on a chat.
    pub fn run(id: &str, parameters: &Value, request: &Value) -> crate::guardrails::Verdict {
        match crate::guardrails::compile(id, parameters) {
            Ok(check) => check.run(&Subject { scope: check.scope(), ..subject(request, None) }),
            Err(fault) => panic!("{id} {parameters}: {fault}"),
        }
    }

    /// Runs a check on the answer to a chat.
    pub fn run_answer(id: &str, parameters: &Value, content: &Value) -> crate::guardrails::Verdict {
        let request = serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
        let response = serde_json::json!({ "choices": [{ "message": { "role": "assistant", "content": content } }] });
        match crate::guardrails::compile(id, parameters) {
            Ok(check) => check.run(&Subject { scope: check.scope(), ..subject(&request, Some(&response)) }),
            Err(fault) => panic!("{id} {parameters}: {fault}"),
        }
    }

    /// What a case of a table says in short: passed, failed or an error.
    pub fn said(verdict: &crate::guardrails::Verdict) -> &'static str {
        match (&verdict.error, verdict.verdict) {
            (Some(_), _) => "error",
            (None, true) => "pass",
            (None, false) => "fail",
        }
    }
}
