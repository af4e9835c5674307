//! What follows from a verdict, as a hook or the `actions` of a saved guardrail say it. Whoever saved them was told of what
//! cannot be read; here the rest is read as strictly as it can be meant: one word that denies is enough.

use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Actions {
    pub denies: bool,
    pub is_async: bool,
    pub is_sequential: bool,
    pub softens: bool,
    /// Streams are judged before they are released.
    pub holds: bool,
    pub on_success: Option<Feedback>,
    pub on_fail: Option<Feedback>,
    /// In place of the usual words of a denial.
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// -10 to 10.
    pub value: i64,
    /// 0 to 1.
    pub weight: f64,
    pub metadata: Value,
}

const LONGEST_MESSAGE: usize = 1000;

impl Actions {
    pub fn parse(fields: &Map<String, Value>) -> Self {
        let flag = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
        let word = |name: &str| fields.get(name).and_then(Value::as_str);
        let inside = |name: &str| fields.get(name).and_then(|outcome| outcome.get("deny")).and_then(Value::as_bool);
        let message = word("message").map(|message| message.chars().take(LONGEST_MESSAGE).collect());
        Self {
            denies: flag("deny")
                || word("on_fail") == Some("deny")
                || inside("on_fail") == Some(true)
                || word("onFail") == Some("block"),
            is_async: flag("async"),
            is_sequential: flag("sequential"),
            softens: flag("soft_deny_200"),
            holds: word("stream") == Some("hold"),
            on_success: feedback(fields.get("on_success"), 5),
            on_fail: feedback(fields.get("on_fail"), -5),
            message,
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
            on_success: self.on_success.or(others.on_success),
            on_fail: self.on_fail.or(others.on_fail),
            message: self.message.or(others.message),
        }
    }
}

fn feedback(outcome: Option<&Value>, usual: i64) -> Option<Feedback> {
    let sent = outcome?.get("feedback")?.as_object()?;
    let value = sent.get("value").and_then(Value::as_i64).unwrap_or(usual).clamp(-10, 10);
    let weight = sent.get("weight").and_then(Value::as_f64).unwrap_or(1.0).clamp(0.0, 1.0);
    Some(Feedback { value, weight, metadata: sent.get("metadata").cloned().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_word_that_denies_is_enough_and_nothing_denies_by_itself() {
        for (actions, denies) in [
            (json!({}), false),
            (json!({ "deny": true }), true),
            (json!({ "deny": false, "on_fail": "deny" }), true),
            (json!({ "on_fail": { "deny": true } }), true),
            (json!({ "onFail": "block" }), true),
            (json!({ "onFail": "log" }), false),
            (json!({ "on_success": { "deny": true } }), false),
        ] {
            assert_eq!(Actions::parse(actions.as_object().unwrap()).denies, denies, "{actions}");
        }
    }

    #[test]
    fn feedback_has_its_usual_values_and_bounds() {
        let actions =
            json!({ "on_success": { "feedback": {} }, "on_fail": { "feedback": { "value": -99, "weight": 7 } } });
        let read = Actions::parse(actions.as_object().unwrap());
        assert_eq!(read.on_success.map(|feedback| (feedback.value, feedback.weight)), Some((5, 1.0)));
        assert_eq!(read.on_fail.map(|feedback| (feedback.value, feedback.weight)), Some((-10, 1.0)));
    }
}
