//! What follows from a guardrail's verdict, as a hook of a config or the `actions` of a saved guardrail say it. Three dialects are in
//! use and are stored as they were sent; they are read here, by admin, which refuses what cannot be read, and by the proxy,
//! which acts on the rest.

use crate::guardrails::Scope;
use serde_json::{Map, Value};

/// Actions in one form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GuardrailActions {
    /// A failed check blocks the request or the answer.
    pub denies: bool,
    /// Beside the request: it neither blocks nor changes anything.
    pub is_async: bool,
    /// One check after the other, each with what those before it changed.
    pub is_sequential: bool,
    /// A denial is answered as an ordinary chat message.
    pub softens: bool,
    /// Streams are judged before they are released, and not after their end: as said, else where it denies.
    pub holds: bool,
    /// Which texts its checks judge, in place of what each of them would.
    pub scope: Option<Scope>,
    /// Denials are told in the audit trail.
    pub is_audited: bool,
    pub on_success: Option<Feedback>,
    pub on_fail: Option<Feedback>,
    /// In place of the usual words of a denial.
    pub message: Option<String>,
}

/// A piece of feedback on the request's trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// -10 to 10.
    pub value: i8,
    /// 0 to 1.
    pub weight: f64,
    /// A text, an object or null.
    pub metadata: Value,
}

/// Where actions cannot be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionFault {
    /// As `on_fail.feedback.value`; empty for the whole.
    pub path: String,
    pub message: &'static str,
}

const MAX_MESSAGE: usize = 1000;
const MAX_METADATA: usize = 4096;

impl GuardrailActions {
    /// Refuses what cannot be read.
    pub fn parse(actions: &Value) -> Result<Self, ActionFault> {
        let Some(fields) = actions.as_object() else {
            return Err(ActionFault { path: String::new(), message: "must be an object" });
        };
        let mut faults = Vec::new();
        let read = Self::read_noting(fields, &mut faults);
        match faults.into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(read),
        }
    }

    /// What can be read of them, for whoever acts on what was saved or sent.
    pub fn read(fields: &Map<String, Value>) -> Self {
        Self::read_noting(fields, &mut Vec::new())
    }

    /// Of several words about denying, one that denies is enough.
    fn read_noting(fields: &Map<String, Value>, faults: &mut Vec<ActionFault>) -> Self {
        let mut reader = Reader { faults };
        let (fails, on_fail) = reader.outcome(fields, "on_fail", -5);
        let (_, on_success) = reader.outcome(fields, "on_success", 5);
        let blocks = reader.word(fields, "onFail", &["block", "log", "warn"], "must be `block`, `log` or `warn`");
        let stream = reader.word(fields, "stream", &["hold", "report"], "must be `report` or `hold`");
        let scope = reader.word(fields, "scope", &["last", "all"], "must be `last` or `all`");
        let denies = reader.flag(fields, "deny", "deny") || fails || blocks == Some("block");
        Self {
            denies,
            is_async: reader.flag(fields, "async", "async"),
            is_sequential: reader.flag(fields, "sequential", "sequential"),
            softens: reader.flag(fields, "soft_deny_200", "soft_deny_200"),
            is_audited: reader.flag(fields, "audit", "audit"),
            holds: stream.map_or(denies, |stream| stream == "hold"),
            scope: scope.map(|scope| if scope == "all" { Scope::All } else { Scope::Judged }),
            on_success,
            on_fail,
            message: reader.message(fields),
        }
    }

    /// What holds where these are said besides others: they make the others stricter, and never more lenient.
    #[must_use]
    pub fn strictest(self, others: Self) -> Self {
        Self {
            denies: self.denies || others.denies,
            is_async: self.is_async && others.is_async,
            is_sequential: self.is_sequential || others.is_sequential,
            // Whoever alone denies may say how.
            softens: self.softens && (others.softens || !others.denies),
            holds: self.holds || others.holds,
            // To look at less is more lenient, unless both say so.
            scope: match (self.scope, others.scope) {
                (Some(Scope::All), _) | (_, Some(Scope::All)) => Some(Scope::All),
                (Some(Scope::Judged), Some(Scope::Judged)) => Some(Scope::Judged),
                _ => None,
            },
            is_audited: self.is_audited || others.is_audited,
            on_success: self.on_success.or(others.on_success),
            on_fail: self.on_fail.or(others.on_fail),
            message: self.message.or(others.message),
        }
    }
}

/// Reads what it can, and notes what it cannot.
struct Reader<'f> {
    faults: &'f mut Vec<ActionFault>,
}

