//! Taking something out of JSON text at a path, copying everything else as it stands.

use super::Fields;
use serde_json::value::RawValue;
use shared::config::ParamStep;
use std::borrow::Cow;

/// The text without what the path leads to; a path that leads nowhere changes nothing.
pub fn without<'t>(text: &'t str, steps: &[ParamStep]) -> Cow<'t, str> {
    removed(text, steps).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn removed(text: &str, steps: &[ParamStep]) -> Option<String> {
    let (step, rest) = steps.split_first()?;
    match step {
        ParamStep::Key(name) => {
            let fields: Fields<'_> = serde_json::from_str(text).ok()?;
            fields.get(name)?;
            let kept = fields.iter().filter_map(|(key, value)| match key == name {
                false => Some((key, Cow::Borrowed(value))),
                true if rest.is_empty() => None,
                true => Some((key, without(value, rest))),
            });
            Some(object(kept))
        }
        ParamStep::Index(index) => items(text, |position| position == *index, rest),
        ParamStep::Each => items(text, |_| true, rest),
    }
}

fn items(text: &str, is_meant: impl Fn(usize) -> bool, rest: &[ParamStep]) -> Option<String> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let kept = items.iter().enumerate().filter_map(|(position, item)| match is_meant(position) {
        false => Some(Cow::Borrowed(item.get())),
        true if rest.is_empty() => None,
        true => Some(without(item.get(), rest)),
    });
    let kept: Vec<Cow<'_, str>> = kept.collect();
    Some(format!("[{}]", kept.join(",")))
}

/// An object of these fields.
pub fn object<'t>(fields: impl Iterator<Item = (&'t str, Cow<'t, str>)>) -> String {
    let mut out = String::from("{");
    for (index, (key, value)) in fields.enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_key(&mut out, key);
        out.push_str(&value);
    }
    out.push('}');
    out
}

/// `"key":`, escaped where it must be.
pub fn push_key(out: &mut String, key: &str) {
    let is_plain = key.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    match is_plain {
        true => {
            out.push('"');
            out.push_str(key);
            out.push('"');
        }
        false => out.push_str(&serde_json::Value::from(key).to_string()),
    }
    out.push(':');
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::config::ParamPath;

    #[test]
    fn only_what_the_path_leads_to_is_gone() {
        let text = r#"{"a":{"b":1.50,"c":[{"x":1,"y":2e0},{"y":3}]},"d\n":"é"}"#;
        for (path, left) in [
            ("a", r#"{"d\n":"é"}"#),
            ("a.b", r#"{"a":{"c":[{"x":1,"y":2e0},{"y":3}]},"d\n":"é"}"#),
            ("a.c[0]", r#"{"a":{"b":1.50,"c":[{"y":3}]},"d\n":"é"}"#),
            ("a.c[0].y", r#"{"a":{"b":1.50,"c":[{"x":1},{"y":3}]},"d\n":"é"}"#),
            ("a.c[*].y", r#"{"a":{"b":1.50,"c":[{"x":1},{}]},"d\n":"é"}"#),
            ("a.c[*]", r#"{"a":{"b":1.50,"c":[]},"d\n":"é"}"#),
            ("nowhere.at.all", text),
            ("a.b.c", text),
            ("a.c.d", text),
            ("a.c[7]", text),
        ] {
            let path = ParamPath::parse(path).unwrap();
            assert_eq!(without(text, path.steps()), left, "{path}");
        }
    }
}
