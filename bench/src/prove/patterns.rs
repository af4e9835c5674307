//! Patterns and schemas that tenants could write to burn our time, each on a megabyte that its caller could write for it: every check
//! is over within 50 ms, or says that it gave up.

use super::report::Report;
use anyhow::Context;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use shared::guardrails::{Hook, Scope, Shape, Subject, Verdict, compile};
use std::time::{Duration, Instant};

const MAX_TIME: Duration = Duration::from_millis(50);
/// Of several runs the shortest counts: what the machine does beside is nobody's fault.
const RUNS: usize = 3;

/// Known ways to make readers of patterns take exponential or square time.
const RULES: &[&str] = &[
    "(a+)+$",
    "(a|a)*$",
    "(a|aa)+$",
    "(.*)*x",
    "(.*a){20}$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(x+x+)+y",
    "a{0,500}a{500}$",
    "([a-zA-Z]+)*@",
    "(?:a?){200}a{200}",
    "\\s*,\\s*$",
    ".{0,1000}(b|c).{0,1000}z",
    "(\\w+\\s?)*$",
    "[^x]*[^y]*[^z]*q",
];

pub fn prove(bytes: usize, report: &mut Report) -> anyhow::Result<()> {
    let bytes = bytes.max(64);
    let texts = [
        ("a", "a".repeat(bytes)),
        ("words", "word ".repeat(bytes / 5)),
        ("almost", format!("{}!", "aA0@.- ".repeat(bytes / 7))),
        ("braces", "{\"a\":".repeat(bytes / 5)),
        ("digits", "4111 1111 1111 111".repeat(bytes / 18)),
    ];
    let mut checks: Vec<(String, Value)> = Vec::new();
    for rule in RULES {
        checks.push(("regexMatch".into(), json!({ "rule": rule })));
        checks.push(("regexReplace".into(), json!({ "rule": format!("/{rule}/g") })));
    }
    for schema in [
        json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "patternProperties": { "(a+)+$": {} } }),
        json!({ "properties": { "a": { "$ref": "#" } }, "additionalProperties": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] } }),
    ] {
        checks.push(("jsonSchema".into(), json!({ "schema": schema })));
    }
    checks.push(("jsonKeys".into(), json!({ "keys": ["a"], "operator": "all" })));
    checks.push(("contains".into(), json!({ "words": ["aaaaaaaaab", "b"], "operator": "any" })));
    checks.extend(["pii", "secrets", "containsCode", "sentenceCount"].map(|id| (id.to_owned(), usual(id))));
    let (mut slowest, mut gave_up, mut refused) = ((Duration::ZERO, String::new()), 0, 0);
    for (id, parameters) in &checks {
        // One that is refused when it is saved costs nothing here.
        let Ok(check) = compile(id, parameters) else {
            refused += 1;
            continue;
        };
        for (name, text) in &texts {
            let mut shortest = Duration::MAX;
            let mut verdict = None;
            for _ in 0..RUNS {
                let began = Instant::now();
                verdict = Some(check.run(&subject(text, &Map::new(), &HeaderMap::new())));
                shortest = shortest.min(began.elapsed());
            }
            let verdict: Verdict = verdict.context("a check was never run")?;
            gave_up += usize::from(verdict.is_bound());
            if shortest > MAX_TIME {
                report.figure(
                    &format!("{id} {parameters} on {name}"),
                    format!("{:.1} ms", shortest.as_secs_f64() * 1000.0),
                );
            }
            if shortest > slowest.0 {
                slowest = (shortest, format!("{id} {parameters} on {name}"));
            }
        }
    }
    report.figure("checks × texts", (checks.len() - refused) * texts.len());
    report.figure("refused when they are written", refused);
    report.figure("gave up with an error", gave_up);
    report.figure(&format!("the slowest ({})", slowest.1), format!("{:.1} ms", slowest.0.as_secs_f64() * 1000.0));
    report.promise(
        &format!("every check on {bytes} bytes is over within {} ms", MAX_TIME.as_millis()),
        slowest.0 <= MAX_TIME,
    );
    Ok(())
}

fn usual(id: &str) -> Value {
    match id {
        "containsCode" => json!({ "format": "SQL" }),
        _ => json!({}),
    }
}

fn subject<'s>(text: &'s str, metadata: &'s Map<String, Value>, headers: &'s HeaderMap) -> Subject<'s> {
    Subject {
        hook: Hook::AfterRequest,
        shape: Shape::Chat,
        request_type: "chatComplete",
        request: &Value::Null,
        response: Some(&Value::Null),
        metadata,
        headers,
        now: 0,
        text: Some(text),
        is_growing: false,
        scope: Scope::Judged,
    }
}
