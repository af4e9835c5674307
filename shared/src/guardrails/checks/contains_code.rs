//! `containsCode`: a fenced block of the text says that it is of a language.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::json_in_text::fences;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::json;

#[rustfmt::skip]
pub static FORMATS: &[&str] = &[
    "SQL", "Python", "TypeScript", "JavaScript", "Java", "C#", "C++", "C", "Ruby", "PHP", "Swift", "Kotlin", "Go", "Rust",
    "Scala", "R", "Perl", "Shell", "HTML", "CSS", "XML", "JSON", "YAML", "Markdown", "Dockerfile",
];

/// What stands behind the three ticks, and what it means. Names of languages mean themselves.
#[rustfmt::skip]
static TAGS: &[(&str, &str)] = &[
    ("py", "Python"), ("gyp", "Python"), ("ts", "TypeScript"), ("tsx", "TypeScript"), ("js", "JavaScript"),
    ("jsx", "JavaScript"), ("cs", "C#"), ("csharp", "C#"), ("cpp", "C++"), ("rb", "Ruby"), ("kt", "Kotlin"),
    ("rs", "Rust"), ("pl", "Perl"), ("sh", "Shell"), ("bash", "Shell"), ("yml", "YAML"), ("md", "Markdown"),
];

struct ContainsCode {
    format: String,
    not: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(ContainsCode { format: parameters.text_or("format", ""), not: parameters.flag("not") }))
}

impl Check for ContainsCode {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Ok(text) = subject.text() else { return Verdict::too_many_texts() };
        if text.is_empty() {
            return Verdict::no_text();
        }
        let mut found: Vec<&str> = Vec::new();
        for format in fences(&text).filter_map(|(tag, _)| language(tag)) {
            if !found.contains(&format) {
                found.push(format);
            }
        }
        let is_there = found.contains(&self.format.as_str());
        let explanation = match found.is_empty() {
            true => "There is no block of code in the text.".to_owned(),
            false => format!(
                "There {} in the text.",
                if is_there { "is such code" } else { "is code, but none of this kind" }
            ),
        };
        let data = json!({ "format": self.format, "foundFormats": found, "not": self.not });
        Verdict::new(is_there != self.not, explanation, data).with_excerpt(&text)
    }

    fn reads_body(&self) -> bool {
        false
    }
}

fn language(tag: &str) -> Option<&'static str> {
    let is_tag = |known: &&(&str, &'static str)| known.0.eq_ignore_ascii_case(tag);
    let named = || FORMATS.iter().copied().find(|format| format.eq_ignore_ascii_case(tag));
    TAGS.iter().find(is_tag).map(|(_, format)| *format).or_else(named)
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run_answer, said};
    use serde_json::json;

    #[test]
    fn a_language_is_told_by_the_tag_of_a_block() {
        for (format, not, text, expected) in [
            ("Python", false, "```python\nx\n```", "pass"),
            ("Python", false, "```py\nx\n```", "pass"),
            ("Python", false, "```js\nx\n```", "fail"),
            ("Python", true, "```js\nx\n```", "pass"),
            ("Python", true, "```py\nx\n```", "fail"),
            ("Python", false, "no code", "fail"),
            ("Python", true, "no code", "pass"),
            ("Python", false, "```\nuntagged\n```", "fail"),
            ("C#", false, "```cs\nx\n```", "pass"),
            ("C++", false, "a ```cpp\nx\n``` b ```sh\ny\n```", "pass"),
            ("Shell", false, "a ```cpp\nx\n``` b ```sh\ny\n```", "pass"),
            ("SQL", false, "```SQL\nx\n```", "pass"),
            ("SQL", false, "```sql\nunclosed", "fail"),
            ("SQL", false, "", "error"),
            ("YAML", false, &format!("{}```yml\né\n```", "日".repeat(200_000)), "pass"),
        ] {
            let verdict = run_answer("containsCode", &json!({ "format": format, "not": not }), &json!(text));
            assert_eq!(said(&verdict), expected, "{format} {not} {}", text.len());
        }
    }
}
