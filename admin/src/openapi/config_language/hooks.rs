//! Checks before and after a request, by the name of a saved guardrail or written out.

use super::{key, key_or, needed};
use crate::openapi::schema::{Schema, any_object, any_text, choice, either, flag, list, object, text};
use serde_json::json;

pub fn keys() -> Schema {
    let guardrails = || list(either([text(1..=usize::MAX).eg("pg-pii-3f9a01"), guardrail()]));
    let hooks = || list(hook());
    object("")
        .may("before_request_hooks", key(hooks(), "Checks of the request, written out."))
        .may("after_request_hooks", key(hooks(), "Checks of the answer, written out."))
        .may("input_guardrails", key(guardrails(), "Checks of the request, by slug or in short."))
        .may("output_guardrails", key(guardrails(), "Checks of the answer, by slug or in short."))
        .may("input_mutators", key(guardrails(), "Changes of the request, by slug or in short."))
        .may("output_mutators", key(guardrails(), "Changes of the answer, by slug or in short."))
}

/// What both forms say about themselves.
fn reserved(id: Schema) -> Schema {
    object("")
        .with(&id)
        .may("type", key_or(choice(&["guardrail", "mutator"]), "guardrail", "Whether it judges, or only changes."))
        .may(
            "deny",
            key_or(
                flag().eg(true),
                false,
                "Whether a failed check refuses the call (446) in place of marking it (246).",
            ),
        )
        .may("async", key_or(flag(), false, "Whether it runs beside the call and only its result is logged."))
        .may("sequential", key_or(flag(), false, "Whether its checks run one after the other."))
        .may(
            "on_fail",
            key(
                any_object().eg(json!({ "feedback": { "value": -5, "weight": 1 } })),
                "Feedback to record when it fails.",
            ),
        )
        .may(
            "on_success",
            key(
                any_object().eg(json!({ "feedback": { "value": 5, "weight": 1 } })),
                "Feedback to record when it passes.",
            ),
        )
        .may(
            "guardrail_version_id",
            key(
                text(1..=usize::MAX).eg("9b2f8a52-8a52-4c0e-8f0e-7a1f2f1f0a11"),
                "A version of the saved guardrail, in place of the current one.",
            ),
        )
        .may("soft_deny_200", key_or(flag(), false, "Whether a refusal is a 200 whose message says so."))
        .may(
            "stream",
            key(
                choice(&["report", "hold"]),
                "Whether a streamed answer is judged after its end, or before any of it is released; `hold` where it denies, else \
                 `report`.",
            ),
        )
        .may(
            "scope",
            key(
                choice(&["last", "all"]),
                "Whether checks judge the last message or every text of a request; by default those that look for something \
                 forbidden judge all, and others the last. Defaults of organisation and workspace keep to that.",
            ),
        )
        .may("audit", key_or(flag(), false, "Whether what it denies is told in the audit trail."))
        .may("message", key(any_text().eg("Please ask without card numbers."), "What a refusal says."))
}

fn hook() -> Schema {
    let check = object("ConfigCheck")
        .need("id", needed(text(1..=usize::MAX).eg("default.regexMatch"), "The check's name."))
        .need(
            "parameters",
            needed(any_object().eg(json!({ "rule": "[0-9]{16}", "not": true })), "What the check is told."),
        )
        .may("name", key(text(1..=usize::MAX).eg("No card numbers"), "A name for people."))
        .may("is_enabled", key_or(flag().eg(true), true, "Whether it runs."))
        .closed();
    let id =
        object("").need("id", needed(text(1..=usize::MAX).eg("cards"), "The name that results are reported under."));
    object("ConfigHook").with(&reserved(id)).may("checks", key(list(check), "What is looked at.")).closed()
}

fn guardrail() -> Schema {
    let id = object("").may("id", key(any_text().eg("pg-pii-3f9a01"), "A saved guardrail, by slug or id."));
    let mut short = object("ConfigGuardrail").with(&reserved(id));
    let says = "Every other key is the name of a check, its value what the check is told.";
    short.json["additionalProperties"] = any_object().or_null().says(says).json;
    short
}
