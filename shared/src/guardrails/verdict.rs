//! What a check says.

use super::checks::placeholders::Placeholders;
use super::data::{Data, DataWriter, JudgedText, USUAL, excerpt};
use super::subject::Subject;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

pub const TOO_MANY_TEXTS: &str = "the body has more texts than are looked at";

#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub verdict: bool,
    /// What it found, with an `explanation`; null when it could not look.
    pub data: Data,
    /// Why it could not look. By default a request passes in spite of it (`failOnError`).
    pub error: Option<CheckError>,
    /// The whole JSON, request or answer by the hook, as it is to go on.
    pub transformed: Option<Value>,
    /// What stands for values that were taken out, to be put back into the answer. Never shown.
    pub placeholders: Placeholders,
    /// What becomes of headers of the request, as checks after this one see them. Never shown.
    pub headers: Vec<HeaderChange>,
}

/// A header and what it is from here on; without a value it is taken away.
pub type HeaderChange = (HeaderName, Option<HeaderValue>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckError {
    pub name: &'static str,
    pub message: String,
    pub kind: ErrorKind,
}

/// What an error means for the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It could not look: `failOnError` decides.
    Unable,
    /// There was more than it looks at. Whoever writes the text decides that, so it never passes.
    Bound,
    /// The same of a check that replaces: what it did not replace must not go on, whatever its hook says.
    Unreplaced,
}

impl CheckError {
    pub fn no_text() -> Self {
        Self { name: "NoText", message: "there is no text to check".to_owned(), kind: ErrorKind::Unable }
    }

    pub fn too_costly(why: impl Into<String>) -> Self {
        Self { name: "TooCostly", message: why.into(), kind: ErrorKind::Bound }
    }
}

impl Verdict {
    /// Data is an object; the explanation joins it.
    pub fn new(verdict: bool, explanation: impl Into<String>, data: Value) -> Self {
        let mut fields = match data {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        fields.insert("explanation".into(), explanation.into().into());
        Self::with_data(verdict, Data::Tree(Value::Object(fields)))
    }

    /// The same with data that is written already; the explanation is in it.
    pub fn written(verdict: bool, data: DataWriter) -> Self {
        Self::with_data(verdict, data.finish())
    }

    /// What a check says of the text of a subject that it judges.
    pub fn judged(
        subject: &Subject<'_>,
        judge: impl FnOnce(&JudgedText<'_>, &mut String) -> Result<bool, CheckError>,
    ) -> Self {
        let Ok(text) = subject.text() else { return Self::too_many_texts() };
        let mut data = String::with_capacity(USUAL);
        match judge(&JudgedText::new(&text), &mut data) {
            Ok(verdict) => Self::with_data(verdict, Data::Text(data)),
            Err(error) => Self::failed(error),
        }
    }

    fn with_data(verdict: bool, data: Data) -> Self {
        Self {
            verdict,
            data,
            error: None,
            transformed: None,
            placeholders: Placeholders::default(),
            headers: Vec::new(),
        }
    }

    pub fn error(name: &'static str, message: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::Unable, name, message)
    }

    /// There was more than the check looks at.
    pub fn bound(name: &'static str, message: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::Bound, name, message)
    }

    /// There was more than the check replaces.
    pub fn unreplaced(name: &'static str, message: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::Unreplaced, name, message)
    }

    /// The body has more texts than are looked at.
    pub fn too_many_texts() -> Self {
        Self::bound("TooMany", TOO_MANY_TEXTS)
    }

    fn of_kind(kind: ErrorKind, name: &'static str, message: impl Into<String>) -> Self {
        Self::failed(CheckError { name, message: message.into(), kind })
    }

    /// It could not look.
    pub fn failed(error: CheckError) -> Self {
        Self {
            verdict: false,
            data: Data::Tree(Value::Null),
            error: Some(error),
            transformed: None,
            placeholders: Placeholders::default(),
            headers: Vec::new(),
        }
    }

    /// There is no text to look at.
    pub fn no_text() -> Self {
        Self::failed(CheckError::no_text())
    }

    #[must_use]
    pub fn with_transformed(mut self, json: Value) -> Self {
        self.transformed = Some(json);
        self
    }

    #[must_use]
    pub fn with_excerpt(mut self, text: &str) -> Self {
        if let Data::Tree(Value::Object(fields)) = &mut self.data {
            fields.insert("textExcerpt".into(), excerpt(text).into());
        }
        self
    }

    /// Whether the hook that asked counts it as passed.
    pub fn passes(&self, fails_on_error: bool) -> bool {
        self.verdict || self.error.is_some() && !fails_on_error && !self.is_bound()
    }

    /// The check met more than it looks at.
    pub fn is_bound(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind != ErrorKind::Unable)
    }

    /// The body must not go on, because something in it should have been replaced and was not.
    pub fn forbids(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Unreplaced)
    }

    /// As the test bench and the log show it. Times are for whoever measured them to add.
    pub fn to_json(&self) -> Value {
        let mut shown =
            json!({ "verdict": self.verdict, "data": self.data.value(), "transformed": self.transformed.is_some() });
        if let (Some(error), Value::Object(fields)) = (&self.error, &mut shown) {
            fields.insert("error".into(), json!({ "name": error.name, "message": error.message }));
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_passes_unless_it_is_to_fail_and_a_false_verdict_never_does() {
        let failed = Verdict::new(false, "no", Value::Null);
        let errored = Verdict::no_text();
        let (bound, unreplaced) = (Verdict::too_many_texts(), Verdict::unreplaced("TooMany", "more"));
        for (verdict, fails_on_error, passes) in [
            (&Verdict::new(true, "yes", Value::Null), true, true),
            (&failed, false, false),
            (&failed, true, false),
            (&errored, false, true),
            (&errored, true, false),
            (&bound, false, false),
            (&bound, true, false),
            (&unreplaced, false, false),
        ] {
            assert_eq!(verdict.passes(fails_on_error), passes, "{verdict:?} {fails_on_error}");
        }
    }
}
