//! `alluppercase` and `alllowercase`: the ASCII letters of the text are all of one case.

use crate::guardrails::check::Check;
use crate::guardrails::data::DataWriter;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;

struct LetterCase {
    is_upper: bool,
    not: bool,
}

pub fn compile_upper(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(LetterCase { is_upper: true, not: parameters.flag("not") }))
}

pub fn compile_lower(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(LetterCase { is_upper: false, not: parameters.flag("not") }))
}

impl Check for LetterCase {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Ok(text) = subject.text() else { return Verdict::too_many_texts() };
        if text.is_empty() {
            return Verdict::no_text();
        }
        let mut letters = text.bytes().filter(u8::is_ascii_alphabetic);
        let is_so = letters.all(|letter| letter.is_ascii_uppercase() == self.is_upper);
        let case = if self.is_upper { "upper" } else { "lower" };
        let data = DataWriter::default()
            .flag("not", self.not)
            .explanation(format_args!("The text is {} in {case} case.", if is_so { "all" } else { "not all" }))
            .excerpt(&text);
        Verdict::written(is_so != self.not, data)
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
    fn only_ascii_letters_count() {
        for (text, upper, lower) in [
            ("ABC", "pass", "fail"),
            ("abc", "fail", "pass"),
            ("aBc", "fail", "fail"),
            ("A B, C! 123", "pass", "fail"),
            ("a b, c! 123", "fail", "pass"),
            ("123", "pass", "pass"),
            (" ", "pass", "pass"),
            ("É", "pass", "pass"),
            ("é", "pass", "pass"),
            ("ÀB", "pass", "fail"),
            ("日本", "pass", "pass"),
            ("", "error", "error"),
            (&"A".repeat(1 << 20), "pass", "fail"),
        ] {
            assert_eq!(said(&run_text("alluppercase", &json!({}), text)), upper, "{}", text.len());
            assert_eq!(said(&run_text("alllowercase", &json!({}), text)), lower, "{}", text.len());
        }
        for (id, text, expected) in [
            ("alluppercase", "ABC", "fail"),
            ("alluppercase", "abc", "pass"),
            ("alllowercase", "abc", "fail"),
            ("isAllLowerCase", "ABC", "pass"),
            ("alluppercase", "", "error"),
        ] {
            assert_eq!(said(&run_text(id, &json!({ "not": true }), text)), expected, "{id} {text}");
        }
    }
}
