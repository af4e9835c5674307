//! Bodies that are read and bodies that are refused, and in which words.

use super::*;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only its reading is of interest")]
struct Body {
    name: String,
    limits: Option<Vec<Limit>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its reading is of interest")]
struct Limit {
    unit: Unit,
    value: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Rpm,
}

#[test]
fn an_error_names_the_field_and_never_the_value() {
    for (body, field, message) in [
        (json!({}), "name", "is required"),
        (json!({ "name": 7 }), "name", "must be a string"),
        (json!({ "name": ["s3cret"] }), "name", "must be a string"),
        (json!({ "name": "a", "limits": [["rpm", 1]] }), "limits[0]", "must be an object"),
        (json!({ "name": "a", "limits": { "unit": "rpm" } }), "limits", "must be a list"),
        (
            json!({ "name": "a", "limits": [{ "unit": "rpm", "value": "s3cret" }] }),
            "limits[0].value",
            "must be a whole number of at least 0",
        ),
        (json!({ "name": "a", "limits": [{ "unit": "s3cret", "value": 1 }] }), "limits[0].unit", "must be `rpm`"),
        (json!({ "name": "a", "limits": [{ "value": 1 }] }), "limits[0].unit", "is required"),
        (
            json!({ "name": "a", "limits": [{ "unit": "rpm", "value": 1, "x": 1 }] }),
            "limits[0].x",
            "is not a field of this object",
        ),
    ] {
        match parse::<Body>(body.clone()).unwrap_err() {
            ApiError::Invalid { field: Some(at), message: text } => {
                assert_eq!((at.as_str(), text.as_str()), (field, message), "{body}");
            }
            other => panic!("{body}: {other}"),
        }
    }
    assert!(parse::<Body>(json!({ "name": "a", "id": 1, "limits": null })).is_ok(), "other fields are ignored");
}

#[test]
fn what_is_read_directly_is_refused_in_the_same_words() {
    for body in [
        "",
        "{}",
        r#"{ "name": 7 }"#,
        r#"{ "name": ["s3cret"] }"#,
        r#"{ "name": "a", "limits": [{ "unit": "rpm", "value": "s3cret" }] }"#,
        r#"{ "name": "a", "limits": [{ "unit": "s3cret", "value": 1 }] }"#,
        r#"{ "name": "a", "limits": [{ "value": 1 }] }"#,
        r#"{ "name": "a", "limits": [{ "unit": "rpm", "value": 1, "x": 1 }] }"#,
        r#"["a", null]"#,
        "{",
        r#"{ "name": "a" } {}"#,
    ] {
        let by_tree = object(body.as_bytes()).and_then(|object| parse::<Body>(Value::Object(object))).unwrap_err();
        let directly = parse_bytes::<Body>(body.as_bytes()).unwrap_err();
        assert_eq!(directly.to_string(), by_tree.to_string(), "{body}");
    }
    assert!(parse_bytes::<Body>(br#" { "name": "a", "more": [1] } "#).is_ok());
}

#[test]
fn only_an_object_without_nuls_is_a_body() {
    for (body, accepted) in [
        ("", true),
        (" {} ", true),
        ("[]", false),
        ("null", false),
        ("{", false),
        ("{\"a\": \"\\u0000\"}", false),
        ("{\"a\": [1, {\"b\\u0000\": 1}]}", false),
        ("{\"a\": \"\\ud83d\"}", false),
        ("{\"a\": 1e999}", false),
    ] {
        assert_eq!(object(body.as_bytes()).is_ok(), accepted, "{body}");
    }
    let nul = object(br#"{"a": [1, {"b": "x\u0000"}]}"#).unwrap_err();
    assert!(nul.to_string().starts_with("a.[1].b"), "{nul}");
    assert!(object(&vec![b'['; 1 << 20]).is_err(), "deep nesting is refused, not followed");
}
