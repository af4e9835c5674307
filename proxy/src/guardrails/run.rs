//! Running the hooks of one side. Checks judge what was sent, all of them; what transforms it sees the transforms before it,
//! so that two redactors redact both. In a sequential hook, and in a mutator, every check sees them.

use super::extracted_headers::with_changes;
use super::hook::{CompiledCheck, CompiledHook, HookKind};
use super::meters::GuardMeters;
use super::moment::Moment;
use super::remote::{self, Place, RemoteAnswers};
use super::results::{CheckResult, HookResult, list};
use super::text_hook::Began;
use http::HeaderMap;
use serde_json::{Map, Value};
use shared::guardrails::{HeaderChange, Hook, JudgedText, Placeholders, Scope, Shape, Subject, with_readings};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest that the checks of one side compute. Each is bounded by itself; together they could take many times that.
const MAX_RUN: Duration = Duration::from_secs(5);

/// What checks may know besides the body.
#[derive(Clone, Copy)]
pub struct GuardInputs<'g> {
    pub hook: Hook,
    pub shape: Shape,
    pub request_type: &'static str,
    pub request: &'g Value,
    pub metadata: &'g Map<String, Value>,
    pub headers: &'g HeaderMap,
    /// In place of the body's own: of a stream, what it said.
    pub text: Option<&'g str>,
}

/// What came of one side.
#[derive(Debug, Default)]
pub struct SideResult {
    pub hooks: Vec<HookResult>,
    /// The body as it is to go on.
    pub transformed: Option<Value>,
    pub placeholders: Placeholders,
    /// Headers that checks made of what a token claims, for those after them.
    pub extracted: Vec<HeaderChange>,
    /// The first hook that denies, by its place in the list that was run.
    pub denied_by: Option<usize>,
    /// A hook failed without denying.
    pub is_failed: bool,
}

impl SideResult {
    /// As `hook_results` tells it, a list: those that could change the answer.
    pub fn to_json(&self) -> String {
        list(self.hooks.iter().filter(|hook| !hook.is_async).map(|hook| Cow::Borrowed(hook.json.as_str())))
    }

    /// The same without its brackets, at the end of a text.
    pub fn tell(&self, out: &mut Vec<u8>) {
        for (place, hook) in self.hooks.iter().filter(|hook| !hook.is_async).enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(hook.json.as_bytes());
        }
    }

    /// Bytes that it tells, and some more.
    pub fn size(&self) -> usize {
        self.hooks.iter().map(|hook| hook.json.len() + 1).sum()
    }

    /// Whether it tells anything.
    pub fn tells(&self) -> bool {
        self.hooks.iter().any(|hook| !hook.is_async)
    }

    /// As the log tells it, a list: all of them.
    pub fn logged(&self) -> String {
        list(self.hooks.iter().map(HookResult::logged))
    }

    /// The same without its brackets, at the end of a text.
    fn put_logged(&self, out: &mut String) {
        for (place, hook) in self.hooks.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            out.push_str(&hook.logged());
        }
    }

    /// The same, each by itself.
    pub fn logged_each(&self) -> Vec<String> {
        self.hooks.iter().map(|hook| hook.logged().into_owned()).collect()
    }
}

/// What the hooks of both sides said, as the log tells it: `both_sides` of what is `logged` of them.
pub fn both_sides_logged(before: &SideResult, after: Option<&SideResult>) -> String {
    const ENVELOPE: usize = 96;
    let size = before.size() + after.map_or(0, SideResult::size);
    let mut out = String::with_capacity(size + ENVELOPE);
    out.push_str("{\"before_request_hooks\":[");
    before.put_logged(&mut out);
    out.push_str("],\"after_request_hooks\":[");
    if let Some(after) = after {
        after.put_logged(&mut out);
    }
    out.push_str("]}");
    out
}

/// Runs hooks on a body: the request's before it is sent, the answer's before it is passed on. Nobody else is asked
/// (`remote::SideJob` does).
pub fn run_side(
    hooks: &[Arc<CompiledHook>],
    inputs: GuardInputs<'_>,
    body: &Value,
    meters: &GuardMeters,
) -> SideResult {
    run_side_with(hooks, inputs, body, meters, &mut RemoteAnswers::default())
}

