//! What was ignored or changed of what a request says, as the header of its answers says it. Of a config it is written
//! once, when the config is compiled; the rest is added by each request.

use http::HeaderValue;
use shared::config::Fault;
use std::fmt::Write as _;

/// Most that are named in the header; the rest is told by its number.
const MAX_WARNINGS: usize = 20;
/// Longest text of one.
const MAX_TEXT: usize = 200;
/// Beyond this nothing is added: heads of answers are short everywhere.
const ROOM: usize = 4 << 10;

#[derive(Debug)]
pub struct ConfigWarnings {
    pub header: HeaderValue,
    pub faults: Box<[Fault]>,
}

impl ConfigWarnings {
    pub fn new(faults: Vec<Fault>) -> Option<Self> {
        if faults.is_empty() {
            return None;
        }
        let mut text = String::new();
        for fault in faults.iter().take(MAX_WARNINGS) {
            let separator = if text.is_empty() { "" } else { "; " };
            let named = format!("{}: {}", fault.path, fault.message);
            let _ = write!(text, "{separator}{}", visible(&named));
        }
        if faults.len() > MAX_WARNINGS {
            let _ = write!(text, "; and {} more", faults.len() - MAX_WARNINGS);
        }
        Some(Self { header: HeaderValue::try_from(text).ok()?, faults: faults.into() })
    }
}

/// The header with one more warning.
pub fn joined(header: Option<HeaderValue>, text: &str) -> Option<HeaderValue> {
    let more = visible(text);
    if header.as_ref().map_or(0, HeaderValue::len) + more.len() > ROOM {
        return header;
    }
    let Some(header) = header else { return HeaderValue::try_from(more).ok() };
    let both = [header.as_bytes(), b"; ", more.as_bytes()].concat();
    Some(HeaderValue::try_from(both).unwrap_or(header))
}

/// Names of fields are the caller's, in whatever letters; a header has its own.
fn visible(text: &str) -> String {
    text.chars().take(MAX_TEXT).map(|letter| if matches!(letter, ' '..='~') { letter } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::config::Code;

    #[test]
    fn warnings_are_one_line_of_bounded_length() {
        let fault = |path: &str| Fault { code: Code::UnknownKey, path: path.into(), message: "is unknown".into() };
        let told = |faults: Vec<Fault>| ConfigWarnings::new(faults).map(|one| one.header.to_str().unwrap().to_owned());
        assert_eq!(told(vec![]), None);
        assert_eq!(told(vec![fault("a"), fault("b.ö\n")]).unwrap(), "a: is unknown; b.??: is unknown");
        let many = told((0..100).map(|_| fault(&"x".repeat(5000))).collect()).unwrap();
        assert!(many.len() < 5000 && many.ends_with("; and 80 more"), "{many}");
    }

    #[test]
    fn a_header_grows_by_one_warning_until_it_is_full() {
        let mut header = joined(None, "a: b\n");
        assert_eq!(header.as_ref().unwrap(), "a: b?");
        header = joined(header, "c");
        assert_eq!(header.as_ref().unwrap(), "a: b?; c");
        for _ in 0..1000 {
            header = joined(header, &"x".repeat(5000));
        }
        assert!(header.unwrap().len() <= ROOM + 2);
        assert_eq!(joined(None, &"x".repeat(100_000)).unwrap().len(), MAX_TEXT);
    }
}
