//! Whether a condition's query holds for a request.

use crate::request::body::Fields;
use serde_json::{Map, Value};
use shared::config::{Query, QueryKey, QueryOperator, number_of};
use std::borrow::Cow;

/// What queries and sticky keys can ask of a request.
#[derive(Clone, Copy)]
pub struct RequestFacts<'r> {
    pub metadata: &'r Map<String, Value>,
    /// The client's body before any change; empty when it is not JSON.
    pub params: &'r Fields<'r>,
    pub pathname: &'r str,
}

impl RequestFacts<'_> {
    fn look<T>(&self, key: &QueryKey, look: impl FnOnce(Option<&Value>) -> T) -> T {
        match key {
            QueryKey::Metadata(name) => look(self.metadata.get(name)),
            QueryKey::Param(name) => self.params.compare(name, look),
            QueryKey::Pathname => look(Some(&Value::from(self.pathname))),
            QueryKey::Nothing => look(None),
        }
    }
}

pub fn holds(query: &Query, facts: &RequestFacts<'_>) -> bool {
    match query {
        Query::All(queries) => queries.iter().all(|query| holds(query, facts)),
        Query::Any(queries) => queries.iter().any(|query| holds(query, facts)),
        Query::Test { key, operator } => {
            let equal = if matches!(key, QueryKey::Metadata(_)) { equal_as_text } else { equal };
            facts.look(key, |found| passes(operator, found, equal))
        }
    }
}

fn passes(operator: &QueryOperator, found: Option<&Value>, equal: fn(&Value, &Value) -> bool) -> bool {
    let number = || found.map_or(f64::NAN, number_of);
    match operator {
        QueryOperator::Equal(wanted) => found.is_some_and(|found| equal(found, wanted)),
        QueryOperator::NotEqual(wanted) => !found.is_some_and(|found| equal(found, wanted)),
        // Not a number is neither less nor more than anything.
        QueryOperator::Greater(bound) => number() > *bound,
        QueryOperator::GreaterOrEqual(bound) => number() >= *bound,
        QueryOperator::Less(bound) => number() < *bound,
        QueryOperator::LessOrEqual(bound) => number() <= *bound,
        QueryOperator::In(wanted) => found.is_some_and(|found| wanted.iter().any(|one| equal(found, one))),
        QueryOperator::NotIn(wanted) => !found.is_some_and(|found| wanted.iter().any(|one| equal(found, one))),
        QueryOperator::Matches(pattern) => found.and_then(text).is_some_and(|text| pattern.is_in(&text)),
        QueryOperator::Never => false,
    }
}

/// Equal in kind and value: `"1"` is not 1, but 1 is 1.0.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

/// Values of metadata are texts, whatever they were sent as: 1 and 1.0 are said of `"1"`.
fn equal_as_text(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::String(found), Value::Number(wanted)) => {
            found.parse().is_ok_and(|found: f64| Some(found) == wanted.as_f64())
        }
        (Value::String(found), Value::Bool(wanted)) => found == if *wanted { "true" } else { "false" },
        _ => equal(found, wanted),
    }
}

fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(_) | Value::Bool(_) => Some(Cow::Owned(value.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
