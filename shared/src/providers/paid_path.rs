//! Paths of a provider's own interface that cost something: `/threads/*/runs`. A star stands for one or more characters,
//! and a path is meant wherever it ends in one that looks so, since a version or a project may stand before it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaidPath(Box<str>);

impl PaidPath {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.starts_with('/') && !text.contains(['?', '#', ' ', '{']) {
            true => Ok(Self(text.into())),
            false => Err(format!("paid: `{text}` is no path")),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn matches(&self, path: &str) -> bool {
        path.match_indices('/').any(|(at, _)| looks_like(&self.0, &path[at..]))
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
