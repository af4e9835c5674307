//! `addPrefix`: puts a text before what a role says. Always passes; it only transforms.

mod vendor_routes;

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::{Shape, Subject};
use crate::guardrails::verdict::Verdict;
use serde_json::{Value, json};

struct AddPrefix {
    prefix: String,
    role: String,
    adds_to_existing: bool,
    only_if_empty: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(AddPrefix {
        prefix: parameters.text_or("prefix", ""),
        role: parameters.text_or("applyToRole", "user"),
        adds_to_existing: parameters.flag_or("addToExisting", true),
        only_if_empty: parameters.flag("onlyIfEmpty"),
    }))
}

impl Check for AddPrefix {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let mut json = subject.request.clone();
        let is_changed = match subject.shape {
            _ if !json.is_object() => false,
            Shape::Chat => self.turns(&mut json, "messages"),
            Shape::Messages if self.role == "system" => self.field(&mut json, "system"),
            Shape::Messages => self.turns(&mut json, "messages"),
            Shape::Responses if self.role == "system" => self.field(&mut json, "instructions"),
            Shape::Responses if json["input"].is_string() => self.role == "user" && self.field(&mut json, "input"),
            Shape::Responses => self.turns(&mut json, "input"),
            Shape::Completions => self.prompt(&mut json),
            Shape::Gemini => self.gemini(&mut json),
            Shape::Converse => self.converse(&mut json),
            Shape::Embeddings | Shape::Other | Shape::Unread => false,
        };
        let explanation = if is_changed { "The prefix was added." } else { "There was no place for the prefix." };
        let verdict = Verdict::new(true, explanation, json!({ "prefix": self.prefix, "applyToRole": self.role }));
        if is_changed { verdict.with_transformed(json) } else { verdict }
    }
}

impl AddPrefix {
    fn turns(&self, json: &mut Value, list: &str) -> bool {
        let Some(turns) = json[list].as_array_mut() else { return false };
        let message = json!({ "role": self.role, "content": self.prefix });
        let Some(at) = turns.iter().position(|turn| turn["role"] == self.role.as_str()) else {
            if self.role == "system" {
                turns.insert(0, message);
            } else {
                turns.push(message);
            }
            return true;
        };
        if self.only_if_empty && !is_empty(&turns[at]["content"]) {
            return false;
        }
        if self.adds_to_existing {
            self.content(&mut turns[at]["content"]);
        } else {
            turns.insert(at, message);
        }
        true
    }

    fn content(&self, content: &mut Value) {
        let text =
            |part: &Value| part["type"].as_str().is_some_and(|kind| kind.ends_with("text")) && part["text"].is_string();
        match content {
            Value::Array(parts) => match parts.iter_mut().find(|part| text(part)) {
                Some(part) => self.put(&mut part["text"]),
                None => parts.insert(0, json!({ "type": "text", "text": self.prefix })),
            },
            other => self.put(other),
        }
    }

    fn field(&self, json: &mut Value, name: &str) -> bool {
        if self.only_if_empty && !is_empty(&json[name]) {
            return false;
        }
        self.content(&mut json[name]);
        true
    }

    fn prompt(&self, json: &mut Value) -> bool {
        match &mut json["prompt"] {
            Value::Array(prompts) if prompts.iter().all(Value::is_string) => {
                prompts.iter_mut().for_each(|prompt| self.put(prompt));
                !prompts.is_empty()
            }
            prompt @ (Value::String(_) | Value::Null) => {
                self.put(prompt);
                true
            }
            // Numbers of tokens.
            _ => false,
        }
    }

    fn put(&self, place: &mut Value) {
        *place = Value::String(format!("{}{}", self.prefix, place.as_str().unwrap_or_default()));
    }
}

fn is_empty(content: &Value) -> bool {
    match content {
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::subject;
    use crate::guardrails::{Shape, Subject, compile};
    use serde_json::json;

    #[test]
    fn the_first_message_of_the_role_gets_the_prefix() {
        let user = |content: &str| json!({ "role": "user", "content": content });
        for (shape, parameters, body, expected) in [
            (
                Shape::Chat,
                json!({}),
                json!({ "messages": [user("a"), user("b")] }),
                Some(json!({ "messages": [user("P a"), user("b")] })),
            ),
            (
                Shape::Chat,
                json!({ "addToExisting": false }),
                json!({ "messages": [user("a")] }),
                Some(json!({ "messages": [user("P "), user("a")] })),
            ),
            (Shape::Chat, json!({ "onlyIfEmpty": true }), json!({ "messages": [user("a")] }), None),
            (
                Shape::Chat,
                json!({ "onlyIfEmpty": true }),
                json!({ "messages": [user("")] }),
                Some(json!({ "messages": [user("P ")] })),
            ),
            (
                Shape::Chat,
                json!({ "applyToRole": "system" }),
                json!({ "messages": [user("a")] }),
                Some(json!({ "messages": [{ "role": "system", "content": "P " }, user("a")] })),
            ),
            (
                Shape::Chat,
                json!({ "applyToRole": "assistant" }),
                json!({ "messages": [user("a")] }),
                Some(json!({ "messages": [user("a"), { "role": "assistant", "content": "P " }] })),
            ),
            (
                Shape::Chat,
                json!({}),
                json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" },
                { "type": "text", "text": "é" }] }] }),
                Some(json!({ "messages": [{ "role": "user", "content":
                [{ "type": "image_url" }, { "type": "text", "text": "P é" }] }] })),
            ),
            (
                Shape::Chat,
                json!({}),
                json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] }),
                Some(json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "P " },
                { "type": "image_url" }] }] })),
            ),
            (
                Shape::Messages,
                json!({ "applyToRole": "system" }),
                json!({ "system": "s", "messages": [] }),
                Some(json!({ "system": "P s", "messages": [] })),
            ),
            (Shape::Completions, json!({}), json!({ "prompt": "a" }), Some(json!({ "prompt": "P a" }))),
            (Shape::Completions, json!({}), json!({ "prompt": ["a", "b"] }), Some(json!({ "prompt": ["P a", "P b"] }))),
            (Shape::Completions, json!({}), json!({ "prompt": [1, 2] }), None),
            (Shape::Responses, json!({}), json!({ "input": "a" }), Some(json!({ "input": "P a" }))),
            (
                Shape::Responses,
                json!({ "applyToRole": "system" }),
                json!({ "input": "a" }),
                Some(json!({ "input": "a", "instructions": "P " })),
            ),
            (Shape::Embeddings, json!({}), json!({ "input": "a" }), None),
            (Shape::Chat, json!({}), json!({ "messages": "odd" }), None),
        ] {
            let mut all = parameters.clone();
            all["prefix"] = json!("P ");
            let verdict = compile("addPrefix", &all).unwrap().run(&Subject { shape, ..subject(&body, None) });
            assert!(verdict.verdict && verdict.error.is_none(), "{parameters}");
            assert_eq!(verdict.transformed, expected, "{parameters} {body}");
        }
    }
}
