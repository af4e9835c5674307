//! The template language: values, sections, partials, delimiters, and hostile templates that end.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Partials for BTreeMap<&str, Template> {
    fn partial(&self, name: &str) -> Option<&Template> {
        self.get(name)
    }
}

fn filled(text: &str, values: &Value) -> Result<String, TemplateError> {
    with_partials(text, values, &[])
}

fn with_partials(text: &str, values: &Value, partials: &[(&'static str, &str)]) -> Result<String, TemplateError> {
    let partials: BTreeMap<_, _> =
        partials.iter().map(|(name, text)| (*name, Template::parse(text).unwrap())).collect();
    render(&Template::parse(text)?, values, &partials, Escape::Nothing)
}

#[test]
fn values_are_printed_and_never_escaped_for_html() {
    let values = json!({
        "name": "Ada & <Bob>", "n": 3, "float": 3.0, "half": 0.5, "yes": true, "none": null, "list": [1, "a"],
        "user": { "name": "U", "address": { "city": "Oslo" } }, "a b": "spaced",
    });
    for (text, printed) in [
        ("Hi {{name}}!", "Hi Ada & <Bob>!"),
        ("{{{name}}} {{& name }} {{  name\n}}", "Ada & <Bob> Ada & <Bob> Ada & <Bob>"),
        ("{{n}} {{float}} {{half}} {{yes}}", "3 3 0.5 true"),
        ("[{{none}}{{missing}}{{user.missing.deep}}{{name.length}}]", "[]"),
        ("{{user.name}} of {{user.address.city}}", "U of Oslo"),
        ("{{list}} {{user.address}}", r#"[1,"a"] {"city":"Oslo"}"#),
        ("{{a b}} {{.}}", r#"spaced "#),
        ("{{! a comment\nof lines }}x{{!}}", "x"),
        ("{ {n} } {{n}}}", "{ {n} } 3}"),
        ("", ""),
        ("no tags, ünïcode 🦀", "no tags, ünïcode 🦀"),
    ] {
        let printed = if text.ends_with("{{.}}") { format!("{printed}{values}") } else { printed.to_owned() };
        assert_eq!(filled(text, &values).as_deref(), Ok(printed.as_str()), "{text}");
    }
}

#[test]
fn sections_repeat_go_inside_or_vanish() {
    let values = json!({
        "list": [{ "n": 1 }, { "n": 2 }], "words": ["a", "b"], "empty": [], "no": false, "zero": 0, "text": "t", "blank": "",
        "user": { "name": "U", "inner": {} }, "name": "outer", "yes": true, "matrix": [[1, 2], [3]], "inner": { "c": "wrong" },
    });
    for (text, printed) in [
        ("{{#list}}{{n}},{{/list}}", "1,2,"),
        ("{{#words}}{{.}}{{/words}}", "ab"),
        ("{{#matrix}}{{#.}}{{.}}{{/.}};{{/matrix}}", "12;3;"),
        ("{{#user}}{{name}}{{/user}}{{name}}", "Uouter"),
        ("{{#user}}{{inner.c}}{{/user}}", ""),
        ("{{#yes}}{{name}}{{/yes}}", "outer"),
        ("{{#text}}<{{.}}>{{/text}}", "<t>"),
        ("{{#empty}}x{{/empty}}{{#no}}x{{/no}}{{#zero}}x{{/zero}}{{#blank}}x{{/blank}}{{#gone}}x{{/gone}}", ""),
        ("{{^empty}}1{{/empty}}{{^no}}2{{/no}}{{^zero}}3{{/zero}}{{^blank}}4{{/blank}}{{^gone}}5{{/gone}}", "12345"),
        ("{{^list}}x{{/list}}{{^yes}}x{{/yes}}{{^user}}x{{/user}}", ""),
        ("{{#user.name}}{{.}}{{/user.name}}", "U"),
        ("{{#list}}{{#list}}{{n}}{{/list}}{{/list}}", "1212"),
    ] {
        assert_eq!(filled(text, &values).as_deref(), Ok(printed), "{text}");
    }
}

#[test]
fn a_line_of_nothing_but_tags_vanishes() {
    let values = json!({ "yes": true, "list": [1, 2], "name": "N" });
    for (text, printed) in [
        ("a\n  {{#yes}}  \nb\n{{/yes}}\nc", "a\nb\nc"),
        ("a\r\n{{#yes}}\r\nb\r\n{{/yes}}\r\nc", "a\r\nb\r\nc"),
        ("  {{! comment }}\nx", "x"),
        ("{{#list}}\n- {{.}}\n{{/list}}\n", "- 1\n- 2\n"),
        (" {{#yes}}{{/yes}} \nx", "x"),
        ("  {{name}}\n", "  N\n"),
        ("a {{#yes}}b{{/yes}} c\n", "a b c\n"),
        ("{{=<% %>=}}\n<% name %> {{name}}\n<%={{ }}=%>\n{{name}}", "N {{name}}\nN"),
        ("<{{#yes}}\n>{{/yes}}", "<\n>"),
    ] {
        assert_eq!(filled(text, &values).as_deref(), Ok(printed), "{text:?}");
    }
}

#[test]
fn delimiters_can_be_changed() {
    let values = json!({ "x": "X" });
    for (text, printed) in
        [("{{=<% %>=}}<%x%>{{x}}", "X{{x}}"), ("{{= | | =}}|x||{x}|", "XX"), ("{{=[ ]=}}[#x][.][/x]", "X")]
    {
        assert_eq!(filled(text, &values).as_deref(), Ok(printed), "{text}");
    }
}

#[test]
fn partials_see_the_values_around_them_and_are_indented_with_their_line() {
    let partials =
        [("p", "{{x}}\n{{y}}\n"), ("inline", "[{{x}}]"), ("outer", "({{>inline}})"), ("gaps", "{{x}}\n\n{{y}}\n")];
    let values = json!({ "x": "1", "y": "2", "list": [{ "x": "a" }, { "x": "b" }] });
    for (text, printed) in [
        ("a {{>inline}} b", "a [1] b"),
        ("{{> outer }}", "([1])"),
        ("{{#list}}{{>inline}}{{/list}}", "[a][b]"),
        ("x\n  {{>p}}\ny", "x\n  1\n  2\ny"),
        ("  {{x}} {{>p}}", "  1 1\n2\n"),
        ("x\n  {{>gaps}}\ny", "x\n  1\n\n  2\ny"),
        ("\t{{>gaps}}", "\t1\n\n\t2\n"),
    ] {
        assert_eq!(with_partials(text, &values, &partials).as_deref(), Ok(printed), "{text:?}");
    }
}

#[test]
fn what_cannot_be_used_says_why() {
    let deep = "{{#a}}".repeat(33) + &"{{/a}}".repeat(33);
    let long = format!("x{{{{{}}}}}", "a".repeat(256));
    let long_partial = format!("{{{{> {}}}}}", "a".repeat(256));
    for (text, why) in [
        ("x {{name", TemplateError::OpenTag(2)),
        ("{{{name}}", TemplateError::OpenTag(0)),
        ("{{}}", TemplateError::NoName(0)),
        ("{{# }}", TemplateError::NoName(0)),
        ("{{#a}}", TemplateError::OpenSection("a".into())),
        ("{{/a}}", TemplateError::Unopened("a".into())),
        ("{{#a}}{{#b}}{{/a}}{{/b}}", TemplateError::Unopened("a".into())),
        ("{{=<%=}}", TemplateError::Delimiters(0)),
        ("{{=a b c=}}", TemplateError::Delimiters(0)),
        (deep.as_str(), TemplateError::TooDeep(32)),
        (long.as_str(), TemplateError::LongName(1)),
        (long_partial.as_str(), TemplateError::LongName(0)),
    ] {
        assert_eq!(Template::parse(text).err(), Some(why), "{text}");
    }
    let bounded = format!("{{{{ {} }}}}{{{{! {} }}}}", "a".repeat(255), "b".repeat(256));
    assert_eq!(filled(&bounded, &json!({})).as_deref(), Ok(""));
    assert_eq!(Template::parse(&"x".repeat(MAX_SIZE + 1)).err(), Some(TemplateError::TooLong));
    assert_eq!(filled("{{>gone}}", &json!({})), Err(TemplateError::NoPartial("gone".into())));
    let cycle = [("a", "{{>b}}"), ("b", "{{>a}}")];
    assert_eq!(with_partials("{{>a}}", &json!({}), &cycle), Err(TemplateError::Cycle("a".into())));
}

#[test]
fn hostile_templates_end() {
    let rows = json!({ "l": vec![1; 1000], "x": "y".repeat(1000) });
    let cubed = "{{#l}}{{#l}}{{#l}}{{.}}{{/l}}{{/l}}{{/l}}";
    assert_eq!(filled(cubed, &rows), Err(TemplateError::TooManySteps));
    let long = "{{#l}}{{#l}}{{x}}{{/l}}{{/l}}";
    assert_eq!(filled(long, &rows), Err(TemplateError::OutputTooLong(4 << 20)));
    let chain: Vec<String> = (0..12).map(|n| format!("{{{{>p{}}}}}", n + 1)).collect();
    let names = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11"];
    let partials: Vec<_> = names.iter().copied().zip(chain.iter().map(String::as_str)).collect();
    assert_eq!(with_partials("{{>p0}}", &json!({}), &partials), Err(TemplateError::PartialsTooDeep(10)));
    let lines = "\n".repeat(MAX_SIZE);
    assert_eq!(filled(&lines, &json!({})).map(|filled| filled.len()), Ok(MAX_SIZE));
    let names: String = (0..100_000).map(|n| format!("{{{{v{n}}}}}")).collect();
    assert_eq!(Template::parse(&names).unwrap().components().variables.len(), 100_000);
}

/// What is parsed again with its indentation is paid for with its indentation.
#[test]
fn an_indented_partial_costs_what_it_becomes() {
    let partials = [("p", "x\nx\nx\nx\nx\nx\nx\nx\nx\nx\n")];
    let text = |indentation: usize| format!("{}{{{{>p}}}}\n", " ".repeat(indentation)).repeat(2);
    assert!(with_partials(&text(20_000), &json!({}), &partials).is_ok());
    assert_eq!(with_partials(&text(30_000), &json!({}), &partials), Err(TemplateError::TooManySteps));
    assert_eq!(with_partials(&text(110_000), &json!({}), &partials), Err(TemplateError::TooLong));
}

#[test]
fn what_a_template_asks_for_is_listed() {
    let text = "{{a}}{{a}}{{b.c}}{{#s}}{{d}}{{#t}}{{e}}{{>q}}{{/t}}{{/s}}{{^i}}{{/i}}{{>p}}{{! no }}";
    let listed = serde_json::to_value(Template::parse(text).unwrap().components()).unwrap();
    let expected = json!({
        "partials": ["p", "q"], "sections": ["i", "s", "t"], "variables": ["a", "b.c"],
        "sectionVariables": { "i": [], "s": ["d"], "t": ["e"] }, "variablePartials": [],
    });
    assert_eq!(listed, expected);
}

/// Our backslash before a quote, behind one of the template's, would be an escaped backslash and a quote.
#[test]
fn a_backslash_before_a_tag_cannot_let_a_value_out() {
    for (text, value, expected) in [
        (r#"["\n{{v}}"]"#, "\"", Some(r#"["\n\""]"#)),
        (r#"["\\{{v}}"]"#, "n", Some(r#"["\\n"]"#)),
        (r#"["\{{v}}"]"#, "\"", None),
        (r#"["\\\{{v}}"]"#, "n", None),
        (r#"["\{{v}}","\{{v}}"]"#, "\",", None),
        (r#"["\{{#s}}{{v}}{{/s}}"]"#, "\"", None),
    ] {
        let values = json!({ "v": value, "s": true });
        let filled = render(&Template::parse(text).unwrap(), &values, &(), Escape::JsonText);
        let expected = expected.map(str::to_owned).ok_or_else(|| TemplateError::AfterBackslash("v".into()));
        assert_eq!(filled, expected, "{text}");
    }
    assert_eq!(filled(r"\{{v}}", &json!({ "v": "x" })).as_deref(), Ok(r"\x"), "a plain text has no such rule");
    let run = "\\".repeat(1000) + &"{{v}}".repeat(1000);
    let run = render(&Template::parse(&run).unwrap(), &json!({ "v": "" }), &(), Escape::JsonText);
    assert_eq!(run, Err(TemplateError::TooManySteps), "counting backslashes is paid for");
}

proptest! {
    #[test]
    fn a_value_cannot_leave_the_json_text_it_stands_in(value: String, before in "[a-z ]{0,8}") {
        let template = Template::parse(&json!([{ "role": "user", "content": format!("{before}{{{{v}}}}") }]).to_string());
        let values = json!({ "v": value });
        let filled = render(&template.unwrap(), &values, &(), Escape::JsonText).unwrap();
        let read: Value = serde_json::from_str(&filled).unwrap();
        prop_assert_eq!(read, json!([{ "role": "user", "content": format!("{before}{value}") }]));
    }

    #[test]
    fn no_text_and_no_values_make_it_panic(text in r"([{}#^/>&!=a-c. \n|]|\{\{|\}\}){0,60}", list: Vec<u8>) {
        let values = json!({ "a": list, "b": { "c": "x" }, "c": true });
        let _ = filled(&text, &values);
        if let Ok(template) = Template::parse(&text) {
            template.components();
        }
    }

    #[test]
    fn text_without_tags_stays_as_it_is(text in r"[^{]{0,200}") {
        prop_assert_eq!(filled(&text, &json!({})), Ok(text));
    }
}
