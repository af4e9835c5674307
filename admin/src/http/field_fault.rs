//! One thing that is wrong with a request: where it is, what is wrong, and what would have done. Several are answered
//! at once. The message never repeats what was sent, because it is logged; `value` does, and only where no secret can
//! stand.

use serde_json::{Map, Value};
use shared::nearest::nearest;

/// A list that is longer than this teaches nobody.
const MAX_ALLOWED: usize = 200;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldFault {
    /// Its path, as `usage_limits.credit_limit`.
    pub field: String,
    pub message: String,
    pub value: Option<Value>,
    /// What may stand there, where that can be listed.
    pub allowed: Vec<String>,
    /// What was probably meant.
    pub nearest: Option<String>,
}

impl FieldFault {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), ..Self::default() }
    }

    /// A value that is none of those that may stand here.
    pub fn not_among(field: impl Into<String>, sent: &str, allowed: &[&str]) -> Self {
        let quoted: Vec<String> = allowed.iter().take(MAX_ALLOWED).map(|one| format!("`{one}`")).collect();
        let message = match quoted.as_slice() {
            [one] => format!("must be {one}"),
            // Long lists are in `allowed`; a message is to be read.
            all if all.len() > 12 => "is none of the values that are known here".to_owned(),
            all => format!("must be one of {}", all.join(", ")),
        };
        // The only one needs no guess.
        let nearest = if allowed.len() > 1 { nearest(sent, allowed.iter().copied()) } else { None };
        Self::new(field, message).allowing(allowed.iter().copied()).meaning(nearest)
    }

    /// A name that nothing here has; `known` are those that it could have been.
    pub fn unknown<'a>(
        field: impl Into<String>,
        name: &str,
        what: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let nearest = nearest(name, known.iter().copied());
        Self::new(field, format!("is not {what}")).allowing(known).meaning(nearest)
    }

    pub fn sent(mut self, value: Option<Value>) -> Self {
        self.value = value;
        self
    }

    fn allowing<'a>(mut self, allowed: impl IntoIterator<Item = &'a str>) -> Self {
        self.allowed = allowed.into_iter().take(MAX_ALLOWED).map(str::to_owned).collect();
        self
    }

    fn meaning(mut self, nearest: Option<&str>) -> Self {
        if let Some(nearest) = nearest {
            self.message = format!("{}; did you mean `{nearest}`?", self.message);
            self.nearest = Some(nearest.to_owned());
        }
        self
    }

    /// `field: message`, as it stands in messages and warnings.
    pub fn sentence(&self) -> String {
        if self.field.is_empty() { self.message.clone() } else { format!("{}: {}", self.field, self.message) }
    }

    /// As `data.errors` has it. `path` is `field` under the name that faults of configs have too.
    pub fn to_json(&self) -> Value {
        let mut shown = Map::new();
        shown.insert("field".into(), self.field.as_str().into());
        shown.insert("path".into(), self.field.as_str().into());
        shown.insert("message".into(), self.message.as_str().into());
        if let Some(value) = &self.value {
            shown.insert("value".into(), value.clone());
        }
        if !self.allowed.is_empty() {
            shown.insert("allowed".into(), self.allowed.clone().into());
        }
        if let Some(nearest) = &self.nearest {
            shown.insert("nearest".into(), nearest.as_str().into());
        }
        Value::Object(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fault_says_what_would_have_done() {
        let fault = FieldFault::not_among("role", "admn", &["member", "admin"]);
        assert_eq!(
            fault.to_json(),
            json!({
                "field": "role", "path": "role",
                "message": "must be one of `member`, `admin`; did you mean `admin`?",
                "allowed": ["member", "admin"], "nearest": "admin",
            })
        );
        assert_eq!(FieldFault::not_among("v", "x", &["2"]).message, "must be `2`");
        let fault = FieldFault::unknown("budget", "budget", "a field of this object", ["usage_limits", "name"]);
        assert_eq!(fault.sentence(), "budget: is not a field of this object; did you mean `usage_limits`?");
        let many: Vec<String> = (0..300).map(|n| format!("value-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let fault = FieldFault::not_among("v", "nothing like it", &many);
        assert_eq!((fault.allowed.len(), fault.nearest), (200, None));
        assert!(fault.message.len() < 80, "{}", fault.message);
    }
}
