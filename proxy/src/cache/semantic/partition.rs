//! What two requests must have in common before their words are compared: everything but the words. The model, every
//! parameter, system prompts, tools, the roles of the messages, and what the caller adds (route, target, namespace) become
//! one digest; requests with different ones never meet. The workspace stands beside it and is never hashed away.

use super::text::{AskedRoute, is_scene};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// How an answer travels is no part of what was asked.
const OF_THE_WAY: [&str; 2] = ["stream", "stream_options"];

/// `around` is a digest of what stands outside the body.
pub fn partition(route: AskedRoute, body: &Value, around: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"semantic 1");
    hash.update([matches!(route, AskedRoute::Chat).into()]);
    hash.update(around);
    match body {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().filter(|name| !OF_THE_WAY.contains(&name.as_str())).collect();
            names.sort_unstable();
            for name in names {
                absorb_text(&mut hash, name);
                match (route, name.as_str()) {
                    (AskedRoute::Chat, "messages") => absorb_messages(&mut hash, &fields[name]),
                    // Its words are what is compared; whether it is a list is not.
                    (AskedRoute::Completions, "prompt") => {}
                    _ => absorb(&mut hash, &fields[name]),
                }
            }
        }
        other => absorb(&mut hash, other),
    }
    hash.finalize().into()
}

/// System prompts whole, of the others everything but their words.
fn absorb_messages(hash: &mut Sha256, messages: &Value) {
    for message in messages.as_array().into_iter().flatten() {
        match message {
            Value::Object(fields) if !is_scene(message) => {
                let mut names: Vec<&String> = fields.keys().filter(|name| name.as_str() != "content").collect();
                names.sort_unstable();
                hash.update(b"m");
                hash.update((names.len() as u64).to_be_bytes());
                for name in names {
                    absorb_text(hash, name);
                    absorb(hash, &fields[name]);
                }
            }
            scene => absorb(hash, scene),
        }
    }
    hash.update(b"end");
}

/// Each value with its kind and length, so that no two values are one sequence of bytes. Objects in the order of their keys.
fn absorb(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(flag) => hash.update([b'b', u8::from(*flag)]),
        Value::Number(number) => {
            hash.update(b"d");
            absorb_text(hash, &number.to_string());
        }
        Value::String(text) => {
            hash.update(b"s");
            absorb_text(hash, text);
        }
        Value::Array(items) => {
            hash.update(b"a");
            hash.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| absorb(hash, item));
        }
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            hash.update(b"o");
            hash.update((names.len() as u64).to_be_bytes());
            for name in names {
                absorb_text(hash, name);
                absorb(hash, &fields[name]);
            }
        }
    }
}

fn absorb_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn base() -> Value {
        json!({
            "model": "m", "temperature": 0.5, "stream": true, "tools": [{ "name": "t" }],
            "messages": [{ "role": "system", "content": "be brief" }, { "role": "user", "content": "why?" }],
        })
    }

    const AROUND: [u8; 32] = [7; 32];

    fn of(body: &Value) -> [u8; 32] {
        partition(AskedRoute::Chat, body, &AROUND)
    }

    #[test]
    fn words_and_the_way_are_no_part_of_it() {
        let mut other = base();
        other["messages"][1]["content"] = json!([{ "type": "text", "text": "how?" }]);
        other["stream"] = json!(false);
        other["stream_options"] = json!({ "include_usage": true });
        assert_eq!(of(&base()), of(&other));
        let reordered = json!({
            "messages": base()["messages"], "tools": base()["tools"], "temperature": 0.5, "model": "m",
        });
        assert_eq!(of(&base()), of(&reordered));
        assert_eq!(
            partition(AskedRoute::Completions, &json!({ "model": "m", "prompt": "a" }), &AROUND),
            partition(AskedRoute::Completions, &json!({ "model": "m", "prompt": ["b"] }), &AROUND),
        );
    }

    #[test]
    fn everything_else_is() {
        for (place, value) in [
            ("/model", json!("n")),
            ("/temperature", json!(0.6)),
            ("/tools/0/name", json!("u")),
            ("/messages/0/content", json!("be long")),
            ("/messages/0/role", json!("developer")),
            ("/messages/1/role", json!("assistant")),
        ] {
            let mut other = base();
            *other.pointer_mut(place).unwrap() = value;
            assert_ne!(of(&base()), of(&other), "{place}");
        }
        for (name, value) in [("user", json!("u")), ("max_tokens", json!(1)), ("seed", json!(null))] {
            let mut other = base();
            other[name] = value;
            assert_ne!(of(&base()), of(&other), "{name}");
        }
        let mut named = base();
        named["messages"][1]["name"] = json!("ann");
        assert_ne!(of(&base()), of(&named));
        let mut longer = base();
        longer["messages"].as_array_mut().unwrap().push(json!({ "role": "user", "content": "why?" }));
        assert_ne!(of(&base()), of(&longer));
    }

    #[test]
    fn the_route_and_what_is_around_keep_apart() {
        assert_ne!(of(&base()), partition(AskedRoute::Chat, &base(), &[8; 32]));
        assert_ne!(of(&base()), partition(AskedRoute::Completions, &base(), &AROUND));
    }
}
