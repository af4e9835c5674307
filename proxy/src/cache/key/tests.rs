//! Which requests meet under one key: equal ones in any spelling, and no others.

use super::*;
use crate::cache::Cache;
use serde_json::json;

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"a"}],"stream":true}"#;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn digest(body: &str) -> BodyDigest {
    BodyDigest::of(body.as_bytes()).unwrap()
}

fn inputs<'k>(body: &str, metadata: &'k Map<String, Value>) -> KeyInputs<'k> {
    KeyInputs {
        tenant: Tenant::test(1, 1),
        endpoint: "/chat/completions",
        provider: "openai",
        address: ["api.openai.com", "/v1"],
        model: Some("m"),
        placed: &[],
        query: None,
        body: digest(body),
        asked: None,
        is_strict: true,
        hooks: &[],
        target: None,
        headers: &[],
        partition: Partition::Metadata(metadata),
    }
}

#[test]
fn a_key_that_is_remembered_is_the_same_and_its_workspaces_own() {
    let (cache, metadata) = (Cache::new(1 << 20), Map::new());
    for is_repeated in [false, true, true, false] {
        for tenant in [Tenant::test(1, 1), Tenant::test(1, 2)] {
            for body in [BODY, "{}"] {
                let inputs = KeyInputs { tenant, ..inputs(body, &metadata) };
                let text = KeyText::new(&inputs).unwrap();
                assert_eq!(Some(cache.key(&text, is_repeated)), key(&inputs));
            }
        }
    }
}

#[test]
fn equal_requests_meet_however_they_are_written_and_delivered() {
    let metadata = object(json!({ "b": 1, "a": "x" }));
    let first = key(&inputs(BODY, &metadata)).unwrap();
    for body in [
        r#"{"messages":[{"content":"a","role":"user"}],"model":"m"}"#,
        r#" {"stream":false, "model":"m" , "messages":[ {"role":"user","content":"a"} ] } "#,
        r#"{"model":"m","stream_options":{"include_usage":true},"messages":[{"role":"user","content":"a"}],"stream":true}"#,
    ] {
        assert_eq!(key(&inputs(body, &metadata)).unwrap(), first, "{body}");
    }
    let turned = object(json!({ "a": "x", "b": 1 }));
    assert_eq!(key(&inputs(BODY, &turned)).unwrap(), first);
}

/// Each differs from all others in one thing, be it only where one part ends and the next begins.
#[test]
fn requests_that_differ_in_anything_do_not_meet() {
    let (none, some) = (Map::new(), object(json!({ "a": "1" })));
    let other = object(json!({ "a": 1 }));
    let plain = || inputs(BODY, &none);
    let placed = [("region".to_owned(), "eu".to_owned())];
    let headers: [(&str, &[u8]); 1] = [("x-a", b"1")];
    let other_headers: [(&str, &[u8]); 1] = [("x-a1", b"")];
    let all = [
        plain(),
        KeyInputs { tenant: Tenant::test(1, 2), ..plain() },
        KeyInputs { endpoint: "/completions", ..plain() },
        KeyInputs { provider: "openai2", ..plain() },
        KeyInputs { address: ["api.openai.com/", "v1"], ..plain() },
        KeyInputs { address: ["api.example.com", "/v1"], ..plain() },
        KeyInputs { model: Some("m2"), ..plain() },
        KeyInputs { model: None, ..plain() },
        KeyInputs { placed: &placed, ..plain() },
        KeyInputs { query: Some(""), ..plain() },
        KeyInputs { query: Some("a=1"), ..plain() },
        KeyInputs { asked: Some(digest("{}")), ..plain() },
        KeyInputs { is_strict: false, ..plain() },
        KeyInputs { hooks: b"h", ..plain() },
        KeyInputs { partition: Partition::Metadata(&some), ..plain() },
        KeyInputs { partition: Partition::Metadata(&other), ..plain() },
        KeyInputs { target: Some("a"), ..plain() },
        KeyInputs { headers: &headers, ..plain() },
        KeyInputs { headers: &other_headers, ..plain() },
        KeyInputs { partition: Partition::Namespace(""), ..plain() },
        KeyInputs { partition: Partition::Namespace("{}"), ..plain() },
        KeyInputs { partition: Partition::Namespace(""), target: Some("a"), ..plain() },
        KeyInputs { partition: Partition::Namespace(""), headers: &headers, ..plain() },
        KeyInputs { body: digest(r#"{"model":"m","messages":[{"role":"user","content":"b"}]}"#), ..plain() },
        KeyInputs { body: digest(r#"{"model":"m","messages":[{"role":"user","content":"a"}],"seed":1}"#), ..plain() },
        KeyInputs { body: digest(r#"{"model":"m","messages":[{"role":"user","content":"a"},{}]}"#), ..plain() },
    ];
    let keys: Vec<CacheKey> = all.iter().map(|inputs| key(inputs).unwrap()).collect();
    for (place, one) in keys.iter().enumerate() {
        let same = keys.iter().position(|key| key == one);
        assert_eq!(same, Some(place), "{:?}", all[place]);
    }
}

#[test]
fn a_body_without_one_spelling_has_no_digest() {
    let deep = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
    for body in ["", "{", deep.as_str()] {
        assert_eq!(BodyDigest::of(body.as_bytes()), None);
    }
}

#[test]
fn a_namespace_takes_the_place_of_metadata() {
    let (none, some) = (Map::new(), object(json!({ "a": "1" })));
    let of = |metadata| KeyInputs { partition: Partition::Namespace("n"), ..inputs(BODY, metadata) };
    assert_eq!(key(&of(&none)), key(&of(&some)));
}
