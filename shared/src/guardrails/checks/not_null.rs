//! `notNull`: an answer says something. One that calls tools does, without a word.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::{Value, json};

struct NotNull {
    not: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(NotNull { not: parameters.flag("not") }))
}

impl Check for NotNull {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        if calls_tools(subject.json()) {
            let explanation = "The answer calls tools, so it needs no text.";
            return Verdict::new(true, explanation, json!({ "isNull": false, "not": self.not }));
        }
        let Ok(text) = subject.text() else { return Verdict::too_many_texts() };
        let is_null = text.trim().is_empty();
        let explanation = if is_null { "The answer is empty." } else { "The answer is not empty." };
        Verdict::new(is_null == self.not, explanation, json!({ "isNull": is_null, "not": self.not }))
            .with_excerpt(&text)
    }
}

fn calls_tools(answer: &Value) -> bool {
    let is_any = |place: &Value| place.as_array().is_some_and(|calls| !calls.is_empty());
    let is_call = |item: &Value| matches!(item["type"].as_str(), Some("tool_use" | "function_call"));
    let holds = |parts: &Value, name: &str| parts.as_array().into_iter().flatten().any(|part| part.get(name).is_some());
    is_any(&answer["choices"][0]["message"]["tool_calls"])
        || holds(&answer["candidates"][0]["content"]["parts"], "functionCall")
        || holds(&answer["output"]["message"]["content"], "toolUse")
        || answer["content"].as_array().into_iter().chain(answer["output"].as_array()).flatten().any(is_call)
}

#[cfg(test)]
mod tests {
    use crate::guardrails::compile;
    use crate::guardrails::subject::testing::{run_answer, said, subject};
    use serde_json::json;

    #[test]
    fn an_answer_of_nothing_but_spaces_is_null() {
        for (content, not, expected) in [
            (json!("a"), false, "pass"),
            (json!("a"), true, "fail"),
            (json!(""), false, "fail"),
            (json!(""), true, "pass"),
            (json!(null), false, "fail"),
            (json!(" \n\t"), false, "fail"),
            (json!([]), false, "fail"),
            (json!([{ "type": "text", "text": "a" }]), false, "pass"),
            (json!([{ "type": "text", "text": "" }]), false, "fail"),
            (json!([{ "type": "image_url" }]), false, "fail"),
            (json!("日"), false, "pass"),
            (json!("\u{a0}"), false, "fail"),
            (json!(" ".repeat(1 << 20)), true, "pass"),
        ] {
            let verdict = run_answer("notNull", &json!({ "not": not }), &content);
            assert_eq!(said(&verdict), expected, "{not} {verdict:?}");
        }
    }

    #[test]
    fn an_answer_that_calls_tools_is_passed() {
        let check = compile("notNull", &json!({})).unwrap();
        let request = json!({});
        for answer in [
            json!({ "choices": [{ "message": { "content": null, "tool_calls": [{ "function": { "arguments": "" } }] } }] }),
            json!({ "content": [{ "type": "tool_use", "input": {} }] }),
            json!({ "output": [{ "type": "function_call", "arguments": "" }] }),
            json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "f" } }] } }] }),
            json!({ "output": { "message": { "content": [{ "toolUse": { "name": "f" } }] } } }),
        ] {
            assert_eq!(said(&check.run(&subject(&request, Some(&answer)))), "pass", "{answer}");
        }
        let empty = json!({ "choices": [{ "message": { "content": null, "tool_calls": [] } }] });
        assert_eq!(said(&check.run(&subject(&request, Some(&empty)))), "fail");
    }
}
