//! Azure's content safety says how severe each kind of harm is; the check says from where on it is too much.

use super::super::verdict::Verdict;
use super::reading::{Judged, Reading, found, is_set};
use serde_json::Value;

const USUAL: f64 = 2.0;

pub fn severities(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    reading.needed("/categoriesAnalysis")?;
    let limit = reading.parameters.get("severity").and_then(Value::as_f64).unwrap_or(USUAL);
    let severe = found(reading.json, "/categoriesAnalysis/*/severity");
    let is_severe = severe.into_iter().any(|severity| severity.as_f64().is_some_and(|severity| severity >= limit));
    let is_listed = found(reading.json, "/blocklistsMatch").into_iter().any(is_set);
    Ok(Judged { passes: !is_severe && !is_listed, data: reading.summary(), ..Judged::default() })
}
