//! What the checks of a trial look at: a text, a request, an answer, or a request with its answer.

use crate::http::ApiError;
use serde_json::{Map, Value, json};

/// What the checks look at.
pub struct TrialSubject {
    pub request: Value,
    pub response: Value,
    pub metadata: Map<String, Value>,
    pub side: TrialSide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialSide {
    Input,
    Output,
    /// A text is a request to checks that look at requests, and an answer to the others.
    Either,
}

impl TrialSubject {
    pub fn new(
        text: Option<String>,
        request: Option<Value>,
        response: Option<Value>,
        metadata: Option<Map<String, Value>>,
    ) -> Result<Self, ApiError> {
        let metadata = metadata.unwrap_or_default();
        match (text, request, response) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Err(ApiError::field("text", "cannot stand beside request or response"))
            }
            (None, None, None) => Err(ApiError::field("text", "is required, or request or response")),
            (Some(text), None, None) => Ok(TrialSubject {
                request: json!({ "messages": [{ "role": "user", "content": text }] }),
                response: json!({ "choices": [{ "index": 0, "message": { "role": "assistant", "content": text } }] }),
                metadata,
                side: TrialSide::Either,
            }),
            (None, Some(request), None) => {
                Ok(TrialSubject { request, response: Value::Null, metadata, side: TrialSide::Input })
            }
            (None, request, Some(response)) => {
                let request = request.unwrap_or_else(|| json!({}));
                Ok(TrialSubject { request, response, metadata, side: TrialSide::Output })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_text_request_and_response_is_looked_at() {
        let (text, json) = (|| Some("t".to_owned()), || Some(json!({})));
        for (sent, expected) in [
            ((text(), None, None), Some(TrialSide::Either)),
            ((None, json(), None), Some(TrialSide::Input)),
            ((None, None, json()), Some(TrialSide::Output)),
            ((None, json(), json()), Some(TrialSide::Output)),
            ((None, None, None), None),
            ((text(), json(), None), None),
            ((text(), None, json()), None),
        ] {
            let (text, request, response) = sent;
            let found = TrialSubject::new(text, request, response, None).ok().map(|subject| subject.side);
            assert_eq!(found, expected);
        }
    }
}
