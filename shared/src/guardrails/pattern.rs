//! Patterns that tenants write, run on texts that callers write. They mean what they mean in JavaScript, as far as linear
//! time allows: no look-around and no references back, which are refused when the check is made.
//!
//! A search is a lazy automaton or an error: one that would need more than its memory gives up (`TooCostly`) where the usual
//! engine would go on slowly. Searches for many places are bounded by their number and by how far each may look.

mod javascript;
mod required;

use super::fault::{Fault, FaultKind};
use javascript::translate;
use regex_automata::hybrid::dfa;
use regex_automata::hybrid::regex::{Cache, Regex as LazyRegex};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Input, Match};
use required::RequiredBytes;
use std::ops::Range;

const MAX_PATTERN: usize = 4096;
/// Bytes of the compiled pattern.
const MAX_PROGRAM: usize = 256 << 10;
/// Bytes of automaton that a search may build before it begins to forget.
const MAX_CACHE: usize = 2 << 20;
/// Groups are told of matches up to this length; they need the slower engine.
const MAX_WITH_GROUPS: usize = 4 << 10;
/// Up to so many steps, of states times bytes, a search may take the usual engine, whose worst is a step for each. It keeps what
/// it built from one text to the next, which for short ones is most of the work.
const FEW_STEPS: usize = 1 << 18;
/// Bytes of automaton that the usual engine keeps of a pattern.
const MAX_DFA_BYTES: usize = 64 << 10;
/// Of several matches none is looked for further ahead than this, so that their number times this bounds the work.
const FARTHEST: usize = 16 << 10;
pub const MAX_MATCHES: usize = 4096;

#[derive(Debug)]
pub struct Pattern {
    lazy: LazyRegex,
    /// For the groups inside a match, and for texts so short that it cannot take long.
    groups: regex::Regex,
    required: Option<RequiredBytes>,
    /// Bytes of the longest match, where there is one, and it does not matter how far away the ends of the text are.
    pub longest: Option<usize>,
    /// Replace every match, not the first alone.
    pub is_global: bool,
}

/// A search that was given up.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is too costly for this text")]
pub struct TooCostly;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    pub is_global: bool,
    ignores_case: bool,
    is_multiline: bool,
    dot_takes_newlines: bool,
}

impl Pattern {
    /// A pattern as it is.
    pub fn parse(text: &str, path: &str) -> Result<Self, Fault> {
        Self::build(text, Flags::default(), path)
    }

    /// `/pattern/flags`, or a pattern as it is.
    pub fn parse_with_flags(text: &str, path: &str) -> Result<Self, Fault> {
        if let Some(rest) = text.strip_prefix('/')
            && let Some((pattern, letters)) = rest.rsplit_once('/')
            && !pattern.is_empty()
            && letters.chars().all(|letter| letter.is_ascii_lowercase())
        {
            return Self::build(pattern, flags(letters, path)?, path);
        }
        Self::build(text, Flags::default(), path)
    }

