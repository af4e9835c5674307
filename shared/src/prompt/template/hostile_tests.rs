//! Ten thousand templates that want to hurt: nested deeper than anybody nests, partials in circles and in trees that grow
//! with every level, a megabyte of tags, delimiters that eat text. Each ends, within its bounds. Reproducible: a case is
//! made of its number alone.

use super::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// SplitMix64: as good as needed, and the same everywhere.
struct Source(u64);

impl Source {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }

    fn one<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const TAGS: &[&str] = &[
    "{{a}}",
    "{{{t}}}",
    "{{&o.a.b.c}}",
    "{{.}}",
    "{{#l}}",
    "{{/l}}",
    "{{^m}}",
    "{{/m}}",
    "{{#o}}",
    "{{/o}}",
    "{{>p0}}",
    "{{>p1}}",
    "\n  {{>p2}}\n",
    "\n\t{{>p3}}\n",
    "{{!",
    "}}",
    "{{",
    "{{=",
    "=}}",
    "{{=<% %>=}}",
    "<%={{ }}=%>",
    "<%a%>",
    "{{=}} {{=}}",
    "{{# a b }}",
    "\u{202e}",
    "\0",
    "\\",
    "\"",
    "\n",
    "\r\n",
    " ",
    "ü🦀",
    "{{>}}",
    "{{#}}",
    "{{a.}}",
    "{{..}}",
];

fn noise(source: &mut Source, most: usize) -> String {
    (0..source.below(most)).map(|_| source.one(TAGS)).collect()
}

/// Tags that are closed again, so that something is left to fill in.
fn balanced(source: &mut Source, depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..=source.below(3) {
        match source.below(6) {
            0 | 1 if depth > 0 => {
                let (name, sign) = (source.one(&["l", "o", "a", "m", "l.l"]), source.one(&["#", "^", "#"]));
                text += &format!("{{{{{sign}{name}}}}}{}{{{{/{name}}}}}", balanced(source, depth - 1));
            }
            2 => text += &format!("{}{{{{>p{}}}}}\n", source.one(&["x", "\n", "\n   "]), source.below(5)),
            _ => text += source.one(&["{{a}}", "{{t}}", "{{.}}", "{{o.a}}", "text\n", "{{l}}"]),
        }
    }
    text
}

/// A megabyte of one thing.
fn large(source: &mut Source) -> String {
    let piece = source.one(&[
        "{{a}}",
        "{{#l}}",
        "{{#l}}{{/l}}",
        "\n{{! }}\n",
        "{{>p0}}",
        "{{",
        "\n",
        "{{=<% %>=}}<%={{ }}=%>",
        "{{t}}",
    ]);
    piece.repeat(MAX_SIZE / piece.len())
}

fn case(number: u64) -> (String, BTreeMap<String, String>) {
    let mut source = Source(number);
    let source = &mut source;
    let text = match number % 500 {
        0 => large(source),
        1..=40 => {
            let depth = source.below(2000);
            "{{#l}}".repeat(depth) + "{{t}}" + &"{{/l}}".repeat(depth)
        }
        41..=200 => noise(source, 60),
        _ => balanced(source, 6),
    };
    let partials = (0..source.below(6)).map(|n| {
        let text = match source.below(5) {
            // Into each other, and into trees.
            0 => format!("{{{{>p{}}}}}", source.below(6)),
            1 => format!("{{{{>p{0}}}}}{{{{>p{0}}}}}\n  {{{{>p{0}}}}}\n", n + 1),
            2 => noise(source, 20),
            _ => balanced(source, 3),
        };
        (format!("p{n}"), text)
    });
    (text, partials.collect())
}

#[test]
fn ten_thousand_hostile_templates_end_within_their_bounds() {
    let values: Value = json!({
        "a": "\"\\\u{1}\u{2028}{{t}}", "t": "x".repeat(2000), "l": vec![json!({ "l": vec![1; 9], "a": [1, { "b": 2 }] }); 9],
        "o": { "a": { "b": { "c": "deep" } }, "l": [[[[1]]]] }, "m": null,
    });
    let (mut filled, mut refused) = (0, 0);
    for number in 0..10_000 {
        let (text, partials) = case(number);
        let Ok(template) = Template::parse(&text) else {
            refused += 1;
            continue;
        };
        let asked = template.components();
        assert!(asked.partials.len() <= text.len() / 5 + 1, "{number}");
        let partials: BTreeMap<String, Template> =
            partials.into_iter().filter_map(|(name, text)| Some((name, Template::parse(&text).ok()?))).collect();
        for escape in [Escape::Nothing, Escape::JsonText] {
            match render(&template, &values, &partials, escape) {
                Ok(text) => {
                    assert!(text.len() <= 4 << 20, "{number}: {} bytes", text.len());
                    filled += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(filled > 3000 && refused > 3000, "both must be tried: {filled} were filled in, {refused} refused");
}

impl Partials for BTreeMap<String, Template> {
    fn partial(&self, name: &str) -> Option<&Template> {
        self.get(name)
    }
}
