//! Vendors whose interface is each customer's own: the address is stored with the credentials, and the check says where in an
//! answer the verdict stands.

use super::super::remote::RemoteAnswer;
use super::super::verdict::Verdict;
use super::reading::{Judged, Reading, found, is_set};
use serde_json::Value;

pub fn judged(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    let text = |name: &str| reading.parameters.get(name).and_then(Value::as_str);
    let words = |name: &str| -> Vec<String> {
        let words = reading.parameters.get(name).and_then(Value::as_array).into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_ascii_lowercase).collect()
    };
    let at = found(reading.json, text("verdictPath").unwrap_or_default());
    if at.is_empty() {
        return Err(RemoteAnswer::senseless("its verdict is missing").into());
    }
    let (passing, failing) = (words("passWhen"), words("failWhen"));
    let word = |value: &&Value| match value {
        Value::String(text) => text.to_ascii_lowercase(),
        other => other.to_string(),
    };
    let passes = match (passing.is_empty(), failing.is_empty()) {
        (false, _) => at.iter().all(|value| passing.contains(&word(value))),
        (true, false) => !at.iter().any(|value| failing.contains(&word(value))),
        // As most say it: true is fine.
        (true, true) => at.iter().all(|value| is_set(value)),
    };
    Ok(Judged { passes, data: reading.summary(), ..Judged::default() })
}
