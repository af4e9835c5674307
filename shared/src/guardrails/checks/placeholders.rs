//! What stands for a value that was taken out of a request, so that it can be put back into the answer: `[EMAIL_1]`. Lives as
//! long as the request; nothing here is ever shown or logged.

use crate::guardrails::check::Replaced;
use crate::guardrails::pattern::floor;
use std::fmt;

/// Beyond this many a request is no message.
const MOST: usize = 4096;
/// No placeholder is longer.
const LONGEST: usize = 48;

#[derive(Default, Clone, PartialEq)]
pub struct Placeholders {
    /// (what stands for it, the value).
    pairs: Vec<(String, String)>,
}

impl Placeholders {
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// What stands for this value: the same for the same value. `is_taken` says that a text has it already. None when there
    /// are too many.
    pub fn name(&mut self, category: &str, value: &str, is_taken: impl Fn(&str) -> bool) -> Option<String> {
        if let Some((name, _)) = self.pairs.iter().find(|(_, known)| known == value) {
            return Some(name.clone());
        }
        if self.pairs.len() == MOST {
            return None;
        }
        let mut number = self.pairs.iter().filter(|(name, _)| is_of(name, category)).count() + 1;
        let mut name = format!("[{category}_{number}]");
        while is_taken(&name) || self.pairs.iter().any(|(other, _)| *other == name) {
            number += 1;
            name = format!("[{category}_{number}]");
        }
        self.pairs.push((name.clone(), value.to_owned()));
        Some(name)
    }

    /// Those of another check beside these.
    pub fn join(&mut self, other: Self) {
        self.pairs.extend(other.pairs);
    }

    /// The text with the values put back, as far as it is decided: a placeholder may still be growing at its end.
    pub fn restore(&self, text: &str, is_end: bool) -> Replaced {
        let decided = match is_end {
            true => text.len(),
            false => match text.rfind('[') {
                Some(open) if text.len() - open < LONGEST && !text[open..].contains(']') => open,
                _ => text.len(),
            },
        };
        let mut restored = String::with_capacity(decided);
        let mut rest = &text[..decided];
        let mut is_changed = false;
        while let Some(open) = rest.find('[') {
            restored.push_str(&rest[..open]);
            rest = &rest[open..];
            let head = &rest[..floor(rest, LONGEST)];
            let known = head.find(']').and_then(|end| self.value(&rest[..=end]).map(|value| (end, value)));
            match known {
                Some((end, value)) => {
                    restored.push_str(value);
                    rest = &rest[end + 1..];
                    is_changed = true;
                }
                None => {
                    restored.push('[');
                    rest = &rest[1..];
                }
            }
        }
        restored.push_str(rest);
        Replaced { text: restored, consumed: decided, is_changed }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn is_of(name: &str, category: &str) -> bool {
    name.strip_prefix('[').and_then(|name| name.strip_prefix(category)).is_some_and(|rest| rest.starts_with('_'))
}

impl fmt::Debug for Placeholders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Placeholders({})", self.pairs.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Placeholders {
        let mut names = Placeholders::default();
        assert_eq!(names.name("EMAIL", "a@b.c", |_| false).as_deref(), Some("[EMAIL_1]"));
        assert_eq!(names.name("EMAIL", "d@e.f", |name| name == "[EMAIL_2]").as_deref(), Some("[EMAIL_3]"));
        assert_eq!(names.name("EMAIL", "a@b.c", |_| false).as_deref(), Some("[EMAIL_1]"));
        names
    }

    #[test]
    fn values_come_back_wherever_the_text_is_cut() {
        let text = "[x] to [EMAIL_1], [EMAIL_2] é [EMAIL_3][EMAIL_1] [";
        let whole = "[x] to a@b.c, [EMAIL_2] é d@e.fa@b.c [";
        assert_eq!(two().restore(text, true).text, whole);
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut pending = text[..cut].to_owned();
            let first = two().restore(&pending, false);
            pending.drain(..first.consumed);
            pending.push_str(&text[cut..]);
            let second = two().restore(&pending, true);
            assert_eq!(format!("{}{}", first.text, second.text), whole, "cut at {cut}");
        }
    }

    #[test]
    fn no_more_is_held_back_than_a_placeholder_is_long() {
        let replaced = two().restore(&format!("[{}", "a".repeat(100)), false);
        assert_eq!(replaced.consumed, 101);
        assert_eq!(format!("{:?}", two()), "Placeholders(2)", "no value is printed");
    }
}
