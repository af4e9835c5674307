//! Kong's ways to name a secret: variables of decK, references to vaults, and clear text.

use crate::import::result::Import;
use crate::import::source::Location;

/// A credential as a variable of ours.
pub fn variable(import: &mut Import, location: &Location, text: &str, own_name: &str) -> String {
    match environment(text) {
        Some(name) => format!("${{env:{name}}}"),
        None => {
            import.unmapped(
                location.clone(),
                format!("the credential is not copied: set {own_name} where `portcullis apply` runs"),
            );
            format!("${{env:{own_name}}}")
        }
    }
}

/// The name in `${{ env "NAME" }}` and `{vault://env/name}`.
fn environment(text: &str) -> Option<String> {
    let deck = text.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
    let name = deck.and_then(|inner| inner.trim().strip_prefix("env")?.trim().strip_prefix('"')?.strip_suffix('"'));
    let vault = text.strip_prefix("{vault://env/").and_then(|rest| rest.strip_suffix('}'));
    let name = name.map(str::to_owned).or_else(|| vault.map(|name| name.replace('-', "_").to_ascii_uppercase()))?;
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_out_of_both_forms() {
        let name = |text| environment(text);
        assert_eq!(name("${{ env \"DECK_KEY\" }}").as_deref(), Some("DECK_KEY"));
        assert_eq!(name("{vault://env/open-ai}").as_deref(), Some("OPEN_AI"));
        for text in ["sk-1", "{vault://aws/x}", "${{ env \"}a\" }}", "${{ env \"\" }}", ""] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}
