//! The prefix of the headers that are meant for the gateway, and the operator's aliases of it. Whatever spelling arrives,
//! both services see one name.

use http::{HeaderMap, HeaderName};

pub const PREFIX: &str = "x-gateway-";

/// Prefixes accepted in place of `x-gateway-`, in lower case.
#[derive(Debug, Clone, Default)]
pub struct Aliases(Vec<String>);

impl Aliases {
    pub fn new(prefixes: &[String]) -> anyhow::Result<Self> {
        let prefixes = prefixes.iter().map(|prefix| prefix.trim().to_ascii_lowercase());
        let prefixes: Vec<String> = prefixes.filter(|prefix| !prefix.is_empty()).collect();
        let is_prefix = |text: &String| text.ends_with('-') && HeaderName::try_from(text.as_str()).is_ok();
        if let Some(bad) = prefixes.iter().find(|prefix| !is_prefix(prefix)) {
            anyhow::bail!("HEADER_PREFIX_ALIASES: `{bad}` is not a header prefix ending in `-`");
        }
        Ok(Self(prefixes))
    }

    /// Every accepted prefix, our own first.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(PREFIX).chain(self.0.iter().map(String::as_str))
    }

    /// The name after the prefix, and the alias if it was one.
    pub fn suffix<'n>(&self, name: &'n str) -> Option<(&'n str, Option<&str>)> {
        if let Some(suffix) = name.strip_prefix(PREFIX) {
            return Some((suffix, None));
        }
        self.0.iter().find_map(|alias| name.strip_prefix(alias.as_str()).map(|suffix| (suffix, Some(alias.as_str()))))
    }

    /// Whether a header is addressed to the gateway and must stay here.
    pub fn is_ours(&self, name: &HeaderName) -> bool {
        self.suffix(name.as_str()).is_some()
    }

    /// The alias these headers use, if any; our headers in the answer are repeated under it.
    pub fn used_in(&self, headers: &HeaderMap) -> Option<&str> {
        let is_used = |alias: &&String| headers.keys().any(|name| name.as_str().starts_with(alias.as_str()));
        self.0.iter().find(is_used).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_must_be_a_header_prefix() {
        for (alias, valid) in [("X-Acme-", true), ("", true), ("x-acme", false), ("x acme-", false), ("ä-", false)] {
            let made = Aliases::new(&[alias.into()]);
            assert_eq!(made.is_ok(), valid, "{alias}");
            assert!(made.err().is_none_or(|error| error.to_string().contains("HEADER_PREFIX_ALIASES")));
        }
    }

    #[test]
    fn a_name_is_found_behind_any_accepted_prefix() {
        let aliases = Aliases::new(&["X-Acme-".into(), " x-other- ".into()]).unwrap();
        for (name, found) in [
            ("x-gateway-api-key", Some(("api-key", None))),
            ("x-acme-api-key", Some(("api-key", Some("x-acme-")))),
            ("x-other-provider", Some(("provider", Some("x-other-")))),
            ("x-api-key", None),
        ] {
            assert_eq!(aliases.suffix(name), found, "{name}");
        }
        assert_eq!(aliases.prefixes().collect::<Vec<_>>(), ["x-gateway-", "x-acme-", "x-other-"]);
    }
}
