//! What a call of a prompt says, as it was written: enough for prompts that only name variables (`RequestSkeleton`).

use crate::wire::json;
use crate::wire::json::Member;
use memchr::memchr_iter;
use shared::prompt::{WrittenCall, WrittenField};

/// Fields of a body, and variables, that are looked through one by one.
const MAX_SCANNED: usize = 64;

/// None for whatever must be read as a tree: a body that is malformed, names a field twice, has more fields than anybody
/// writes, or escapes by number, which may be half of a character. `is_dropped` are fields that nobody asks for.
pub fn read_call(sent: &[u8], is_dropped: impl Fn(&str) -> bool) -> Option<WrittenCall<'_>> {
    if memchr_iter(b'\\', sent).any(|at| sent.get(at + 1) == Some(&b'u')) {
        return None;
    }
    let mut call = WrittenCall::default();
    if sent.trim_ascii().is_empty() {
        return Some(call);
    }
    for field in once_each(json::members(sent).ok()?)? {
        match &*field.name {
            "variables" if field.value == "null" => {}
            "variables" => call.variables = once_each(json::members_of_text(field.value).ok()?)?,
            // It is refused.
            "hyperparameters" => return None,
            // One client repeats the path in the body.
            "promptID" => {}
            _ if field.value == "null" => {}
            name if is_dropped(name) => {}
            _ => call.overrides.push(field),
        }
    }
    Some(call)
}

fn once_each(members: Vec<Member<'_>>) -> Option<Vec<WrittenField<'_>>> {
    if members.len() > MAX_SCANNED {
        return None;
    }
    let mut fields: Vec<WrittenField<'_>> = Vec::with_capacity(members.len());
    for member in members {
        let name = member.name()?;
        if fields.iter().any(|field| field.name == name) {
            return None;
        }
        fields.push(WrittenField { name, key: member.key, value: member.value });
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sent: &str) -> Option<(Vec<&str>, Vec<&str>)> {
        let call = read_call(sent.as_bytes(), |name| name == "dropped")?;
        Some((values(call.variables), values(call.overrides)))
    }

    fn values<'t>(fields: Vec<WrittenField<'t>>) -> Vec<&'t str> {
        fields.into_iter().map(|field| field.value).collect()
    }

    #[test]
    fn a_call_is_read_as_it_is_written() {
        for (sent, variables, overrides) in [
            ("", vec![], vec![]),
            (" \n", vec![], vec![]),
            ("{}", vec![], vec![]),
            (r#"{"variables":null,"promptID":"x","seed":null,"dropped":1}"#, vec![], vec![]),
            (r#"{"top_p": 0.50 ,"variables":{"a":"x\n","b":[1, 2]}}"#, vec![r#""x\n""#, "[1, 2]"], vec!["0.50"]),
        ] {
            assert_eq!(read(sent), Some((variables, overrides)), "{sent}");
        }
    }

    #[test]
    fn what_must_be_read_as_a_tree_is_left_alone() {
        let many: String = (0..65).map(|n| format!(r#""v{n}":1,"#)).collect();
        let many = format!(r#"{{"variables":{{{}}}}}"#, many.trim_end_matches(','));
        for sent in [
            "[]",
            "null",
            "{",
            r#"{"variables":[]}"#,
            r#"{"variables":"x"}"#,
            r#"{"hyperparameters":{}}"#,
            r#"{"variables":{"a":"\ud800"}}"#,
            r#"{"user":"\u0041"}"#,
            r#"{"seed":1,"seed":2}"#,
            r#"{"variables":{"a":1,"a":2}}"#,
            many.as_str(),
        ] {
            assert_eq!(read(sent), None, "{sent}");
        }
    }
}
