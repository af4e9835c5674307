//! Usage that is no tokens: seconds of speech and video, images and pages by the piece, characters, searches. Where the
//! provider does not report it, the gateway does, from what was asked for, in the same form.

use super::words::Words;
use super::{Images, RESOLUTIONS, Usage};
use rust_decimal::Decimal;

/// The key of a report, and the unit that price lists have for it.
pub const UNITS: [(&str, &str); 5] = [
    ("seconds", "audio_seconds"),
    ("characters", "characters"),
    ("searches", "search"),
    ("pages_processed", "pages"),
    ("pages_processed_annotation", "annotated_pages"),
];

/// Longest name of a resolution.
const MAX_RESOLUTION: usize = 16;

pub fn usage_of(words: &Words<'_>) -> Usage {
    let mut usage = Usage { images: images(words), ..Usage::default() };
    for (key, unit) in UNITS {
        if let Some(amount) = words.get(key).and_then(amount) {
            usage.put_unit(unit.to_owned(), amount);
        }
    }
    if let Some(video) = words.get("video")
        && let Some(seconds) = video.get("seconds").and_then(amount)
    {
        let resolution = video.get("resolution").and_then(Words::text);
        let unit = match resolution.filter(|text| (1..=MAX_RESOLUTION).contains(&text.len())) {
            Some(resolution) => format!("{RESOLUTIONS}{resolution}"),
            None => "video_seconds".to_owned(),
        };
        usage.put_unit(unit, seconds);
    }
    usage
}

/// An amount above 0.
fn amount(written: &Words<'_>) -> Option<Decimal> {
    let amount = match written {
        Words::Count(whole) => Some(Decimal::from(*whole)),
        // The shortest text of a float is the one its author wrote.
        Words::Number(number) => number.to_string().parse().ok(),
        _ => None,
    };
    amount.filter(|amount| *amount > Decimal::ZERO)
}

fn images(words: &Words<'_>) -> Option<Images> {
    let images = words.get("images")?;
    let text = |key: &str| images.get(key).and_then(Words::text).unwrap_or("default").to_owned();
    let count = images.get("count").and_then(Words::count).filter(|count| *count > 0)?;
    Some(Images { quality: text("quality"), size: text("size"), count })
}
