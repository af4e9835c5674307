//! `modelwhitelist`: the model that is asked for is in a list.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::json;

struct ModelWhitelist {
    models: Vec<String>,
    not: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(ModelWhitelist { models: parameters.texts("models"), not: parameters.flag("not") }))
}

impl Check for ModelWhitelist {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Some(model) = subject.model() else { return Verdict::error("NoModel", "the request names no model") };
        let is_listed = self.models.iter().any(|listed| listed == model);
        let explanation = format!("The model {model} is {} the list.", if is_listed { "in" } else { "not in" });
        Verdict::new(is_listed != self.not, explanation, json!({ "requestedModel": model, "not": self.not }))
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run, said};
    use serde_json::json;

    #[test]
    fn a_model_is_listed_letter_by_letter() {
        for (models, not, model, expected) in [
            (json!(["a", "b"]), false, json!("a"), "pass"),
            (json!(["a", "b"]), false, json!("c"), "fail"),
            (json!(["a", "b"]), true, json!("a"), "fail"),
            (json!(["a", "b"]), true, json!("c"), "pass"),
            (json!(["a"]), false, json!("A"), "fail"),
            (json!(["gpt-4"]), false, json!("gpt-4o"), "fail"),
            (json!(["@p/gpt-4"]), false, json!("@p/gpt-4"), "pass"),
            (json!("a, b"), false, json!("b"), "pass"),
            (json!(["é"]), false, json!("é"), "pass"),
            (json!(["a"]), false, json!(""), "error"),
            (json!(["a"]), true, json!(null), "error"),
            (json!(["a"]), false, json!(7), "error"),
            (json!(["a"]), false, json!("m".repeat(1 << 20)), "fail"),
        ] {
            let request = json!({ "model": model, "messages": [] });
            let verdict = run("modelWhitelist", &json!({ "models": models, "not": not }), &request);
            assert_eq!(said(&verdict), expected, "{models} {not}");
        }
    }
}
