//! Usage that is no tokens: seconds of speech, and images by the piece.

use super::{Images, Usage};
use rust_decimal::Decimal;
use serde_json::Value;

/// What was spoken, as transcriptions are paid for.
pub fn seconds(usage: &Value) -> Usage {
    let said = usage.get("seconds").filter(|said| said.is_number()).map(Value::to_string);
    let seconds = said.and_then(|said| said.parse::<Decimal>().or_else(|_| Decimal::from_scientific(&said)).ok());
    let mut usage = Usage::default();
    if let Some(seconds) = seconds.filter(|seconds| *seconds > Decimal::ZERO) {
        usage.units.insert("audio_seconds".into(), seconds);
    }
    usage
}

/// No provider reports these: the gateway does, from what was asked for.
pub fn images(usage: &Value) -> Usage {
    let Some(images) = usage.get("images") else { return Usage::default() };
    let text = |key: &str| images.get(key).and_then(Value::as_str).unwrap_or("default").to_owned();
    let count = images.get("count").and_then(Value::as_u64).unwrap_or(0);
    let images = Images { quality: text("quality"), size: text("size"), count };
    Usage { images: (count > 0).then_some(images), ..Usage::default() }
}
