//! JSON inside prose: in fenced blocks, or between braces. Models wrap what they were asked for.

use serde_json::Value;

/// As many are tried.
const MAX_TRIES: usize = 64;
/// Longer ones are not read.
const MAX_TEXT: usize = 1 << 20;

/// Objects that stand in fenced blocks; where there are none, those between braces, and the text as a whole.
pub fn candidates(text: &str) -> Vec<Value> {
    let whole = parse(text.trim());
    let fenced: Vec<Value> = fences(text).filter_map(|(_, inside)| parse(inside.trim())).take(MAX_TRIES).collect();
    if !fenced.is_empty() {
        return fenced;
    }
    if let Some(whole) = whole {
        return vec![whole];
    }
    braced(text)
}

/// Fenced blocks as (language, inside).
pub fn fences(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let open = rest.find("```")?;
        let after = &rest[open + 3..];
        let close = after.find("```")?;
        let block = &after[..close];
        rest = &after[close + 3..];
        let end = block.find(|c: char| !(c.is_alphanumeric() || "+#-_.".contains(c))).unwrap_or(block.len());
        Some(block.split_at(end))
    })
}

/// What stands between balanced braces, outermost first.
fn braced(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    // Each brace that opens is followed to its end at most once, but what is no JSON inside may be looked at again.
    let mut steps = 0;
    while let Some(open) = memchr::memchr(b'{', &bytes[at..]).map(|offset| at + offset) {
        let end = balanced_end(&bytes[open..], &mut steps).map(|length| open + length);
        match end.and_then(|end| parse(&text[open..end])) {
            Some(value) => {
                found.push(value);
                at = end.unwrap_or(open + 1);
            }
            None => at = open + 1,
        }
        if found.len() == MAX_TRIES || steps > 4 * MAX_TEXT {
            break;
        }
    }
    found
}

/// How long the object is that begins here, braces in texts not counted.
fn balanced_end(bytes: &[u8], steps: &mut usize) -> Option<usize> {
    let (mut depth, mut is_text, mut is_escaped) = (0usize, false, false);
    for (index, byte) in bytes.iter().enumerate().take(MAX_TEXT) {
        *steps += 1;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' if !is_text => depth += 1,
            b'}' if !is_text => {
                depth -= 1;
                if depth == 0 {
                    return Some(index + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn parse(text: &str) -> Option<Value> {
    if text.len() > MAX_TEXT || !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_in_fences_between_braces_and_as_the_whole() {
        for (text, expected) in [
            ("```json\n{\"a\":1}\n```", vec![json!({ "a": 1 })]),
            ("x ```\n{\"a\":1}``` y ```json {\"b\":2}```", vec![json!({ "a": 1 }), json!({ "b": 2 })]),
            ("{\"a\":{\"b\":1}}", vec![json!({ "a": { "b": 1 } })]),
            ("[1]", vec![json!([1])]),
            ("it is {\"a\":1} and {\"b\":\"}\"}.", vec![json!({ "a": 1 }), json!({ "b": "}" })]),
            ("{not json {\"a\":1}}", vec![json!({ "a": 1 })]),
            ("no json", vec![]),
            ("{\"a\":1", vec![]),
            ("```json\nnot\n``` {\"a\":1}", vec![json!({ "a": 1 })]),
            ("", vec![]),
        ] {
            assert_eq!(candidates(text), expected, "{text}");
        }
    }

    #[test]
    fn a_text_of_braces_is_given_up_in_bounded_work() {
        assert_eq!(candidates(&"{".repeat(1 << 20)), [] as [Value; 0]);
        assert_eq!(candidates(&"{\"a".repeat(1 << 18)), [] as [Value; 0]);
        assert_eq!(candidates(&"{}".repeat(1000)).len(), MAX_TRIES);
    }
}
