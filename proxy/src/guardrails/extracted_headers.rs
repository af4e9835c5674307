//! Headers of a request as checks see them, once a check before has made headers of what a token claims.

use http::HeaderMap;
use shared::guardrails::HeaderChange;
use std::borrow::Cow;

pub fn with_changes<'h>(headers: &'h HeaderMap, changes: &[HeaderChange]) -> Cow<'h, HeaderMap> {
    if changes.is_empty() {
        return Cow::Borrowed(headers);
    }
    let mut changed = headers.clone();
    for (name, value) in changes {
        match value {
            Some(value) => changed.insert(name, value.clone()),
            None => changed.remove(name),
        };
    }
    Cow::Owned(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[test]
    fn what_the_token_says_takes_the_place_of_what_was_sent() {
        let name = HeaderName::from_static;
        let mut sent = HeaderMap::new();
        for text in ["one", "two"] {
            sent.append(name("x-jwt-sub"), HeaderValue::from_static(text));
        }
        sent.insert(name("x-jwt-team"), HeaderValue::from_static("forged"));
        sent.insert(name("x-own"), HeaderValue::from_static("kept"));
        let changes = [(name("x-jwt-sub"), Some(HeaderValue::from_static("ada"))), (name("x-jwt-team"), None)];
        let seen = with_changes(&sent, &changes);
        let told: Vec<&str> = seen.values().filter_map(|value| value.to_str().ok()).collect();
        assert_eq!((told.len(), seen.get("x-jwt-sub").unwrap().to_str().unwrap()), (2, "ada"));
        assert!(told.contains(&"kept"));
        assert!(matches!(with_changes(&sent, &[]), Cow::Borrowed(_)));
    }
}
