//! `log`: an address of the tenant's is told of every answer. It judges nothing: what it answers is not read, and only
//! an address that cannot be reached or refuses is an error.

use super::webhook::{address, payload, timeout};
use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::remote::{
    Answers, Question, RemoteAnswer, RemoteCall, RemoteCheck, RemoteContext, configured_headers,
};
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use std::time::Duration;

const USUAL_TIMEOUT: u64 = 3000;

struct LogElsewhere {
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(LogElsewhere {
        url: address(parameters, "logURL")?,
        headers: configured_headers(parameters.get("headers"), "headers")?,
        timeout: timeout(parameters, USUAL_TIMEOUT),
    }))
}

impl Check for LogElsewhere {
    fn run(&self, _: &Subject<'_>) -> Verdict {
        super::elsewhere::not_asked()
    }

    fn remote(&self) -> Option<&dyn RemoteCheck> {
        Some(self)
    }
}

impl RemoteCheck for LogElsewhere {
    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn ask(&self, subject: &Subject<'_>, context: &RemoteContext<'_>) -> Result<Question, Box<Verdict>> {
        let mut call = RemoteCall::post(self.url.clone(), &payload(subject, context)?);
        for (name, value) in &self.headers {
            call.put(name.clone(), value.clone());
        }
        Ok(Question::Calls(vec![call]))
    }

    fn read(&self, _: &Subject<'_>, answers: &Answers) -> Verdict {
        match answers.calls().first() {
            Some(answer) if answer.is_success() => Verdict::new(true, "It was logged.", Value::Null),
            Some(answer) => {
                Verdict::error("HttpError", format!("the service answered with the status {}", answer.status))
            }
            None => RemoteAnswer::senseless("there is none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardrails::subject::testing::{said, subject};
    use crate::guardrails::{compile, validate};
    use serde_json::json;

    #[test]
    fn every_success_is_one_whatever_it_says() {
        let (request, response) = (json!({}), json!({ "choices": [] }));
        let check = compile("default.log", &json!({ "logURL": "https://logs.test/in" })).unwrap();
        for (status, body, expected) in [
            (200, "{}", "pass"),
            (200, "", "pass"),
            (202, "rubbish", "pass"),
            (204, "", "pass"),
            (299, "x", "pass"),
            (199, "", "error"),
            (301, "", "error"),
            (400, "{\"verdict\": true}", "error"),
            (401, "", "error"),
            (404, "", "error"),
            (429, "", "error"),
            (500, "s3cret", "error"),
        ] {
            let answers = Answers::Calls(vec![RemoteAnswer::new(status, body)]);
            let verdict = check.remote().unwrap().read(&subject(&request, Some(&response)), &answers);
            assert_eq!(said(&verdict), expected, "{status} {verdict:?}");
            assert!(!verdict.to_json().to_string().contains("s3cret"));
        }
        assert_eq!(said(&check.run(&subject(&request, None))), "error", "who has no dialer says so");
    }

    #[test]
    fn it_is_told_what_a_webhook_is_with_its_own_headers() {
        let request = json!({ "messages": [{ "role": "user", "content": "hi" }] });
        let response = json!({ "choices": [{ "message": { "content": "ho" } }] });
        let parameters =
            json!({ "logURL": "https://logs.test/in", "headers": "{\"x-token\": \"s3cret\"}", "timeout": 50 });
        let check = compile("default.log", &parameters).unwrap();
        let remote = check.remote().unwrap();
        assert_eq!(remote.timeout(), Duration::from_millis(50));
        let Ok(Question::Calls(calls)) = remote.ask(&subject(&request, Some(&response)), &RemoteContext::default())
        else {
            panic!("one call")
        };
        let payload: Value = serde_json::from_slice(&calls[0].body).unwrap();
        assert_eq!((&payload["response"]["json"], &payload["request"]["json"]), (&response, &request));
        assert_eq!(calls[0].secrets(), ["s3cret"]);
    }

    #[test]
    fn parameters_that_cannot_be_called_are_refused() {
        for (parameters, is_taken) in [
            (json!({ "logURL": "https://a.test/x" }), true),
            (json!({ "logURL": "https://a.test/x", "headers": {} }), true),
            (json!({}), false),
            (json!({ "logURL": "a.test" }), false),
            (json!({ "logURL": "https://a b/" }), false),
            (json!({ "logURL": "https://a.test", "headers": [] }), false),
            (json!({ "logURL": "https://a.test", "timeout": 1.5 }), false),
        ] {
            let checks = json!([{ "id": "default.log", "parameters": parameters }]);
            assert_eq!(validate(&checks).is_ok(), is_taken, "{parameters}");
        }
    }
}
