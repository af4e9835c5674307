//! `jsonSchema`: JSON in the text is valid by a schema.

use crate::guardrails::check::Check;
use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::json_in_text::candidates;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::schema::{Fuel, Schema, SchemaError};
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::{Value, json};

struct JsonSchema {
    schema: Schema,
    not: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let unreadable = || Fault::new(FaultKind::Unusable, "schema", "is a text that is not JSON");
    let schema = match parameters.get("schema") {
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| unreadable())?,
        other => other.cloned().unwrap_or_default(),
    };
    Ok(Box::new(JsonSchema { schema: Schema::parse(&schema, "schema")?, not: parameters.flag("not") }))
}

impl Check for JsonSchema {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Ok(text) = subject.text() else { return Verdict::too_many_texts() };
        let found = candidates(&text);
        let Some(first) = found.first() else {
            let data = json!({ "matchedJson": null, "validationErrors": [], "not": self.not });
            return Verdict::new(false, "There is no JSON in the text.", data).with_excerpt(&text);
        };
        let (mut first_errors, mut fuel) = (None, Fuel::default());
        for document in &found {
            match self.schema.errors(document, &mut fuel) {
                Ok(errors) if errors.is_empty() => return self.verdict(document, &[]),
                Ok(errors) => drop(first_errors.get_or_insert(errors)),
                Err(given_up) => return Verdict::bound("TooCostly", given_up.to_string()),
            }
        }
        self.verdict(first, &first_errors.unwrap_or_default())
    }

    fn reads_body(&self) -> bool {
        false
    }
}

impl JsonSchema {
    fn verdict(&self, document: &Value, errors: &[SchemaError]) -> Verdict {
        let is_valid = errors.is_empty();
        let explanation = match is_valid {
            true => "The text has JSON that fits the schema.",
            false => "The text has JSON, and none that fits the schema.",
        };
        let errors: Vec<Value> =
            errors.iter().map(|error| json!({ "path": error.path, "message": error.message })).collect();
        let data = json!({ "matchedJson": document, "validationErrors": errors, "not": self.not });
        Verdict::new(is_valid != self.not, explanation, data)
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::compile;
    use crate::guardrails::subject::testing::{run_answer, said};
    use serde_json::json;

    #[test]
    fn any_json_of_the_text_may_fit_the_schema() {
        let schema = json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } });
        for (not, text, expected) in [
            (false, r#"{"name":"a"}"#, "pass"),
            (false, r#"{"name":1}"#, "fail"),
            (true, r#"{"name":1}"#, "pass"),
            (true, r#"{"name":"a"}"#, "fail"),
            (false, "Here:\n```json\n{\"name\":\"a\"}\n```\nDone.", "pass"),
            (false, "```json\n{\"x\":1}\n``` and ```json\n{\"name\":\"a\"}\n```", "pass"),
            (false, r#"it is {"x":1} or {"name":"é"}."#, "pass"),
            (false, "no JSON at all", "fail"),
            (true, "no JSON at all", "fail"),
            (false, "", "fail"),
            (false, r#"{"name":"a""#, "fail"),
            (false, r#"["name"]"#, "fail"),
            (false, &format!(r#"{{"name":"{}"}}"#, "a".repeat(500_000)), "pass"),
        ] {
            let verdict = run_answer("jsonSchema", &json!({ "schema": schema, "not": not }), &json!(text));
            assert_eq!(said(&verdict), expected, "{not} {}", text.len());
        }
    }

    #[test]
    fn the_errors_are_told_by_their_paths_and_a_schema_may_be_a_text() {
        let parameters = json!({ "schema": r#"{"properties":{"a":{"type":"string"}}}"# });
        let verdict = run_answer("jsonSchema", &parameters, &json!("{\"a\":1}"));
        assert_eq!(
            verdict.data.value()["validationErrors"],
            json!([{ "path": "/a", "message": "is not of type \"string\"" }])
        );
        assert_eq!(verdict.data.value()["matchedJson"], json!({ "a": 1 }));
        for schema in [json!("{"), json!({ "type": "text" }), json!({ "$ref": "https://a.b" })] {
            assert!(compile("jsonSchema", &json!({ "schema": schema })).is_err(), "{schema}");
        }
    }

    #[test]
    fn a_schema_that_is_too_costly_is_an_error() {
        let verdict = run_answer("jsonSchema", &json!({ "schema": { "$ref": "#" } }), &json!("{}"));
        assert_eq!(verdict.error.map(|error| error.name), Some("TooCostly"));
    }
}
