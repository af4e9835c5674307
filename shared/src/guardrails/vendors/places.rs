//! What stands for a place in a row's address, header or body: a parameter (`p.name`), a field of the credentials (`c.name`),
//! or something of what is judged. Alternatives are tried in their order (`p.a|c.b|=usual`); `=` begins a text of our own.

use super::super::remote::RemoteContext;
use super::super::subject::{Hook, Shape, Subject};
use super::super::text::Scope;
use super::acuvity;
use crate::secrets::cloud::escape;
use serde_json::{Map, Value, json};

pub struct Places<'p> {
    pub parameters: &'p Map<String, Value>,
    pub context: &'p RemoteContext<'p>,
    pub subject: &'p Subject<'p>,
    /// What is judged, as one text.
    pub text: &'p str,
    pub texts: &'p [String],
    /// The one that a call is about, where there is a call for each.
    pub each: &'p str,
}

impl Places<'_> {
    pub fn find(&self, name: &str) -> Option<Value> {
        name.split('|').find_map(|one| self.one(one.trim())).filter(|value| !value.is_null())
    }

    fn one(&self, name: &str) -> Option<Value> {
        if let Some(usual) = name.strip_prefix('=') {
            return Some(usual.into());
        }
        if let Some(words) = name.strip_prefix("side:") {
            return self.side(words).map(Value::from);
        }
        if let Some(path) = name.strip_prefix("c.") {
            return field(self.context.credentials?, path);
        }
        if let Some(path) = name.strip_prefix("p.") {
            return field(self.parameters, path);
        }
        if let Some(name) = name.strip_prefix("number:") {
            let text = field(self.parameters, name)?;
            return Some(text.as_str().and_then(|text| text.parse::<i64>().ok()).map_or(text, Value::from));
        }
        if let Some(name) = name.strip_prefix("set:") {
            let words = self.parameters.get(name)?.as_array()?;
            return Some(words.iter().filter_map(Value::as_str).map(|word| (word.to_owned(), json!(true))).collect());
        }
        if let Some(name) = name.strip_prefix("before:") {
            let text = field(self.parameters, name)?;
            return text.as_str()?.split_once(':').map(|(before, _)| before.into());
        }
        if let Some(name) = name.strip_prefix("after:") {
            let text = field(self.parameters, name)?;
            return text.as_str().map(|text| text.split_once(':').map_or(text, |(_, after)| after).into());
        }
        match name {
            "text" => Some(self.text.into()),
            "texts" => Some(json!(self.texts)),
            "each" => Some(self.each.into()),
            "asked" => self.asked().map(Value::from),
            "said" => (self.subject.hook == Hook::AfterRequest).then(|| self.text.into()),
            "messages" => Some(self.messages()),
            "conversation" => Some(self.conversation()),
            "tools" => self.tools(),
            "apex" => acuvity::apex(self.context.credentials?).map(Value::from),
            "redactions" => Some(acuvity::redactions(self.parameters)),
            "json" => Some(self.json()),
            "model" => self.subject.model().map(Value::from),
            "provider" => Some(self.context.provider.into()).filter(|_| !self.context.provider.is_empty()),
            "trace" => Some(self.context.trace_id.into()).filter(|_| !self.context.trace_id.is_empty()),
            "user" => ["_user", "user_id"].iter().find_map(|name| self.subject.metadata.get(*name)).cloned(),
            _ => None,
        }
    }

    /// `before/after`.
    pub fn side<'w>(&self, words: &'w str) -> Option<&'w str> {
        let (before, after) = words.split_once('/')?;
        Some(if self.subject.hook == Hook::BeforeRequest { before } else { after })
    }

    fn asked(&self) -> Option<String> {
        let asked = Subject { hook: Hook::BeforeRequest, text: None, scope: Scope::Judged, ..*self.subject };
        asked.text().ok().map(|text| text.into_owned())
    }

    /// The request's messages with their texts as texts, the last with all that is judged of it. Where a request is not made of
    /// messages, what is judged is one.
    fn messages(&self) -> Value {
        let has_messages = matches!(self.subject.shape, Shape::Chat | Shape::Messages | Shape::Converse);
        let messages = self.subject.request.get("messages").and_then(Value::as_array).filter(|_| has_messages);
        let Some((last, before)) = messages.and_then(|messages| messages.split_last()) else {
            return json!([{ "role": self.side("user/assistant"), "content": self.text }]);
        };
        let judged = match self.subject.hook {
            Hook::BeforeRequest => self.text.to_owned(),
            Hook::AfterRequest => self.asked().unwrap_or_else(|| flat(&last["content"])),
        };
        let before =
            before.iter().map(|message| json!({ "role": message["role"], "content": flat(&message["content"]) }));
        before.chain([json!({ "role": last["role"], "content": judged })]).collect()
    }

    /// The body. Of a stream there is only what it said.
    fn json(&self) -> Value {
        match (self.subject.text, self.subject.json()) {
            (Some(text), Value::Null) => {
                json!({ "choices": [{ "index": 0, "message": { "role": "assistant", "content": text } }] })
            }
            (_, body) => body.clone(),
        }
    }

    /// With what was said to them.
    fn conversation(&self) -> Value {
        let mut messages = self.messages();
        if let (Some(messages), Hook::AfterRequest) = (messages.as_array_mut(), self.subject.hook) {
            messages.push(json!({ "role": "assistant", "content": self.text }));
        }
        messages
    }

    fn tools(&self) -> Option<Value> {
        let tools = self.subject.request.get("tools")?.as_array()?;
        let functions = tools.iter().filter_map(|tool| tool.get("function")).map(|function| {
            json!({ "name": function["name"], "description": function["description"], "parameters": function["parameters"] })
        });
        Some(functions.collect())
    }

    /// An address with its places filled, if all can be and the result can be one.
    pub fn address(&self, template: &str) -> Option<String> {
        let mut url = String::new();
        let mut rest = template;
        while let Some(start) = rest.find('{') {
            let (before, after) = rest.split_at(start);
            let end = after.find('}')?;
            url.push_str(before);
            let value = self.find(&after[1..end])?;
            let value = text_of(&value)?;
            let is_in_host = url.strip_prefix("https://").is_some_and(|host| !host.contains('/'));
            match url.is_empty() {
                true => url.push_str(base(&value)?),
                false if is_in_host => url.push_str(host(&value)?),
                false => url.push_str(&escape(&value, "")),
            }
            rest = &after[end + 1..];
        }
        url.push_str(rest);
        Some(url)
    }

    /// JSON with its places filled. A field whose place is not there is left out.
    pub fn body(&self, template: &Value) -> Option<Value> {
        match template {
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => self.find(name),
                None => Some(template.clone()),
            },
            Value::Array(items) => Some(items.iter().filter_map(|item| self.body(item)).collect()),
            Value::Object(fields) => {
                let filled = fields.iter().filter_map(|(name, value)| {
                    let name = match name.strip_prefix("$side:") {
                        Some(words) => self.side(words)?,
                        None => name,
                    };
                    Some((name.to_owned(), self.body(value)?))
                });
                Some(Value::Object(filled.collect()))
            }
            other => Some(other.clone()),
        }
    }
}

