//! Which headers and parts of addresses carry secrets. A value under such a name is replaced as a whole.

use serde_json::{Map, Value};

const MASK: &str = "*****";

/// Parts of names under which secrets are sent; one that merely sounds like it costs a value, no more.
static TELLTALES: &[&str] = &["auth", "key", "token", "secret", "password", "cookie", "credential", "signature"];

pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLTALES.iter().any(|part| name.contains(part))
}

/// Headers with the values of secret ones replaced.
pub fn headers(headers: Map<String, Value>) -> Map<String, Value> {
    let masked = |(name, value): (String, Value)| if is_secret(&name) { (name, MASK.into()) } else { (name, value) };
    headers.into_iter().map(masked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_masked_by_their_headers_whatever_they_hold() {
        let sent = json!({ "Authorization": "a", "x-api-key": ["b"], "Set-Cookie": { "c": 1 }, "content-type": "d" });
        let kept = headers(sent.as_object().unwrap().clone());
        assert_eq!(
            Value::Object(kept),
            json!({ "Authorization": MASK, "x-api-key": MASK, "Set-Cookie": MASK, "content-type": "d" })
        );
    }
}
