//! What of a request the audit trail keeps. A secret in the trail would outlive its rotation, so values are masked by
//! the name of their field, and headers are kept by name only unless they are known to be harmless.

use axum::http::{HeaderMap, Uri};
use serde_json::{Map, Value, json};

const MASK: &str = "*****";
/// Bodies beyond this are kept as their size: the trail is for reading.
const MAX_BODY: usize = 64 << 10;

static SHOWN_HEADERS: &[&str] = &[
    "accept",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-forwarded-for",
    "x-gateway-trace-id",
    "x-request-id",
];

/// Fields under which everything is secret, whatever it is called there.
static SECRET_OBJECTS: &[&str] =
    &["auth_config", "configurations", "credentials", "headers", "custom_headers", "secret_mappings", "env"];
/// Parts of names that mark a secret text.
static SECRET_PARTS: &[&str] = &[
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "credential",
    "authorization",
    "private",
    "cookie",
    "signature",
    "apikey",
    "accesskey",
    "awsexternalid",
    "serviceaccountjson",
];
/// Whole names, besides those that end in `_key`.
static SECRET_NAMES: &[&str] = &["key", "auth", "pat", "saml", "metadata_xml"];

pub fn headers(headers: &HeaderMap) -> Value {
    let shown =
        |name: &str, value: &str| if SHOWN_HEADERS.contains(&name) { value.to_owned() } else { MASK.to_owned() };
    let pairs = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (name.as_str().to_owned(), shown(name.as_str(), &value).into())
    });
    Value::Object(pairs.collect())
}

pub fn query(uri: &Uri) -> Value {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let pairs = pairs.map(|(name, value)| {
        let value = if is_secret(&name) { MASK.into() } else { without_nul(&value) };
        (without_nul(&name), Value::String(value))
    });
    Value::Object(pairs.collect())
}

/// None when there was no body.
pub fn body(body: &[u8]) -> Option<Value> {
    if body.is_empty() {
        return None;
    }
    if body.len() > MAX_BODY {
        return Some(json!({ "bytes": body.len() }));
    }
    // What is not JSON could be anything, a secret included.
    Some(serde_json::from_slice(body).map_or_else(|_| json!({ "bytes": body.len() }), masked))
}

/// The value with every secret replaced.
pub fn masked(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().map(masked_field).collect::<Map<_, _>>()),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::String(text) => Value::String(without_nul(&text)),
        other => other,
    }
}

fn masked_field((name, value): (String, Value)) -> (String, Value) {
    let is_hidden = SECRET_OBJECTS.contains(&name.as_str()) && !value.is_null();
    let value = match value {
        _ if is_hidden => MASK.into(),
        value if is_secret(&name) => without_texts(value),
        // Configs may be sent as text, with credentials inside.
        Value::String(text) if name == "config" => masked_text(text),
        other => masked(other),
    };
    (without_nul(&name), value)
}

/// A value under a secret's name: numbers and switches may stay, no text may, however deep it stands.
fn without_texts(value: Value) -> Value {
    match value {
        Value::String(_) => MASK.into(),
        Value::Array(items) => items.into_iter().map(without_texts).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (without_nul(&name), without_texts(value)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

/// JSON inside a text, masked as if it stood there itself. A text that is not JSON is a slug, if it is short.
fn masked_text(text: String) -> Value {
    match serde_json::from_str::<Value>(&text) {
        Ok(inner) => masked(inner),
        Err(_) if text.len() > 255 || text.contains(['{', '"']) => MASK.into(),
        Err(_) => Value::String(without_nul(&text)),
    }
}

/// Whether a field of this name holds a secret, or an object of them.
pub fn hides(name: &str) -> bool {
    is_secret(name) || SECRET_OBJECTS.contains(&name)
}

/// Whether a field of this name holds a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let compact = name.replace(['_', '-'], "");
    SECRET_NAMES.contains(&name.as_str())
        || name.ends_with("_key")
        || name.ends_with("-key")
        || SECRET_PARTS.iter().any(|part| compact.contains(part))
}

/// jsonb cannot hold NUL.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let sent = json!({
            "name": "n",
            "key": "s3cret",
            "api_key": "s3cret",
            "apiKey": "s3cret",
            "awsAccessKeyId": "s3cret",
            "aws_external_id": "s3cret",
            "vertexServiceAccountJson": { "type": "s3cret" },
            "client_secret": ["s3cret"],
            "password": { "nested": [{ "deep": "s3cret" }] },
            "auth_config": { "anything": "s3cret" },
            "nested": [{ "access_token": "s3cret", "scopes": ["workspace_user_api_keys.read"] }],
            "custom_headers": { "x": "s3cret" },
            "credentials": { "pin": 907_153 },
            "max_tokens": 5,
            "key_transition_period_ms": 1_800_000,
            "user_id": "u",
        });
        let kept = body(sent.to_string().as_bytes()).unwrap();
        assert!(!kept.to_string().contains("s3cret"), "{kept}");
        assert!(!kept.to_string().contains("907153"), "{kept}");
        assert_eq!(kept["nested"][0]["scopes"][0], "workspace_user_api_keys.read");
        assert_eq!((&kept["max_tokens"], &kept["user_id"], &kept["name"]), (&json!(5), &json!("u"), &json!("n")));
        assert_eq!(kept["key_transition_period_ms"], 1_800_000);
    }

    #[test]
    fn a_config_that_was_sent_as_text_is_masked_inside() {
        let text = json!({ "provider": "openai", "api_key": "s3cret" }).to_string();
        let kept = body(json!({ "config": text }).to_string().as_bytes()).unwrap();
        assert_eq!(kept, json!({ "config": { "provider": "openai", "api_key": MASK } }));
        let broken = body(json!({ "config": &text[1..] }).to_string().as_bytes()).unwrap();
        assert!(!broken.to_string().contains("s3cret"), "{broken}");
        assert_eq!(body(br#"{"config": "pc-1"}"#), Some(json!({ "config": "pc-1" })));
    }

    #[test]
    fn headers_are_named_and_only_harmless_values_are_kept() {
        let mut sent = HeaderMap::new();
        for (name, value) in [("authorization", "Bearer s3cret"), ("x-acme-api-key", "s3cret"), ("user-agent", "curl")]
        {
            sent.insert(name, value.parse().unwrap());
        }
        let kept = headers(&sent);
        assert!(!kept.to_string().contains("s3cret"), "{kept}");
        assert_eq!((&kept["user-agent"], &kept["authorization"]), (&json!("curl"), &json!(MASK)));
    }

    #[test]
    fn a_body_that_is_large_or_no_json_is_kept_as_its_size() {
        assert_eq!(body(b""), None);
        assert_eq!(body(b"s3cret"), Some(json!({ "bytes": 6 })));
        let large = format!("\"{}\"", "x".repeat(MAX_BODY));
        assert_eq!(body(large.as_bytes()), Some(json!({ "bytes": large.len() })));
        assert_eq!(body(b"{\"a\": \"\\u0000\"}"), Some(json!({ "a": "\u{fffd}" })));
    }

    #[test]
    fn a_query_is_kept_without_its_secrets() {
        let uri: Uri = "/v1/x?page_size=5&token=s3cret&search=%00".parse().unwrap();
        assert_eq!(query(&uri), json!({ "page_size": "5", "token": MASK, "search": "\u{fffd}" }));
    }
}