fn field(fields: &Map<String, Value>, path: &str) -> Option<Value> {
    let mut names = path.split('.');
    let mut value = fields.get(names.next()?)?;
    for name in names {
        value = value.get(name)?;
    }
    Some(value.clone()).filter(|value| !value.is_null() && value.as_str() != Some(""))
}

pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// A whole address that others are made of.
fn base(value: &str) -> Option<&str> {
    let is_address = value.starts_with("https://") || value.starts_with("http://");
    (is_address && !value.contains(['?', '#', '@'])).then(|| value.trim_end_matches('/'))
}

/// Part of a name of a host; some write the scheme along.
fn host(value: &str) -> Option<&str> {
    let value = value.strip_prefix("https://").unwrap_or(value).trim_end_matches('/');
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    (!value.is_empty() && value.bytes().all(is_host)).then_some(value)
}

fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardrails::subject::testing::subject;

    fn asked_with(subject: &Subject<'_>, text: &str, place: &str) -> Value {
        let (parameters, context) = (Map::new(), RemoteContext::default());
        let places = Places { parameters: &parameters, context: &context, subject, text, texts: &[], each: "" };
        places.find(place).unwrap()
    }

    #[test]
    fn messages_are_those_that_the_provider_reads_with_all_that_is_judged() {
        let request = json!({ "prompt": "real", "messages": [{ "role": "user", "content": "decoy" }] });
        let completions = Subject { shape: Shape::Completions, ..subject(&request, None) };
        assert_eq!(asked_with(&completions, "real", "messages"), json!([{ "role": "user", "content": "real" }]));
        let request = json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "a" }] },
            { "role": "user", "content": [{ "type": "tool_result", "content": "found" }] }] });
        let messages = Subject { shape: Shape::Messages, ..subject(&request, None) };
        let expected = json!([{ "role": "user", "content": "a" }, { "role": "user", "content": "found" }]);
        assert_eq!(asked_with(&messages, &messages.text().unwrap(), "messages"), expected);
        let after = Subject { response: Some(&Value::Null), hook: Hook::AfterRequest, ..messages };
        assert_eq!(asked_with(&after, "said", "messages"), expected);
    }

    #[test]
    fn the_body_of_a_stream_is_what_it_said() {
        let request = json!({ "messages": [] });
        let stream = Subject { text: Some("said"), ..subject(&request, Some(&Value::Null)) };
        assert_eq!(asked_with(&stream, "said", "json")["choices"][0]["message"]["content"], "said");
        let plain = json!({ "choices": [] });
        assert_eq!(asked_with(&subject(&request, Some(&plain)), "said", "json"), plain);
    }

    #[test]
    fn an_address_is_made_of_stored_bases_and_escaped_places() {
        let request = json!({});
        let subject = subject(&request, None);
        let parameters = json!({ "id": "a/../b?c", "n": 7 });
        for (credentials, template, expected) in [
            (json!({}), "https://a.test/x", Some("https://a.test/x")),
            (json!({}), "https://a.test/{p.id}/{p.n}", Some("https://a.test/a%2F..%2Fb%3Fc/7")),
            (json!({}), "https://a.test/{p.none}", None),
            (json!({}), "{c.base|=https://usual.test}/v1", Some("https://usual.test/v1")),
            (json!({ "base": "https://own.test/" }), "{c.base|=https://usual.test}/v1", Some("https://own.test/v1")),
            (json!({ "base": "own.test" }), "{c.base}/v1", None),
            (json!({ "base": "https://own.test?x=" }), "{c.base}/v1", None),
            (json!({ "base": "https://u:p@own.test" }), "{c.base}/v1", None),
            (json!({ "d": "eu.test" }), "https://guard.{c.d}/v1", Some("https://guard.eu.test/v1")),
            (json!({ "d": "https://eu.test/" }), "https://{c.d}/v1", Some("https://eu.test/v1")),
            (json!({ "d": "evil.test/x#" }), "https://guard.{c.d}/v1", None),
            (json!({ "d": "u@evil.test" }), "https://guard.{c.d}/v1", None),
            (json!({ "g": { "r": "name" } }), "https://{c.g.r|c.r}.test/v1", Some("https://name.test/v1")),
        ] {
            let context = RemoteContext { credentials: credentials.as_object(), ..RemoteContext::default() };
            let places = Places {
                parameters: parameters.as_object().unwrap(),
                context: &context,
                subject: &subject,
                text: "",
                texts: &[],
                each: "",
            };
            assert_eq!(places.address(template).as_deref(), expected, "{credentials} {template}");
        }
    }
}
