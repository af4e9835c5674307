//! Prompts from their parts: versions, defaults, shapes of bodies, partials, and calls that are refused.

use super::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

struct Case {
    template: String,
    is_raw: bool,
    parameters: Value,
    partials: &'static [(&'static str, &'static str)],
    declared: Vec<DeclaredVariable>,
}

impl Case {
    fn messages(content: &str) -> Self {
        let template = json!([{ "role": "user", "content": content }]).to_string();
        Self { template, is_raw: false, parameters: json!({}), partials: &[], declared: Vec::new() }
    }

    fn rendered(&self, body: Value) -> Result<Value, RenderError> {
        let template = PromptBody::parse(&self.template, self.is_raw)?;
        let mut partials = PartialSet::default();
        for (name, text) in self.partials {
            partials.insert((*name).into(), text)?;
        }
        let parts = PromptParts {
            body: &template,
            parameters: self.parameters.as_object().unwrap(),
            model: Some("m"),
            functions: None,
            tools: None,
            tool_choice: None,
            declared: &self.declared,
        };
        render(&parts, RenderRequest::parse(object(body))?, &partials).map(Value::Object)
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn content(rendered: &Value) -> &str {
    rendered["messages"][0]["content"].as_str().unwrap_or_else(|| panic!("{rendered}"))
}

#[test]
fn versions_are_named_in_five_ways() {
    let id = "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11";
    for (written, expected) in [
        ("default", VersionName::Default),
        ("latest", VersionName::Latest),
        ("12", VersionName::Number(12)),
        ("99999999999", VersionName::Number(0)),
        ("staging", VersionName::Label("staging")),
        ("", VersionName::Label("")),
        (id, VersionName::Id(id.parse().unwrap())),
    ] {
        assert_eq!(VersionName::parse(written), expected, "{written}");
    }
    assert_eq!(split_reference("pp-a"), ("pp-a", None));
    assert_eq!(split_reference("pp-a@3"), ("pp-a", Some(VersionName::Number(3))));
}

#[test]
fn defaults_come_from_parameters_and_a_call_wins_over_them() {
    let case = Case {
        parameters: json!({ "name": "Ada", "tone": { "mood": "kind" }, "temperature": 0.5, "polite": true }),
        ..Case::messages("Hi {{name}}, {{tone.mood}}{{#polite}}, please{{/polite}}.")
    };
    for (body, text, temperature) in [
        (json!({}), "Hi Ada, kind, please.", json!(0.5)),
        (json!({ "variables": { "name": "Bob", "polite": false } }), "Hi Bob, kind.", json!(0.5)),
        (json!({ "temperature": 1, "promptID": "x" }), "Hi Ada, kind, please.", json!(1)),
        (json!({ "temperature": null, "variables": null }), "Hi Ada, kind, please.", json!(0.5)),
    ] {
        let rendered = case.rendered(body.clone()).unwrap();
        assert_eq!((content(&rendered), &rendered["temperature"]), (text, &temperature), "{body}");
        let fields: Vec<_> = rendered.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["temperature", "model", "messages"], "{body}");
    }
}

#[test]
fn a_text_a_raw_body_and_messages_in_sections_have_their_own_shapes() {
    let plain = Case { template: "Say {{x}}".into(), ..Case::messages("") };
    assert_eq!(plain.rendered(json!({ "variables": { "x": "\"a\"" } })).unwrap()["prompt"], "Say \"a\"");
    let instructions = Case { template: "[INST] {{x}} [/INST]".into(), ..Case::messages("") };
    assert_eq!(instructions.rendered(json!({})).unwrap()["prompt"], "[INST]  [/INST]");
    let raw = r#"{"messages":[{"role":"user","content":"{{x}}"}],"n":{{n}}}"#;
    let raw = Case { template: raw.into(), is_raw: true, ..Case::messages("") };
    let rendered = raw.rendered(json!({ "variables": { "x": "a\"b", "n": 2 } })).unwrap();
    assert_eq!((content(&rendered), &rendered["n"]), ("a\"b", &json!(2)));
    assert_eq!(raw.rendered(json!({})), Err(RenderError::NotJson), "a number is missing");
    let sections = r#"[{{#shots}}{"role":"user","content":"{{.}}"},{{/shots}}{"role":"user","content":"end"}]"#;
    let sections = Case { template: sections.into(), ..Case::messages("") };
    let rendered = sections.rendered(json!({ "variables": { "shots": ["a\n", "b"] } })).unwrap();
    let texts: Vec<_> = rendered["messages"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
    assert_eq!(texts, ["a\n", "b", "end"]);
}

#[test]
fn a_section_may_span_messages_and_a_tag_may_not() {
    let spanning = r#"[{"role":"user","content":"{{#yes}}a"},{"role":"user","content":"b{{/yes}}"}]"#;
    let spanning = Case { template: spanning.into(), ..Case::messages("") };
    let rendered = spanning.rendered(json!({ "variables": { "yes": true } })).unwrap();
    assert_eq!((content(&rendered), rendered["messages"].as_array().unwrap().len()), ("a", 2));
    let empty = json!([{ "role": "user", "content": "{{\r}}" }]).to_string();
    for template in [r#"[{"role":"user","content":"{{a"},{"role":"user","content":"b}}"}]"#, &empty] {
        assert!(PromptBody::parse(template, false).is_err(), "{template}");
    }
}

#[test]
fn partials_are_put_in_by_name_and_bring_their_variables() {
    let case = Case {
        partials: &[("tone", "Be \"{{mood}}\".\n{{>end}}"), ("end", "Bye."), ("tone@2", "two")],
        parameters: json!({ "mood": "kind" }),
        ..Case::messages("A: {{>tone}} {{>tone@2}}")
    };
    let rendered = case.rendered(json!({})).unwrap();
    assert_eq!(content(&rendered), "A: Be \"kind\".\nBye. two");
    assert!(rendered.get("mood").is_none(), "{rendered}");
    let lonely = Case { partials: &[("tone", "{{>end}}")], ..Case::messages("{{>tone}}") };
    assert!(matches!(lonely.rendered(json!({})), Err(RenderError::Template(_))));
    let circle = Case { partials: &[("a", "{{>b}}"), ("b", "{{>a}}")], ..Case::messages("{{>a}}") };
    assert!(matches!(circle.rendered(json!({})), Err(RenderError::Template(_))));
}

#[test]
fn missing_partials_are_listed_until_all_are_there() {
    let body = PromptBody::parse("{{>a}}", false).unwrap();
    let mut partials = PartialSet::default();
    let missing = |partials: &PartialSet| partials.missing(&body.components()).into_iter().collect::<Vec<_>>();
    assert_eq!(missing(&partials), ["a"]);
    partials.insert("a".into(), "{{>b}}{{>a}}").unwrap();
    assert_eq!(missing(&partials), ["b"]);
    partials.insert("b".into(), "").unwrap();
    assert!(missing(&partials).is_empty());
    for n in 2..100 {
        partials.insert(format!("p{n}"), "").unwrap();
    }
    assert_eq!(partials.insert("more".into(), ""), Err(RenderError::TooManyPartials));
}

#[test]
fn partials_that_name_more_than_can_be_used_are_refused() {
    let naming = |count: usize| (0..count).map(|n| format!("{{{{>p{n}}}}}")).collect::<String>();
    assert_eq!(PartialSet::default().insert("a".into(), &naming(100)), Ok(()));
    assert_eq!(PartialSet::default().insert("a".into(), &naming(101)), Err(RenderError::TooManyPartials));
    let mut partials = PartialSet::default();
    assert!(partials.has_room(4 << 20) && !partials.has_room((4 << 20) + 1));
    partials.insert("a".into(), "x").unwrap();
    assert!(!partials.has_room(4 << 20));
}

#[test]
fn a_call_must_be_of_the_form_that_is_documented() {
    for (body, error) in [
        (json!({ "variables": [] }), RenderError::Variables),
        (json!({ "hyperparameters": { "temperature": 1 } }), RenderError::Nested),
    ] {
        assert_eq!(RenderRequest::parse(object(body)), Err(error));
    }
}

#[test]
fn declared_variables_are_checked_with_their_default_values() {
    let declared = json!([
        { "name": "name", "type": "string", "required": true }, { "name": "count", "type": "integer" },
        { "name": "user.city", "type": "string", "required": true }, { "name": "unused", "type": "boolean" },
    ]);
    let case = Case {
        parameters: json!({ "user": { "city": "Oslo" }, "unused": true, "temperature": 1 }),
        declared: serde_json::from_value(declared).unwrap(),
        ..Case::messages("{{name}} {{count}} {{user.city}}")
    };
    let rendered = case.rendered(json!({ "variables": { "name": "Ada", "count": 2 } })).unwrap();
    assert_eq!(content(&rendered), "Ada 2 Oslo");
    assert!(rendered.get("unused").is_none(), "what is declared is nothing for the model: {rendered}");
    for (variables, named) in [
        (json!({}), "name"),
        (json!({ "name": null }), "name"),
        (json!({ "name": ["Ada"] }), "name"),
        (json!({ "name": "Ada", "count": "2" }), "count"),
        (json!({ "name": "Ada", "user": {} }), "user.city"),
        (json!({ "name": "Ada", "unused": 0 }), "unused"),
    ] {
        let refused = case.rendered(json!({ "variables": variables }));
        let Err(RenderError::Variable(fault)) = refused else { panic!("{variables}: {refused:?}") };
        assert_eq!(fault.name, named, "{variables}");
    }
    let free = Case { declared: Vec::new(), ..case };
    assert_eq!(content(&free.rendered(json!({})).unwrap()), "  Oslo", "nothing is checked unless it is declared");
}

/// Many small texts cost as much together as one large.
#[test]
fn the_texts_of_a_prompt_share_one_bound() {
    let text = "{{#l}}{{#l}}{{.}}{{/l}}{{/l}}";
    let messages: Vec<_> = (0..100).map(|_| json!({ "role": "user", "content": text })).collect();
    let case = Case { template: Value::Array(messages).to_string(), ..Case::messages("") };
    let rendered = case.rendered(json!({ "variables": { "l": vec![1; 200] } }));
    assert!(matches!(rendered, Err(RenderError::Template(_))), "{rendered:?}");
}

proptest! {
    #[test]
    fn a_value_stays_in_its_text(value: String) {
        let body = json!({ "variables": { "v": value } });
        for template in [r#"[{"role":"user","content":"<{{v}}>"}]"#, r#"[{{#v}}{{/v}}{"role":"user","content":"<{{v}}>"}]"#] {
            let case = Case { template: template.into(), ..Case::messages("") };
            let rendered = case.rendered(body.clone()).unwrap();
            let expected = format!("<{value}>");
            prop_assert_eq!(content(&rendered), expected.as_str());
            prop_assert_eq!(rendered["messages"].as_array().unwrap().len(), 1);
        }
    }
}