/// The same with what others said. Where somebody must be asked first, it ends there: the answers say who.
pub fn run_side_with(
    hooks: &[Arc<CompiledHook>],
    inputs: GuardInputs<'_>,
    body: &Value,
    meters: &GuardMeters,
    answers: &mut RemoteAnswers,
) -> SideResult {
    let mut side = SideResult { hooks: Vec::with_capacity(hooks.len()), ..SideResult::default() };
    let begun = Began { instant: Instant::now(), moment: Moment::now() };
    answers.begin(begun.instant + MAX_RUN);
    // The clock is asked once for each check: when it ends, the next begins.
    let mut now = begun.instant;
    let text = inputs.text.map(JudgedText::new);
    // What looks for something forbidden also sees JSON inside of the text as it reads.
    let readings = inputs.text.map(with_readings).filter(|readings| matches!(readings, Cow::Owned(_)));
    let readings = readings.as_deref().map(JudgedText::new);
    for (place, hook) in hooks.iter().enumerate() {
        let began = Began { instant: now, moment: begun.moment.after(now - begun.instant) };
        let result = match is_skipped(hook, inputs) {
            true => HookResult::skipped(hook, began.moment),
            false => {
                let (result, ended) = match (&text, &hook.on_text) {
                    (Some(text), Some(on_text)) => {
                        let texts = (text, readings.as_ref().unwrap_or(text));
                        on_text.run((place, hook), texts, began, meters, answers)
                    }
                    _ => run_hook((place, hook), inputs, body, began, &mut side, meters, answers),
                };
                now = ended;
                result
            }
        };
        if answers.is_waiting() {
            break;
        }
        if result.deny && side.denied_by.is_none() {
            side.denied_by = Some(place);
        }
        side.is_failed |= !result.verdict && !result.is_async;
        side.hooks.push(result);
    }
    side
}

pub(super) fn is_skipped(hook: &CompiledHook, inputs: GuardInputs<'_>) -> bool {
    let is_vain = hook.kind == HookKind::Mutator && (hook.actions.is_async || inputs.shape == Shape::Embeddings);
    // Of what nobody reads only the kind is judged.
    is_vain || inputs.shape == Shape::Unread && !hook.judges_kinds()
}

/// What it says, and when it was done.
fn run_hook(
    (place, hook): (usize, &CompiledHook),
    inputs: GuardInputs<'_>,
    body: &Value,
    began: Began,
    side: &mut SideResult,
    meters: &GuardMeters,
    answers: &mut RemoteAnswers,
) -> (HookResult, Instant) {
    let mut now = began.instant;
    let in_order = hook.actions.is_sequential || hook.kind == HookKind::Mutator;
    let may_change = !hook.actions.is_async && inputs.text.is_none();
    let mut results = Vec::with_capacity(hook.checks.len());
    // What others took: side by side, or one after the other.
    let mut waited = Duration::ZERO;
    let is_run = |(_, check): &(usize, &CompiledCheck)| inputs.shape != Shape::Unread || check.judges_kind();
    for (index, check) in hook.checks.iter().enumerate().filter(is_run) {
        let check_began = now;
        let seen = side.transformed.as_ref().filter(|_| in_order).unwrap_or(body);
        let headers = with_changes(inputs.headers, if in_order { side.extracted.as_slice() } else { &[] });
        let inputs = GuardInputs { headers: &headers, ..inputs };
        let asked = Place { hook: place, check: index, is_again: false };
        let time = began.moment.seconds();
        let scope = hook.scope(check);
        let mut answer = remote::ask(check, &subject(inputs, seen, time, scope), answers, asked, check_began);
        if !in_order
            && answer.verdict.transformed.is_some()
            && let Some(latest) = &side.transformed
        {
            let again = Place { is_again: true, ..asked };
            answer = remote::ask(check, &subject(inputs, latest, time, scope), answers, again, Instant::now());
        }
        if answers.is_waiting() {
            break;
        }
        waited = if in_order { waited + answer.took } else { waited.max(answer.took) };
        let mut verdict = answer.verdict;
        if hook.kind == HookKind::Mutator && !verdict.is_bound() {
            verdict.verdict = true;
        }
        side.extracted.append(&mut verdict.headers);
        let transformed = verdict.transformed.take().filter(|_| may_change);
        let is_transformed = transformed.is_some();
        if let Some(json) = transformed {
            side.transformed = Some(json);
            side.placeholders.join(std::mem::take(&mut verdict.placeholders));
        }
        now = Instant::now();
        let took = now - check_began + answer.took;
        if answers.counts(place, index) {
            meters.checked(check.number, (&verdict).into(), took);
        }
        results.push(CheckResult {
            id: check.id,
            verdict,
            is_transformed,
            fails_on_error: check.fails_on_error,
            took,
            at: began.moment.after(check_began - began.instant),
        });
    }
    (HookResult::new(hook, &results, now - began.instant + waited, began.moment), now)
}

/// What a check judges at this time.
pub(super) fn subject<'s>(inputs: GuardInputs<'s>, body: &'s Value, now: i64, scope: Scope) -> Subject<'s> {
    let (request, response) = match inputs.hook {
        Hook::BeforeRequest => (body, None),
        Hook::AfterRequest => (inputs.request, Some(body)),
    };
    Subject {
        hook: inputs.hook,
        shape: inputs.shape,
        request_type: inputs.request_type,
        request,
        response,
        metadata: inputs.metadata,
        headers: inputs.headers,
        now,
        text: inputs.text,
        is_growing: false,
        scope,
    }
}

