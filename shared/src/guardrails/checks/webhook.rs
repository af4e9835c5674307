//! `webhook`: an address of the tenant's says whether a request or an answer passes, and may give it back changed. It gets
//! what is judged and who asks for it, and no header of the client's but those that are listed and are no credentials.

use crate::guardrails::check::Check;
use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::parameters::Parameters;
use crate::guardrails::remote::{
    Answers, MAX_WAIT, Question, RemoteAnswer, RemoteCall, RemoteCheck, RemoteContext, configured_headers, forwarded,
};
use crate::guardrails::subject::{Hook, Subject};
use crate::guardrails::verdict::Verdict;
use crate::outbound::{Origin, path_of};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::time::Duration;

const USUAL_TIMEOUT: u64 = 3000;

struct Webhook {
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    forwarded: Vec<HeaderName>,
    timeout: Duration,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(Webhook {
        url: address(parameters, "webhookURL")?,
        headers: configured_headers(parameters.get("headers"), "headers")?,
        forwarded: names(parameters, "forwardHeaders")?,
        timeout: timeout(parameters, USUAL_TIMEOUT),
    }))
}

/// An address that can be called, as far as that can be seen without calling it.
pub fn address(parameters: &Parameters<'_>, name: &str) -> Result<String, Fault> {
    let url = parameters.text_or(name, "");
    let is_readable =
        Origin::parse(url.split_once('?').map_or(url.as_str(), |(before, _)| before)).is_ok() && path_of(&url).is_ok();
    match is_readable {
        true => Ok(url),
        false => Err(Fault::new(FaultKind::Unusable, name, "is no address that can be called")),
    }
}

pub fn timeout(parameters: &Parameters<'_>, usual: u64) -> Duration {
    Duration::from_millis(parameters.count("timeout", usual)).min(MAX_WAIT)
}

fn names(parameters: &Parameters<'_>, name: &str) -> Result<Vec<HeaderName>, Fault> {
    let written = parameters.texts(name);
    let read = written.iter().map(|name| HeaderName::from_bytes(name.trim().as_bytes())).collect::<Result<Vec<_>, _>>();
    read.map_err(|_| Fault::new(FaultKind::Unusable, name, "has a name that is no name of a header"))
}

/// What an address of the tenant's is told: both bodies, and what kind of request it is. Nothing of its head.
pub fn payload(subject: &Subject<'_>, context: &RemoteContext<'_>) -> Result<Value, Box<Verdict>> {
    let text = subject.text().map_err(|_| Box::new(Verdict::too_many_texts()))?;
    let before = Subject { hook: Hook::BeforeRequest, text: None, ..*subject };
    let (asked, answered) = match subject.hook {
        Hook::BeforeRequest => (text, None),
        Hook::AfterRequest => (before.text().map_err(|_| Box::new(Verdict::too_many_texts()))?, Some(text)),
    };
    let is_stream = subject.request.get("stream").and_then(Value::as_bool).unwrap_or(false);
    let is_request = subject.hook == Hook::BeforeRequest;
    Ok(json!({
        "request": { "json": subject.request, "text": asked, "isStreamingRequest": is_stream,
                     "isTransformed": is_request && context.is_transformed },
        "response": { "json": subject.response, "text": answered, "statusCode": context.status,
                      "isTransformed": !is_request && context.is_transformed },
        "provider": context.provider,
        "requestType": subject.request_type,
        "metadata": subject.metadata,
        "eventType": subject.hook.event(),
    }))
}

impl Check for Webhook {
    fn run(&self, _: &Subject<'_>) -> Verdict {
        super::elsewhere::not_asked()
    }

    fn remote(&self) -> Option<&dyn RemoteCheck> {
        Some(self)
    }
}

impl RemoteCheck for Webhook {
    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn ask(&self, subject: &Subject<'_>, context: &RemoteContext<'_>) -> Result<Question, Box<Verdict>> {
        let mut call = RemoteCall::post(self.url.clone(), &payload(subject, context)?);
        if let Some(headers) = context.headers {
            for (name, value) in forwarded(&self.forwarded, headers, context.trace_id) {
                call.put(name, value);
            }
        }
        // Those that are written in the check win.
        for (name, value) in &self.headers {
            call.put(name.clone(), value.clone());
        }
        Ok(Question::Calls(vec![call]))
    }

    fn read(&self, subject: &Subject<'_>, answers: &Answers) -> Verdict {
        let Some(answer) = answers.calls().first() else { return RemoteAnswer::senseless("there is none") };
        let json = match answer.json() {
            Ok(json) => json,
            Err(verdict) => return *verdict,
        };
        let Some(passes) = json.get("verdict").and_then(Value::as_bool) else {
            return RemoteAnswer::senseless("its `verdict` is neither true nor false");
        };
        let explanation = if passes { "The webhook let it pass." } else { "The webhook refused it." };
        let own = json.get("data").cloned().filter(|data| !data.is_null());
        let verdict = match own {
            // Its own explanation is better than ours.
            Some(Value::Object(fields)) => match fields.get("explanation").and_then(Value::as_str).map(str::to_owned) {
                Some(answered) => Verdict::new(passes, answered, Value::Object(fields)),
                None => Verdict::new(passes, explanation, Value::Object(fields)),
            },
            other => Verdict::new(passes, explanation, other.unwrap_or_default()),
        };
        let place = match subject.hook {
            Hook::BeforeRequest => "/transformedData/request/json",
            Hook::AfterRequest => "/transformedData/response/json",
        };
        match json.pointer(place).filter(|changed| !changed.is_null()) {
            None => verdict,
            // It must not pass as it is, and a stream's text cannot be replaced.
            Some(_) if passes && subject.is_stream() => Verdict::new(
                false,
                "The webhook would have it changed, which a stream cannot be.",
                verdict.data.into_value(),
            ),
            Some(changed) if changed.is_object() => verdict.with_transformed(changed.clone()),
            Some(_) => RemoteAnswer::senseless("what it transforms is no object"),
        }
    }
}

#[cfg(test)]
mod tests;
