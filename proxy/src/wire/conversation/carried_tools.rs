//! Tools that only the caller's format has and that are carried as functions: freeform tools, whose one text is the property
//! `input`, tools in a namespace, which stands before the name, and those that a vendor's models know by their kind alone.
//! Answers are written back as the caller wrote the tools.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The property of a function that carries a freeform tool.
pub const INPUT: &str = "input";

/// Longer names no vendor takes.
const MAX_NAME: usize = 64;
const DIGEST_LETTERS: usize = 8;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct CarriedTools {
    tools: Vec<CarriedTool>,
    /// The caller's own list, for answers that repeat it.
    pub written: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedTool {
    /// What the provider calls it.
    pub function: String,
    pub namespace: Option<String>,
    pub name: String,
    pub carried_as: CarriedAs,
}

/// What calls of it are for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarriedAs {
    Function,
    /// One text.
    Freeform,
    LocalShell,
    ApplyPatch,
}

impl CarriedTools {
    pub fn push(&mut self, tool: CarriedTool) {
        self.tools.push(tool);
    }

    /// The tool that the function of this name stands for; none of functions that are functions.
    pub fn find(&self, function: &str) -> Option<&CarriedTool> {
        self.tools.iter().find(|tool| tool.function == function)
    }
}

/// The function that stands for a tool of a namespace. The same in every turn: histories name it again.
pub fn function_name(namespace: Option<&str>, name: &str) -> String {
    let Some(namespace) = namespace else { return name.to_owned() };
    let joint = if namespace.ends_with('_') || name.starts_with('_') { "" } else { "__" };
    let whole = [namespace, joint, name].concat();
    let plain: String = whole.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    if plain.len() <= MAX_NAME {
        return plain;
    }
    let digest = hex::encode(Sha256::digest(whole.as_bytes()));
    [&plain[..MAX_NAME - DIGEST_LETTERS - 1], "_", &digest[..DIGEST_LETTERS]].concat()
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

/// The arguments of a function that carries this text.
pub fn freeform_arguments(input: &str) -> String {
    Value::Object(Map::from_iter([(INPUT.to_owned(), input.into())])).to_string()
}

/// The text that the arguments of such a function carry. A model that does not keep to the schema is quoted.
pub fn freeform_input(arguments: &str) -> String {
    let read = serde_json::from_str::<Map<String, Value>>(arguments);
    match read.ok().and_then(|mut fields| fields.remove(INPUT)) {
        Some(Value::String(text)) => text,
        _ => arguments.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_vendor_takes_is_made_one_and_stays_apart_from_others() {
        assert_eq!(function_name(None, "apply_patch"), "apply_patch");
        assert_eq!(function_name(Some("agents"), "spawn"), "agents__spawn");
        assert_eq!(function_name(Some("mcp__mail__"), "send"), "mcp__mail__send");
        assert_eq!(function_name(Some("a.b"), "c/d"), "a_b__c_d");
        let (one, other) = (function_name(Some("n"), &"x".repeat(80)), function_name(Some("n"), &"x".repeat(81)));
        assert!(one.len() == 64 && other.len() == 64 && one != other, "{one} {other}");
        assert!(function_name(Some("é".repeat(90).as_str()), "x").len() <= 64);
    }

    #[test]
    fn a_text_goes_through_arguments_and_comes_back() {
        for text in ["", "*** Begin Patch\n+\"a\"\\\n", "é 🌍"] {
            assert_eq!(freeform_input(&freeform_arguments(text)), text);
        }
        assert_eq!(freeform_input("{\"patch\":1}"), "{\"patch\":1}");
        assert_eq!(freeform_input("{\"input\": \"half"), "{\"input\": \"half");
    }
}
