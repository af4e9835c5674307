//! Texts with places to be filled: `${env:NAME}`, `${file:PATH}`, and `${kind:NAME}` for an object that is known by its name.
//! `$${` is the text `${`.

use super::address::Address;
use crate::kinds;
use serde_json::Value;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Literal(String),
    Env(String),
    File(String),
    /// Kind and name; the workspace is that of the object, or the organisation.
    Reference(&'static str, String),
}

pub fn parts(text: &str) -> Vec<Part> {
    let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find('$') {
        literal.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$${") {
            literal.push_str("${");
            rest = after;
        } else if let Some((part, after)) = place(rest) {
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(part);
            rest = after;
        } else {
            literal.push('$');
            rest = &rest[1..];
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() || parts.is_empty() {
        parts.push(Part::Literal(literal));
    }
    parts
}

fn place(text: &str) -> Option<(Part, &str)> {
    let (inner, after) = text.strip_prefix("${")?.split_once('}')?;
    let (word, name) = inner.split_once(':')?;
    let part = match word {
        "env" => Part::Env(name.to_owned()),
        "file" => Part::File(name.to_owned()),
        word => Part::Reference(kinds::KINDS.iter().find(|kind| kind.name == word)?.name, name.to_owned()),
    };
    Some((part, after))
}

/// A text that stands for itself.
pub fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

/// Fills variables and leaves references, so that the answer is a template still.
pub fn with_variables(text: &str, folder: &Path) -> Result<String, String> {
    let fill = |part| match part {
        Part::Literal(text) => Ok(escaped(&text)),
        Part::Reference(kind, name) => Ok(format!("${{{kind}:{name}}}")),
        variable => Ok(escaped(&variable_value(&variable, folder)?)),
    };
    parts(text).into_iter().map(fill).collect()
}

pub fn variable_value(part: &Part, folder: &Path) -> Result<String, String> {
    match part {
        Part::Env(name) => std::env::var(name).map_err(|_| format!("{name} is not set")),
        Part::File(path) => {
            let path = folder.join(path);
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        Part::Literal(text) => Ok(text.clone()),
        Part::Reference(kind, name) => Err(format!("{kind}:{name} is no variable")),
    }
}

/// Applies a change to every text of a value.
pub fn map_texts<E>(value: &Value, change: &mut impl FnMut(&str) -> Result<String, E>) -> Result<Value, E> {
    Ok(match value {
        Value::String(text) => Value::from(change(text)?),
        Value::Array(items) => {
            Value::from(items.iter().map(|item| map_texts(item, change)).collect::<Result<Vec<_>, E>>()?)
        }
        Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, value)| Ok((name.clone(), map_texts(value, change)?)));
            Value::Object(pairs.collect::<Result<_, E>>()?)
        }
        other => other.clone(),
    })
}

pub fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, visit)),
        _ => {}
    }
}

/// Where a reference of an object may lead: into its workspace first, then to the organisation.
pub fn candidates(kind: &'static str, name: &str, workspace: Option<&str>) -> Vec<Address> {
    let at = |workspace: Option<&str>| Address { kind, workspace: workspace.map(str::to_owned), name: name.to_owned() };
    workspace.map(|workspace| at(Some(workspace))).into_iter().chain([at(None)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_known_and_everything_else_stands_for_itself() {
        assert_eq!(
            parts("a ${env:X} b ${guardrail:My guard}"),
            [
                Part::Literal("a ".into()),
                Part::Env("X".into()),
                Part::Literal(" b ".into()),
                Part::Reference("guardrail", "My guard".into())
            ]
        );
        for text in ["${name}", "${colour:x}", "$", "$$", "${env:", "cost: $5", "$${env:X}", "$$${env:X}", "${"] {
            assert_eq!(parts(&escaped(text)), [Part::Literal(text.into())], "{text}");
        }
        assert_eq!(parts(""), [Part::Literal(String::new())]);
    }
}
