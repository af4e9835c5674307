//! Choosing one of several targets by weight: by chance, or always the same one for the same key.
//!
//! Sticky choice needs no memory and agrees between replicas: each target draws a number from the key, stretched by
//! its weight, and the highest wins (rendezvous hashing). A target that leaves takes only its own keys with it.

use crate::request::body::Fields;
use crate::routing::RequestFacts;
use serde::Deserialize;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use shared::config::Sticky;
use std::borrow::Cow;
use std::fmt;

/// The index of the chosen weight. `chance` is in 0..1. None when nothing has any weight.
pub fn by_chance(weights: &[f64], chance: f64) -> Option<usize> {
    let total: f64 = weights.iter().sum();
    let mut left = chance * total;
    let chosen = weights.iter().position(|weight| {
        let is_here = left < *weight;
        left -= weight;
        is_here
    });
    // Rounding may walk past the last.
    chosen.or_else(|| weights.iter().rposition(|weight| *weight > 0.0))
}

/// The index of the weight that this key always meets, as long as the weights stay. `names` tell targets apart.
pub fn by_key<'n>(weights: &[f64], names: impl Iterator<Item = &'n str>, key: &[u8]) -> Option<usize> {
    let drawn = weights.iter().zip(names).enumerate().filter(|(_, (weight, _))| **weight > 0.0);
    let scored = drawn.map(|(index, (weight, name))| (index, -weight / fraction(key, name).ln()));
    scored.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(index, _)| index)
}

/// A number in 0..1 from key and name.
fn fraction(key: &[u8], name: &str) -> f64 {
    let hash = Sha256::new().chain_update((key.len() as u64).to_be_bytes()).chain_update(key).chain_update(name);
    let hash: [u8; 32] = hash.finalize().into();
    let number = u64::from_be_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]]);
    ((number >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// What makes requests stick together. None when the request has none of the fields: it sticks to nothing.
pub fn sticky_key(
    sticky: &Sticky,
    scope: &[u8],
    path: &str,
    facts: &RequestFacts<'_>,
    unix_seconds: u64,
) -> Option<Vec<u8>> {
    if !sticky.enabled {
        return None;
    }
    let values: Vec<Option<Vec<u8>>> = sticky.hash_fields.iter().map(|field| field_of(field, facts)).collect();
    if values.iter().all(Option::is_none) {
        return None;
    }
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    add(scope);
    add(path.as_bytes());
    values.iter().for_each(|value| add(value.as_deref().unwrap_or_default()));
    let key: [u8; 32] = hash.finalize().into();
    Some([&key[..], &period(&key, sticky.ttl_seconds, unix_seconds).to_be_bytes()].concat())
}

/// A key is drawn anew when its time is over; each at a moment of its own, so that not all move at once.
fn period(key: &[u8; 32], ttl_seconds: u64, unix_seconds: u64) -> u64 {
    let ttl = ttl_seconds.max(1);
    let offset = u64::from_be_bytes([0, 0, 0, 0, key[0], key[1], key[2], key[3]]) % ttl;
    (unix_seconds + offset) / ttl
}

fn field_of(field: &str, facts: &RequestFacts<'_>) -> Option<Vec<u8>> {
    if field == "prompt_prefix" {
        return prompt_prefix(facts.params);
    }
    let (side, path) = field.split_once('.')?;
    let mut steps = path.split('.');
    let first = steps.next()?;
    let mut value = match side {
        "metadata" => facts.metadata.get(first).cloned(),
        "params" => facts.params.compare(first, |value| value.cloned()),
        _ => None,
    }?;
    for step in steps {
        value = match step.parse::<usize>() {
            Ok(index) if value.is_array() => value.get_mut(index)?.take(),
            _ => value.get_mut(step)?.take(),
        };
    }
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.into_bytes()),
        other => Some(other.to_string().into_bytes()),
    }
}

/// The part of a prompt that providers cache: tools and what the system says, up to the first other message. As a hash
/// of the text as it was written: prompts are long, and what follows the prefix is not even read.
fn prompt_prefix(params: &Fields<'_>) -> Option<Vec<u8>> {
    let mut hash = Sha256::new();
    let mut is_empty = true;
    let mut add = |name: &str, text: &str| {
        is_empty = false;
        hash.update(name);
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    for name in ["tools", "system", "instructions"] {
        if let Some(value) = params.get(name) {
            add(name, value);
        }
    }
    if let Some(messages) = params.get("messages") {
        let mut reader = serde_json::Deserializer::from_str(messages);
        // Ends in an error at the first message that is not the system's.
        let _ = reader.deserialize_seq(Leading(&mut |text| add("messages", text)));
    }
    (!is_empty).then(|| hash.finalize().to_vec())
}

/// Shows the leading messages of the system, as they were written.
struct Leading<'s>(&'s mut dyn FnMut(&str));

