//! What holds for every check whose code is here, whatever it looks for: an empty, a foreign and a huge text are judged, the same
//! way twice, with an explanation or an error; bodies of no known form too; and `not` turns a verdict round and nothing else. The
//! tables of cases stand beside the checks.

use crate::guardrails::subject::testing::{said, subject};
use crate::guardrails::table::{Runs, TABLE};
use crate::guardrails::{Check, Subject, Verdict, compile};
use serde_json::{Map, Value, json};

/// Parameters with which a check runs. A new check needs a line.
fn parameters(id: &str) -> Value {
    match id.strip_prefix("default.").unwrap() {
        "regexMatch" => json!({ "rule": "é+|needle" }),
        "regexReplace" => json!({ "rule": "needle", "redactText": "-" }),
        "contains" => json!({ "words": ["needle", "é"], "operator": "any" }),
        "jsonSchema" => json!({ "schema": { "type": "object", "required": ["needle"] } }),
        "jsonKeys" => json!({ "keys": ["needle"], "operator": "any" }),
        "containsCode" => json!({ "format": "Rust" }),
        "endsWith" => json!({ "suffix": "é" }),
        "modelwhitelist" => json!({ "models": ["m"] }),
        "modelRules" => json!({ "rules": { "defaults": ["m"], "metadata": { "team": { "é": ["n"] } } } }),
        "allowedRequestTypes" => json!({ "allowedTypes": ["chatComplete"] }),
        "requiredMetadataKeys" => json!({ "metadataKeys": ["team"] }),
        "requiredMetadataKeyPairs" => json!({ "metadataPairs": { "team": "é" } }),
        "requestParametersCheck" => json!({ "params": { "blockedKeys": ["seed"] } }),
        "addPrefix" => json!({ "prefix": "é " }),
        "jwt" => json!({ "jwks": { "keys": [crate::identity::jwt::testing::signer().jwk()] } }),
        "sentenceCount" | "wordCount" | "characterCount" | "alluppercase" | "alllowercase" | "notNull" | "pii"
        | "secrets" => json!({}),
        other => panic!("there is no line for {other}"),
    }
}

fn here() -> Vec<(&'static str, bool)> {
    let here = TABLE.iter().filter(|spec| matches!(spec.runs, Runs::Here));
    here.map(|spec| (spec.id, spec.parameters.iter().any(|parameter| parameter.name == "not"))).collect()
}

/// The check on a request and on an answer of this text, and on metadata of it.
fn run_both(check: &dyn Check, text: &str) -> [Verdict; 2] {
    let request = json!({ "model": text, "messages": [{ "role": "user", "content": text }] });
    let answer = json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] });
    let metadata = Map::from_iter([("team".to_owned(), json!(text))]);
    [None, Some(&answer)].map(|answer| check.run(&Subject { metadata: &metadata, ..subject(&request, answer) }))
}

fn texts() -> [String; 6] {
    let huge = "a word, and é. ".repeat(1 << 16);
    let json = format!("{{\"needle\": \"{}\"}}", "日".repeat(1 << 16));
    [String::new(), " \u{a0}\n".into(), "é".into(), "e\u{301} 🙂 \u{202e}日本\0".into(), huge, json]
}

#[test]
fn every_text_is_judged_alike_each_time_with_an_explanation_or_an_error() {
    for (id, _) in here() {
        let check = compile(id, &parameters(id)).unwrap();
        for text in texts() {
            let (first, again) = (run_both(&*check, &text), run_both(&*check, &text));
            assert_eq!(first, again, "{id} {}", text.len());
            for verdict in first {
                let told = verdict.to_json();
                let is_told = match &verdict.error {
                    Some(error) => !error.message.is_empty() && !verdict.verdict,
                    None => told["data"]["explanation"].as_str().is_some_and(|why| !why.is_empty()),
                };
                assert!(is_told, "{id} {}: {verdict:?}", text.len());
            }
        }
    }
}

/// A client reads the explanation of what was denied, also of an answer that it does not get.
#[test]
fn no_explanation_repeats_what_was_judged() {
    const SAID: &str = "Zq7x-4821";
    let texts = [
        format!("a needle beside {SAID} é"),
        format!("{{\"needle\": \"{SAID}\", \"{SAID}\": 1}}"),
        format!("```rust\nfn f() {{ let a = \"{SAID}\"; }}\n```"),
        format!("sk-proj-{SAID} is the key of ada.{SAID}@mail.test"),
    ];
    for (id, _) in here() {
        let check = compile(id, &parameters(id)).unwrap();
        for text in &texts {
            let request = json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
            let answer = json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] });
            for verdict in [check.run(&subject(&request, None)), check.run(&subject(&request, Some(&answer)))] {
                let told = verdict.to_json();
                let explanation = told["data"]["explanation"].to_string();
                let error = verdict.error.map(|error| error.message).unwrap_or_default();
                assert!(!explanation.contains(SAID) && !error.contains(SAID), "{id}: {explanation} {error}");
            }
        }
    }
}

#[test]
fn a_body_of_no_known_form_is_judged_too() {
    let deep = (0..100).fold(json!("needle"), |inner, _| json!({ "content": [inner] }));
    for (id, _) in here() {
        let check = compile(id, &parameters(id)).unwrap();
        for body in [
            json!(null),
            json!(7),
            json!([]),
            json!("needle"),
            json!({}),
            json!({ "messages": null, "choices": null }),
            json!({ "messages": [null, 7, { "role": "user" }], "choices": [null, {}, { "message": 7 }] }),
            json!({ "messages": [{ "role": "user", "content": { "needle": 1 } }], "choices": [{ "message": { "content": {} } }] }),
            json!({ "messages": [deep], "choices": [{ "message": deep }] }),
        ] {
            for verdict in [check.run(&subject(&body, None)), check.run(&subject(&body, Some(&body)))] {
                assert!(verdict.error.is_some() || verdict.data.value()["explanation"].is_string(), "{id} {body}");
            }
        }
    }
}

#[test]
fn not_turns_a_verdict_round_and_nothing_else() {
    for (id, _) in here().into_iter().filter(|(_, can_turn)| *can_turn) {
        let mut turned = parameters(id);
        let check = compile(id, &turned).unwrap();
        turned["not"] = json!(true);
        let turned = compile(id, &turned).unwrap();
        for text in texts() {
            for (plain, turned) in run_both(&*check, &text).iter().zip(run_both(&*turned, &text)) {
                let expected = match (said(plain), said(&turned)) {
                    // Where there is no JSON, there is none that a schema does not fit either.
                    ("fail", "fail") if id == "default.jsonSchema" => continue,
                    ("pass", turned) => (turned, "fail"),
                    ("fail", turned) => (turned, "pass"),
                    (_, turned) => (turned, "error"),
                };
                assert_eq!(expected.0, expected.1, "{id} {}", text.len());
            }
        }
    }
}
