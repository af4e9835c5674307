//! How a stream says that it is over, by the type of its last event. The one list for whoever counts what a stream used,
//! checks that it was not cut, or holds its texts back. Formats that end without such an event are not in it: chats end
//! with `[DONE]`, Gemini's streams with a finish reason, Converse's with its metrics.

pub const MESSAGES: &[&str] = &["message_stop"];
/// Each of them holds the response with what it used so far, failed and cancelled ones too.
pub const RESPONSES: &[&str] = &["response.completed", "response.incomplete", "response.failed", "response.cancelled"];
pub const COHERE: &[&str] = &["message-end"];
/// OpenAI's streams of images, transcripts and speech.
const MEDIA: &[&str] =
    &["image_generation.completed", "image_edit.completed", "transcript.text.done", "speech.audio.done"];

/// Whether an event of this type is the last one, in any format.
pub fn is_end(kind: &[u8]) -> bool {
    [MESSAGES, RESPONSES, COHERE, MEDIA].into_iter().flatten().any(|end| end.as_bytes() == kind)
}

/// Whether `bytes`, which follow a quote, begin with the type of a last event of these.
pub fn begins_with_end(bytes: &[u8], ends: &[&str]) -> bool {
    ends.iter().any(|end| bytes.strip_prefix(end.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'"')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_whole_type() {
        for end in [MESSAGES, RESPONSES, COHERE, MEDIA].into_iter().flatten() {
            assert!(is_end(end.as_bytes()));
            assert!(begins_with_end(format!(r#"{end}"}}"#).as_bytes(), &[end]), "{end}");
            for other in [format!("{end}.x\""), format!(" {end}\""), (*end).to_owned()] {
                assert!(!begins_with_end(other.as_bytes(), &[end]), "{other}");
            }
        }
        for other in ["response.created", "response.completed.x", "message_start", ""] {
            assert!(!is_end(other.as_bytes()), "{other}");
        }
    }
}
