//! A secret in memory: it prints as nothing, has no way into JSON, and its bytes are overwritten when it goes.

use serde::{Deserialize, Deserializer};
use std::fmt;
use zeroize::Zeroizing;

#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// The bytes themselves. Whoever calls this must not let them reach a log, an error or an answer.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The same as text; `None` when it is not UTF-8.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::from("hunter2".to_owned());
        assert_eq!(secret.expose_text(), Some("hunter2"));
        assert!(!format!("{secret:?} {:#?}", Some(secret.clone())).contains("hunter"));
    }
}
