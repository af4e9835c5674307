//! What of a fetched secret is meant: all of it, or one of its entries.

use super::FetchError;
use super::seal::Secret;
use serde_json::Value;

/// A secret as its manager holds it.
#[derive(Debug, Clone)]
pub struct FetchedSecret {
    pub text: Secret,
    /// The manager knows nothing but maps, so a map of one entry stands for that entry.
    pub is_always_map: bool,
}

/// The entry named by `key`, or the whole. Entries that are no text are given as JSON.
pub fn pick(fetched: &FetchedSecret, key: Option<&str>) -> Result<Secret, FetchError> {
    let entries = || match serde_json::from_slice(fetched.text.expose()) {
        Ok(Value::Object(entries)) => Some(entries),
        _ => None,
    };
    let picked = match key {
        Some(key) => {
            Some(entries().and_then(|mut entries| entries.remove(key)).ok_or(FetchError::NoEntry(key.into()))?)
        }
        None if fetched.is_always_map => {
            entries().filter(|all| all.len() == 1).and_then(|all| all.into_iter().next()).map(|(_, value)| value)
        }
        None => None,
    };
    Ok(match picked {
        Some(Value::String(text)) => text.into(),
        Some(other) => other.to_string().into(),
        None => fetched.text.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_picked_by_name_and_a_lone_one_of_a_map_by_itself() {
        for (text, is_always_map, key, expected) in [
            ("plain", false, None, Some("plain")),
            ("plain", false, Some("k"), None),
            (r#"{"k":"v","n":1}"#, false, Some("k"), Some("v")),
            (r#"{"k":"v","n":1}"#, false, Some("n"), Some("1")),
            (r#"{"k":"v"}"#, false, Some("x"), None),
            (r#"{"k":"v"}"#, false, None, Some(r#"{"k":"v"}"#)),
            (r#"{"k":"v"}"#, true, None, Some("v")),
            (r#"{"k":"v","n":1}"#, true, None, Some(r#"{"k":"v","n":1}"#)),
        ] {
            let fetched = FetchedSecret { text: text.to_owned().into(), is_always_map };
            let found = pick(&fetched, key);
            assert_eq!(found.as_ref().ok().and_then(Secret::expose_text), expected, "{text} {key:?}");
        }
    }
}
