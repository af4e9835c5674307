//! A path with places in it that are filled for each request: the model, a deployment, a region. What is filled in is
//! escaped, so that a value can never become another segment or a query of its own.

use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate {
    /// Text and the name of the place after it, if there is one.
    pieces: Vec<(Box<str>, Option<Box<str>>)>,
}

impl PathTemplate {
    /// `/a/{name}/b?c={other}`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no path");
        if !text.starts_with('/') || text.contains(['#', ' ']) {
            return Err(wrong());
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(wrong)?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            if !is_name || before.contains('}') {
                return Err(wrong());
            }
            pieces.push((before.into(), Some(name.into())));
            rest = after;
        }
        if rest.contains('}') {
            return Err(wrong());
        }
        pieces.push((rest.into(), None));
        Ok(Self { pieces })
    }

    /// The names of its places.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|(_, place)| place.as_deref())
    }

    pub fn has(&self, name: &str) -> bool {
        self.places().any(|place| place == name)
    }

    /// The path with its places filled; slashes stay in what fills a place whose name ends in `_path`. The error is the name of one for which there is no value.
    pub fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Result<String, &str> {
        let mut path = String::new();
        for (text, place) in &self.pieces {
            path.push_str(text);
            if let Some(place) = place {
                let value = value(place).filter(|value| !value.is_empty()).ok_or(&**place)?;
                match place.ends_with("_path") {
                    true => {
                        for (number, segment) in value.split('/').enumerate() {
                            path.push_str(if number > 0 { "/" } else { "" });
                            escape(segment, &mut path);
                        }
                    }
                    false => escape(value, &mut path),
                }
            }
        }
        Ok(path)
    }
}

/// Everything but letters, digits and `-_.~` is escaped, and so is a value of dots alone: some servers read those as a
/// way up.
fn escape(value: &str, out: &mut String) {
    let is_dots = value.bytes().all(|byte| byte == b'.');
    for byte in value.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') || (byte == b'.' && !is_dots);
        if is_plain {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_values_escaped() {
        for (template, model, expected) in [
            ("/plain", "m", Ok("/plain")),
            ("/model/{model}/converse", "us.a.b-v1:0", Ok("/model/us.a.b-v1%3A0/converse")),
            (
                "/model/{model}/x",
                "arn:aws:bedrock:us-east-1:1:p/q",
                Ok("/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ap%2Fq/x"),
            ),
            ("/models/{model}:go?alt=sse", "é?x=1#", Ok("/models/%C3%A9%3Fx%3D1%23:go?alt=sse")),
            ("/m/{model}/x", "..", Ok("/m/%2E%2E/x")),
            ("/m/{model_path}/x", "a/../b c", Ok("/m/a/%2E%2E/b%20c/x")),
            ("/m/{model}/x", "", Err("model")),
            ("/m/{other}", "m", Err("other")),
        ] {
            let template = PathTemplate::parse(template).unwrap();
            let filled = template.fill(|name| name.starts_with("model").then_some(model));
            assert_eq!(filled.as_deref().map_err(|place| *place), expected, "{template:?} {model}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "x", "/{", "/}", "/{}", "/{A}", "/{a b}", "/a b", "/a#b", "/}{a}"] {
            assert!(PathTemplate::parse(text).is_err(), "{text}");
        }
    }
}
