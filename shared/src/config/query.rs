//! The query language of conditions, read into a tree. Whether it holds for a request is decided in the proxy.
//!
//! A query that can never match would silently route everybody elsewhere: a saved config may not have one, and one that
//! came with a request is warned of.

use super::fault::{Code, Path, Reading};
use super::fields::QUERY_OPERATORS;
use super::object::guess;
use regex::Regex;
use serde_json::{Map, Value};

/// A pattern may use this much memory, which also bounds the time it takes.
const PATTERN_BYTES: usize = 256 << 10;
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    All(Vec<Query>),
    Any(Vec<Query>),
    Test { key: QueryKey, operator: QueryOperator },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryKey {
    Metadata(String),
    /// A field of the client's body, as it was before any override.
    Param(String),
    Pathname,
    /// What no request has.
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
pub enum QueryOperator {
    Equal(Value),
    NotEqual(Value),
    Greater(f64),
    GreaterOrEqual(f64),
    Less(f64),
    LessOrEqual(f64),
    In(Vec<Value>),
    NotIn(Vec<Value>),
    Matches(Pattern),
    /// An operand that no value satisfies.
    Never,
}

#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

pub fn parse(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Query {
    query(reading, path, value, 0)
}

fn query(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value, depth: usize) -> Query {
    let Value::Object(fields) = value else {
        reading.fault(path, Code::WrongType, "must be an object");
        return Query::All(Vec::new());
    };
    if depth > MAX_DEPTH {
        reading.fault(path, Code::TooDeep, format!("must not nest deeper than {MAX_DEPTH} levels"));
        return Query::All(Vec::new());
    }
    if fields.is_empty() {
        reading.tolerate(path, Code::BadQuery, "must test something");
    }
    let mut parts: Vec<Query> =
        fields.iter().map(|(key, value)| entry(reading, &path.key(key), key, value, depth)).collect();
    if parts.len() == 1 { parts.swap_remove(0) } else { Query::All(parts) }
}

fn entry(reading: &mut Reading<'_>, path: &Path<'_>, name: &str, value: &Value, depth: usize) -> Query {
    match name {
        "$and" => Query::All(queries(reading, path, value, depth)),
        "$or" => Query::Any(queries(reading, path, value, depth)),
        _ if name.starts_with('$') => {
            reading.fault(path, Code::BadQuery, "is not an operator: $and and $or join queries");
            Query::All(Vec::new())
        }
        _ => {
            let key = key(reading, path, name);
            tests(reading, path, key, value)
        }
    }
}

fn queries(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value, depth: usize) -> Vec<Query> {
    let Value::Array(items) = value else {
        reading.fault(path, Code::WrongType, "must be an array of queries");
        return Vec::new();
    };
    if items.is_empty() {
        reading.tolerate(path, Code::BadQuery, "must have a query");
    }
    items.iter().enumerate().map(|(index, item)| query(reading, &path.index(index), item, depth + 1)).collect()
}

/// `metadata.<k>`, `params.<k>` or `url.pathname`: two segments, no deeper.
fn key(reading: &mut Reading<'_>, path: &Path<'_>, name: &str) -> QueryKey {
    let key = match name.split_once('.') {
        Some(("metadata", rest)) if is_segment(rest) => QueryKey::Metadata(rest.to_owned()),
        Some(("params", rest)) if is_segment(rest) => QueryKey::Param(rest.to_owned()),
        Some(("url", "pathname")) => QueryKey::Pathname,
        _ => QueryKey::Nothing,
    };
    if key == QueryKey::Nothing {
        reading.tolerate(path, Code::BadQuery, "must be metadata.<key>, params.<key> or url.pathname");
    }
    key
}

fn is_segment(text: &str) -> bool {
    !text.is_empty() && !text.contains('.')
}

/// A value to be equal to, or an object of operators.
fn tests(reading: &mut Reading<'_>, path: &Path<'_>, key: QueryKey, value: &Value) -> Query {
    let Value::Object(operators) = value else {
        count(reading, path);
        return Query::Test { key, operator: QueryOperator::Equal(value.clone()) };
    };
    if operators.is_empty() {
        reading.tolerate(path, Code::BadQuery, "must have an operator");
    }
    let mut parts = all_of(reading, path, &key, operators);
    if parts.len() == 1 { parts.swap_remove(0) } else { Query::All(parts) }
}

fn all_of(reading: &mut Reading<'_>, path: &Path<'_>, key: &QueryKey, operators: &Map<String, Value>) -> Vec<Query> {
    let read = operators.iter().map(|(name, operand)| {
        count(reading, path);
        let operator = operator(reading, &path.key(name), name, operand);
        Query::Test { key: key.clone(), operator }
    });
    read.collect()
}

fn operator(reading: &mut Reading<'_>, path: &Path<'_>, name: &str, operand: &Value) -> QueryOperator {
    match name {
        "$eq" => QueryOperator::Equal(operand.clone()),
        "$ne" => QueryOperator::NotEqual(operand.clone()),
        "$gt" => QueryOperator::Greater(bound(reading, path, operand)),
        "$gte" => QueryOperator::GreaterOrEqual(bound(reading, path, operand)),
        "$lt" => QueryOperator::Less(bound(reading, path, operand)),
        "$lte" => QueryOperator::LessOrEqual(bound(reading, path, operand)),
        "$in" => list(reading, path, operand).map_or(QueryOperator::Never, QueryOperator::In),
        "$nin" => list(reading, path, operand).map_or(QueryOperator::Never, QueryOperator::NotIn),
        "$regex" => pattern(reading, path, operand).map_or(QueryOperator::Never, QueryOperator::Matches),
        _ => {
            let guess = guess(name, QUERY_OPERATORS.iter().copied());
            reading.fault(path, Code::BadQuery, format!("is not an operator{guess}"));
            QueryOperator::Never
        }
    }
}

/// Not a number compares with nothing.
fn bound(reading: &mut Reading<'_>, path: &Path<'_>, operand: &Value) -> f64 {
    let number = number_of(operand);
    if number.is_nan() {
        reading.tolerate(path, Code::WrongType, "must be a number");
    }
    number
}

/// A number, or what a text begins with: `12px` is 12. Everything else is not a number.
pub fn number_of(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::String(text) => leading_number(text.trim_start()),
        _ => f64::NAN,
    }
}

fn leading_number(text: &str) -> f64 {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(text.len());
    // The longest beginning that reads as a number; the candidates are short.
    (1..=end.min(40)).rev().find_map(|length| text[..length].parse::<f64>().ok()).unwrap_or(f64::NAN)
}

fn list(reading: &mut Reading<'_>, path: &Path<'_>, operand: &Value) -> Option<Vec<Value>> {
    if !operand.is_array() {
        reading.tolerate(path, Code::WrongType, "must be an array");
    }
    operand.as_array().cloned()
}

fn pattern(reading: &mut Reading<'_>, path: &Path<'_>, operand: &Value) -> Option<Pattern> {
    reading.patterns += 1;
    if reading.patterns > reading.limits.patterns {
        let message = format!("a config must not have more than {} patterns", reading.limits.patterns);
        reading.fault(path, Code::TooMany, message);
        return None;
    }
    let compiled = operand.as_str().and_then(|text| {
        regex::RegexBuilder::new(text).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).build().ok()
    });
    if compiled.is_none() {
        reading.tolerate(path, Code::BadQuery, "must be a regular expression (without look-around) of reasonable size");
    }
    compiled.map(Pattern)
}

fn count(reading: &mut Reading<'_>, path: &Path<'_>) {
    reading.tests += 1;
    if reading.tests == reading.limits.tests + 1 {
        let message = format!("a config must not have more than {} tests in its conditions", reading.limits.tests);
        reading.fault(path, Code::TooMany, message);
    }
}
