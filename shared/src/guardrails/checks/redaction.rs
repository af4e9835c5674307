//! Finding and replacing things of some categories, shared by personal data and secrets. Patterns here are our own: bounded in
//! length, so that a text can be judged while it grows.

use super::placeholders::{Placeholders, placeholders_in};
use crate::guardrails::check::{Check, Replaced};
use crate::guardrails::parameters::Parameters;
use crate::guardrails::pattern::{ceil, floor};
use crate::guardrails::subject::Subject;
use crate::guardrails::text::{Scope, read_escapes, with_blanks};
use crate::guardrails::verdict::{TOO_MANY_TEXTS, Verdict};
use regex::Regex;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// Longer than any match of a finder, and what must follow it.
pub const WINDOW: usize = 512;
/// The category of what stands in escapes, digit by digit.
const HIDDEN: &str = "ESCAPED";
/// JSON may stand in JSON; deeper than this nobody reads it.
const MAX_READINGS: usize = 3;
/// A text with more has them all over; it is refused rather than half redacted.
const MAX_MATCHES: usize = 10_000;

/// One kind of thing in a text.
pub struct Finder {
    pub category: &'static str,
    pub pattern: Regex,
    /// Bytes of which every match has one, so that a text without them need not be searched; none where that cannot be told.
    pub needs: &'static [u8],
    /// Which group is the value; 0 for all of it.
    pub group: usize,
    /// Says no to what only looks like one.
    pub is_one: fn(&str) -> bool,
    /// It proves itself, so that what follows it can be told from it: `4111 1111 1111 1111 7` is a card and a 7.
    pub proves_itself: bool,
    /// May be longer than the window: replaced only in a text that is complete.
    pub is_long: bool,
}

struct FoundPlace {
    whole: Range<usize>,
    value: Range<usize>,
}

/// Which bytes a text has.
struct Present([bool; 256]);

impl Present {
    fn of(text: &str) -> Self {
        let mut present = [false; 256];
        text.bytes().for_each(|byte| present[usize::from(byte)] = true);
        Self(present)
    }

    fn has_any(&self, bytes: &[u8]) -> bool {
        bytes.is_empty() || bytes.iter().any(|byte| self.0[usize::from(*byte)])
    }
}

impl Finder {
    fn find_at(&self, text: &str, at: usize) -> Option<FoundPlace> {
        if self.group == 0 {
            let whole = self.pattern.find_at(text, at)?.range();
            return Some(FoundPlace { value: whole.clone(), whole });
        }
        let found = self.pattern.captures_at(text, at)?;
        let whole = found.get_match().range();
        Some(FoundPlace { value: found.get(self.group).map_or(whole.clone(), |value| value.range()), whole })
    }
}

impl Finder {
    /// The value, if it is one, without what only follows it.
    fn confirm(&self, text: &str, value: Range<usize>) -> Option<Range<usize>> {
        if (self.is_one)(&text[value.clone()]) {
            return Some(value);
        }
        if !self.proves_itself {
            return None;
        }
        let separators = text[value.clone()].rmatch_indices([' ', '-']);
        let mut shorter = separators.map(|(at, _)| value.start..value.start + at);
        shorter.find(|shorter| (self.is_one)(&text[shorter.clone()]))
    }
}

/// A check that finds these, and may replace them.
pub struct Redaction {
    finders: Vec<&'static Finder>,
    what: &'static str,
    redacts: bool,
    is_reversible: bool,
    not: bool,
}

/// More than can be told apart in bounded work.
struct TooMany;

