//! A call as a curl command that can be pasted into a shell. The key is a variable, and secrets are left out.

use crate::call::{Call, segment};
use crate::kinds;
use crate::secrets::{hidden_by_name, hidden_text, is_secret_name};
use serde_json::Value;

/// Stands in the place of a secret.
const HIDDEN: &str = "SECRET";

pub fn command(origin: &str, call: &Call) -> String {
    let shown = |(name, value): &(String, String)| {
        let value = if is_secret(call, name) { HIDDEN } else { value };
        format!("{}={}", segment(name), segment(value))
    };
    let query: Vec<String> = call.query.iter().map(shown).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let mut words = vec!["curl".to_owned(), "-sS".to_owned()];
    if call.method != "GET" {
        words.push(format!("-X {}", call.method));
    }
    words.push(quoted(&format!("{origin}/v1{}{query}", call.path)));
    words.push("-H \"x-gateway-api-key: $PORTCULLIS_API_KEY\"".to_owned());
    for (name, value) in &call.headers {
        words.push(format!("-H {}", quoted(&format!("{name}: {}", shown_header(name, value)))));
    }
    if let Some(body) = &call.body {
        words.push("-H 'content-type: application/json'".to_owned());
        // What stdin gave may be secret throughout.
        let body = if call.is_body_from_stdin { HIDDEN.to_owned() } else { shown_body(call, body).to_string() };
        words.push(format!("-d {}", quoted(&body)));
    }
    words.join(" ")
}

/// Within single quotes a shell reads everything as it stands, except their end.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A field of the query or the top of the body.
fn is_secret(call: &Call, name: &str) -> bool {
    call.hidden.contains(name) || kinds::SECRET_FIELDS.contains(&name) || is_secret_name(name)
}

fn shown_body(call: &Call, body: &Value) -> Value {
    match body {
        Value::Object(fields) => {
            let shown = |(name, value): (&String, &Value)| {
                let is_hidden = is_secret(call, name) && !value.is_null();
                (name.clone(), if is_hidden { HIDDEN.into() } else { hidden_by_name("", value, HIDDEN) })
            };
            Value::Object(fields.iter().map(shown).collect())
        }
        other => hidden_by_name("", other, HIDDEN),
    }
}

fn shown_header(name: &str, value: &str) -> String {
    if is_secret_name(name) {
        return HIDDEN.to_owned();
    }
    hidden_text(value, HIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::Method;
    use serde_json::json;

    #[test]
    fn a_shell_reads_the_call_as_it_is_meant_and_no_secret_is_shown() {
        let call = Call::new(Method::POST, "/integrations").query([("dry_run".into(), "true".into())]);
        let text = command("https://gw.test", &call.body(json!({ "name": "Ada's", "key": "sk-canary" })));
        assert_eq!(
            text,
            r#"curl -sS -X POST 'https://gw.test/v1/integrations?dry_run=true' -H "x-gateway-api-key: $PORTCULLIS_API_KEY" -H 'content-type: application/json' -d '{"name":"Ada'\''s","key":"SECRET"}'"#
        );
    }
    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        let body = json!({
            "name": "n", "note": "canary", "apiKey": "canary", "max_tokens": 5,
            "config": { "targets": [{ "provider": "openai", "api_key": "canary" }] },
            "checks": [{ "parameters": { "headers": { "X": "canary" } } }],
        });
        let mut call = Call::new(Method::POST, "/configs").query([("token".into(), "canary".into())]).body(body);
        call = call.header("Authorization", "Bearer canary").header("x-gateway-config", r#"{"api_key":"canary"}"#);
        call.hidden.insert("note".to_owned());
        let text = command("https://gw.test", &call);
        assert!(!text.contains("canary") && text.contains(r#""max_tokens":5"#), "{text}");
        call.is_body_from_stdin = true;
        assert!(command("https://gw.test", &call).ends_with("-d 'SECRET'"));
    }
}
