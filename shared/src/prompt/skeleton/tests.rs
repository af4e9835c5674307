//! A skeleton says what rendering says, or leaves it to rendering.

use super::*;
use crate::prompt::{DeclaredVariable, PartialSet, PromptBody, RenderRequest, render};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

struct Version {
    template: String,
    is_raw: bool,
    parameters: Value,
    declared: Vec<DeclaredVariable>,
}

impl Version {
    fn new(template: impl ToString) -> Self {
        let parameters = json!({ "temperature": 0.5, "tone": "\"kind\"\n", "user": "u" });
        Self { template: template.to_string(), is_raw: false, parameters, declared: Vec::new() }
    }

    /// The request by the skeleton, if it makes one, and by rendering.
    fn requests(&self, variables: &Value, overrides: &Value) -> (Option<Value>, Option<Value>) {
        let body = PromptBody::parse(&self.template, self.is_raw).unwrap();
        let tools = json!([{ "type": "function" }]);
        let parts = PromptParts {
            body: &body,
            parameters: self.parameters.as_object().unwrap(),
            model: Some("m"),
            functions: None,
            tools: Some(&tools),
            tool_choice: None,
            declared: &self.declared,
        };
        let mut sent = object(overrides);
        sent.insert("variables".into(), variables.clone());
        let rendered = render(&parts, RenderRequest::parse(sent).unwrap(), &PartialSet::default());
        let (variables, overrides) = (texts(variables), texts(overrides));
        let overrides: Vec<_> = overrides.into_iter().filter(|(_, _, value)| value != "null").collect();
        let call = WrittenCall { variables: fields(&variables), overrides: fields(&overrides) };
        let written = RequestSkeleton::new(&parts).and_then(|skeleton| skeleton.write(&call));
        let written = written.map(|text| serde_json::from_slice(&text).unwrap());
        (written, rendered.ok().map(Value::Object))
    }
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Name, key and value of each member, as they are written.
fn texts(value: &Value) -> Vec<(String, String, String)> {
    let members = object(value).into_iter();
    members.map(|(name, value)| (name.clone(), Value::from(name).to_string(), value.to_string())).collect()
}

fn fields(texts: &[(String, String, String)]) -> Vec<WrittenField<'_>> {
    texts.iter().map(|(name, key, value)| WrittenField { name: name.into(), key, value }).collect()
}

fn message(content: &str) -> Value {
    json!([{ "role": "system", "content": "Be \"brief\".\n" }, { "role": "user", "content": content, "n": [1, null] }])
}

#[test]
fn it_says_what_rendering_says() {
    let raw = json!({ "messages": message("{{a}}"), "temperature": 1, "stop": ["{{tone}}", {}] });
    let raw = Version { is_raw: true, ..Version::new(raw) };
    let raw_list = Version { is_raw: true, ..Version::new(message("{{a}} {{user}}")) };
    for version in [
        Version::new(message("Hi {{a}}, {{tone}}.\n{{&a}}{{{a}}}")),
        Version::new(message("no variables")),
        Version::new("Say \"{{a}}\"\n{{! nothing }}{{gone}} {{tone}}"),
        Version::new("[]"),
        raw,
        raw_list,
    ] {
        for variables in [
            json!({}),
            json!({ "a": "\"}],\"model\":\"x\"\\\u{1}\u{2028}🦀" }),
            json!({ "a": 12, "tone": null, "more": [1, { "x": "y" }] }),
            json!({ "a": -7, "tone": true }),
            json!({ "a": "", "a\"b": "c" }),
        ] {
            for overrides in [
                json!({}),
                json!({ "temperature": 0, "stream": true, "user": "me" }),
                json!({ "messages": [{ "role": "user", "content": "mine" }], "seed": null, "x\"\n": { "y": [1.50] } }),
                json!({ "model": "n", "prompt": "p", "tools": [] }),
            ] {
                let (written, rendered) = version.requests(&variables, &overrides);
                assert_eq!(written, rendered, "{} {variables} {overrides}", version.template);
                assert!(written.is_some(), "{} {variables} {overrides}", version.template);
            }
        }
    }
}

#[test]
fn fields_keep_their_places() {
    let (written, rendered) = Version::new(message("{{a}}")).requests(&json!({}), &json!({ "model": "n", "seed": 1 }));
    assert_eq!(written.unwrap().to_string(), rendered.unwrap().to_string());
}

#[test]
fn what_must_be_read_or_counted_is_left_to_rendering() {
    let declared = serde_json::from_value(json!([{ "name": "a" }])).unwrap();
    for version in [
        Version::new(message("{{#a}}x{{/a}}")),
        Version::new(message("{{^a}}x{{/a}}")),
        Version::new(message("{{a.b}}")),
        Version::new(message("{{.}}")),
        Version::new(message("{{>p}}")),
        Version::new(r#"[{{! }}{"role":"user","content":"{{a}}"}]"#),
        Version { is_raw: true, ..Version::new(r#"{"n":{{a}}}"#) },
        Version { is_raw: true, ..Version::new("7") },
        Version { declared, ..Version::new(message("{{a}}")) },
        Version::new("{{a}}".repeat(201)),
        Version::new("x".repeat(64 << 10)),
    ] {
        assert_eq!(version.requests(&json!({ "a": "1" }), &json!({})).0, None, "{:.80}", version.template);
    }
    let plain = Version::new(message("{{a}}"));
    for value in
        [json!([1]), json!({}), json!(0.5), json!(3.0), json!(1e300), json!(-0.0), json!(1_234_567_890_123_456_u64)]
    {
        assert_eq!(plain.requests(&json!({ "a": value }), &json!({})).0, None, "{value}");
    }
    let many = Version::new("{{a}}".repeat(200));
    assert!(many.requests(&json!({ "a": "x".repeat(1000) }), &json!({})).0.is_some());
    assert_eq!(many.requests(&json!({ "a": "x".repeat(2000) }), &json!({})).0, None, "too long to be written at once");
}

proptest! {
    #[test]
    fn no_value_leaves_its_text(
        texts in prop::collection::vec("[a-c\"\\\\\n {}]{0,6}", 1..4),
        value: String,
        default: String,
        number: i32,
    ) {
        let content: String = texts.iter().map(|text| format!("{}{{{{a}}}}{{{{n}}}}{{{{d}}}}", text.replace("{{", ""))).collect();
        let as_message = json!([{ "role": "user", "content": content }]).to_string();
        for template in [as_message, format!("-{content}")] {
            if PromptBody::parse(&template, false).is_err() {
                continue;
            }
            let version = Version { parameters: json!({ "d": default, "e": value }), ..Version::new(template) };
            let (written, rendered) = version.requests(&json!({ "a": value, "n": number }), &json!({ "o": value }));
            prop_assert!(written.is_some() || rendered.is_none());
            prop_assert_eq!(written, rendered);
        }
    }
}
