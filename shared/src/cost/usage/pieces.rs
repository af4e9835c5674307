//! Usage that is no tokens: seconds of speech, and images by the piece.

use super::words::Words;
use super::{Images, Usage};
use rust_decimal::Decimal;

/// What was spoken, as transcriptions are paid for.
pub fn seconds(usage: &Words<'_>) -> Usage {
    let said = match usage.get("seconds") {
        Some(Words::Count(whole)) => Some(Decimal::from(*whole)),
        // The shortest text of a float is the one its author wrote.
        Some(Words::Number(said)) => said.to_string().parse().ok(),
        _ => None,
    };
    let mut usage = Usage::default();
    if let Some(seconds) = said.filter(|seconds| *seconds > Decimal::ZERO) {
        usage.units.insert("audio_seconds".into(), seconds);
    }
    usage
}

/// No provider reports these: the gateway does, from what was asked for.
pub fn images(usage: &Words<'_>) -> Usage {
    let Some(images) = usage.get("images") else { return Usage::default() };
    let text = |key: &str| images.get(key).and_then(Words::text).unwrap_or("default").to_owned();
    let count = images.get("count").and_then(Words::count).unwrap_or(0);
    let images = Images { quality: text("quality"), size: text("size"), count };
    Usage { images: (count > 0).then_some(images), ..Usage::default() }
}
