//! What follows from a guardrail's verdict. Three dialects of `actions` are in use and are stored as they were sent;
//! they are read here, once for admin, which refuses what cannot be read, and for the proxy, which acts on it.

use serde_json::{Map, Value};

/// Actions in one form.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardrailActions {
    /// A failed check blocks the request or the answer.
    pub deny: bool,
    /// Beside the request: it neither blocks nor changes anything.
    pub is_async: bool,
    /// One check after the other, each with what those before it changed.
    pub sequential: bool,
    /// A denial is answered as an ordinary chat message.
    pub soft_deny_200: bool,
    pub stream: StreamMode,
    pub on_success: Option<Feedback>,
    pub on_fail: Option<Feedback>,
    /// In place of the usual words of a denial.
    pub message: Option<String>,
}

/// When the checks of a streamed answer judge it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StreamMode {
    /// After its end.
    #[default]
    Report,
    /// Before any of it is released.
    Hold,
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

const LONGEST_MESSAGE: usize = 1000;
const LONGEST_METADATA: usize = 4096;

impl GuardrailActions {
    /// Of several words about denying, one that denies is enough.
    pub fn parse(actions: &Value) -> Result<Self, ActionFault> {
        let fields = actions.as_object().ok_or_else(|| fault("", "must be an object"))?;
        let flag = |name: &str| flag(fields, name, name);
        let (fails, on_fail) = outcome(fields, "on_fail", -5)?;
        let (_, on_success) = outcome(fields, "on_success", 5)?;
        let blocks = match text(fields, "onFail")? {
            None | Some("log" | "warn") => false,
            Some("block") => true,
            Some(_) => return Err(fault("onFail", "must be `block`, `log` or `warn`")),
        };
        let stream = match text(fields, "stream")? {
            None | Some("report") => StreamMode::Report,
            Some("hold") => StreamMode::Hold,
            Some(_) => return Err(fault("stream", "must be `report` or `hold`")),
        };
        let message = text(fields, "message")?.map(str::to_owned);
        if message.as_ref().is_some_and(|message| message.len() > LONGEST_MESSAGE) {
            return Err(fault("message", "must be at most 1000 bytes"));
        }
        Ok(Self {
            deny: flag("deny")? || fails || blocks,
            is_async: flag("async")?,
            sequential: flag("sequential")?,
            soft_deny_200: flag("soft_deny_200")?,
            stream,
            on_success,
            on_fail,
            message,
        })
    }
}

/// What follows from one outcome: whether it denies, and the feedback.
fn outcome(
    actions: &Map<String, Value>,
    name: &'static str,
    usual: i8,
) -> Result<(bool, Option<Feedback>), ActionFault> {
    let may_deny = name == "on_fail";
    match actions.get(name) {
        None | Some(Value::Null) => Ok((false, None)),
        Some(Value::String(word)) => match word.as_str() {
            "continue" => Ok((false, None)),
            "deny" if may_deny => Ok((true, None)),
            _ if may_deny => Err(fault(name, "must be `deny`, `continue` or an object")),
            _ => Err(fault(name, "must be `continue` or an object")),
        },
        Some(Value::Object(fields)) => {
            let denies = flag(fields, "deny", &format!("{name}.deny"))?;
            if denies && !may_deny {
                return Err(fault("on_success.deny", "must not be true: what passed is not denied"));
            }
            let feedback = match fields.get("feedback") {
                None | Some(Value::Null) => None,
                Some(sent) => Some(feedback(sent, usual).map_err(|(field, message)| {
                    let path = if field.is_empty() { String::new() } else { format!(".{field}") };
                    ActionFault { path: format!("{name}.feedback{path}"), message }
                })?),
            };
            Ok((denies, feedback))
        }
        Some(_) => Err(fault(name, "must be an object or a text")),
    }
}

fn feedback(sent: &Value, usual: i8) -> Result<Feedback, (&'static str, &'static str)> {
    let fields = sent.as_object().ok_or(("", "must be an object"))?;
    let value = match fields.get("value") {
        None | Some(Value::Null) => usual,
        Some(value) => {
            let whole = value.as_i64().and_then(|value| i8::try_from(value).ok());
            whole
                .filter(|value| (-10..=10).contains(value))
                .ok_or(("value", "must be a whole number from -10 to 10"))?
        }
    };
    let weight = match fields.get("weight") {
        None | Some(Value::Null) => 1.0,
        Some(weight) => {
            let weight = weight.as_f64().filter(|weight| (0.0..=1.0).contains(weight));
            weight.ok_or(("weight", "must be a number from 0 to 1"))?
        }
    };
    let metadata = fields.get("metadata").cloned().unwrap_or_default();
    if !matches!(metadata, Value::Null | Value::String(_) | Value::Object(_)) {
        return Err(("metadata", "must be a text or an object"));
    }
    if metadata.to_string().len() > LONGEST_METADATA {
        return Err(("metadata", "must be at most 4096 bytes"));
    }
    Ok(Feedback { value, weight, metadata })
}

fn flag(fields: &Map<String, Value>, name: &str, path: &str) -> Result<bool, ActionFault> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(is_on)) => Ok(*is_on),
        Some(_) => Err(fault(path, "must be true or false")),
    }
}

fn text<'v>(fields: &'v Map<String, Value>, name: &'static str) -> Result<Option<&'v str>, ActionFault> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(fault(name, "must be a text")),
    }
}

fn fault(path: &str, message: &'static str) -> ActionFault {
    ActionFault { path: path.to_owned(), message }
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
            assert_eq!(read(&actions).deny, denies, "{actions}");
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
        assert!(!off.is_async && !off.sequential && !off.soft_deny_200 && off.stream == StreamMode::Report);
        let on = read(&json!({ "async": true, "sequential": true, "soft_deny_200": true, "stream": "hold" }));
        assert!(on.is_async && on.sequential && on.soft_deny_200 && on.stream == StreamMode::Hold);
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
            (json!({ "message": "x".repeat(1001) }), "message"),
        ] {
            let found = GuardrailActions::parse(&actions).map_err(|fault| fault.path);
            assert_eq!(found, Err(path.to_owned()), "{actions}");
        }
    }
}
