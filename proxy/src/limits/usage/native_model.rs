//! The model of a call in a provider's own interface: some name it in the path, others in the body. A model in the path
//! decides whether the call may pass; one guessed from the body is for the log and its price alone.

use super::scan::{self, ScannedKey};
use crate::request::text_bounds::{self, cut};
use percent_encoding::percent_decode_str;
use std::sync::LazyLock;

static MODEL: LazyLock<ScannedKey> = LazyLock::new(|| ScannedKey::new("\"model\""));
/// How far into a body is looked.
const FAR: usize = 8 << 10;

/// `…/models/{model}:{method}` of Google, `…/model/{model}/{method}` of Bedrock, `…/deployments/{model}/{method}` of Azure:
/// the model as it is written.
pub fn segment(path: &str) -> Option<&str> {
    let google = after(path, "models").and_then(|rest| rest.split_once(':'));
    let in_folder = |folder| after(path, folder)?.split_once('/');
    let (name, _) = google.or_else(|| in_folder("model")).or_else(|| in_folder("deployments"))?;
    // Google's clients leave the slash of `@slug/model` as it is.
    (!name.contains('/') || name.starts_with('@')).then_some(name)
}

/// What follows the last segment of this name. By bytes: every relayed request is asked, and searching for a text costs
/// more than the few segments of a path.
fn after<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let mut end = path.len();
    while let Some(slash) = memchr::memrchr(b'/', &path.as_bytes()[..end]) {
        if end < path.len() && &path[slash + 1..end] == name {
            return Some(&path[end + 1..]);
        }
        end = slash;
    }
    None
}

/// The same in plain text.
pub fn in_path(path: &str) -> Option<String> {
    let name = percent_decode_str(segment(path)?).decode_utf8().ok()?;
    (!name.is_empty()).then(|| cut(&name, text_bounds::MODEL).to_owned())
}

/// In the beginning of a JSON body.
pub fn in_body(beginning: &[u8]) -> Option<String> {
    let is_object = beginning.trim_ascii_start().starts_with(b"{");
    let looked_at = &beginning[..beginning.len().min(FAR)];
    scan::name_after(looked_at, &MODEL, text_bounds::MODEL).filter(|name| is_object && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_model_in_three_ways() {
        for (path, model) in [
            ("/v1/v1beta/models/gemini-2.0-flash:generateContent", Some("gemini-2.0-flash")),
            ("/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent", Some("g")),
            ("/v1/model/anthropic.claude-x%3A0/converse", Some("anthropic.claude-x:0")),
            ("/v1/model/m/invoke-with-response-stream", Some("m")),
            ("/v1/deployments/my-gpt/chat/completions", Some("my-gpt")),
            ("/v1/models/ft-1", None),
            ("/v1/model/m", None),
            ("/v1/models/a/b:c", None),
            ("/v1/models/a:b/models/c:d", Some("c")),
            ("/v1/model/a/model/b/invoke", Some("b")),
            ("/v1/models/é/model/m/converse", Some("m")),
            ("models/a:b", None),
            ("/models/", None),
            ("/v1beta/models/@s/g:countTokens", Some("@s/g")),
            ("/v1/model//converse", None),
            ("/v1/chat/completions", None),
        ] {
            assert_eq!(in_path(path).as_deref(), model, "{path}");
        }
    }

    #[test]
    fn a_body_names_its_model_if_it_is_an_object() {
        for (body, model) in [
            (r#" {"messages":[],"model":"command-r"}"#, Some("command-r")),
            (r#"{"model":7}"#, None),
            (r#"["model":"x"]"#, None),
            ("", None),
        ] {
            assert_eq!(in_body(body.as_bytes()).as_deref(), model, "{body}");
        }
    }
}