#[cfg(test)]
mod tests {
    use super::super::meters::CheckNumber;
    use super::super::results::both_sides;
    use super::*;
    use http::{HeaderName, HeaderValue};
    use serde_json::json;
    use shared::guardrails::{Check, Verdict};

    fn run(hooks: Value, body: &Value) -> SideResult {
        let hooks: Vec<_> = hooks
            .as_array()
            .unwrap()
            .iter()
            .map(|hook| Arc::new(CompiledHook::from_hook(hook.as_object().unwrap())))
            .collect();
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape: Shape::Chat,
            request_type: "chatComplete",
            request: body,
            metadata: &Map::new(),
            headers: &HeaderMap::new(),
            text: None,
        };
        run_side(&hooks, inputs, body, &GuardMeters::unregistered())
    }

    fn chat(text: &str) -> Value {
        json!({ "messages": [{ "role": "user", "content": text }] })
    }

    fn none_of(word: &str) -> Value {
        json!({ "id": "contains", "parameters": { "words": [word], "operator": "none" } })
    }

    #[test]
    fn a_hook_denies_only_when_it_fails_is_told_to_and_is_not_async() {
        for (hook, denied, failed) in [
            (json!({ "id": "h", "checks": [none_of("x")], "deny": true }), true, true),
            (json!({ "id": "h", "checks": [none_of("x")] }), false, true),
            (json!({ "id": "h", "checks": [none_of("x")], "deny": true, "async": true }), false, false),
            (json!({ "id": "h", "checks": [none_of("y")], "deny": true }), false, false),
            (json!({ "id": "h", "checks": [], "deny": true }), false, false),
            (
                json!({ "id": "h", "checks": [{ "id": "modelWhitelist", "parameters": { "models": ["m"] } }], "deny": true }),
                false,
                false,
            ),
            (
                json!({ "id": "h", "checks": [{ "id": "modelWhitelist", "parameters": { "models": ["m"], "failOnError": true } }],
                "deny": true }),
                true,
                true,
            ),
        ] {
            let side = run(json!([hook]), &chat("an x"));
            assert_eq!((side.denied_by.is_some(), side.is_failed), (denied, failed), "{hook}");
        }
    }

    #[test]
    fn redactors_of_several_hooks_redact_all_and_judges_see_what_was_sent() {
        let replace = |rule: &str| json!({ "id": "regexReplace", "parameters": { "rule": rule, "redactText": "-" } });
        let side = run(
            json!([{ "id": "a", "checks": [replace("x")] }, { "id": "b", "checks": [replace("y"), none_of("x")] },
                   { "id": "c", "sequential": true, "checks": [replace("z"), none_of("z")] }]),
            &chat("x y z"),
        );
        assert_eq!(side.transformed, Some(chat("- - -")));
        let verdicts: Vec<bool> = side.hooks.iter().map(|hook| hook.verdict).collect();
        assert_eq!(verdicts, [true, false, true]);
    }

    #[test]
    fn the_log_tells_both_sides_as_they_are_told_one_by_one() {
        let hook = |id: &str| json!({ "id": id, "checks": [none_of("x")], "deny": true, "audit": true });
        let before = run(json!([hook("a"), hook("b")]), &chat("an x"));
        let after = run(json!([hook("c")]), &chat("y"));
        assert!(before.logged().contains("\"audit\":true"), "{}", before.logged());
        for (before, after) in [(&before, Some(&after)), (&after, None), (&SideResult::default(), Some(&before))] {
            let to_json = both_sides(&before.logged(), after.map(SideResult::logged).as_deref().unwrap_or("[]"));
            assert_eq!(both_sides_logged(before, after), to_json);
        }
    }

    /// Makes a header of a claim, or passes where the header is what was claimed.
    struct Claims {
        extracts: bool,
    }

    impl Check for Claims {
        fn run(&self, subject: &Subject<'_>) -> Verdict {
            let claimed = HeaderValue::from_static("ada");
            let passes = self.extracts || subject.headers.get("x-jwt-sub") == Some(&claimed);
            let change = (HeaderName::from_static("x-jwt-sub"), Some(claimed));
            let headers = if self.extracts { vec![change] } else { Vec::new() };
            Verdict { headers, ..Verdict::new(passes, "said", Value::Null) }
        }
    }

    #[test]
    fn claims_of_a_token_are_headers_for_the_checks_after_it_in_order_and_for_no_others() {
        let mut headers = HeaderMap::new();
        headers.insert("x-jwt-sub", HeaderValue::from_static("forged"));
        for (is_sequential, passes) in [(true, true), (false, false)] {
            let hook = json!({ "id": "h", "sequential": is_sequential });
            let mut hook = CompiledHook::from_hook(hook.as_object().unwrap());
            hook.checks = [true, false]
                .map(|extracts| CompiledCheck {
                    id: "t",
                    check: Box::new(Claims { extracts }),
                    fails_on_error: false,
                    number: CheckNumber::from_id("t"),
                })
                .into();
            let body = chat("x");
            let inputs = GuardInputs {
                hook: Hook::BeforeRequest,
                shape: Shape::Chat,
                request_type: "chatComplete",
                request: &body,
                metadata: &Map::new(),
                headers: &headers,
                text: None,
            };
            let side = run_side(&[Arc::new(hook)], inputs, &body, &GuardMeters::unregistered());
            assert_eq!(side.hooks[0].verdict, passes, "{}", side.hooks[0].json);
            assert_eq!(side.extracted.len(), 1);
        }
    }

    #[test]
    fn a_mutator_only_transforms_and_an_async_hook_changes_nothing() {
        let prefix = json!({ "id": "addPrefix", "parameters": { "prefix": "p" } });
        let side =
            run(json!([{ "id": "m", "type": "mutator", "checks": [none_of("x"), prefix], "deny": true }]), &chat("x"));
        assert_eq!((side.transformed, side.is_failed, side.denied_by), (Some(chat("px")), false, None));
        let side = run(json!([{ "id": "a", "async": true, "checks": [prefix] }]), &chat("x"));
        assert_eq!((side.tells(), side.logged_each().len(), side.transformed.is_none()), (false, 1, true));
        assert_eq!(side.to_json(), "[]");
    }

    #[test]
    fn what_could_not_be_replaced_is_denied_whatever_the_hook_says() {
        let replace = json!({ "id": "regexReplace", "parameters": { "rule": "/a/g" } });
        let costly = chat(&"a".repeat(1 << 16));
        for kind in ["guardrail", "mutator"] {
            let side = run(json!([{ "id": "h", "type": kind, "checks": [replace] }]), &costly);
            assert_eq!((side.denied_by, side.is_failed), (Some(0), true), "{kind}");
        }
        let side = run(json!([{ "id": "h", "async": true, "checks": [replace] }]), &costly);
        assert_eq!((side.denied_by, side.is_failed), (None, false));
    }

    #[test]
    fn checks_that_take_too_long_together_never_pass_for_it() {
        let replace = json!({ "id": "regexReplace", "parameters": { "rule": "y" } });
        let hook = json!({ "id": "h", "checks": [none_of("y"), replace] });
        let hook = CompiledHook::from_hook(hook.as_object().unwrap());
        let (body, metadata, headers) = (chat("x"), Map::new(), HeaderMap::new());
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape: Shape::Chat,
            request_type: "chatComplete",
            request: &body,
            metadata: &metadata,
            headers: &headers,
            text: None,
        };
        for (left, passes) in [(MAX_RUN, true), (Duration::ZERO, false)] {
            let mut answers = RemoteAnswers::default();
            answers.begin(Instant::now() + left);
            for (index, check) in hook.checks.iter().enumerate() {
                let place = Place { hook: 0, check: index, is_again: false };
                let verdict =
                    remote::ask(check, &subject(inputs, &body, 0, Scope::Judged), &mut answers, place, Instant::now())
                        .verdict;
                assert_eq!((verdict.passes(false), verdict.forbids()), (passes, !passes && index == 1));
            }
        }
    }

    #[test]
    fn a_result_tells_its_checks_and_the_feedback_that_follows() {
        let side = run(
            json!([{ "id": "h", "checks": [none_of("x"), { "id": "default.modelwhitelist", "parameters": { "models": ["m"] } }],
                     "on_fail": { "feedback": { "value": -3, "metadata": { "k": "v" } } } }]),
            &chat("x"),
        );
        let json: Value = serde_json::from_str(&side.hooks[0].json).unwrap();
        assert_eq!(
            json["feedback"],
            json!({ "value": -3, "weight": 1.0, "metadata": { "k": "v", "successfulChecks": "",
            "failedChecks": "default.contains", "erroredChecks": "default.modelwhitelist" } })
        );
        assert_eq!(
            (&json["id"], &json["verdict"], &json["deny"], &json["async"]),
            (&json!("h"), &json!(false), &json!(false), &json!(false))
        );
        assert_eq!(json["checks"][0]["id"], "default.contains");
        assert_eq!(json["checks"][1]["error"]["name"], "NoModel");
        assert!(json["checks"][0]["data"]["explanation"].is_string());
    }
}