    fn build(text: &str, flags: Flags, path: &str) -> Result<Self, Fault> {
        let unusable = |why: String| Fault::new(FaultKind::Unusable, path, why);
        if text.len() > MAX_PATTERN {
            let message = format!("must not be longer than {MAX_PATTERN} bytes");
            return Err(Fault::new(FaultKind::OutOfRange, path, message));
        }
        let pattern = translate(text).map_err(|why| unusable(format!("is not a pattern that can be used: {why}")))?;
        let groups = regex::RegexBuilder::new(&pattern)
            .case_insensitive(flags.ignores_case)
            .multi_line(flags.is_multiline)
            .dot_matches_new_line(flags.dot_takes_newlines)
            .size_limit(MAX_PROGRAM)
            .dfa_size_limit(MAX_DFA_BYTES)
            .build();
        let groups = groups.map_err(|error| unusable(reason(&error)))?;
        let syntax = syntax::Config::new()
            .case_insensitive(flags.ignores_case)
            .multi_line(flags.is_multiline)
            .dot_matches_new_line(flags.dot_takes_newlines);
        let longest = match syntax::parse_with(&pattern, &syntax) {
            Ok(parsed) if !parsed.properties().look_set().contains_anchor() => parsed.properties().maximum_len(),
            _ => None,
        };
        let automaton = dfa::Config::new()
            .cache_capacity(MAX_CACHE)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(2))
            .minimum_bytes_per_state(Some(20));
        let lazy = LazyRegex::builder()
            .syntax(syntax)
            .thompson(thompson::Config::new().nfa_size_limit(Some(MAX_PROGRAM)))
            .dfa(automaton)
            .build(&pattern);
        let lazy = lazy.map_err(|_| unusable("is too large".into()))?;
        let required = RequiredBytes::find(lazy.forward().get_nfa());
        Ok(Self { lazy, groups, required, longest, is_global: flags.is_global })
    }

    /// The first match.
    pub fn find(&self, text: &str) -> Result<Option<Range<usize>>, TooCostly> {
        if self.is_ruled_out(text) {
            return Ok(None);
        }
        if self.is_quick(text) {
            return Ok(self.groups.find(text).map(|found| found.range()));
        }
        let mut cache = self.lazy.create_cache();
        self.search(&mut cache, Input::new(text)).map(|found| found.map(|found| found.range()))
    }

    pub fn is_match(&self, text: &str) -> Result<bool, TooCostly> {
        if self.is_ruled_out(text) {
            return Ok(false);
        }
        if self.is_quick(text) {
            return Ok(self.groups.is_match(text));
        }
        let mut cache = self.lazy.create_cache();
        self.search(&mut cache, Input::new(text).earliest(true)).map(|found| found.is_some())
    }

    /// Whether there is no match, as can be told without a search.
    fn is_ruled_out(&self, text: &str) -> bool {
        self.required.as_ref().is_some_and(|required| required.are_missing(text.as_bytes()))
    }

    fn is_quick(&self, text: &str) -> bool {
        self.lazy.forward().get_nfa().states().len().saturating_mul(text.len()) <= FEW_STEPS
    }

    /// What a search in this text costs at most, about: reading it, and building the automaton for it anew.
    pub fn price(&self, text: &str) -> usize {
        let states = self.lazy.forward().get_nfa().states().len();
        1 + text.len() / 64 + (1 + text.len().min(256)) * states / 1024
    }

    /// Every match, none over another; an error when there are more than `MAX_MATCHES`.
    pub fn find_all(&self, text: &str) -> Result<Vec<Range<usize>>, TooCostly> {
        if self.is_ruled_out(text) {
            return Ok(Vec::new());
        }
        let mut cache = self.lazy.create_cache();
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while at <= text.len() {
            let is_far = found.len() > 64;
            // Few matches may look to the end; many may not, or their work would be the square of the text.
            let end = if is_far { ceil(text, at.saturating_add(FARTHEST)) } else { text.len() };
            let Some(one) = self.search(&mut cache, Input::new(text).span(at..end))? else {
                if end == text.len() {
                    break;
                }
                // Half a window further, so that a match over the edge is not missed.
                at = ceil(text, at + FARTHEST / 2);
                continue;
            };
            if found.len() == MAX_MATCHES {
                return Err(TooCostly);
            }
            at = if one.is_empty() { ceil(text, one.end() + 1) } else { one.end() };
            let is_past = one.is_empty() && one.end() == text.len();
            found.push(one.range());
            if is_past {
                break;
            }
        }
        Ok(found)
    }

    /// The named groups and all groups of a match at this place; none for one that is very long.
    pub fn groups<'t>(&self, text: &'t str, place: Range<usize>) -> Option<regex::Captures<'t>> {
        if place.len() > MAX_WITH_GROUPS {
            return None;
        }
        // The places around it decide about boundaries of words and lines.
        let around = floor(text, place.start.saturating_sub(8))..ceil(text, place.end + 8);
        let haystack = &text[around.clone()];
        self.groups.captures_at(haystack, place.start - around.start)
    }

    pub fn names(&self) -> impl Iterator<Item = Option<&str>> {
        self.groups.capture_names()
    }

    fn search(&self, cache: &mut Cache, input: Input<'_>) -> Result<Option<Match>, TooCostly> {
        self.lazy.try_search(cache, &input).map_err(|_| TooCostly)
    }
}

fn flags(letters: &str, path: &str) -> Result<Flags, Fault> {
    let mut flags = Flags::default();
    for letter in letters.chars() {
        match letter {
            'g' => flags.is_global = true,
            'i' => flags.ignores_case = true,
            'm' => flags.is_multiline = true,
            's' => flags.dot_takes_newlines = true,
            // Unicode is always on; places of groups are always known; sticky means nothing for a fresh search.
            'u' | 'y' | 'd' => {}
            _ => {
                let message = format!("has the flag `{letter}`; flags are g, i, m, s, u, y, d");
                return Err(Fault::new(FaultKind::NotOneOf, path, message));
            }
        }
    }
    Ok(flags)
}

fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "is too large when compiled".into(),
        // The library draws the pattern with marks; its last line says why.
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("is not a pattern that can be used: {last}")
        }
    }
}

/// The nearest border of a character at or behind this place.
pub fn ceil(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// The nearest border of a character at or before this place.
pub fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Letters without any order, the same each time.
#[cfg(test)]
pub fn noise(length: usize) -> String {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state >> 63 == 0 { 'a' } else { 'b' }
    };
    (0..length).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_what_it_means_in_javascript() {
        for (pattern, text, matches) in [
            (r"\d+", "12", true),
            (r"\d+", "१२", false),
            (r"^\w+$", "é", false),
            (r"[\w.]+@[\w.]+", "a.b@c.d", true),
            (r"\bcat\b", "a cat.", true),
            (r"\/path\/", "/path/", true),
            (r"[[]x", "[x", true),
            (r"[a&&b]", "&", true),
            (r"\u00e9", "é", true),
            (r"(?<year>\d{4})", "in 2024", true),
            (r"a{,2}", "a{,2}", true),
            (r"é", "café", true),
            ("", "x", true),
            (r"[^]", "\n", true),
        ] {
            let pattern = Pattern::parse(pattern, "rule").unwrap_or_else(|fault| panic!("{pattern}: {fault}"));
            assert_eq!(pattern.is_match(text), Ok(matches), "{pattern:?} {text}");
        }
    }

    #[test]
    fn what_cannot_be_run_in_linear_time_is_refused_with_a_reason() {
        for (pattern, why) in [
            ("(", "not a pattern"),
            ("(?=a)b", "look-around"),
            ("(?<!a)b", "look-around"),
            (r"(a)\1", "backreferences"),
            (r"(?<n>a)\k<n>", "backreferences"),
            ("((a{100}){100}){100}", "too large"),
            (&"a".repeat(MAX_PATTERN + 1), "longer than"),
        ] {
            let fault = Pattern::parse(pattern, "rule").unwrap_err();
            assert!(fault.message.contains(why), "{pattern}: {fault}");
            assert_eq!(fault.path, "rule");
        }
        assert!(Pattern::parse_with_flags("/a/x", "rule").is_err());
    }

    #[test]
    fn a_hostile_pattern_on_a_large_text_is_an_answer_or_an_error_but_no_burnt_processor() {
        let noise = noise(1_000_000);
        let costly = Pattern::parse("[ab]*a[ab]{300}c", "rule").unwrap();
        assert_eq!(costly.is_match(&noise), Err(TooCostly));
        for pattern in ["(a+)+$", "(a|aa)+$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"] {
            let hostile = Pattern::parse(pattern, "rule").unwrap();
            // That it returns is the test: these take exponential time where matches are found by trying.
            let _ = hostile.is_match(&"a".repeat(1_000_000));
        }
        let every = Pattern::parse("a", "rule").unwrap();
        assert_eq!(every.find_all(&"a".repeat(1_000_000)), Err(TooCostly));
    }

    #[test]
    fn all_matches_are_found_and_none_overlaps() {
        for (pattern, text, expected) in [
            ("a", "banana", vec![1..2, 3..4, 5..6]),
            ("aa", "aaaa", vec![0..2, 2..4]),
            ("x*", "ab", vec![0..0, 1..1, 2..2]),
            ("é", "éaé", vec![0..2, 3..5]),
            ("z", "banana", vec![]),
        ] {
            assert_eq!(Pattern::parse(pattern, "rule").unwrap().find_all(text), Ok(expected), "{pattern} {text}");
        }
        let text = format!("{}{}", "a ".repeat(1000), "b");
        assert_eq!(Pattern::parse("[ab]", "rule").unwrap().find_all(&text).map(|found| found.len()), Ok(1001));
    }

    #[test]
    fn flags_are_those_of_javascript() {
        for (rule, text, found) in [
            ("/a/g", "aba", 2),
            ("/A/gi", "aba", 2),
            ("/^b$/gm", "a\nb", 1),
            ("/a.b/gs", "a\nb", 1),
            ("/a.b/g", "a\nb", 0),
            ("a/b", "a/b", 1),
            ("/", "/", 1),
        ] {
            let pattern = Pattern::parse_with_flags(rule, "rule").unwrap();
            assert_eq!(pattern.find_all(text).map(|found| found.len()), Ok(found), "{rule} {text}");
            assert_eq!(pattern.is_global, rule.starts_with('/') && rule.len() > 1, "{rule}");
        }
    }
}
