//! Reading a JSON object field by field. Names may be in snake or in camel case; a null is as good as nothing; what
//! nobody took in the end is unknown.

use super::fault::{Code, Path, Reading};
use crate::nearest::nearest;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Of an object whose keys we know, of which there are fewer: they are compared with each other.
const MAX_KEYS: usize = 256;

pub struct ConfigObject<'v, 'p> {
    pub path: &'p Path<'p>,
    fields: Vec<(Cow<'v, str>, &'v Value)>,
    /// The names that were looked for: those that are known.
    asked: Vec<String>,
}

impl<'v, 'p> ConfigObject<'v, 'p> {
    /// An object whose keys may also be in camel case.
    pub fn parse(reading: &mut Reading<'_>, path: &'p Path<'p>, value: &'v Value) -> Option<Self> {
        let fields = fields(reading, path, value)?;
        if fields.len() > MAX_KEYS {
            reading.fault(path, Code::TooMany, format!("must not have more than {MAX_KEYS} keys"));
        }
        let mut object = Self { path, fields: Vec::with_capacity(fields.len().min(MAX_KEYS)), asked: Vec::new() };
        for (key, value) in fields.iter().take(MAX_KEYS) {
            let name = snake(key);
            if object.fields.iter().any(|(other, _)| *other == name) {
                reading.fault(&path.key(&name), Code::DuplicateKey, "is sent in snake case and in camel case");
            } else if !value.is_null() {
                object.fields.push((name, value));
            }
        }
        Some(object)
    }

    /// An object whose keys are names as they are.
    pub fn verbatim(reading: &mut Reading<'_>, path: &'p Path<'p>, value: &'v Value) -> Option<Self> {
        let fields = fields(reading, path, value)?;
        let sent = fields.iter().filter(|(_, value)| !value.is_null());
        let fields = sent.map(|(key, value)| (Cow::Borrowed(key.as_str()), value)).collect();
        Some(Self { path, fields, asked: Vec::new() })
    }

    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(other, _)| other == name)
    }

    pub fn take(&mut self, name: &str) -> Option<&'v Value> {
        #[cfg(test)]
        asked_for::note(self.path, name);
        if self.fields.is_empty() {
            return None;
        }
        self.asked.push(name.to_owned());
        let found = self.fields.iter().position(|(other, _)| other == name)?;
        Some(self.fields.remove(found).1)
    }

    /// What has not been taken yet, in the order it was sent.
    pub fn rest(&mut self) -> Vec<(Cow<'v, str>, &'v Value)> {
        std::mem::take(&mut self.fields)
    }

    /// Whatever is left is unknown: refused when saved, ignored with a warning inline.
    pub fn finish(mut self, reading: &mut Reading<'_>) {
        let path = self.path;
        for (name, _) in self.rest() {
            let meant = reading.may_guess().then(|| nearest(&name, self.asked.iter().map(String::as_str))).flatten();
            unknown(reading, &path.key(&name), meant);
        }
    }

    /// A text that is not empty.
    pub fn text(&mut self, reading: &mut Reading<'_>, name: &str) -> Option<String> {
        let value = self.take(name)?;
        text(reading, &self.path.key(name), value)
    }

    pub fn flag(&mut self, reading: &mut Reading<'_>, name: &str) -> Option<bool> {
        let value = self.take(name)?;
        let flag = value.as_bool();
        if flag.is_none() {
            reading.fault(&self.path.key(name), Code::WrongType, "must be true or false");
        }
        flag
    }

    /// A whole number; `8000.0` is one too.
    pub fn integer(&mut self, reading: &mut Reading<'_>, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(name)?;
        let path = self.path.key(name);
        let Some(number) = whole(value) else {
            reading.fault(&path, Code::WrongType, "must be a whole number");
            return None;
        };
        match u64::try_from(number).ok().filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let nearest = u64::try_from(number).unwrap_or(0).clamp(*range.start(), *range.end());
                let allowed = bounds(range.start(), range.end(), *range.end() == u64::MAX);
                out_of_range(reading, &path, &number, &nearest, &allowed);
                Some(nearest)
            }
        }
    }

    pub fn number(&mut self, reading: &mut Reading<'_>, name: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.take(name)?;
        let path = self.path.key(name);
        let Some(number) = value.as_f64() else {
            reading.fault(&path, Code::WrongType, "must be a number");
            return None;
        };
        if range.contains(&number) {
            return Some(number);
        }
        let nearest = number.clamp(*range.start(), *range.end());
        let allowed = bounds(range.start(), range.end(), *range.end() == f64::MAX);
        out_of_range(reading, &path, &number, &nearest, &allowed);
        // A saved config is refused for it: one mistake, one fault.
        (!reading.is_saved()).then_some(nearest)
    }

    /// One of a closed set of words.
    pub fn choice<T: Copy>(&mut self, reading: &mut Reading<'_>, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let value = self.take(name)?;
        choice(reading, &self.path.key(name), value, choices)
    }

    pub fn statuses(&mut self, reading: &mut Reading<'_>, name: &str) -> Option<Vec<u16>> {
        let value = self.take(name)?;
        let path = self.path.key(name);
        let mut statuses = Vec::new();
        for (index, item) in array(reading, &path, value)?.iter().enumerate() {
            match whole(item).and_then(|number| u16::try_from(number).ok()).filter(|code| (100..=599).contains(code)) {
                Some(code) => statuses.push(code),
                None if item.is_string() => reading.fault(
                    &path.index(index),
                    Code::OutOfRange,
                    "must be a number: a status code without quotes",
                ),
                None => reading.fault(&path.index(index), Code::OutOfRange, "must be a status code from 100 to 599"),
            }
        }
        Some(statuses)
    }

    pub fn texts(&mut self, reading: &mut Reading<'_>, name: &str) -> Option<Vec<String>> {
        let value = self.take(name)?;
        let path = self.path.key(name);
        let items = array(reading, &path, value)?.iter().enumerate();
        Some(items.filter_map(|(index, item)| text(reading, &path.index(index), item)).collect())
    }

    /// An object that belongs to somebody else: its keys are kept as they are.
    pub fn opaque(&mut self, reading: &mut Reading<'_>, name: &str) -> Option<Map<String, Value>> {
        let value = self.take(name)?;
        fields(reading, &self.path.key(name), value).cloned()
    }

    pub fn array(&mut self, reading: &mut Reading<'_>, name: &str) -> Option<&'v [Value]> {
        let value = self.take(name)?;
        array(reading, &self.path.key(name), value)
    }
}

