//! The changes a config asks for in a request's body: defaults where the caller says nothing, overrides, and fields
//! to drop, in that order of strength. A body without changes is passed on as the very bytes that came.

use super::Fields;
use super::splice::{push_key, without};
use bytes::Bytes;
use serde_json::{Map, Value};
use shared::config::{ParamPath, ParamStep};
use std::borrow::Cow;

/// Made once for each target, with values already written as JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edits {
    overrides: Vec<(String, String)>,
    defaults: Vec<(String, String)>,
    drops: Vec<ParamPath>,
}

impl Edits {
    pub fn new(
        overrides: Option<&Map<String, Value>>,
        defaults: Option<&Map<String, Value>>,
        drops: Vec<ParamPath>,
    ) -> Self {
        let written = |map: Option<&Map<String, Value>>| {
            map.into_iter().flatten().map(|(key, value)| (key.clone(), value.to_string())).collect()
        };
        Self { overrides: written(overrides), defaults: written(defaults), drops }
    }

    pub fn is_empty(&self) -> bool {
        self.overrides.is_empty() && self.defaults.is_empty() && self.drops.is_empty()
    }

    /// The model that the target insists on, as JSON.
    pub fn model(&self) -> Option<&str> {
        self.overrides.iter().find(|(key, _)| key == "model").map(|(_, value)| value.as_str())
    }

    /// The body with these changes; `model` is what the provider calls the model, when that differs from what stands
    /// in the body or the overrides.
    pub fn apply(&self, body: &Bytes, fields: &Fields<'_>, model: Option<&str>) -> Bytes {
        if self.is_empty() && model.is_none() {
            return body.clone();
        }
        let model = model.map(|name| Value::from(name).to_string());
        let overridden = |key: &str| match (key, &model) {
            ("model", Some(model)) => Some(model.as_str()),
            _ => self.overrides.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str()),
        };
        let mut out = Object { text: String::with_capacity(body.len() + self.growth()), is_empty: true };
        for (key, value) in fields.iter() {
            self.put(&mut out, key, overridden(key).unwrap_or(value));
        }
        let missing = |key: &str| fields.get(key).is_none();
        for (key, value) in self.overrides.iter().filter(|(key, _)| missing(key)) {
            self.put(&mut out, key, overridden(key).unwrap_or(value));
        }
        let is_set = |key: &str| !missing(key) || self.overrides.iter().any(|(name, _)| name == key);
        for (key, value) in self.defaults.iter().filter(|(key, _)| !is_set(key)) {
            self.put(&mut out, key, value);
        }
        out.finish()
    }

    /// Adds a field unless it is to be dropped, without the parts of it that are.
    fn put(&self, out: &mut Object, key: &str, value: &str) {
        let mut value = Cow::Borrowed(value);
        for path in &self.drops {
            let Some((ParamStep::Key(name), rest)) = path.steps().split_first() else { continue };
            if name != key {
                continue;
            }
            if rest.is_empty() {
                return;
            }
            value = Cow::Owned(without(&value, rest).into_owned());
        }
        out.push(key, &value);
    }

    fn growth(&self) -> usize {
        self.overrides.iter().chain(&self.defaults).map(|(key, value)| key.len() + value.len() + 4).sum::<usize>() + 64
    }
}

struct Object {
    text: String,
    is_empty: bool,
}

impl Object {
    fn push(&mut self, key: &str, value: &str) {
        self.text.push(if self.is_empty { '{' } else { ',' });
        self.is_empty = false;
        push_key(&mut self.text, key);
        self.text.push_str(value);
    }

    fn finish(mut self) -> Bytes {
        self.text.push_str(if self.is_empty { "{}" } else { "}" });
        Bytes::from(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn edited(body: &str, overrides: Value, defaults: Value, drops: &[&str], model: Option<&str>) -> String {
        let drops = drops.iter().map(|path| ParamPath::parse(path).unwrap()).collect();
        let edits = Edits::new(overrides.as_object(), defaults.as_object(), drops);
        let body = Bytes::copy_from_slice(body.as_bytes());
        let out = edits.apply(&body, &Fields::read(&body).unwrap(), model);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn drop_is_stronger_than_override_than_the_caller_than_default() {
        let body = r#"{"model":"m","temperature":0.70,"x":[1, 2]}"#;
        for (overrides, defaults, drops, model, expected) in [
            (json!({}), json!({}), &[][..], None, body),
            (json!({"temperature": 0}), json!({}), &[], None, r#"{"model":"m","temperature":0,"x":[1, 2]}"#),
            (json!({"n": 2}), json!({"n": 3}), &[], None, r#"{"model":"m","temperature":0.70,"x":[1, 2],"n":2}"#),
            (json!({}), json!({"temperature": 9}), &[], Some("m"), body),
            (json!({"x": 1}), json!({"y": 2}), &["x", "y", "z"], None, r#"{"model":"m","temperature":0.70}"#),
            (json!({}), json!({}), &["x[0]"], None, r#"{"model":"m","temperature":0.70,"x":[2]}"#),
            (json!({"model": "@s/a"}), json!({}), &[], Some("a"), r#"{"model":"a","temperature":0.70,"x":[1, 2]}"#),
            (json!({}), json!({}), &["model", "x", "temperature"], None, "{}"),
        ] {
            assert_eq!(edited(body, overrides.clone(), defaults, drops, model), expected, "{overrides} {drops:?}");
        }
        assert_eq!(edited("{}", json!({"model": "@s/a"}), json!({}), &[], Some("a")), r#"{"model":"a"}"#);
    }

    #[test]
    fn a_body_without_changes_is_the_same_memory() {
        let body = Bytes::from_static(br#" { "model" : "m" } "#);
        let out = Edits::default().apply(&body, &Fields::read(&body).unwrap(), None);
        assert_eq!(out.as_ptr(), body.as_ptr());
    }

    fn a_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-c\"\\\\é]{1,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_edited_text_means_what_editing_the_value_would(
            body in prop::collection::hash_map("[a-d]", a_value(), 0..5),
            overrides in prop::collection::hash_map("[a-e]", a_value(), 0..3),
            defaults in prop::collection::hash_map("[a-e]", a_value(), 0..3),
            drop in "[a-e]",
        ) {
            let body = Value::Object(body.into_iter().collect());
            let (overrides, defaults) = (Value::Object(overrides.into_iter().collect()), Value::Object(defaults.into_iter().collect()));
            let text = edited(&body.to_string(), overrides.clone(), defaults.clone(), &[&drop], None);
            let mut expected = defaults;
            for side in [&body, &overrides] {
                for (key, value) in side.as_object().unwrap() {
                    expected[key] = value.clone();
                }
            }
            expected.as_object_mut().unwrap().remove(&drop);
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        }
    }
}
