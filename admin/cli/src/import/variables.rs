//! Variables: how each format names those of the environment, and those that take the place of credentials.

use super::free_names::FreeNames;
use std::collections::HashMap;

/// Reads the name of a variable out of a text that stands for its value.
pub type ReadVariable = fn(&str) -> Option<String>;

/// `os.environ/NAME`.
pub fn of_litellm(text: &str) -> Option<String> {
    text.strip_prefix("os.environ/").filter(|name| is_variable(name)).map(str::to_owned)
}

/// `env.NAME`.
pub fn of_bifrost(text: &str) -> Option<String> {
    text.strip_prefix("env.").filter(|name| is_variable(name)).map(str::to_owned)
}

/// `${{ env "NAME" }}` of decK, and `{vault://env/name}`. Other vaults are not the environment.
pub fn of_kong(text: &str) -> Option<String> {
    let deck = text.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
    let name = deck.and_then(|inner| inner.trim().strip_prefix("env")?.trim().strip_prefix('"')?.strip_suffix('"'));
    let vault = text.strip_prefix("{vault://env/").and_then(|rest| rest.strip_suffix('}'));
    let name = name.map(str::to_owned).or_else(|| vault.map(|name| name.replace('-', "_").to_ascii_uppercase()))?;
    is_variable(&name).then_some(name)
}

/// Saved configs name no variables.
pub fn of_nothing(_: &str) -> Option<String> {
    None
}

/// Nothing else may stand in `${env:…}`: the name comes from a foreign file, and `}` would end the place early.
fn is_variable(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.chars().all(is_letter) && name.starts_with(|first: char| !first.is_ascii_digit())
}

/// The variables that were given to credentials. It holds the credentials themselves, so it is never printed.
#[derive(Default)]
pub struct Variables {
    names: FreeNames,
    given: HashMap<(String, String), String>,
}

const VARIABLE: &str = "variable";

impl Variables {
    /// A variable that the environment has already must not be given to anything else.
    pub fn reserve(&mut self, name: &str) {
        self.names.reserve(VARIABLE, name);
    }

    /// The same variable for the same secret, and one of its own for another.
    pub fn name_for(&mut self, base: &str, secret: &str) -> String {
        let key = (base.to_owned(), secret.to_owned());
        if let Some(name) = self.given.get(&key) {
            return name.clone();
        }
        let name = self.names.take(VARIABLE, base, "_");
        self.given.insert(key, name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_out_of_each_form_and_nothing_else_passes() {
        assert_eq!(of_kong("${{ env \"DECK_KEY\" }}").as_deref(), Some("DECK_KEY"));
        assert_eq!(of_kong("{vault://env/open-ai}").as_deref(), Some("OPEN_AI"));
        assert_eq!(of_litellm("os.environ/A_1").as_deref(), Some("A_1"));
        assert_eq!(of_bifrost("env._a").as_deref(), Some("_a"));
        for name in ["", "A} ${file:/etc/passwd", "A-B", "1A", "A\n", "A$", "É", " A"] {
            assert_eq!(of_litellm(&format!("os.environ/{name}")), None, "{name}");
            assert_eq!(of_bifrost(&format!("env.{name}")), None, "{name}");
            assert_eq!(of_kong(&format!("${{{{ env \"{name}\" }}}}")), None, "{name}");
        }
        for text in ["sk-1", "{vault://aws/x}", ""] {
            assert_eq!(of_kong(text), None, "{text}");
        }
    }

    #[test]
    fn another_secret_gets_another_variable() {
        let mut variables = Variables::default();
        variables.reserve("KEY");
        let names = [("a", "KEY_2"), ("b", "KEY_3"), ("a", "KEY_2")];
        for (secret, name) in names {
            assert_eq!(variables.name_for("KEY", secret), name);
        }
    }
}
