//! A call as a curl command that can be pasted into a shell. The key is a variable, and secrets of the body are left out.

use crate::call::{Call, segment};
use crate::kinds;
use serde_json::Value;

pub fn command(origin: &str, call: &Call) -> String {
    let query: Vec<String> =
        call.query.iter().map(|(name, value)| format!("{}={}", segment(name), segment(value))).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let mut words = vec!["curl".to_owned(), "-sS".to_owned()];
    if call.method != "GET" {
        words.push(format!("-X {}", call.method));
    }
    words.push(quoted(&format!("{origin}/v1{}{query}", call.path)));
    words.push("-H \"x-gateway-api-key: $PORTCULLIS_API_KEY\"".to_owned());
    for (name, value) in &call.headers {
        words.push(format!("-H {}", quoted(&format!("{name}: {value}"))));
    }
    if let Some(body) = &call.body {
        words.push("-H 'content-type: application/json'".to_owned());
        words.push(format!("-d {}", quoted(&without_secrets(body).to_string())));
    }
    words.join(" ")
}

/// Within single quotes a shell reads everything as it stands, except their end.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn without_secrets(body: &Value) -> Value {
    let mut body = body.clone();
    for (name, value) in body.as_object_mut().into_iter().flatten() {
        if kinds::SECRET_FIELDS.contains(&name.as_str()) && !value.is_null() {
            *value = Value::from("SECRET");
        }
    }
    body
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
}
