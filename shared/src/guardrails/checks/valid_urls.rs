//! `validUrls`: every address that a text names is there. Whether it is, somebody with a dialer finds out: by asking for its head,
//! or, with `onlyDNS`, by resolving its name alone. Under the rules for addresses, since whoever wrote the text chose them.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::remote::{Answers, MAX_CALLS, Question, RemoteAnswer, RemoteCheck, RemoteContext};
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::json;
use std::time::Duration;

/// For all of them together.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_URL: usize = 4 << 10;

struct ValidUrls {
    only_names: bool,
    is_inverted: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(ValidUrls { only_names: parameters.flag("onlyDNS"), is_inverted: parameters.flag("not") }))
}

impl Check for ValidUrls {
    fn run(&self, _: &Subject<'_>) -> Verdict {
        super::elsewhere::not_asked()
    }

    fn remote(&self) -> Option<&dyn RemoteCheck> {
        Some(self)
    }
}

impl RemoteCheck for ValidUrls {
    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    fn ask(&self, subject: &Subject<'_>, _: &RemoteContext<'_>) -> Result<Question, Box<Verdict>> {
        let text = subject.text().map_err(|_| Box::new(Verdict::too_many_texts()))?;
        if text.trim().is_empty() {
            return Err(Verdict::no_text().into());
        }
        let urls = found(&text)?;
        if urls.is_empty() {
            let data = json!({ "validUrls": [], "invalidUrls": [], "validationMethod": self.method() });
            return Err(Verdict::new(false, "The text names no address.", data).into());
        }
        Ok(Question::Addresses { urls, only_names: self.only_names })
    }

    fn read(&self, subject: &Subject<'_>, answers: &Answers) -> Verdict {
        let urls = match subject.text().map_err(|_| Box::new(Verdict::too_many_texts())).and_then(|text| found(&text)) {
            Ok(urls) => urls,
            Err(verdict) => return *verdict,
        };
        let Answers::Addresses(there) = answers else { return RemoteAnswer::senseless("it says nothing of addresses") };
        if there.len() != urls.len() {
            return RemoteAnswer::senseless("it does not speak of every address");
        }
        let (valid, invalid): (Vec<_>, Vec<_>) = urls.into_iter().zip(there).partition(|(_, is_there)| **is_there);
        let names = |list: Vec<(String, &bool)>| list.into_iter().map(|(url, _)| url).collect::<Vec<_>>();
        let passes = invalid.is_empty() != self.is_inverted;
        let explanation = match invalid.is_empty() {
            true => "Every address that the text names is there.",
            false => "Some of the addresses that the text names are not there.",
        };
        let data =
            json!({ "validUrls": names(valid), "invalidUrls": names(invalid), "validationMethod": self.method() });
        Verdict::new(passes, explanation, data)
    }
}

impl ValidUrls {
    fn method(&self) -> &'static str {
        if self.only_names { "DNS" } else { "HTTP" }
    }
}

/// The addresses in a text, each once, in their order. More than are called, or longer ones, count as not looked at.
fn found(text: &str) -> Result<Vec<String>, Box<Verdict>> {
    let mut urls: Vec<String> = Vec::new();
    let mut end = 0;
    let ends = |letter: char| letter.is_whitespace() || matches!(letter, ',' | '"' | '\'' | '{' | '}' | '[' | ']');
    for (at, _) in text.match_indices("http") {
        // One address inside another is part of it.
        if at < end {
            continue;
        }
        let rest = &text[at..];
        let Some(after) = rest.strip_prefix("https://").or_else(|| rest.strip_prefix("http://")) else { continue };
        let url = &rest[..rest.find(ends).unwrap_or(rest.len())];
        end = at + url.len();
        if after.starts_with(ends) || after.is_empty() || urls.iter().any(|known| known == url) {
            continue;
        }
        if urls.len() >= MAX_CALLS || url.len() > MAX_URL {
            let why = format!("the text names more than {MAX_CALLS} addresses, or one of more than {MAX_URL} bytes");
            return Err(Verdict::bound("TooMany", why).into());
        }
        urls.push(url.to_owned());
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardrails::compile;
    use crate::guardrails::subject::testing::{said, subject};
    use serde_json::Value;

    #[test]
    fn addresses_are_found_once_each_up_to_where_they_end() {
        for (text, expected) in [
            ("", vec![]),
            ("no address", vec![]),
            ("http:// and https://", vec![]),
            ("see https://a.test.", vec!["https://a.test."]),
            ("https://a.test/x?y=1#z, http://b.test", vec!["https://a.test/x?y=1#z", "http://b.test"]),
            (
                "[https://a.test] {https://b.test} 'https://c.test'",
                vec!["https://a.test", "https://b.test", "https://c.test"],
            ),
            ("https://a.test\nhttps://a.test", vec!["https://a.test"]),
            ("https://a.test/?to=https://b.test", vec!["https://a.test/?to=https://b.test"]),
            ("https://a.test/https://b.test https://b.test", vec!["https://a.test/https://b.test", "https://b.test"]),
            ("é https://é.test/ü", vec!["https://é.test/ü"]),
            ("HTTPS://a.test ftp://b.test", vec![]),
        ] {
            assert_eq!(found(text).unwrap(), expected, "{text}");
        }
        let many: String = (0..=MAX_CALLS).map(|number| format!("https://a.test/{number} ")).collect();
        assert!(found(&many).is_err_and(|verdict| !verdict.passes(false)));
        assert!(found(&format!("https://{}", "a".repeat(MAX_URL))).is_err());
    }

    fn judged(parameters: &Value, text: &str, there: Vec<bool>) -> Verdict {
        let request = json!({ "messages": [] });
        let response = json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] });
        let check = compile("default.validUrls", parameters).unwrap();
        let (remote, subject) = (check.remote().unwrap(), subject(&request, Some(&response)));
        match remote.ask(&subject, &RemoteContext::default()) {
            Ok(Question::Addresses { .. }) => remote.read(&subject, &Answers::Addresses(there)),
            Ok(_) => panic!("it asks about addresses"),
            Err(verdict) => *verdict,
        }
    }

    #[test]
    fn all_must_be_there_and_a_text_without_any_fails() {
        let (plain, not) = (json!({}), json!({ "not": true }));
        let two = "https://a.test https://b.test";
        for (parameters, text, there, expected) in [
            (&plain, two, vec![true, true], "pass"),
            (&plain, two, vec![true, false], "fail"),
            (&not, two, vec![true, true], "fail"),
            (&not, two, vec![true, false], "pass"),
            (&plain, "none", vec![], "fail"),
            (&not, "none", vec![], "fail"),
            (&plain, " ", vec![], "error"),
            (&plain, two, vec![true], "error"),
        ] {
            assert_eq!(said(&judged(parameters, text, there)), expected, "{parameters} {text}");
        }
        let told = judged(&json!({ "onlyDNS": true }), two, vec![true, false]).data.into_value();
        assert_eq!((&told["invalidUrls"], &told["validationMethod"]), (&json!(["https://b.test"]), &json!("DNS")));
    }
}
