//! Sound by its length. An answer that is plain text or subtitles does not say how long the sound was that it was made
//! from; SDKs say it of the file they send. What the provider itself reports comes first, then what the sender says, then
//! what the answer shows, then a guess by the size of what was sent.

use memchr::memmem;
use serde::Deserialize;
use serde_json::json;

/// A day: longer than any file that is taken.
const MAX_MS: u64 = 86_400_000;

/// The usage of an upload whose sender says how many milliseconds it lasts, in the form that prices are worked out from.
pub fn declared(path: &str, milliseconds: &[u8]) -> Option<String> {
    if !is_of_sound(path) {
        return None;
    }
    let text = std::str::from_utf8(milliseconds).ok()?.trim();
    duration(text.parse::<f64>().ok()? / 1000.0)
}

/// The usage of an answer that shows how long the sound was: a field of the longer form of JSON, the end of the last
/// subtitle.
pub fn shown(path: &str, answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Verbose {
        duration: Option<serde_json::Value>,
    }
    if !is_of_sound(path) {
        return None;
    }
    if answer.trim_ascii_start().starts_with(b"{") {
        let length = serde_json::from_slice::<Verbose>(answer).ok()?.duration?;
        return duration(length.as_f64().or_else(|| length.as_str()?.parse().ok())?);
    }
    const ARROW: &[u8] = b"-->";
    let last = memmem::rfind(answer, ARROW)?;
    let end = answer[last + ARROW.len()..].split(|byte| *byte == b'\n').next()?;
    duration(clock(std::str::from_utf8(end).ok()?.split_whitespace().next()?)?)
}

/// `01:02:03,450`, of WebVTT also without hours and with a point.
fn clock(text: &str) -> Option<f64> {
    let text = text.replace(',', ".");
    if !text.contains(':') {
        return None;
    }
    text.split(':').try_fold(0.0, |seconds, part| Some(seconds * 60.0 + part.parse::<f64>().ok()?))
}

/// The usage of an upload of which nothing is known but what was sent.
pub fn guessed(path: &str, seconds: f64) -> Option<String> {
    is_of_sound(path).then(|| duration(seconds)).flatten()
}

/// About how long the sound in an upload lasts, by its size and how it begins.
pub fn length_of_upload(upload: &[u8]) -> f64 {
    upload.len() as f64 / bytes_per_second(upload)
}

/// The same of one that is not here.
pub fn length_of_bytes(bytes: u64) -> f64 {
    bytes as f64 / USUAL
}

/// 128 kbit/s.
const USUAL: f64 = 16_000.0;

fn bytes_per_second(upload: &[u8]) -> f64 {
    /// The fields of a form stand before the file.
    const LOOKED_AT: usize = 16 << 10;
    /// Of Opus as phones and browsers record it, and of FLAC.
    const OPUS: f64 = 4_000.0;
    const FLAC: f64 = 60_000.0;
    let beginning = &upload[..upload.len().min(LOOKED_AT)];
    if let Some(at) = memmem::find(beginning, b"WAVEfmt ")
        && let Some(rate) = beginning.get(at + 20..at + 24).and_then(|rate| rate.try_into().ok())
    {
        return f64::from(u32::from_le_bytes(rate)).max(1_000.0);
    }
    match () {
        () if memmem::find(beginning, b"OggS").is_some() => OPUS,
        () if memmem::find(beginning, b"\x1a\x45\xdf\xa3").is_some() => OPUS,
        () if memmem::find(beginning, b"fLaC").is_some() => FLAC,
        () => USUAL,
    }
}

fn is_of_sound(path: &str) -> bool {
    path.ends_with("/audio/transcriptions") || path.ends_with("/audio/translations")
}

fn duration(seconds: f64) -> Option<String> {
    let milliseconds = Some(seconds * 1000.0).filter(|value| value.is_finite() && *value > 0.0)?.round() as u64;
    let seconds = milliseconds.min(MAX_MS) as f64 / 1000.0;
    Some(json!({ "type": "duration", "seconds": seconds }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_shows_how_long_the_sound_was() {
        let path = "/v1/audio/transcriptions";
        let value = |seconds: f64| Some(format!(r#"{{"type":"duration","seconds":{seconds:?}}}"#));
        for (answer, expected) in [
            (r#"{"task":"transcribe","duration":8.47,"text":"a"}"#, value(8.47)),
            (r#"{"duration":"12.5","text":"a"}"#, value(12.5)),
            (r#"{"text":"a --> 00:01:00.000"}"#, None),
            ("1\n00:00:00,000 --> 00:00:03,320\nHello\n\n2\n00:00:03,320 --> 01:00:04,500\nyou\n", value(3604.5)),
            ("WEBVTT\n\n00:00.000 --> 00:03.250 align:start\nHello\n", value(3.25)),
            ("Hello --> you", None),
            ("say --> 5", None),
            ("Hello", None),
            ("", None),
        ] {
            assert_eq!(shown(path, answer.as_bytes()), expected, "{answer}");
        }
        assert_eq!(shown("/v1/chat/completions", br#"{"duration":8}"#), None);
    }

    #[test]
    fn what_says_nothing_is_as_long_as_its_size_tells() {
        let mut wave =
            b"--b\r\nContent-Disposition: form-data\r\n\r\nRIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        wave.extend(16_000_u32.to_le_bytes());
        wave.extend(32_000_u32.to_le_bytes());
        wave.resize(64_000, 0);
        assert!((length_of_upload(&wave) - 2.0).abs() < 0.01);
        assert!((length_of_upload(&[b'x'; 16_000]) - 1.0).abs() < 0.01);
        assert!(length_of_upload(&[b"OggS".to_vec(), vec![0; 40_000]].concat()) > 9.0);
        assert_eq!(guessed("/v1/audio/translations", 0.0), None);
        assert!(guessed("/v1/audio/translations", 1.5).is_some());
    }

    #[test]
    fn only_uploads_of_sound_last_as_long_as_their_sender_says() {
        for (path, value, seconds) in [
            ("/v1/audio/transcriptions", "12500", Some("12.5")),
            ("/v1/audio/translations", " 1000.4 ", Some("1.0")),
            ("/v1/audio/transcriptions", "99999999999999999999", Some("86400.0")),
            ("/v1/audio/transcriptions", "-1", None),
            ("/v1/audio/transcriptions", "NaN", None),
            ("/v1/audio/transcriptions", "soon", None),
            ("/v1/audio/speech", "1000", None),
        ] {
            let expected = seconds.map(|seconds| format!(r#"{{"type":"duration","seconds":{seconds}}}"#));
            assert_eq!(declared(path, value.as_bytes()), expected, "{path} {value}");
        }
    }
}
