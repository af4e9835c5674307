//! Figures of a slot by the names and values of metadata, for groups by a name. Under each name stand all calls of the slot: those
//! without it have the empty value. Response times are not kept, nor is a name whose values are very many or tell nearly every
//! call from every other: whoever groups by it counts logs. Values may say anything of people, so these figures do not outlast
//! the logs, which are what can be searched for a person (`seal`).

use super::counted_call::CountedCall;
use super::figures::Figures;
use super::pack::{ByValue, Wanted, read_some};
use super::slot_dimension::MAX_VALUE;
use crate::db::table::RowError;
use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetadataValues {
    /// Of all calls, whatever their metadata is.
    all: Figures,
    names: HashMap<String, NameValues, RandomState>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NameValues {
    Listed(ByValue),
    /// More than are worth keeping.
    TooMany,
}

/// Names in a slot, and values of one of them, at most.
pub const MAX_NAMES: usize = 64;
pub const MAX_OF_A_NAME: usize = 5000;
/// So many values are kept, whatever they are.
const FEW: usize = 32;
/// The name that figures are divided by anyway.
pub const USER: &str = "_user";

/// Between a name and its value; Postgres stores it in no text.
const SEPARATOR: char = '\0';
/// Instead of the values of a name that has too many.
const TOO_MANY: &str = "\0";

/// The metadata of a call: names and values as `metadata ->> name` shows them.
pub struct MetadataPairs(Vec<(String, String)>);

impl MetadataPairs {
    /// Of JSON as Postgres writes it. None for what cannot be read.
    pub fn parse(written: &str) -> Option<Self> {
        let pairs: HashMap<String, &RawValue> = serde_json::from_str(written).ok()?;
        let mut read = Vec::with_capacity(pairs.len());
        for (name, value) in pairs.into_iter().filter(|(name, value)| name != USER && value.get() != "null") {
            let text = value.get();
            let is_text = text.starts_with('"');
            read.push((name, if is_text { serde_json::from_str(text).ok()? } else { text.to_owned() }));
        }
        Some(Self(read))
    }

    fn value(&self, name: &str) -> &str {
        self.0.iter().find(|(one, _)| one == name).map_or("", |(_, value)| value)
    }
}

impl MetadataValues {
    /// Sets of figures in it.
    pub fn count(&self) -> usize {
        let entries = |values: &NameValues| match values {
            NameValues::Listed(entries) => entries.len(),
            NameValues::TooMany => 0,
        };
        1 + self.names.values().map(entries).sum::<usize>()
    }

    /// False when there are too many names.
    #[must_use]
    pub fn add_call(&mut self, call: &CountedCall<'_>, pairs: &MetadataPairs) -> bool {
        if !pairs.0.iter().all(|(name, _)| self.know(name)) {
            return false;
        }
        for (name, values) in &mut self.names {
            values.add(pairs.value(name), |sum| sum.add_sums(call));
        }
        self.all.add_sums(call);
        true
    }

    /// The same of a later or earlier stretch of time. False when there are too many names.
    #[must_use]
    pub fn merge(&mut self, other: &Self) -> bool {
        if !other.names.keys().all(|name| self.know(name)) {
            return false;
        }
        for (name, mine) in &mut self.names {
            match other.names.get(name) {
                Some(NameValues::TooMany) => *mine = NameValues::TooMany,
                Some(NameValues::Listed(theirs)) => {
                    theirs.iter().for_each(|(value, figures)| mine.add(value, |sum| sum.merge_sums(figures)));
                }
                None if other.all.requests == 0 => {}
                None => mine.add("", |sum| sum.merge_sums(&other.all)),
            }
        }
        self.all.merge_sums(&other.all);
        true
    }

    /// Forgets the values of names that tell nearly every call from every other: they take much room and are no groups. Not of
    /// minutes, so that the figures of half an hour are the same from its minutes and from its logs.
    pub fn trim(&mut self) {
        for values in self.names.values_mut() {
            let NameValues::Listed(entries) = &*values else { continue };
            let named = || entries.iter().filter(|(value, _)| !value.is_empty());
            let (different, calls) = (named().count() as u64, named().map(|(_, of)| of.requests).sum::<u64>());
            if different > FEW as u64 && different * 10 > calls * 9 {
                *values = NameValues::TooMany;
            }
        }
    }

    /// None of the calls before had a new name. False when there are too many.
    fn know(&mut self, name: &str) -> bool {
        if self.names.contains_key(name) {
            return true;
        }
        if self.names.len() >= MAX_NAMES {
            return false;
        }
        let before = (self.all.requests > 0).then(|| (String::new(), self.all.clone()));
        self.names.insert(name.to_owned(), NameValues::Listed(before.into_iter().collect()));
        true
    }

    /// As a pack has them: all calls under the empty text, the others under their name and value.
    pub fn flat(&self) -> Vec<(Cow<'_, str>, Cow<'_, Figures>)> {
        let mut flat = vec![(Cow::Borrowed(""), Cow::Borrowed(&self.all))];
        for (name, values) in &self.names {
            match values {
                NameValues::TooMany => {
                    flat.push((Cow::Owned(format!("{name}{SEPARATOR}{TOO_MANY}")), Cow::Owned(Figures::default())));
                }
                NameValues::Listed(entries) => {
                    flat.extend(entries.iter().map(|(value, figures)| {
                        (Cow::Owned(format!("{name}{SEPARATOR}{value}")), Cow::Borrowed(figures))
                    }))
                }
            }
        }
        flat
    }

    /// Takes one of them back.
    pub fn take(&mut self, text: &str, figures: &Figures) {
        let Some((name, value)) = text.split_once(SEPARATOR) else {
            self.all = figures.clone();
            return;
        };
        let empty = || NameValues::Listed(ByValue::default());
        match self.names.entry(name.to_owned()).or_insert_with(empty) {
            values if value == TOO_MANY => *values = NameValues::TooMany,
            NameValues::Listed(entries) => drop(entries.insert(value.to_owned(), figures.clone())),
            NameValues::TooMany => {}
        }
    }
}

impl NameValues {
    fn add(&mut self, value: &str, add: impl FnOnce(&mut Figures)) {
        let Self::Listed(entries) = self else { return };
        if let Some(sum) = entries.get_mut(value) {
            add(sum);
        } else if entries.len() >= MAX_OF_A_NAME || value.chars().nth(MAX_VALUE).is_some() {
            *self = Self::TooMany;
        } else {
            add(entries.entry(value.to_owned()).or_default());
        }
    }
}

/// Calls `each` with the values of a name, of a stored slot. False for a slot that does not have them.
pub fn read_name(
    stored: &[u8],
    slot: DateTime<Utc>,
    name: &str,
    mut each: impl FnMut(&str, &Figures),
) -> Result<bool, RowError> {
    let wants = |text: &str, _| match text.is_empty() || value_of(name, text).is_some() {
        true => Wanted::Sums,
        false => Wanted::Nothing,
    };
    let (mut all, mut is_there, mut is_complete) = (None, false, true);
    let is_whole = read_some(stored, slot, wants, |text, figures| match value_of(name, text) {
        Some(TOO_MANY) => is_complete = false,
        Some(value) => {
            is_there = true;
            each(value, figures);
        }
        None => all = Some(figures.clone()),
    })?;
    if let Some(all) = all.filter(|all| !is_there && all.requests > 0) {
        each("", &all);
    }
    Ok(is_whole && is_complete)
}

/// None for values of another name.
fn value_of<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    text.strip_prefix(name)?.strip_prefix(SEPARATOR)
}

#[cfg(test)]
mod tests;
