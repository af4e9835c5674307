//! Paths of a provider's own interface that cost something: `/threads/*/runs`. A star stands for one or more characters,
//! and a path is meant wherever it ends in one that looks so, since a version or a project may stand before it.

use super::family::BilledBy;
use super::path_template::PathTemplate;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaidPath {
    pattern: Box<str>,
    /// What a call is billed by.
    pub billed: BilledBy,
}

/// What stands in paths of what is billed by what it reads alone: it answers with numbers, or with images.
const OF_PROMPTS: [&str; 6] = ["embed", "rerank", "classif", ":predict", "/images/", "/speak"];
/// What stands in paths of jobs, whose work is in files that nobody here reads.
const OF_JOBS: [&str; 8] = [
    "batchPredictionJobs",
    "tuningJobs",
    "model-invocation-job",
    "model-customization-jobs",
    "/batch/jobs",
    "/trainings",
    "async-invo",
    "/evals/",
];

impl PaidPath {
    /// As a row lists it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') || text.contains(['?', '#', ' ', '{']) {
            return Err(format!("paid: `{text}` is no path"));
        }
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let billed = match () {
            () if has(&OF_JOBS) => BilledBy::Other,
            () if has(&OF_PROMPTS) => BilledBy::Prompt,
            () => BilledBy::Text,
        };
        Ok(Self { pattern: text.into(), billed })
    }

    /// Where a row asks for something. None of a path that says nothing.
    pub(super) fn of_template(path: &PathTemplate, billed: BilledBy) -> Option<Self> {
        let filled = path.fill(|_| Some("*")).ok()?.replace("%2A", "*");
        let pattern = filled.split('?').next().unwrap_or_default();
        let says_something = pattern.bytes().any(|byte| !matches!(byte, b'/' | b'*'));
        says_something.then(|| Self { pattern: pattern.into(), billed })
    }

    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    pub fn matches(&self, path: &str) -> bool {
        path.match_indices('/').any(|(at, _)| looks_like(&self.pattern, &path[at..]))
    }
}

fn looks_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        // A star is at least one character, and the last part is the end.
        let Some((first, _)) = rest.char_indices().nth(1).or_else(|| (!rest.is_empty()).then_some((rest.len(), ' ')))
        else {
            return false;
        };
        if parts.peek().is_none() {
            return rest.len() >= first + part.len() && rest.ends_with(part);
        }
        match rest[first..].find(part) {
            Some(at) => rest = &rest[first + at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_some_characters_and_the_end_is_the_end() {
        for (pattern, path, expected) in [
            ("/threads/*/runs", "/threads/t-1/runs", true),
            ("/threads/*/runs", "/v1/threads/t-1/runs", true),
            ("/threads/*/runs", "/threads//runs", false),
            ("/threads/*/runs", "/threads/t-1/runs/r-1", false),
            ("/threads/runs", "/threads/runs", true),
            ("/models/*:generateContent", "/v1beta/models/g:generateContent", true),
            ("/models/*:generateContent", "/v1/projects/p/publishers/google/models/é:generateContent", true),
            ("/models/*:generateContent", "/v1beta/models/:generateContent", false),
            ("/models/*:generateContent", "/v1beta/models/g:countTokens", false),
            ("/a/*/b/*", "/a/x/b/y", true),
            ("/a/*/b/*", "/a/x/b/", false),
            ("/*", "/x", true),
            ("/*", "/", false),
        ] {
            assert_eq!(PaidPath::parse(pattern).unwrap().matches(path), expected, "{pattern} {path}");
        }
        for wrong in ["", "x", "/a b", "/a?b", "/{a}"] {
            assert!(PaidPath::parse(wrong).is_err(), "{wrong}");
        }
    }
}
