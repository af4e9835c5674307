//! A hook whose checks look at nothing but a text, as most do: what it says is written while they run, and what is known of it
//! beforehand was written when it was made ready. It is what `results` would write.

use super::hook::{CompiledCheck, CompiledHook, HookKind};
use super::meters::{CheckOutcome, GuardMeters};
use super::moment::Moment;
use super::remote::{RemoteAnswers, too_costly};
use super::results::{CREATED_AT, CheckResult, FAILED, HookResult, PASSED, USUAL_CHECK, USUAL_HOOK};
use super::results::{check_end, millis, put_check_id};
use shared::guardrails::{JudgedText, Scope, Verdict, put_number, put_text};
use shared::model::guardrail::GuardrailActions;
use std::time::{Duration, Instant};

/// What is known of its results. The verdict is that of what passes, as nearly everything does.
pub struct TextHook {
    /// Up to its checks.
    head: String,
    checks: Vec<CheckText>,
}

/// What is known of the result of a check.
struct CheckText {
    /// Behind its data, up to how long it took.
    behind_data: String,
    /// The same up to when it began, of one that took no time, as most do.
    behind_quick: String,
}

/// How a check begins, behind another.
const CHECK_HEAD: &str = ",{\"verdict\":true,\"data\":";

/// When a hook began.
#[derive(Clone, Copy)]
pub struct Began {
    pub instant: Instant,
    pub moment: Moment,
}

impl TextHook {
    /// None for a hook that takes more to be run, or to be told of.
    pub fn new(id: &str, kind: HookKind, actions: &GuardrailActions, checks: &[CompiledCheck]) -> Option<Self> {
        let has_feedback = actions.on_success.is_some() || actions.on_fail.is_some();
        let judges_text = |check: &CompiledCheck| check.check.judge(&JudgedText::new(""), &mut String::new()).is_some();
        if kind != HookKind::Guardrail || actions.is_async || has_feedback || checks.is_empty() {
            return None;
        }
        if !checks.iter().all(judges_text) {
            return None;
        }
        let mut head = format!("{PASSED},\"id\":");
        put_text(&mut head, id);
        head.push_str(",\"transformed\":false,\"checks\":[");
        let known = |check: &CompiledCheck| {
            let mut behind_data = String::from(",\"transformed\":false");
            put_check_id(&mut behind_data, check.id);
            let behind_quick = format!("{behind_data}0{CREATED_AT}");
            CheckText { behind_data, behind_quick }
        };
        Some(Self { head, checks: checks.iter().map(known).collect() })
    }