pub fn unknown(reading: &mut Reading<'_>, path: &Path<'_>, meant: Option<&str>) {
    let message = match meant {
        Some(meant) => format!("is not a field of a config: did you mean {meant}?"),
        None => "is not a field of a config".to_owned(),
    };
    reading.tolerate(path, Code::UnknownKey, message);
}

/// What follows a message about a name that is not among the known ones, where it is near one of them.
pub fn guess<'k>(sent: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(sent, known).map(|meant| format!(": did you mean {meant}?")).unwrap_or_default()
}

/// Refused when saved; of a config that came with a request the nearest that is allowed is taken.
pub fn out_of_range(
    reading: &mut Reading<'_>,
    path: &Path<'_>,
    sent: &dyn std::fmt::Display,
    taken: &dyn std::fmt::Display,
    allowed: &str,
) {
    let message =
        if reading.is_saved() { allowed.to_owned() } else { format!("{allowed}: {sent} was taken as {taken}") };
    reading.tolerate(path, Code::OutOfRange, message);
}

pub fn text(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.trim().is_empty() => reading.fault(path, Code::Empty, "must not be empty"),
        Value::String(text) => return Some(text.clone()),
        _ => reading.fault(path, Code::WrongType, "must be a string"),
    }
    None
}

pub fn choice<T: Copy>(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value, choices: &[(&str, T)]) -> Option<T> {
    let Value::String(word) = value else {
        reading.fault(path, Code::WrongType, "must be a string");
        return None;
    };
    let found = choices.iter().find(|(name, _)| name == word);
    if found.is_none() {
        let words: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let guess = guess(word, words.iter().copied());
        reading.fault(path, Code::NotOneOf, format!("must be one of {}{guess}", words.join(", ")));
    }
    found.map(|(_, choice)| *choice)
}

pub fn array<'v>(reading: &mut Reading<'_>, path: &Path<'_>, value: &'v Value) -> Option<&'v [Value]> {
    match value {
        Value::Array(items) => Some(items),
        _ => {
            reading.fault(path, Code::WrongType, "must be an array");
            None
        }
    }
}

fn fields<'v>(reading: &mut Reading<'_>, path: &Path<'_>, value: &'v Value) -> Option<&'v Map<String, Value>> {
    if !value.is_object() {
        reading.fault(path, Code::WrongType, "must be an object");
    }
    value.as_object()
}

fn whole(value: &Value) -> Option<i64> {
    let float = || value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
    value.as_i64().or_else(|| float().map(|number| number as i64))
}

fn bounds(low: &dyn std::fmt::Display, high: &dyn std::fmt::Display, is_open: bool) -> String {
    if is_open { format!("must be at least {low}") } else { format!("must be from {low} to {high}") }
}

/// `useRetryAfterHeader` is `use_retry_after_header`.
pub(super) fn snake(key: &str) -> Cow<'_, str> {
    if !key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Borrowed(key);
    }
    let mut name = String::with_capacity(key.len() + 4);
    for (index, letter) in key.chars().enumerate() {
        if letter.is_ascii_uppercase() && index > 0 {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    Cow::Owned(name)
}

/// Which fields of each object are looked for, whether they are there or not.
#[cfg(test)]
pub mod asked_for {
    use super::Path;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static NAMES: RefCell<BTreeSet<(String, String)>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub fn note(path: &Path<'_>, name: &str) {
        NAMES.with_borrow_mut(|names| names.insert((path.to_string(), name.to_owned())));
    }

    /// Of the object at this path; the root's is empty.
    pub fn names(path: &str) -> Vec<String> {
        NAMES.with_borrow(|names| names.iter().filter(|(at, _)| at == path).map(|(_, name)| name.clone()).collect())
    }
}
