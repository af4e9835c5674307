//! Path templates: which paths fit, and which of two fitting templates is meant. Works on the raw path: an encoded
//! segment is never equal to a literal one, on either side of the relay.

/// Walks both once, byte by byte: prompts are run beside the control plane's own prompt paths, so inference passes
/// here too.
pub fn matches(template: &str, path: &str) -> bool {
    let (mut template, mut path) = (template.as_bytes(), path.as_bytes());
    loop {
        match (template, path) {
            ([], []) => return true,
            ([b'{', b'*', ..], value) => return !value.is_empty() && value[0] != b'/',
            ([b'{', ..], [value, ..]) if *value != b'/' => {
                template = from_slash(template);
                path = from_slash(path);
            }
            ([one, rest @ ..], [other, more @ ..]) if one == other => {
                template = rest;
                path = more;
            }
            _ => return false,
        }
    }
}

/// What follows the present segment.
fn from_slash(path: &[u8]) -> &[u8] {
    let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
    &path[end..]
}

/// Of two templates that fit one path, the one with a literal where they first differ.
pub fn is_more_specific(one: &str, other: &str) -> bool {
    let mut pairs = one.split('/').map(Segment::parse).zip(other.split('/').map(Segment::parse));
    pairs.find(|(a, b)| a != b).is_some_and(|(a, b)| a < b)
}

/// Ordered from the most specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Literal,
    Parameter,
    Rest,
}

impl Segment {
    fn parse(segment: &str) -> Self {
        if segment.starts_with("{*") {
            Self::Rest
        } else if segment.starts_with('{') {
            Self::Parameter
        } else {
            Self::Literal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_takes_one_segment_and_a_rest_takes_all() {
        for (template, path, fits) in [
            ("/configs/{slug}", "/configs/pc-1", true),
            ("/configs/{slug}", "/configs", false),
            ("/configs/{slug}", "/configs/", false),
            ("/configs/{slug}", "/configs/a/b", false),
            ("/configs/{slug}/versions", "/configs//versions", false),
            ("/configs", "/Configs", false),
            ("/p/{provider}/{*model}", "/p/openai/gpt-4o", true),
            ("/p/{provider}/{*model}", "/p/openai/org/model/v1", true),
            ("/p/{provider}/{*model}", "/p/openai", false),
            ("/p/{provider}/{*model}", "/p/openai/", false),
            ("/p/{provider}/{*model}", "/p/openai//model", false),
            ("/configs/{slug}", "/configs/{slug}", true),
            ("/configs/{slug}/versions", "/configs/{slug}", false),
            ("/configs", "/configs/{slug}", false),
        ] {
            assert_eq!(matches(template, path), fits, "{template} {path}");
        }
    }

    #[test]
    fn the_first_literal_decides_between_two_templates() {
        for (specific, general) in [
            ("/guardrails/checks", "/guardrails/{id}"),
            ("/prompts/partials/{id}", "/prompts/{promptId}/versions"),
            ("/p/{provider}/{model}", "/p/{provider}/{*model}"),
        ] {
            assert!(is_more_specific(specific, general) && !is_more_specific(general, specific), "{specific}");
        }
    }
}
