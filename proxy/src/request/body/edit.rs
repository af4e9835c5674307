//! The changes a config asks for in a request's body: defaults where the caller says nothing, overrides, and fields
//! to drop, in that order of strength. A body without changes is passed on as the very bytes that came.

use super::Fields;
use super::splice::{Fate, Splicer, without};
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

    /// The names of the fields that are set whatever the caller says.
    pub fn overridden(&self) -> Vec<&str> {
        self.overrides.iter().map(|(key, _)| key.as_str()).collect()
    }

    /// The names of the fields that are set where the caller says nothing.
    pub fn defaulted(&self) -> Vec<&str> {
        self.defaults.iter().map(|(key, _)| key.as_str()).collect()
    }

    /// The paths to what is left out.
    pub fn dropped(&self) -> Vec<String> {
        self.drops.iter().map(ToString::to_string).collect()
    }

    /// Whether it is said here what becomes of this field where the caller does not send it.
    pub fn decide(&self, key: &str) -> bool {
        let is_dropped = |path: &ParamPath| matches!(path.steps(), [ParamStep::Key(name)] if name == key);
        self.overrides.iter().chain(&self.defaults).any(|(name, _)| name == key) || self.drops.iter().any(is_dropped)
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
        let mut out = Splicer::new(fields.text, self.growth());
        for (key, value, place) in fields.places() {
            out.member(place, self.fate(key, value, overridden(key)));
        }
        let missing = |key: &str| fields.get(key).is_none();
        for (key, value) in self.overrides.iter().filter(|(key, _)| missing(key)) {
            self.add(&mut out, key, overridden(key).unwrap_or(value));
        }
        let is_set = |key: &str| !missing(key) || self.overrides.iter().any(|(name, _)| name == key);
        for (key, value) in self.defaults.iter().filter(|(key, _)| !is_set(key)) {
            self.add(&mut out, key, value);
        }
        Bytes::from(out.finish())
    }

    /// Every field as `apply` would write it, without writing it.
    pub fn each_sent(&self, fields: &Fields<'_>, mut look: impl FnMut(&str, &[u8])) {
        let mut sent = |key: &str, value: &[u8], replacement: Option<&str>| match self.fate(key, value, replacement) {
            Fate::Keep => look(key, value),
            Fate::Replace(other) => look(key, &other),
            Fate::Drop => {}
        };
        let overridden =
            |key: &str| self.overrides.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        fields.each(|key, value| sent(key, value, overridden(key)));
        let missing = |key: &str| fields.get(key).is_none();
        for (key, value) in self.overrides.iter().filter(|(key, _)| missing(key)) {
            sent(key, value.as_bytes(), None);
        }
        let is_set = |key: &str| !missing(key) || overridden(key).is_some();
        for (key, value) in self.defaults.iter().filter(|(key, _)| !is_set(key)) {
            sent(key, value.as_bytes(), None);
        }
    }

    /// A field unless it is to be dropped, without the parts of it that are.
    fn add(&self, out: &mut Splicer<'_>, key: &str, value: &str) {
        match self.fate(key, value.as_bytes(), None) {
            Fate::Keep => out.add(key, value.as_bytes()),
            Fate::Replace(less) => out.add(key, &less),
            Fate::Drop => {}
        }
    }

    fn fate<'t>(&self, key: &str, value: &'t [u8], replacement: Option<&'t str>) -> Fate<'t> {
        let mut fate = replacement.map_or(Fate::Keep, |other| Fate::Replace(Cow::Borrowed(other.as_bytes())));
        for path in &self.drops {
            let Some((ParamStep::Key(name), rest)) = path.steps().split_first() else { continue };
            if name != key {
                continue;
            }
            if rest.is_empty() {
                return Fate::Drop;
            }
            let now = if let Fate::Replace(now) = &fate { now.as_ref() } else { value };
            if let Some(less) = without(now, rest) {
                fate = Fate::Replace(Cow::Owned(less));
            }
        }
        fate
    }

    fn growth(&self) -> usize {
        self.overrides.iter().chain(&self.defaults).map(|(key, value)| key.len() + value.len() + 4).sum::<usize>() + 64
    }
}

