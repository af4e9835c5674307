//! `allowedRequestTypes`: which kinds of request may be made at all. Runs on every route. A stream is of its own kind and of
//! the plain one: who blocks `chatComplete` does not mean to leave streams open.

use crate::guardrails::check::Check;
use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::parameters::{Parameters, texts};
use crate::guardrails::request_type::{REQUEST_TYPES, is_request_type};
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::json;

struct AllowedRequestTypes {
    allowed: Vec<String>,
    blocked: Vec<String>,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let (allowed, blocked) = (parameters.texts("allowedTypes"), parameters.texts("blockedTypes"));
    for (name, listed) in [("allowedTypes", &allowed), ("blockedTypes", &blocked)] {
        if let Some((index, one)) = listed.iter().enumerate().find(|(_, one)| !is_request_type(one)) {
            let known = REQUEST_TYPES.iter().copied();
            return Err(Fault::unknown(format!("{name}[{index}]"), "a kind of request", one, known));
        }
    }
    if let Some(both) = overlap(&allowed, &blocked) {
        let message = format!("has `{both}`, which is allowed too");
        return Err(Fault::new(FaultKind::Exclusive, "blockedTypes", message));
    }
    Ok(Box::new(AllowedRequestTypes { allowed, blocked }))
}

fn overlap<'l>(allowed: &'l [String], blocked: &[String]) -> Option<&'l String> {
    allowed.iter().find(|one| blocked.contains(one))
}

impl Check for AllowedRequestTypes {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let is_set = !self.allowed.is_empty() || !self.blocked.is_empty();
        let of_metadata = |name: &str| subject.metadata.get(name).map(texts).unwrap_or_default();
        let (allowed, blocked, source) = match is_set {
            true => (self.allowed.clone(), self.blocked.clone(), "parameters"),
            false => (of_metadata("supported_endpoints"), of_metadata("blocked_endpoints"), "metadata"),
        };
        if let Some(both) = overlap(&allowed, &blocked) {
            return Verdict::error("Conflict", format!("`{both}` is both allowed and blocked"));
        }
        let mode = match (allowed.is_empty(), blocked.is_empty()) {
            (true, true) => "unrestricted",
            (false, true) => "allowlist",
            (true, false) => "blocklist",
            (false, false) => "combined",
        };
        let source = if mode == "unrestricted" { "default" } else { source };
        let kind = subject.request_type;
        let plain = kind.strip_prefix("stream-").unwrap_or(kind);
        let names = |listed: &[String]| listed.iter().any(|one| one == kind || one == plain);
        let verdict = !names(&blocked) && (allowed.is_empty() || names(&allowed));
        let explanation =
            format!("Requests of the kind {kind} are {}.", if verdict { "allowed" } else { "not allowed" });
        let data = json!({ "requestType": kind, "mode": mode, "source": source, "allowedTypes": allowed,
                           "blockedTypes": blocked });
        Verdict::new(verdict, explanation, data)
    }

    fn reads_body(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{said, subject};
    use crate::guardrails::{Subject, compile};
    use serde_json::json;

    #[test]
    fn a_kind_is_allowed_unless_a_list_says_otherwise() {
        for (parameters, metadata, kind, expected, mode) in [
            (json!({}), json!({}), "chatComplete", "pass", "unrestricted"),
            (json!({ "allowedTypes": ["chatComplete"] }), json!({}), "chatComplete", "pass", "allowlist"),
            (json!({ "allowedTypes": ["chatComplete"] }), json!({}), "embed", "fail", "allowlist"),
            (json!({ "blockedTypes": ["embed"] }), json!({}), "embed", "fail", "blocklist"),
            (json!({ "blockedTypes": ["embed"] }), json!({}), "proxy", "pass", "blocklist"),
            (
                json!({ "allowedTypes": ["embed"], "blockedTypes": ["proxy"] }),
                json!({}),
                "messages",
                "fail",
                "combined",
            ),
            (json!({ "allowedTypes": ["embed"], "blockedTypes": ["proxy"] }), json!({}), "embed", "pass", "combined"),
            (json!({ "allowedTypes": "embed, rerank" }), json!({}), "rerank", "pass", "allowlist"),
            (json!({ "blockedTypes": ["chatComplete"] }), json!({}), "stream-chatComplete", "fail", "blocklist"),
            (json!({ "blockedTypes": ["stream-chatComplete"] }), json!({}), "chatComplete", "pass", "blocklist"),
            (json!({ "allowedTypes": ["stream-messages"] }), json!({}), "messages", "fail", "allowlist"),
            (json!({}), json!({ "supported_endpoints": "embed" }), "chatComplete", "fail", "allowlist"),
            (json!({}), json!({ "blocked_endpoints": ["chatComplete"] }), "chatComplete", "fail", "blocklist"),
            (
                json!({ "allowedTypes": ["embed"] }),
                json!({ "supported_endpoints": "proxy" }),
                "proxy",
                "fail",
                "allowlist",
            ),
        ] {
            let request = json!({});
            let check = compile("allowedRequestTypes", &parameters).unwrap();
            let metadata = metadata.as_object().unwrap();
            let verdict = check.run(&Subject { metadata, request_type: kind, ..subject(&request, None) });
            assert_eq!(
                (said(&verdict), &verdict.data.value()["mode"]),
                (expected, &json!(mode)),
                "{parameters} {kind}"
            );
        }
    }

    #[test]
    fn lists_that_contradict_each_other_or_name_nothing_are_refused() {
        for (parameters, part) in [
            (json!({ "allowedTypes": ["embed"], "blockedTypes": ["embed"] }), "allowed too"),
            (json!({ "allowedTypes": ["chatCompletion"] }), "did you mean `chatComplete`"),
        ] {
            let Err(fault) = compile("allowedRequestTypes", &parameters) else { panic!("{parameters}") };
            assert!(fault.message.contains(part), "{fault}");
        }
        let both = json!({ "supported_endpoints": "embed", "blocked_endpoints": "embed" });
        let request = json!({});
        let check = compile("allowedRequestTypes", &json!({})).unwrap();
        let verdict = check.run(&Subject { metadata: both.as_object().unwrap(), ..subject(&request, None) });
        assert_eq!(said(&verdict), "error");
    }

    #[test]
    fn metadata_that_names_nothing_known_is_a_list_like_another_and_where_it_came_from_is_told() {
        for (metadata, expected, source) in [
            (json!({}), "pass", "default"),
            (json!({ "supported_endpoints": "" }), "pass", "default"),
            (json!({ "supported_endpoints": "日本" }), "fail", "metadata"),
            (json!({ "blocked_endpoints": "日本" }), "pass", "metadata"),
            (json!({ "blocked_endpoints": vec!["x"; 100_000] }), "pass", "metadata"),
            (json!({ "supported_endpoints": 7 }), "pass", "default"),
        ] {
            let (request, check) = (json!({}), compile("allowedRequestTypes", &json!({})).unwrap());
            let verdict = check.run(&Subject { metadata: metadata.as_object().unwrap(), ..subject(&request, None) });
            let told = (said(&verdict), verdict.data.value()["source"].clone());
            assert_eq!(told, (expected, json!(source)), "{}", metadata.to_string().len());
        }
    }
}
