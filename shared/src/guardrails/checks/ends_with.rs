//! `endsWith`: the text ends with a suffix, with or without a full stop after it.

use crate::guardrails::check::Check;
use crate::guardrails::data::DataWriter;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;

struct EndsWith {
    suffix: String,
    not: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(EndsWith { suffix: parameters.text_or("suffix", ""), not: parameters.flag("not") }))
}

impl Check for EndsWith {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Ok(text) = subject.text() else { return Verdict::too_many_texts() };
        if text.is_empty() {
            return Verdict::no_text();
        }
        let ends =
            text.ends_with(&self.suffix) || text.strip_suffix('.').is_some_and(|text| text.ends_with(&self.suffix));
        let data = DataWriter::default()
            .text("suffix", &self.suffix)
            .flag("not", self.not)
            .explanation(format_args!("The text {} with the suffix.", if ends { "ends" } else { "does not end" }))
            .excerpt(&text);
        Verdict::written(ends != self.not, data)
    }

    fn reads_body(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run_text, said};
    use serde_json::json;

    #[test]
    fn a_text_ends_with_the_suffix_or_with_a_stop_behind_it() {
        for (suffix, not, text, expected) in [
            ("end", false, "the end", "pass"),
            ("end", false, "the end.", "pass"),
            ("end", false, "the end..", "fail"),
            ("end", false, "the end ", "fail"),
            ("end", true, "the end", "fail"),
            ("end", true, "the start", "pass"),
            ("End", false, "the end", "fail"),
            (".", false, "stop.", "pass"),
            ("é", false, "café", "pass"),
            ("語", false, "日本語.", "pass"),
            ("longer than the text", false, "text", "fail"),
            ("a", false, "", "error"),
            ("a", true, "", "error"),
            ("b", false, &format!("{}b", "a".repeat(1 << 20)), "pass"),
        ] {
            let verdict = run_text("endsWith", &json!({ "suffix": suffix, "not": not }), text);
            assert_eq!(said(&verdict), expected, "{suffix} {not} {}", text.len());
        }
    }
}
