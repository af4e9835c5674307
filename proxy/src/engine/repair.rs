//! Repairs of a chat for a provider that does not take OpenAI's as it is (decision 75): parameters that its row excludes,
//! renames or bounds. A row without repairs, and a body that has none of these, stay as they are.

use crate::request::body::Fields;
use crate::request::body::edit::Edits;
use bytes::Bytes;
use serde_json::{Map, Value};
use shared::config::ParamPath;
use shared::providers::Repairs;

/// The mended body, and the names of what was left out of it.
pub(crate) fn repaired(body: &Bytes, repairs: &Repairs) -> (Bytes, Vec<String>) {
    let mut dropped = Vec::new();
    let Ok(fields) = Fields::parse_object(body) else { return (body.clone(), dropped) };
    let mut overrides = Map::new();
    let mut drops: Vec<&str> = Vec::new();
    for name in &repairs.excluded {
        if fields.get(name).is_some() {
            drops.push(name);
            dropped.push(name.clone());
        }
    }
    for (name, (least, most)) in &repairs.clamped {
        if let Some(number) = fields.value(name).and_then(|value| value.as_f64())
            && !(*least..=*most).contains(&number)
        {
            overrides.insert(name.clone(), number.clamp(*least, *most).into());
        }
    }
    for (name, words) in &repairs.words {
        if let Some(word) = fields.text(name).and_then(|word| words.get(&*word)) {
            overrides.insert(name.clone(), word.as_str().into());
        }
    }
    for (name, other) in &repairs.renamed {
        if let Some(value) = fields.get(name) {
            drops.push(name);
            let value = overrides.remove(name).or_else(|| serde_json::from_str::<Value>(value).ok());
            overrides.extend(value.map(|value| (other.clone(), value)));
        }
    }
    let drops = drops.into_iter().filter_map(ParamPath::parse).collect();
    (Edits::new(Some(&overrides), None, drops).apply(body, &fields, None), dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repairs() -> Repairs {
        let row = r#"{ "excluded": ["user"], "renamed": { "seed": "random_seed" }, "clamped": { "temperature": [0.0, 1.0] },
                       "words": { "tool_choice": { "required": "any" } } }"#;
        serde_json::from_str(row).unwrap()
    }

    #[test]
    fn only_what_the_row_names_is_changed() {
        for (body, expected, named) in [
            (r#"{"model":"m", "x":1}"#, r#"{"model":"m", "x":1}"#, &[][..]),
            (r#"{"temperature":0.5,"tool_choice":"auto"}"#, r#"{"temperature":0.5,"tool_choice":"auto"}"#, &[]),
            (r#"{"user":"u","x" : 1}"#, r#"{"x" : 1}"#, &["user"]),
            (r#"{"seed":7}"#, r#"{"random_seed":7}"#, &[]),
            (r#"{"temperature":2}"#, r#"{"temperature":1.0}"#, &[]),
            (r#"{"tool_choice":"required"}"#, r#"{"tool_choice":"any"}"#, &[]),
            (r#"{"tool_choice":{"type":"function"}}"#, r#"{"tool_choice":{"type":"function"}}"#, &[]),
            ("no JSON", "no JSON", &[]),
        ] {
            let (mended, dropped) = repaired(&Bytes::from_static(body.as_bytes()), &repairs());
            assert_eq!(
                (&*mended, &*dropped),
                (expected.as_bytes(), &named.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..]),
                "{body}"
            );
        }
    }
}