impl Reader<'_> {
    fn fault(&mut self, path: impl Into<String>, message: &'static str) {
        self.faults.push(ActionFault { path: path.into(), message });
    }

    fn flag(&mut self, fields: &Map<String, Value>, name: &str, path: &str) -> bool {
        match fields.get(name) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is_on)) => *is_on,
            Some(_) => {
                self.fault(path, "must be true or false");
                false
            }
        }
    }

    /// One of these words.
    fn word(
        &mut self,
        fields: &Map<String, Value>,
        name: &str,
        words: &[&'static str],
        allowed: &'static str,
    ) -> Option<&'static str> {
        let sent = fields.get(name).filter(|value| !value.is_null())?;
        let known = sent.as_str().and_then(|sent| words.iter().copied().find(|word| *word == sent));
        if known.is_none() {
            self.fault(name, allowed);
        }
        known
    }

    fn message(&mut self, fields: &Map<String, Value>) -> Option<String> {
        let sent = fields.get("message").filter(|value| !value.is_null())?;
        let Some(text) = sent.as_str() else {
            self.fault("message", "must be a text");
            return None;
        };
        if text.len() > MAX_MESSAGE {
            self.fault("message", "must be at most 1000 bytes");
        }
        Some(text.chars().take(MAX_MESSAGE).collect())
    }

    /// What follows from one outcome: whether it denies, and the feedback.
    fn outcome(&mut self, actions: &Map<String, Value>, name: &'static str, usual: i8) -> (bool, Option<Feedback>) {
        let may_deny = name == "on_fail";
        match actions.get(name) {
            None | Some(Value::Null) => (false, None),
            Some(Value::String(word)) => match word.as_str() {
                "continue" => (false, None),
                "deny" if may_deny => (true, None),
                _ => {
                    let allowed = "must be `deny`, `continue` or an object";
                    self.fault(name, if may_deny { allowed } else { "must be `continue` or an object" });
                    (false, None)
                }
            },
            Some(Value::Object(fields)) => {
                let denies = self.flag(fields, "deny", &format!("{name}.deny"));
                if denies && !may_deny {
                    self.fault("on_success.deny", "must not be true: what passed is not denied");
                }
                let sent = fields.get("feedback").filter(|sent| !sent.is_null());
                (denies && may_deny, sent.and_then(|sent| self.feedback(sent, usual, &format!("{name}.feedback"))))
            }
            Some(_) => {
                self.fault(name, "must be an object or a text");
                (false, None)
            }
        }
    }

    fn feedback(&mut self, sent: &Value, usual: i8, path: &str) -> Option<Feedback> {
        let Some(fields) = sent.as_object() else {
            self.fault(path, "must be an object");
            return None;
        };
        let mut value = usual;
        if let Some(sent) = fields.get("value").filter(|value| !value.is_null()) {
            let whole = sent.as_i64();
            if whole.is_none_or(|whole| !(-10..=10).contains(&whole)) {
                self.fault(format!("{path}.value"), "must be a whole number from -10 to 10");
            }
            value = whole.and_then(|whole| i8::try_from(whole.clamp(-10, 10)).ok()).unwrap_or(usual);
        }
        let mut weight = 1.0;
        if let Some(sent) = fields.get("weight").filter(|weight| !weight.is_null()) {
            let number = sent.as_f64();
            if number.is_none_or(|number| !(0.0..=1.0).contains(&number)) {
                self.fault(format!("{path}.weight"), "must be a number from 0 to 1");
            }
            weight = number.unwrap_or(1.0).clamp(0.0, 1.0);
        }
        let mut metadata = fields.get("metadata").cloned().unwrap_or_default();
        if !matches!(metadata, Value::Null | Value::String(_) | Value::Object(_)) {
            self.fault(format!("{path}.metadata"), "must be a text or an object");
        } else if metadata.to_string().len() > MAX_METADATA {
            self.fault(format!("{path}.metadata"), "must be at most 4096 bytes");
            metadata = Value::Null;
        }
        Some(Feedback { value, weight, metadata })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(actions: &Value) -> GuardrailActions {
        GuardrailActions::parse(actions).unwrap_or_else(|fault| panic!("{actions}: {fault:?}"))
    }

    #[test]
    fn three_dialects_say_whether_to_deny() {
        for (actions, denies) in [
            (json!({}), false),
            (json!({ "deny": true }), true),
            (json!({ "deny": false, "on_fail": "continue" }), false),
            (json!({ "on_fail": "deny", "on_success": "continue" }), true),
            (json!({ "on_fail": { "deny": true } }), true),
            (json!({ "onFail": "block", "message": "no" }), true),
            (json!({ "onFail": "log" }), false),
            (json!({ "onFail": "warn", "deny": null }), false),
        ] {
            assert_eq!(read(&actions).denies, denies, "{actions}");
        }
        assert_eq!(read(&json!({ "message": "no" })).message.as_deref(), Some("no"));
    }

    #[test]
    fn feedback_has_its_usual_values_by_outcome() {
        let actions =
            json!({ "on_success": { "feedback": {} }, "on_fail": { "feedback": { "weight": 0.5, "metadata": "m" } } });
        let actions = read(&actions);
        assert_eq!(actions.on_success, Some(Feedback { value: 5, weight: 1.0, metadata: Value::Null }));
        assert_eq!(actions.on_fail, Some(Feedback { value: -5, weight: 0.5, metadata: json!("m") }));
    }

    #[test]
    fn the_switches_are_off_until_set() {
        let off = read(&json!({}));
        assert!(!off.is_async && !off.is_sequential && !off.softens && !off.holds && !off.is_audited);
        let on = json!({ "async": true, "sequential": true, "soft_deny_200": true, "stream": "hold", "audit": true });
        let on = read(&on);
        assert!(on.is_async && on.is_sequential && on.softens && on.holds && on.is_audited);
    }

    #[test]
    fn what_denies_holds_streams_back_unless_it_says_otherwise() {
        for (actions, holds) in [
            (json!({}), false),
            (json!({ "deny": true }), true),
            (json!({ "on_fail": "deny" }), true),
            (json!({ "onFail": "block" }), true),
            (json!({ "deny": true, "stream": "report" }), false),
            (json!({ "stream": "hold" }), true),
        ] {
            assert_eq!(read(&actions).holds, holds, "{actions}");
        }
    }

    #[test]
    fn of_two_scopes_the_wider_holds() {
        let scope = |word: Value| read(&json!({ "scope": word }));
        for (named, saved, expected) in [
            (json!("last"), json!("all"), Some(Scope::All)),
            (json!("all"), json!("last"), Some(Scope::All)),
            (json!("last"), json!(null), None),
            (json!("last"), json!("last"), Some(Scope::Judged)),
            (json!(null), json!(null), None),
        ] {
            assert_eq!(scope(named.clone()).strictest(scope(saved.clone())).scope, expected, "{named} {saved}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (actions, path) in [
            (json!([]), ""),
            (json!({ "deny": "yes" }), "deny"),
            (json!({ "on_fail": "explode" }), "on_fail"),
            (json!({ "on_fail": 7 }), "on_fail"),
            (json!({ "on_success": "deny" }), "on_success"),
            (json!({ "on_success": { "deny": true } }), "on_success.deny"),
            (json!({ "on_fail": { "deny": 1 } }), "on_fail.deny"),
            (json!({ "on_fail": { "feedback": 1 } }), "on_fail.feedback"),
            (json!({ "on_fail": { "feedback": { "value": 11 } } }), "on_fail.feedback.value"),
            (json!({ "on_fail": { "feedback": { "value": 1.5 } } }), "on_fail.feedback.value"),
            (json!({ "on_success": { "feedback": { "weight": -0.1 } } }), "on_success.feedback.weight"),
            (json!({ "on_success": { "feedback": { "metadata": 1 } } }), "on_success.feedback.metadata"),
            (json!({ "on_fail": { "feedback": { "metadata": "x".repeat(5000) } } }), "on_fail.feedback.metadata"),
            (json!({ "onFail": "panic" }), "onFail"),
            (json!({ "stream": "drop" }), "stream"),
            (json!({ "scope": "first" }), "scope"),
            (json!({ "audit": 1 }), "audit"),
            (json!({ "message": "x".repeat(1001) }), "message"),
        ] {
            let found = GuardrailActions::parse(&actions).map_err(|fault| fault.path);
            assert_eq!(found, Err(path.to_owned()), "{actions}");
        }
    }

    #[test]
    fn whoever_acts_on_them_reads_what_can_be_read() {
        for (actions, denies) in [
            (json!({ "deny": "yes", "on_fail": "deny" }), true),
            (json!({ "stream": 7, "deny": true }), true),
            (json!({ "on_fail": "explode" }), false),
            (json!({ "on_success": { "deny": true } }), false),
        ] {
            assert_eq!(GuardrailActions::read(actions.as_object().unwrap()).denies, denies, "{actions}");
        }
        let actions = json!({ "on_fail": { "feedback": { "value": -99, "weight": 7 } }, "message": "é".repeat(2000) });
        let read = GuardrailActions::read(actions.as_object().unwrap());
        assert_eq!(read.on_fail, Some(Feedback { value: -10, weight: 1.0, metadata: Value::Null }));
        assert_eq!(read.message.map(|message| message.chars().count()), Some(MAX_MESSAGE));
    }
}
