//! Sound by its length. An answer that is plain text or subtitles does not say how long the sound was that it was made
//! from; SDKs say it of the file they send. What the provider itself reports comes first.

use serde_json::json;

/// A day: longer than any file that is taken.
const LONGEST_MS: u64 = 86_400_000;

/// The usage of an upload whose sender says how many milliseconds it lasts, in the form that prices are worked out from.
pub fn declared(path: &str, milliseconds: &[u8]) -> Option<String> {
    if !path.ends_with("/audio/transcriptions") && !path.ends_with("/audio/translations") {
        return None;
    }
    let text = std::str::from_utf8(milliseconds).ok()?.trim();
    let milliseconds = text.parse::<f64>().ok().filter(|said| said.is_finite() && *said > 0.0)?.round() as u64;
    let seconds = milliseconds.min(LONGEST_MS) as f64 / 1000.0;
    Some(json!({ "type": "duration", "seconds": seconds }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uploads_of_sound_last_as_long_as_their_sender_says() {
        for (path, said, seconds) in [
            ("/v1/audio/transcriptions", "12500", Some("12.5")),
            ("/v1/audio/translations", " 1000.4 ", Some("1.0")),
            ("/v1/audio/transcriptions", "99999999999999999999", Some("86400.0")),
            ("/v1/audio/transcriptions", "-1", None),
            ("/v1/audio/transcriptions", "NaN", None),
            ("/v1/audio/transcriptions", "soon", None),
            ("/v1/audio/speech", "1000", None),
        ] {
            let expected = seconds.map(|seconds| format!(r#"{{"type":"duration","seconds":{seconds}}}"#));
            assert_eq!(declared(path, said.as_bytes()), expected, "{path} {said}");
        }
    }
}
