//! A prefix in the bodies of Google's and Bedrock's own routes: texts stand in lists of parts, and what the system says in a
//! field of its own.

use super::AddPrefix;
use serde_json::{Value, json};

impl AddPrefix {
    pub(super) fn gemini(&self, json: &mut Value) -> bool {
        if self.role == "system" {
            let is_other = json.get("system_instruction").is_some();
            let field = &mut json[if is_other { "system_instruction" } else { "systemInstruction" }];
            if let Value::String(text) = field {
                *field = json!({ "parts": [{ "text": text }] });
            }
            if !field.is_object() {
                *field = json!({});
            }
            return self.parts(&mut field["parts"]);
        }
        if json["contents"].is_object() {
            json["contents"] = Value::Array(vec![json["contents"].take()]);
        }
        let role = if self.role == "assistant" { "model" } else { "user" };
        self.vendor_turns(&mut json["contents"], role, "parts")
    }

    pub(super) fn converse(&self, json: &mut Value) -> bool {
        match self.role == "system" {
            true => self.parts(&mut json["system"]),
            false => self.vendor_turns(&mut json["messages"], &self.role, "content"),
        }
    }

    fn vendor_turns(&self, turns: &mut Value, role: &str, parts: &str) -> bool {
        let Some(turns) = turns.as_array_mut() else { return false };
        let new = json!({ "role": role, parts: [{ "text": self.prefix }] });
        // Of a turn that says nothing of it, it is the user.
        let has_role = |turn: &Value| turn["role"].as_str().unwrap_or("user") == role;
        let Some(at) = turns.iter().position(has_role) else {
            turns.push(new);
            return true;
        };
        if self.adds_to_existing {
            return self.parts(&mut turns[at][parts]);
        }
        if self.only_if_empty && !is_empty(&turns[at][parts]) {
            return false;
        }
        turns.insert(at, new);
        true
    }

    /// Before the first text of the parts, or as a part of its own where there is none.
    fn parts(&self, parts: &mut Value) -> bool {
        if parts.is_object() {
            *parts = Value::Array(vec![parts.take()]);
        }
        if self.only_if_empty && !is_empty(parts) {
            return false;
        }
        match parts {
            Value::Array(list) => match list.iter_mut().find(|part| part["text"].is_string()) {
                Some(part) => self.put(&mut part["text"]),
                None => list.insert(0, json!({ "text": self.prefix })),
            },
            other => *other = json!([{ "text": self.prefix }]),
        }
        true
    }
}

fn is_empty(parts: &Value) -> bool {
    let is_empty = |part: &Value| part["text"].as_str() == Some("");
    parts.as_array().is_none_or(|parts| parts.iter().all(is_empty))
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::subject;
    use crate::guardrails::{Shape, Subject, compile};
    use serde_json::json;

    #[test]
    fn the_first_turn_of_the_role_gets_the_prefix_and_the_system_has_its_own_place() {
        let google = |text: &str| json!({ "role": "user", "parts": [{ "text": text }] });
        let bedrock = |text: &str| json!({ "role": "user", "content": [{ "text": text }] });
        for (shape, parameters, body, expected) in [
            (
                Shape::Gemini,
                json!({}),
                json!({ "contents": [google("a"), google("b")] }),
                Some(json!({ "contents": [google("P a"), google("b")] })),
            ),
            (
                Shape::Gemini,
                json!({}),
                json!({ "contents": { "parts": { "text": "a" } } }),
                Some(json!({ "contents": [{ "parts": [{ "text": "P a" }] }] })),
            ),
            (
                Shape::Gemini,
                json!({ "applyToRole": "system" }),
                json!({ "contents": [google("a")] }),
                Some(json!({ "contents": [google("a")], "systemInstruction": { "parts": [{ "text": "P " }] } })),
            ),
            (
                Shape::Gemini,
                json!({ "applyToRole": "system" }),
                json!({ "system_instruction": { "parts": { "text": "s" } } }),
                Some(json!({ "system_instruction": { "parts": [{ "text": "P s" }] } })),
            ),
            (
                Shape::Gemini,
                json!({ "applyToRole": "assistant" }),
                json!({ "contents": [google("a")] }),
                Some(json!({ "contents": [google("a"), { "role": "model", "parts": [{ "text": "P " }] }] })),
            ),
            (
                Shape::Gemini,
                json!({ "addToExisting": false }),
                json!({ "contents": [google("a")] }),
                Some(json!({ "contents": [google("P "), google("a")] })),
            ),
            (Shape::Gemini, json!({ "onlyIfEmpty": true }), json!({ "contents": [google("a")] }), None),
            (Shape::Gemini, json!({}), json!({ "contents": "odd" }), None),
            (
                Shape::Converse,
                json!({}),
                json!({ "messages": [bedrock("a")] }),
                Some(json!({ "messages": [bedrock("P a")] })),
            ),
            (
                Shape::Converse,
                json!({ "applyToRole": "system" }),
                json!({ "messages": [] }),
                Some(json!({ "messages": [], "system": [{ "text": "P " }] })),
            ),
            (
                Shape::Converse,
                json!({}),
                json!({ "messages": [{ "role": "user", "content": [{ "image": {} }] }] }),
                Some(json!({ "messages": [{ "role": "user", "content": [{ "text": "P " }, { "image": {} }] }] })),
            ),
        ] {
            let mut all = parameters.clone();
            all["prefix"] = json!("P ");
            let verdict = compile("addPrefix", &all).unwrap().run(&Subject { shape, ..subject(&body, None) });
            assert_eq!(verdict.transformed, expected, "{parameters} {body}");
        }
    }
}