/// Where something stands, the rank of its finder and its category.
type RankedPlace = (Range<usize>, usize, &'static str);

impl Redaction {
    pub fn new(all: &'static [Finder], what: &'static str, parameters: &Parameters<'_>) -> Self {
        let wanted = parameters.texts("categories");
        let is_wanted = |finder: &&Finder| wanted.is_empty() || wanted.iter().any(|one| one == finder.category);
        let is_reversible = parameters.flag("reversible");
        Self {
            finders: all.iter().filter(is_wanted).collect(),
            what,
            redacts: parameters.flag("redact") || is_reversible,
            is_reversible,
            not: parameters.flag("not"),
        }
    }

    /// Places in the text, in order, none over another. Of JSON in a text also what begins behind an escape: `\n4111…` is a number at the beginning of a line.
    fn find(&self, text: &str) -> Result<Vec<(Range<usize>, &'static str)>, TooMany> {
        let mut found = self.search(text)?;
        if let Cow::Owned(masked) = with_blanks(text) {
            found.extend(self.search(&masked)?);
        }
        Ok(apart(found))
    }

    /// Whether there is more in a text than is found at its place: it stands in escapes, letter by letter, or in JSON inside of
    /// JSON.
    fn hides(&self, text: &str, found: usize) -> bool {
        let mut reading = Cow::Borrowed(text);
        for _ in 0..MAX_READINGS {
            if !reading.contains('\\') {
                return false;
            }
            reading = Cow::Owned(read_escapes(&reading));
            if self.search(&reading).map_or(true, |read| apart(read).len() > found) {
                return true;
            }
        }
        false
    }

    /// All places with the ranks of their finders, some perhaps over others.
    fn search(&self, text: &str) -> Result<Vec<RankedPlace>, TooMany> {
        let mut found: Vec<RankedPlace> = Vec::new();
        let present = Present::of(text);
        let possible = self.finders.iter().enumerate().filter(|(_, finder)| present.has_any(finder.needs));
        for (rank, finder) in possible {
            let (mut at, mut mistaken) = (0, 0);
            while let Some(place) = finder.find_at(text, at) {
                if let Some(value) = finder.confirm(text, place.value) {
                    at = ceil(text, value.end.max(place.whole.start + 1));
                    found.push((value, rank, finder.category));
                } else {
                    // One may begin inside what only looks like one; not for ever, since callers write the text.
                    mistaken += 1;
                    let next = if mistaken < MAX_MATCHES { place.whole.start + 1 } else { place.whole.end };
                    at = ceil(text, next.max(at + 1));
                }
                if found.len() > MAX_MATCHES {
                    return Err(TooMany);
                }
                if at >= text.len() {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn too_many(&self) -> String {
        format!("there is more that looks like {} than can be told apart", self.what)
    }

    /// There was more than it looks at; nothing may go on where it should have been replaced.
    fn over(&self, message: impl Into<String>) -> Verdict {
        match self.redacts {
            true => Verdict::unreplaced("TooMany", message),
            false => Verdict::bound("TooMany", message),
        }
    }

    fn describe(&self, counts: &[(&'static str, usize)]) -> (String, Value) {
        let total: usize = counts.iter().map(|(_, count)| count).sum();
        let explanation = match total {
            0 => format!("No {} was found.", self.what),
            _ => format!(
                "{total} pieces of {} were found{}.",
                self.what,
                if self.redacts { " and replaced" } else { "" }
            ),
        };
        let detections: Vec<Value> =
            counts.iter().map(|(category, count)| json!({ "category": category, "count": count })).collect();
        (explanation, json!({ "detections": detections, "redact": self.redacts, "not": self.not }))
    }
}

/// In order, none over another; where two meet, the finder that is listed first wins.
fn apart(mut found: Vec<RankedPlace>) -> Vec<(Range<usize>, &'static str)> {
    found.sort_by_key(|(place, rank, _)| (*rank, place.start, std::cmp::Reverse(place.end)));
    let mut accepted: Vec<(Range<usize>, &'static str)> = Vec::new();
    let mut taken = std::collections::BTreeMap::<usize, usize>::new();
    for (place, _, category) in found {
        let before = taken.range(..place.end).next_back();
        if before.is_none_or(|(_, end)| *end <= place.start) {
            taken.insert(place.start, place.end);
            accepted.push((place, category));
        }
    }
    accepted.sort_by_key(|(place, _)| place.start);
    accepted
}

fn count(counts: &mut Vec<(&'static str, usize)>, category: &'static str) {
    match counts.iter_mut().find(|(known, _)| *known == category) {
        Some((_, count)) => *count += 1,
        None => counts.push((category, 1)),
    }
}

impl Check for Redaction {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let mut counts = Vec::new();
        if let Some(text) = subject.text {
            let Ok(found) = self.find(text) else { return Verdict::bound("TooMany", self.too_many()) };
            if self.hides(text, found.len()) {
                count(&mut counts, HIDDEN);
            }
            // What touches the end of a growing text may become something else.
            let found = found.into_iter().filter(|(place, _)| !subject.is_growing || place.end < text.len());
            found.for_each(|(_, category)| count(&mut counts, category));
            let (explanation, data) = self.describe(&counts);
            return Verdict::new(self.redacts || counts.is_empty() != self.not, explanation, data);
        }
        let json = subject.json();
        // All that leaves, not the last message alone: the turns before it are sent again.
        let places = subject.places(Scope::All);
        if places.is_cut {
            return self.over(TOO_MANY_TEXTS);
        }
        let mut names = Placeholders::default();
        let taken = if self.is_reversible { placeholders_in(places.texts(json)) } else { HashSet::new() };
        let (mut is_over, mut is_hidden) = (false, false);
        // A name cannot be replaced.
        for name in places.names() {
            let Ok(found) = self.find(name) else { return self.over(self.too_many()) };
            is_hidden |= !found.is_empty();
            found.iter().for_each(|(_, category)| count(&mut counts, category));
        }
        let changed = places.replace(json, |text| {
            let Ok(found) = self.find(text) else {
                is_over = true;
                return None;
            };
            found.iter().for_each(|(_, category)| count(&mut counts, category));
            if self.hides(text, found.len()) {
                count(&mut counts, HIDDEN);
                is_hidden = true;
            }
            if !self.redacts || found.is_empty() {
                return None;
            }
            let mut replaced = String::with_capacity(text.len());
            let mut at = 0;
            for (place, category) in found {
                replaced.push_str(&text[at..place.start]);
                let value = &text[place.clone()];
                let name =
                    if self.is_reversible { names.name(category, value, |name| taken.contains(name)) } else { None };
                replaced.push_str(&name.unwrap_or_else(|| format!("[{category}]")));
                at = place.end;
            }
            replaced.push_str(&text[at..]);
            Some(replaced)
        });
        if is_over {
            return self.over(self.too_many());
        }
        if is_hidden && self.redacts {
            let why = format!("there is {} where it cannot be replaced: in a name, a number or in escapes", self.what);
            return Verdict::unreplaced("Unreplaced", why);
        }
        let (explanation, data) = self.describe(&counts);
        let verdict = Verdict::new(self.redacts || counts.is_empty() != self.not, explanation, data);
        let verdict = Verdict { placeholders: names, ..verdict };
        match changed {
            Some(json) => verdict.with_transformed(json),
            None => verdict,
        }
    }

    fn scope(&self) -> Scope {
        Scope::All
    }

    fn window(&self) -> Option<usize> {
        let is_long = self.redacts && self.finders.iter().any(|finder| finder.is_long);
        (!self.not && !is_long).then_some(WINDOW)
    }

    /// A value in an answer has nobody to come back to, so it is replaced for good.
    fn replace(&self, text: &str, is_end: bool) -> Option<Replaced> {
        if !self.redacts {
            return None;
        }
        if !is_end && self.window().is_none() {
            return Some(Replaced { text: String::new(), consumed: 0, is_changed: false });
        }
        let mut decided = text.len();
        if !is_end {
            // Between words where there are some, and not between the groups of a number, so that the rest begins with nothing
            // that belongs to what is gone.
            let last = floor(text, text.len().saturating_sub(WINDOW));
            let is_border = |(_, pair): &(usize, &[u8])| pair[1].is_ascii_whitespace() && pair[0].is_ascii_alphabetic();
            let border = text.as_bytes()[..last].windows(2).enumerate().rev().take(WINDOW).find(is_border);
            decided = border.map_or(last, |(at, _)| at + 1);
        }
        let mut replaced = String::with_capacity(decided);
        let mut at = 0;
        let mut is_changed = false;
        let Ok(found) = self.find(text) else {
            // Nothing of it can be let out.
            return Some(Replaced { text: "[REDACTED]".into(), consumed: text.len(), is_changed: true });
        };
        for (place, category) in found {
            if place.start >= decided {
                break;
            }
            // It began a window ago and is shorter than that, so it ends before what came last.
            decided = decided.max(place.end);
            replaced.push_str(&text[at..place.start]);
            replaced.push_str(&format!("[{category}]"));
            at = place.end;
            is_changed = true;
        }
        replaced.push_str(&text[at..decided]);
        Some(Replaced { text: replaced, consumed: decided, is_changed })
    }
}
