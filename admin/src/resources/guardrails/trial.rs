//! `POST /guardrails/test`: what checks say of a text, a request or an answer, without a provider and without saving
//! anything. The checks are the ones that the proxy runs.

use super::{check_table, content};
use crate::crud::Answer;
use crate::http::ApiError;
use crate::identity::Call;
use axum::Json;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Trial {
    checks: Value,
    text: Option<String>,
    request: Option<Value>,
    response: Option<Value>,
    metadata: Option<Map<String, Value>>,
}

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

pub async fn try_checks(call: Call) -> Answer {
    let trial: Trial = call.body()?;
    let faults = content::check_faults(&trial.checks);
    if !faults.is_empty() {
        return Err(ApiError::Faults(faults));
    }
    let subject = subject(trial.text, trial.request, trial.response, trial.metadata)?;
    // Patterns and schemas of strangers on texts of strangers: not on a thread that others wait for.
    let told = tokio::task::spawn_blocking(move || run(&trial.checks, &subject)).await;
    told.map(Json).map_err(|_| ApiError::Internal)
}

fn subject(
    text: Option<String>,
    request: Option<Value>,
    response: Option<Value>,
    metadata: Option<Map<String, Value>>,
) -> Result<TrialSubject, ApiError> {
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

/// Each check by itself; an error counts as passed unless the check says `failOnError`, as it does in the proxy.
fn run(checks: &Value, subject: &TrialSubject) -> Value {
    let enabled = checks.as_array().into_iter().flatten().filter(|check| check["is_enabled"] != json!(false));
    let results: Vec<Value> = enabled
        .map(|check| {
            let started = std::time::Instant::now();
            let mut result = check_table::run(check, subject);
            result["id"] = check["id"].clone();
            result["execution_time"] = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).into();
            result["fail_on_error"] = (check["parameters"]["failOnError"] == json!(true)).into();
            result
        })
        .collect();
    let passes = |result: &Value| {
        let is_excused = result.get("error").is_some() && result["fail_on_error"] == json!(false);
        result["verdict"] == json!(true) || is_excused
    };
    json!({ "object": "guardrail-test", "verdict": results.iter().all(passes), "checks": results })
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
            let found = subject(text, request, response, None).ok().map(|subject| subject.side);
            assert_eq!(found, expected);
        }
    }
}
