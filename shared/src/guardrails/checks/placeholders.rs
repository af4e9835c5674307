//! What stands for a value that was taken out of a request, so that it can be put back into the answer: `[EMAIL_1]`. Lives as
//! long as the request; nothing here is ever shown or logged.

use crate::guardrails::check::Replaced;
use crate::guardrails::pattern::floor;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Beyond this many a request is no message.
const MAX_PLACEHOLDERS: usize = 4096;
/// No placeholder is longer.
const MAX_LENGTH: usize = 48;

/// Most requests have none, which costs no more than to say so.
#[derive(Default, Clone, PartialEq)]
pub struct Placeholders(Option<Box<Names>>);

#[derive(Default, Clone, PartialEq)]
struct Names {
    /// By what stands for it.
    values: HashMap<String, String>,
    /// What stands for it, by the value.
    names: HashMap<String, String>,
    /// The last number of each category; those before it are not tried again.
    last: HashMap<String, usize>,
}

impl Placeholders {
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|names| names.values.is_empty())
    }

    /// What stands for this value: the same for the same value. `is_taken` says that a text has it already. None when there
    /// are too many.
    pub fn name(&mut self, category: &str, value: &str, is_taken: impl Fn(&str) -> bool) -> Option<String> {
        let known = self.0.get_or_insert_default();
        if let Some(name) = known.names.get(value) {
            return Some(name.clone());
        }
        if known.values.len() >= MAX_PLACEHOLDERS {
            return None;
        }
        let last = known.last.entry(category.to_owned()).or_default();
        let name = loop {
            *last += 1;
            let name = format!("[{category}_{last}]");
            if !is_taken(&name) {
                break name;
            }
        };
        known.values.insert(name.clone(), value.to_owned());
        known.names.insert(value.to_owned(), name.clone());
        Some(name)
    }

    /// Those of another check beside these.
    pub fn join(&mut self, other: Self) {
        let Some(other) = other.0 else { return };
        let own = self.0.get_or_insert_default();
        for (name, value) in other.values {
            own.values.entry(name).or_insert(value);
        }
        for (value, name) in other.names {
            own.names.entry(value).or_insert(name);
        }
        for (category, number) in other.last {
            let last = own.last.entry(category).or_default();
            *last = number.max(*last);
        }
    }

    /// The text with the values put back, as far as it is decided: a placeholder may still be growing at its end.
    pub fn restore(&self, text: &str, is_end: bool) -> Replaced {
        let decided = match is_end {
            true => text.len(),
            false => match text.rfind('[') {
                Some(open) if text.len() - open < MAX_LENGTH && !text[open..].contains(']') => open,
                _ => text.len(),
            },
        };
        let mut restored = String::with_capacity(decided);
        let mut rest = &text[..decided];
        let mut is_changed = false;
        while let Some(open) = rest.find('[') {
            restored.push_str(&rest[..open]);
            rest = &rest[open..];
            let head = &rest[..floor(rest, MAX_LENGTH)];
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
        self.0.as_ref()?.values.get(name).map(String::as_str)
    }
}

/// What looks like a placeholder in some texts.
pub fn placeholders_in<'t>(texts: impl Iterator<Item = &'t str>) -> HashSet<&'t str> {
    let mut found = HashSet::new();
    for text in texts {
        for (open, _) in text.match_indices('[') {
            let head = &text[open..floor(text, open + MAX_LENGTH)];
            if let Some(end) = head.find(']')
                && head[..end].ends_with(|last: char| last.is_ascii_digit())
                && !head[1..end].contains('[')
            {
                found.insert(&head[..=end]);
            }
        }
    }
    found
}

impl fmt::Debug for Placeholders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Placeholders({})", self.0.as_ref().map_or(0, |names| names.values.len()))
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
    fn placeholders_that_a_text_has_already_are_passed_over_once() {
        let text: String = (1..=20_000).map(|number| format!("[EMAIL_{number}] [[x] é[")).collect();
        let taken = placeholders_in(std::iter::once(text.as_str()));
        assert_eq!(taken.len(), 20_000);
        let tried = std::cell::Cell::new(0);
        let mut names = Placeholders::default();
        for (value, name) in [("a", "[EMAIL_20001]"), ("b", "[EMAIL_20002]"), ("c", "[EMAIL_20003]")] {
            let is_taken = |name: &str| {
                tried.set(tried.get() + 1);
                taken.contains(name)
            };
            assert_eq!(names.name("EMAIL", value, is_taken).as_deref(), Some(name));
        }
        assert_eq!(tried.get(), 20_003);
    }

    #[test]
    fn no_more_is_held_back_than_a_placeholder_is_long() {
        let replaced = two().restore(&format!("[{}", "a".repeat(100)), false);
        assert_eq!(replaced.consumed, 101);
        assert_eq!(format!("{:?}", two()), "Placeholders(2)", "no value is printed");
    }
}