impl<'de> Visitor<'de> for Leading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        struct Message<'m> {
            #[serde(borrow)]
            role: Cow<'m, str>,
        }
        while let Some(message) = messages.next_element::<&RawValue>()? {
            let role = serde_json::from_str::<Message<'_>>(message.get()).map(|message| message.role);
            if !role.is_ok_and(|role| matches!(role.as_ref(), "system" | "developer")) {
                return Err(A::Error::custom("the prefix is over"));
            }
            (self.0)(message.get());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn chance_meets_each_target_as_often_as_it_weighs() {
        let weights = [5.0, 0.0, 3.0, 1.0];
        let mut counts = [0; 4];
        for step in 0..9000 {
            counts[by_chance(&weights, f64::from(step) / 9000.0).unwrap()] += 1;
        }
        assert_eq!(counts, [5000, 0, 3000, 1000]);
        assert_eq!(by_chance(&[0.0, 0.0], 0.5), None);
        assert_eq!(by_chance(&[0.1, 0.2, 0.0], 0.999_999_999_999_999_9), Some(1));
    }

    #[test]
    fn a_key_meets_the_same_target_and_only_the_keys_of_a_lost_target_move() {
        let names = ["a", "b", "c"];
        let pick = |weights: &[f64], key: u32| by_key(weights, names.into_iter(), &key.to_be_bytes()).unwrap();
        let mut counts = [0i32; 3];
        for key in 0..10_000 {
            let chosen = pick(&[2.0, 1.0, 1.0], key);
            counts[chosen] += 1;
            let without_c = pick(&[2.0, 1.0, 0.0], key);
            assert!(without_c == chosen || chosen == 2, "{key}");
        }
        for (count, share) in counts.into_iter().zip([5000, 2500, 2500]) {
            assert!((count - share).abs() < 300, "{counts:?}");
        }
        assert_eq!(by_key(&[0.0], ["a"].into_iter(), b"k"), None);
    }

    fn key_of(fields: &[&str], metadata: Value, body: &str, at: u64) -> Option<Vec<u8>> {
        let sticky =
            Sticky { enabled: true, hash_fields: fields.iter().map(|f| (*f).to_owned()).collect(), ttl_seconds: 100 };
        let metadata: Map<String, Value> = metadata.as_object().cloned().unwrap();
        let params = Fields::parse_object(body.as_bytes()).unwrap();
        let facts = RequestFacts { metadata: &metadata, params: &params, pathname: "/" };
        sticky_key(&sticky, b"scope", "config", &facts, at)
    }

    #[test]
    fn a_sticky_key_is_made_of_the_fields_that_are_there() {
        let one = |body: &str| key_of(&["metadata.user", "params.a.b", "params.l.1"], json!({ "user": "u" }), body, 0);
        assert_eq!(one(r#"{"a":{"b":1},"l":[1,2]}"#), one(r#"{"l":[9,2],"x":0,"a":{"c":5,"b":1}}"#));
        assert_ne!(one(r#"{"a":{"b":1}}"#), one(r#"{"a":{"b":2}}"#));
        assert_eq!(key_of(&["metadata.user"], json!({}), "{}", 0), None);
        assert_ne!(
            key_of(&["params.a"], json!({}), r#"{"a":1}"#, 0),
            key_of(&["params.a"], json!({}), r#"{"a":1}"#, 101)
        );
    }

    #[test]
    fn equal_prompts_share_a_prefix_whatever_is_asked_after_it() {
        let key = |body: &str| key_of(&["prompt_prefix"], json!({}), body, 0);
        let chat = |system: &str, user: &str| {
            key(&json!({ "messages": [{ "role": "system", "content": system }, { "role": "user", "content": user }] })
                .to_string())
        };
        assert_eq!(chat("s", "one"), chat("s", "two"));
        assert_ne!(chat("s", "one"), chat("t", "one"));
        assert_eq!(key(r#"{"system":"s","messages":[1]}"#), key(r#"{"messages":[2],"system":"s"}"#));
        assert_eq!(key(r#"{"messages":[{"role":"user","content":"x"}]}"#), None);
    }
}