/// A body that names no model, with this one.
pub fn with_model(body: &Bytes, model: &str) -> Bytes {
    let Ok(fields) = Fields::parse_object(body) else { return body.clone() };
    let model = Value::from(model).to_string();
    let mut out = Splicer::new(fields.text, model.len() + 16);
    for (.., place) in fields.places() {
        out.member(place, Fate::Keep);
    }
    out.add("model", model.as_bytes());
    Bytes::from(out.finish())
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
        let out = edits.apply(&body, &Fields::parse_object(&body).unwrap(), model);
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
    fn a_model_is_added_behind_what_is_there() {
        for (body, expected) in [
            ("{}", r#"{"model":"m"}"#),
            (r#"{ "input" : [ 1.0 ] }"#, r#"{ "input" : [ 1.0 ],"model":"m" }"#),
            ("[", "["),
        ] {
            assert_eq!(with_model(&Bytes::copy_from_slice(body.as_bytes()), "m"), expected, "{body}");
        }
    }

    #[test]
    fn every_byte_that_no_change_is_asked_of_stays_as_it_was_written() {
        let body = "\n{ \"mod\\u0065l\" :\t\"m\" ,\r\n \"caf\\u00e9\":1.0e0,  \"x\" : { \"a\" : 1 , \"b\":2 } , \"y\":[ 1 , 2 ]\n} ";
        for (overrides, defaults, drops, from, to) in [
            (json!({"model": "n"}), json!({}), &[][..], "\"m\"", "\"n\""),
            (json!({}), json!({"café": 7}), &["nothing"], "", ""),
            (json!({}), json!({}), &["x.a"], " \"a\" : 1 , \"b\":2 ", " \"b\":2 "),
            (json!({}), json!({}), &["y[1]"], "[ 1 , 2 ]", "[ 1 ]"),
            (json!({"z": 0}), json!({}), &[], "[ 1 , 2 ]\n", "[ 1 , 2 ],\"z\":0\n"),
        ] {
            assert_eq!(edited(body, overrides, defaults, drops, None), body.replacen(from, to, 1), "{from} {to}");
        }
    }

    #[test]
    fn a_field_that_is_there_twice_is_changed_in_both_places() {
        let body = r#"{"n":1,"a":0,"n":2}"#;
        for (overrides, drops, expected) in [
            (json!({"n": 3}), &[][..], r#"{"n":3,"a":0,"n":3}"#),
            (json!({}), &["n"], r#"{"a":0}"#),
            (json!({"b": 1}), &[], r#"{"n":1,"a":0,"n":2,"b":1}"#),
        ] {
            assert_eq!(edited(body, overrides, json!({"n": 9}), drops, None), expected, "{drops:?}");
        }
    }

    #[test]
    fn a_body_without_changes_is_the_same_memory() {
        let body = Bytes::from_static(br#" { "model" : "m" } "#);
        let out = Edits::default().apply(&body, &Fields::parse_object(&body).unwrap(), None);
        assert_eq!(out.as_ptr(), body.as_ptr());
    }

    fn drop_into(sent: &mut Map<String, Value>, key: &str, value: &[u8]) {
        sent.insert(key.to_owned(), serde_json::from_slice(value).unwrap());
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
            let mut expected = defaults.clone();
            for side in [&body, &overrides] {
                for (key, value) in side.as_object().unwrap() {
                    expected[key] = value.clone();
                }
            }
            expected.as_object_mut().unwrap().remove(&drop);
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected.clone());
            let drops = vec![ParamPath::parse(&drop).unwrap()];
            let (mut sent, body) = (Map::new(), body.to_string());
            Edits::new(overrides.as_object(), defaults.as_object(), drops).each_sent(
                &Fields::parse_object(body.as_bytes()).unwrap(),
                |key, value| drop_into(&mut sent, key, value),
            );
            prop_assert_eq!(Value::Object(sent), expected);
        }
    }
}
