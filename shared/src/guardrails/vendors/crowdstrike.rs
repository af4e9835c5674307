//! CrowdStrike's AIDR blocks, lets pass, or gives back the whole body changed.

use super::super::remote::RemoteAnswer;
use super::super::verdict::Verdict;
use super::reading::{Judged, Reading, is_set};
use serde_json::{Value, json};

pub fn judged(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    if reading.json.get("status").and_then(Value::as_str) != Some("Success") {
        return Err(RemoteAnswer::senseless("it is no success").into());
    }
    let result = reading.json.get("result").filter(|result| result.is_object());
    let Some(result) = result else { return Err(RemoteAnswer::senseless("its verdict is missing").into()) };
    let flag = |name: &str| result.get(name).is_some_and(is_set);
    let data = json!({ "policy": result.get("policy"), "detectors": result.get("detectors") });
    let transformed = match (flag("blocked"), flag("transformed")) {
        (false, true) => match result.get("guard_output").filter(|body| body.is_object()) {
            Some(body) => Some(body.clone()),
            None => return Err(RemoteAnswer::senseless("what it transforms is no object").into()),
        },
        _ => None,
    };
    Ok(Judged { passes: !flag("blocked"), data, redacted: Vec::new(), transformed })
}
