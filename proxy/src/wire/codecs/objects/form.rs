//! A body as a form (`multipart/form-data`), for vendors that take no JSON. The boundary comes from outside: only a random
//! one cannot stand in a text that a caller wrote.

use serde_json::Value;

/// The names are a codec's own; of the values, texts are written as they are.
pub fn written(body: &Value, boundary: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in body.as_object().into_iter().flatten() {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        for piece in ["--", boundary, "\r\nContent-Disposition: form-data; name=\"", name, "\"\r\n\r\n", &text, "\r\n"]
        {
            out.extend_from_slice(piece.as_bytes());
        }
    }
    for piece in ["--", boundary, "--\r\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_field_is_a_part() {
        let form = written(&json!({ "prompt": "a\r\nb \"c\"", "seed": 7 }), "B");
        let expected = "--B\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na\r\nb \"c\"\r\n\
                        --B\r\nContent-Disposition: form-data; name=\"seed\"\r\n\r\n7\r\n--B--\r\n";
        assert_eq!(String::from_utf8(form).unwrap(), expected);
    }
}
