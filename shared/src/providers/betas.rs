//! How a provider is told which of Anthropic's beta features a request asks for (`anthropic-beta`). Anthropic takes them in a
//! header and passes over none; clouds that have its models take them in the body, and refuse a request that names one they do
//! not know, so that their rows list those they do.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Betas {
    /// It knows nothing of them.
    #[default]
    Unknown,
    /// In Anthropic's own header, as they are.
    Header,
    /// In bodies for Anthropic's models: its own names by Anthropic's.
    Body(BTreeMap<String, String>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum BetasRow {
    Place(Place),
    Body {
        known: Vec<String>,
        #[serde(default)]
        renamed: BTreeMap<String, String>,
    },
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Place {
    Header,
}

impl BetasRow {
    pub fn betas(self) -> Result<Betas, String> {
        let (known, renamed) = match self {
            Self::Place(Place::Header) => return Ok(Betas::Header),
            Self::Body { known, renamed } => (known, renamed),
        };
        let mut names = renamed;
        for name in known {
            if names.insert(name.clone(), name.clone()).is_some() {
                return Err(format!("betas: `{name}` is there twice"));
            }
        }
        let is_name = |name: &String| !name.is_empty() && name.bytes().all(is_letter);
        if let Some(name) = names.iter().flat_map(<[&String; 2]>::from).find(|name| !is_name(name)) {
            return Err(format!("betas: `{name}` is no name of a beta"));
        }
        Ok(Betas::Body(names))
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Betas, String> {
        #[derive(Deserialize)]
        struct Row {
            betas: BetasRow,
        }
        toml::from_str::<Row>(text).map_err(|error| error.to_string())?.betas.betas()
    }

    #[test]
    fn a_row_takes_them_in_the_header_or_lists_those_of_the_body() {
        assert_eq!(read(r#"betas = "header""#), Ok(Betas::Header));
        let listed = read("betas = { known = ['a-1'], renamed = { 'b-1' = 'c_2' } }");
        let names = [("a-1", "a-1"), ("b-1", "c_2")].map(|(name, own)| (name.to_owned(), own.to_owned()));
        assert_eq!(listed, Ok(Betas::Body(BTreeMap::from(names))));
        for wrong in [
            r#"betas = "body""#,
            "betas = { known = ['a', 'a'] }",
            "betas = { known = ['a'], renamed = { a = 'b' } }",
            "betas = { known = ['a b'] }",
            "betas = { known = [], renamed = { a = '' } }",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
