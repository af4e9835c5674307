//! Bodies against schemas, as tables.

use super::*;
use serde_json::json;

fn is_secret(name: &str) -> bool {
    name == "key"
}

fn schema() -> Value {
    json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 5 },
            "role": { "type": ["string", "null"], "enum": ["member", "admin", null] },
            "key": { "type": ["string", "null"] },
            "limit": { "type": "number", "minimum": 1 },
            "count": { "type": "integer" },
            "on": { "anyOf": [{ "type": "integer", "enum": [0, 1] }, { "type": "boolean" }] },
            "rates": { "anyOf": [
                { "type": "array", "maxItems": 2, "items": {
                    "type": "object", "required": ["unit"], "properties": { "unit": { "type": "string", "enum": ["rpm"] } },
                    "additionalProperties": false } },
                { "type": "null" },
            ] },
            "tags": { "type": "object", "additionalProperties": { "type": "string" } },
            "settings": { "type": "object" },
            "account": { "type": "object", "properties": { "region": {} }, "x-prefixes": ["masked_"] },
        },
    })
}

/// `field: message` of each, those of unknown fields last.
fn said(body: &Value) -> Vec<String> {
    let checked = check(&schema(), body, is_secret);
    checked.faults.iter().chain(&checked.unknown).map(FieldFault::sentence).collect()
}

#[test]
fn what_fits_is_not_complained_about() {
    for body in [
        json!({ "name": "a" }),
        json!({ "name": "äöüßx", "role": null, "key": null, "limit": 1.5, "count": 7, "on": true, "rates": null }),
        json!({ "name": "a", "on": 1, "rates": [{ "unit": "rpm" }], "tags": { "any": "x" }, "settings": { "any": [1] } }),
        json!({ "name": "a", "limit": null, "tags": { "any": null }, "account": { "region": 1, "masked_key": "x" } }),
        json!({ "name": "a", "count": 7.0 }),
    ] {
        assert!(said(&body).is_empty(), "{body}: {:?}", said(&body));
    }
}

#[test]
fn each_fault_names_its_field_and_what_would_do() {
    for (body, expected) in [
        (json!({}), "name: is required"),
        (json!({ "name": null }), "name: must be a string"),
        (json!({ "name": 7 }), "name: must be a string"),
        (json!({ "name": "" }), "name: must have 1 to 5 characters"),
        (json!({ "name": "a", "role": "admn" }), "role: must be one of `member`, `admin`; did you mean `admin`?"),
        (json!({ "name": "a", "limit": "5" }), "limit: must be a number"),
        (json!({ "name": "a", "limit": 0.5 }), "limit: must be at least 1"),
        (json!({ "name": "a", "count": 1.5 }), "count: must be a whole number"),
        (json!({ "name": "a", "on": "yes" }), "on: must be a whole number or true or false"),
        (json!({ "name": "a", "on": 2 }), "on: must be one of `0`, `1`"),
        (json!({ "name": "a", "rates": {} }), "rates: must be a list"),
        (json!({ "name": "a", "rates": [{}] }), "rates[0].unit: is required"),
        (json!({ "name": "a", "rates": [{ "unit": "rps" }] }), "rates[0].unit: must be `rpm`"),
        (json!({ "name": "a", "tags": { "team": 1 } }), "tags.team: must be a string"),
        (json!({ "name": "a", "nmae": "a" }), "nmae: is not a field of this object; did you mean `name`?"),
        (json!({ "name": "a", "account": { "zone": 1 } }), "account.zone: is not a field of this object"),
    ] {
        assert_eq!(said(&body), [expected], "{body}");
    }
}

#[test]
fn all_faults_are_told_at_once_and_no_more_than_are_read() {
    let body = json!({ "name": 7, "role": "x", "limit": "5", "invented": 1, "rates": [{ "unit": "rpm", "x": 1 }] });
    let checked = check(&schema(), &body, is_secret);
    let fields: Vec<&str> = checked.faults.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(fields, ["name", "role", "limit", "rates[0].x"], "a closed object is strict with everybody");
    assert_eq!(checked.unknown.iter().map(|one| one.field.as_str()).collect::<Vec<_>>(), ["invented"]);
    let many: Map<String, Value> = (0..1000).map(|n| (format!("x{n}"), Value::Null)).collect();
    assert_eq!(check(&schema(), &Value::Object(many), is_secret).count(), MAX_FAULTS);
    let long = json!({ "name": "a", "x".repeat(1 << 20): 1 });
    assert!(check(&schema(), &long, is_secret).unknown[0].field.len() < 400);
}

#[test]
fn a_value_is_repeated_unless_it_could_be_a_secret() {
    let value = |body: Value| check(&schema(), &body, is_secret).faults[0].value.clone();
    assert_eq!(value(json!({ "name": "a", "role": "admn" })), Some(json!("admn")));
    assert_eq!(value(json!({ "name": 7 })), Some(json!(7)));
    assert_eq!(value(json!({ "name": "a", "key": 7 })), None);
    assert_eq!(value(json!({ "name": ["s3cret"] })), None);
    assert_eq!(value(json!({ "name": "a", "limit": "x".repeat(101) })), None);
    let unknown = check(&schema(), &json!({ "name": "a", "kye": "s3cret" }), is_secret).unknown;
    assert_eq!((unknown[0].nearest.as_deref(), &unknown[0].value), (Some("key"), &None));
}
