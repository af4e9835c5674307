//! The rules of the public Mustache specification that we keep, one by one and in our own examples; its own tests and
//! `mustache.js` are asked in `tests/clients/node`. What we leave out: HTML escaping, lambdas, inheritance, dynamic names;
//! partials that do not exist or contain themselves are errors here.

use super::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rule, template, values, what it becomes.
type Rule = (&'static str, &'static str, Value, &'static str);

fn check(rules: &[Rule], partials: &[(&str, &str)]) {
    let partials: BTreeMap<String, Template> =
        partials.iter().map(|(name, text)| ((*name).to_owned(), Template::parse(text).unwrap())).collect();
    for (rule, text, values, expected) in rules {
        let template = Template::parse(text).unwrap_or_else(|error| panic!("{rule}: {error}"));
        let filled = render(&template, values, &partials, Escape::Nothing);
        assert_eq!(filled.as_deref(), Ok(*expected), "{rule}: {text:?} of {values}");
    }
}

#[test]
fn interpolation() {
    check(
        &[
            ("text without tags stays", "plain { } text\n", json!({}), "plain { } text\n"),
            ("a name is looked up", "Dear {{who}},", json!({ "who": "Ada" }), "Dear Ada,"),
            ("what was put in is no template", "{{a}}", json!({ "a": "{{b}}", "b": "no" }), "{{b}}"),
            ("three braces are two here", "{{{v}}}|{{v}}", json!({ "v": "<&>" }), "<&>|<&>"),
            ("an ampersand too", "{{&v}} {{& v }}", json!({ "v": "\"" }), "\" \""),
            ("numbers are printed", "{{i}} {{f}} {{n}}", json!({ "i": 85, "f": 1.21, "n": -3 }), "85 1.21 -3"),
            ("null is nothing", "({{v}})({{{v}}})({{&v}})", json!({ "v": null }), "()()()"),
            ("what is missing is nothing", "({{v}})({{{v}}})({{&v}})", json!({}), "()()()"),
            ("dotted names go inside", "{{a.b}} {{{a.b}}} {{&a.b}}", json!({ "a": { "b": "x" } }), "x x x"),
            ("however deep", "{{a.b.c.d.e}}", json!({ "a": { "b": { "c": { "d": { "e": "x" } } } } }), "x"),
            ("a broken chain is nothing", "({{a.b.c}})", json!({ "a": {} }), "()"),
            (
                "a chain is not looked for elsewhere",
                "({{a.b.c}})",
                json!({ "a": { "b": {} }, "c": { "x": "no" } }),
                "()",
            ),
            (
                "the first part decides in the nearest section",
                "{{#a}}{{b.c}}{{/a}}",
                json!({ "a": { "b": {} }, "b": { "c": "no" } }),
                "",
            ),
            ("a first part may be further out", "{{#a}}{{b.c}}{{/a}}", json!({ "a": {}, "b": { "c": "x" } }), "x"),
            ("a dot is the value at hand", "{{#l}}({{.}}){{/l}}", json!({ "l": ["a", 1, 2.5] }), "(a)(1)(2.5)"),
            ("space around a variable stays", "| {{v}} |\n  {{v}}\n", json!({ "v": "x" }), "| x |\n  x\n"),
            ("space inside a tag does not count", "|{{  v  }}|{{{  v  }}}|{{&  v  }}|", json!({ "v": "x" }), "|x|x|x|"),
        ],
        &[],
    );
}

#[test]
fn sections() {
    check(
        &[
            ("true shows", "{{#b}}x{{/b}}", json!({ "b": true }), "x"),
            ("false hides", "({{#b}}x{{/b}})", json!({ "b": false }), "()"),
            ("null and missing hide", "({{#n}}x{{/n}}{{#m}}x{{/m}})", json!({ "n": null }), "()"),
            ("an object is gone into", "{{#o}}{{v}}{{/o}}", json!({ "o": { "v": "x" } }), "x"),
            ("names around it are seen", "{{#o}}{{a}}{{b}}{{/o}}", json!({ "a": 1, "b": 2, "o": { "b": 3 } }), "13"),
            (
                "sections in sections see all of them",
                "{{#a}}{{#b}}{{x}}{{y}}{{z}}{{/b}}{{/a}}",
                json!({ "x": 1, "a": { "y": 2 }, "b": { "z": 3 } }),
                "123",
            ),
            ("a list repeats", "{{#l}}{{v}}{{/l}}", json!({ "l": [{ "v": 1 }, { "v": 2 }] }), "12"),
            ("an empty list hides", "({{#l}}x{{/l}})", json!({ "l": [] }), "()"),
            ("lists in lists", "{{#l}}({{#.}}{{.}}{{/.}}){{/l}}", json!({ "l": [[1, 2], ["a"]] }), "(12)(a)"),
            ("lists of objects by a dot", "{{#l}}{{v}}{{/l}}", json!({ "l": [{ "v": "a" }] }), "a"),
            ("one name twice", "{{#b}}1{{/b}}-{{#b}}2{{/b}}", json!({ "b": true }), "1-2"),
            ("one inside itself", "|{{#b}}a{{#b}}b{{/b}}c{{/b}}|", json!({ "b": true }), "|abc|"),
            ("a dotted name", "{{#a.b}}x{{/a.b}}({{#a.c}}x{{/a.c}})", json!({ "a": { "b": true } }), "x()"),
            ("space inside the tags", "|{{# b }}x{{/ b }}|", json!({ "b": true }), "|x|"),
            ("space around stays in a line", " | {{#b}}\t|\t{{/b}} | \n", json!({ "b": true }), " | \t|\t | \n"),
            (
                "lines of their own vanish",
                "| This\n{{#b}}\n|\n{{/b}}\n| Line",
                json!({ "b": true }),
                "| This\n|\n| Line",
            ),
            ("indented ones too", "| This\n  {{#b}}\n|\n  {{/b}}\n| Line", json!({ "b": true }), "| This\n|\n| Line"),
            ("also before CRLF", "|\r\n{{#b}}\r\n{{/b}}\r\n|", json!({ "b": true }), "|\r\n|"),
            ("at the very beginning", "  {{#b}}\n#{{/b}}\n/", json!({ "b": true }), "#\n/"),
            ("and at the very end", "#{{#b}}\n/\n  {{/b}}", json!({ "b": true }), "#\n/\n"),
        ],
        &[],
    );
}

#[test]
fn inverted_sections() {
    check(
        &[
            ("false shows", "{{^b}}x{{/b}}", json!({ "b": false }), "x"),
            ("true hides", "({{^b}}x{{/b}})", json!({ "b": true }), "()"),
            (
                "null and missing show",
                "{{^n}}1{{/n}}{{^m}}2{{/m}}{{^a.b}}3{{/a.b}}",
                json!({ "n": null, "a": {} }),
                "123",
            ),
            ("an object hides", "({{^o}}x{{/o}})", json!({ "o": {} }), "()"),
            ("a list hides, an empty one shows", "({{^l}}x{{/l}}{{^e}}y{{/e}})", json!({ "l": [0], "e": [] }), "(y)"),
            ("one inside itself", "|{{^b}}a{{^b}}b{{/b}}c{{/b}}|", json!({}), "|abc|"),
            ("lines of their own vanish", "1\n{{^b}}\n2\n{{/b}}\n3", json!({}), "1\n2\n3"),
        ],
        &[],
    );
}

#[test]
fn comments_and_delimiters() {
    check(
        &[
            ("a comment is nothing", "12{{! note }}34", json!({}), "1234"),
            ("of several lines", "12{{!\n  note\n}}34\n", json!({}), "1234\n"),
            ("alone in its lines it takes them along", "a\n{{!\n note\n}}\nb", json!({}), "a\nb"),
            ("beside text it does not", "  12 {{! 34 }}\n", json!({}), "  12 \n"),
            ("a name in it is no name", "{{! v }}({{v}})", json!({ "! v": "no", "v": 1 }), "(1)"),
            ("delimiters change", "{{=<% %>=}}(<%v%>{{v}})", json!({ "v": "x" }), "(x{{v}})"),
            ("to one character", "({{=[ ]=}}[v])", json!({ "v": "x" }), "(x)"),
            ("and back", "{{=| |=}}|v||={{ }}=|{{v}}", json!({ "v": "x" }), "xx"),
            ("with space inside", "|{{= @   @ =}}|@v@", json!({ "v": "x" }), "||x"),
            ("sections go by those that hold", "{{#b}}{{=| |=}}|v||/b|", json!({ "b": true, "v": "x" }), "x"),
            ("alone in a line it vanishes", "a\n  {{=@ @=}}\nb", json!({}), "a\nb"),
        ],
        &[],
    );
}

#[test]
fn partials() {
    check(
        &[
            ("they are put in", "({{>text}})", json!({}), "(text)"),
            ("they see the values", "({{>value}})", json!({ "v": "x" }), "(x)"),
            ("of the section they stand in", "{{#l}}{{>value}}{{/l}}", json!({ "l": [{ "v": 1 }, { "v": 2 }] }), "12"),
            ("they may have others", "{{>nested}}", json!({ "v": "x" }), "<x>"),
            ("space around stays in a line", "| {{>tab}} |", json!({}), "| \t|\t |"),
            ("in a line they are not indented", "  {{v}}  {{>lines}}\n", json!({ "v": "|" }), "  |  >\n>\n"),
            ("alone in a line all lines are", "1\n {{>lines}}\n2", json!({}), "1\n >\n >2"),
            ("but not what is put into them", " {{>value}}\n", json!({ "v": "a\nb" }), " a\nb"),
            ("alone at the end", ">\n  {{>lines}}", json!({}), ">\n  >\n  >"),
            ("CRLF belongs to the line", "|\r\n{{>lines}}\r\n|", json!({}), "|\r\n>\n>|"),
            ("delimiters are not handed in", "{{=| |=}}(|>value|)", json!({ "v": "x" }), "(x)"),
            ("nor out", "({{>changing}}{{v}})", json!({ "v": "x" }), "(xx)"),
        ],
        &[
            ("text", "text"),
            ("value", "{{v}}"),
            ("nested", "<{{>value}}>"),
            ("tab", "\t|\t"),
            ("lines", ">\n>"),
            ("changing", "{{=| |=}}|v|"),
        ],
    );
}
