//! Any template ends within its bounds, whatever it is filled in with, no value leaves the message that it is put in, and
//! a request that is written from a skeleton is byte for byte the one that rendering makes.
//! The template, then a line `---`, then its values as JSON (or a text that is one value).
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use shared::prompt::{
    self, PartialSet, PromptBody, PromptParts, RenderRequest, RequestSkeleton, WrittenCall, WrittenField,
};
use shared::prompt::template::{Escape, Partials, RenderBudget, Template, render};

/// The template itself, and one of its values as a template: circles, and tags from strangers.
struct Both {
    own: Option<Template>,
    value: Option<Template>,
}

impl Partials for Both {
    fn partial(&self, name: &str) -> Option<&Template> {
        if name == "own" { self.own.as_ref() } else { self.value.as_ref() }
    }
}

const MAX_SIZE: usize = 4 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (template, value) = text.split_once("\n---\n").unwrap_or((text, "x"));
    let values = match serde_json::from_str::<Value>(value) {
        Ok(values @ Value::Object(_)) => values,
        _ => json!({ "a": value, "b": [value, { "a": value }, [value]], "c": true, "o": { "a": value } }),
    };
    let partials = Both { own: Template::parse(template).ok(), value: Template::parse(value).ok() };
    if let Some(parsed) = &partials.own {
        let asked = parsed.components();
        assert!(asked.variables.iter().all(|name| !name.is_empty()));
        for escape in [Escape::Nothing, Escape::JsonText] {
            if let Ok(filled) = render(parsed, &values, &partials, escape) {
                assert!(filled.len() <= MAX_SIZE);
            }
        }
    }
    stays_in_its_message(template, &values);
    is_one_value(value);
    is_written_as_it_is_rendered(template, &values);
    for is_raw in [false, true] {
        if let Ok(body) = PromptBody::parse(template, is_raw) {
            let _ = body.fill(&values, &partials, &mut RenderBudget::default());
        }
    }
});

/// Without partials: they are written by whoever wrote the prompt, and may be JSON.
fn stays_in_its_message(template: &str, values: &Value) {
    let messages = json!([{ "role": "user", "content": template }, { "role": "assistant", "content": "end" }]);
    let Ok(body) = PromptBody::parse(&messages.to_string(), false) else { return };
    let Ok(filled) = body.fill(values, &(), &mut RenderBudget::default()) else { return };
    let messages = filled["messages"].as_array().expect("messages stay a list");
    assert_eq!(messages.len(), 2);
    assert!(messages.iter().all(|message| message.as_object().is_some_and(|fields| fields.len() == 2)));
    assert_eq!((&messages[0]["role"], &messages[1]["content"]), (&json!("user"), &json!("end")));
}

/// Where the template becomes JSON only when it is filled in, a value is escaped.
fn is_one_value(value: &str) {
    const OPEN: &str = r#"[{{#c}}{{/c}}{"role":"user","content":"<{{a}}>"},{"role":"{{a}}","content":"\\{{a}}"}]"#;
    let body = PromptBody::parse(OPEN, false).expect("it is well formed");
    let filled = body
        .fill(&json!({ "a": value, "c": true }), &(), &mut RenderBudget::default())
        .expect("a value is never too much");
    let expected = json!([
        { "role": "user", "content": format!("<{value}>") }, { "role": value, "content": format!("\\{value}") },
    ]);
    assert_eq!(filled["messages"], expected);
}

fn is_written_as_it_is_rendered(template: &str, values: &Value) {
    let Some(variables) = values.as_object() else { return };
    let texts = variables.iter().map(|(name, value)| (name, Value::from(name.as_str()).to_string(), value.to_string()));
    let texts: Vec<_> = texts.collect();
    let fields = texts.iter().map(|(name, key, value)| WrittenField { name: name.as_str().into(), key, value });
    let call = WrittenCall { variables: fields.collect(), overrides: Vec::new() };
    let parameters =
        Map::from_iter([("temperature".to_owned(), json!(0.5)), ("d".to_owned(), json!("\"by default\\"))]);
    let message = json!([{ "role": "user", "content": template }]).to_string();
    for (text, is_raw) in [(template, false), (message.as_str(), false), (template, true)] {
        let Ok(body) = PromptBody::parse(text, is_raw) else { continue };
        let parts = PromptParts {
            body: &body,
            parameters: &parameters,
            model: Some("m"),
            functions: None,
            tools: None,
            tool_choice: None,
            declared: &[],
        };
        let Some(written) = RequestSkeleton::new(&parts).and_then(|skeleton| skeleton.write(&call)) else { continue };
        let request = RenderRequest { variables: variables.clone(), overrides: Map::new() };
        let rendered =
            prompt::render(&parts, request, &PartialSet::default()).expect("what is written can be rendered");
        assert_eq!(String::from_utf8(written).as_deref(), Ok(Value::Object(rendered).to_string().as_str()));
    }
}