    /// Runs it on a text, and on that text as those see it who look for something in it; says when it was done.
    pub fn run(
        &self,
        (place, hook): (usize, &CompiledHook),
        (text, searched): (&JudgedText<'_>, &JudgedText<'_>),
        began: Began,
        meters: &GuardMeters,
        answers: &mut RemoteAnswers,
    ) -> (HookResult, Instant) {
        let mut json = String::with_capacity(USUAL_HOOK + hook.checks.len() * USUAL_CHECK);
        json.push_str(&self.head);
        // Since it began: now, that is when the last check ended and the next one begins.
        let (mut now, mut elapsed) = (began.instant, Duration::ZERO);
        let (mut passes, mut is_forbidden) = (true, false);
        for ((index, check), known) in hook.checks.iter().enumerate().zip(&self.checks) {
            let check_began = elapsed;
            let at = began.moment.after(check_began);
            let from = json.len() + usize::from(index > 0);
            json.push_str(&CHECK_HEAD[usize::from(index == 0)..]);
            let answer = match answers.is_late(now) {
                true => Err(too_costly(check)),
                false => {
                    match check.check.judge(if hook.scope(check) == Scope::All { searched } else { text }, &mut json) {
                        Some(Ok(verdict)) => Ok(verdict),
                        Some(Err(error)) => Err(Verdict::failed(error)),
                        // It did when the hook was made ready.
                        None => Err(Verdict::bound("Unjudged", "the text was not judged")),
                    }
                }
            };
            now = Instant::now();
            elapsed = now - began.instant;
            let took = elapsed.saturating_sub(check_began);
            let outcome = match answer {
                Ok(verdict) => {
                    if !verdict {
                        json.replace_range(from..from + PASSED.len(), FAILED);
                    }
                    passes &= verdict;
                    match millis(took) {
                        0 => json.push_str(&known.behind_quick),
                        took => {
                            json.push_str(&known.behind_data);
                            put_number(&mut json, took);
                            json.push_str(CREATED_AT);
                        }
                    }
                    at.put(&mut json);
                    json.push_str(check_end(check.fails_on_error));
                    CheckOutcome::from_verdict(verdict)
                }
                Err(verdict) => {
                    json.truncate(from);
                    passes &= verdict.passes(check.fails_on_error);
                    is_forbidden |= verdict.forbids();
                    let (id, fails_on_error) = (check.id, check.fails_on_error);
                    CheckResult { id, verdict, is_transformed: false, fails_on_error, took, at }.write(&mut json);
                    CheckOutcome::Error
                }
            };
            if answers.counts(place, index) {
                meters.checked(check.number, outcome, took);
            }
        }
        if !passes {
            json.replace_range(..PASSED.len(), FAILED);
        }
        json.push_str("],\"feedback\":null");
        (HookResult::ended(hook, json, passes, is_forbidden, elapsed, began.moment), now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::{GuardInputs, run_side};
    use super::*;
    use http::HeaderMap;
    use serde_json::{Map, Value, json};
    use shared::guardrails::{Hook, Shape};
    use std::sync::Arc;

    fn answer(hook: CompiledHook, text: &str) -> (Value, bool, bool, bool) {
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape: Shape::Chat,
            request_type: "chatComplete",
            request: &Value::Null,
            metadata: &Map::new(),
            headers: &HeaderMap::new(),
            text: Some(text),
        };
        let side = run_side(&[Arc::new(hook)], inputs, &Value::Null, &GuardMeters::unregistered());
        let result = &side.hooks[0];
        let mut json: Value = serde_json::from_str(&result.json).unwrap();
        assert_eq!(json.to_string(), result.json, "in its order, and without blanks");
        untimed(&mut json);
        (json, result.verdict, result.deny, result.is_audited)
    }

    /// Times differ from run to run; that they are there does not.
    fn untimed(json: &mut Value) {
        for name in ["created_at", "execution_time"] {
            let time = json[name].take();
            assert!(
                time.is_u64() || time.as_str().is_some_and(|text| text.len() == 24 && text.ends_with('Z')),
                "{time}"
            );
        }
        json.get_mut("checks").and_then(Value::as_array_mut).into_iter().flatten().for_each(untimed);
    }

    #[test]
    fn a_hook_says_of_a_text_what_it_says_check_by_check() {
        let none =
            |word: &str| json!({ "id": "contains", "parameters": { "words": [word, "é\""], "operator": "none" } });
        let all = json!({ "id": "contains", "parameters": { "words": ["a", "b"], "operator": "all" } });
        let pattern = |rule: &str, fails: bool| json!({ "id": "regexMatch", "parameters": { "rule": rule, "not": true, "failOnError": fails } });
        let words = |most: u64| json!({ "id": "wordCount", "parameters": { "minWords": 1, "maxWords": most } });
        let others =
            [json!({ "id": "characterCount" }), json!({ "id": "sentenceCount", "parameters": { "maxSentences": 1 } })];
        let checks = [
            json!([none("x"), pattern("[0-9]{4}", false), words(100)]),
            json!([words(2), none("b"), all]),
            json!([pattern("b+", true), others[0], others[1]]),
            json!([words(1)]),
        ];
        let long = "a long text, \\ with \"quotes\" 1234. ".repeat(20);
        for checks in &checks {
            for text in ["a b", "", " ", "bbb 1234\n\"x\"", "日本語 é\"", &long] {
                for with in [json!({}), json!({ "deny": true, "audit": true }), json!({ "sequential": true })] {
                    let mut fields = with.as_object().unwrap().clone();
                    fields.extend([("id".to_owned(), json!("a \"hook\"")), ("checks".to_owned(), checks.clone())]);
                    let [quick, mut slow] = [(); 2].map(|()| CompiledHook::from_hook(&fields));
                    assert!(quick.on_text.is_some());
                    slow.on_text = None;
                    assert_eq!(answer(quick, text), answer(slow, text), "{fields:?} {text}");
                }
            }
        }
    }

    #[test]
    fn what_takes_more_is_run_check_by_check() {
        let words = json!([{ "id": "wordCount" }]);
        for hook in [
            json!({ "id": "h", "checks": [] }),
            json!({ "id": "h", "checks": words, "async": true }),
            json!({ "id": "h", "checks": words, "type": "mutator" }),
            json!({ "id": "h", "checks": words, "on_success": { "feedback": { "value": 1 } } }),
            json!({ "id": "h", "checks": [{ "id": "wordCount" }, { "id": "modelWhitelist", "parameters": { "models": ["m"] } }] }),
        ] {
            assert!(CompiledHook::from_hook(hook.as_object().unwrap()).on_text.is_none(), "{hook}");
        }
    }
}
