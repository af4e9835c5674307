//! The scan of JSON judges every text as a reader that builds values does, and finds the same members and items.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxy::wire::json;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;

fuzz_target!(|data: &[u8]| {
    let text = std::str::from_utf8(data).ok();
    let raw = text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    let is_deep = data.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() > 100;
    // The other reader has a limit of depth; ours needs none.
    assert!(is_deep || json::check(data).is_ok() == raw.is_some());
    let Some(text) = text else {
        assert!(json::check(data).is_err() && json::members(data).is_err());
        return;
    };
    if let Ok(members) = json::members(data) {
        assert!(json::check(data).is_ok());
        for member in &members {
            assert!(json::check(member.value.as_bytes()).is_ok());
        }
        // Of a name that comes twice, readers disagree about which counts.
        let names: Option<HashSet<_>> = members.iter().map(|member| member.name()).collect();
        if let (Some(names), Ok(Value::Object(object))) = (names, serde_json::from_str(text)) {
            assert_eq!(names.len(), object.len());
            assert!(object.keys().all(|name| names.contains(name.as_str())));
        }
    }
    if let Ok(items) = json::items(text) {
        assert!(json::check(data).is_ok());
        if let Ok(Value::Array(array)) = serde_json::from_str(text) {
            assert_eq!(items.len(), array.len());
        }
    }
});
