//! Request bodies as JSON. Errors name the field by its path and never repeat a value: a mistyped secret would end
//! up in the answer and in the log. serde's words about a mismatch name types of ours; whoever sent the body is told in
//! the words of JSON.

mod strict;

use self::strict::Strict;
use crate::http::ApiError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The body as an object. No body is an empty object: some clients send none where every field is optional.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match value(body)? {
        Value::Object(object) => Ok(object),
        _ => Err(ApiError::invalid("The body must be a JSON object")),
    }
}

/// The body as any JSON; no body is an empty object.
pub fn value(body: &[u8]) -> Result<Value, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value = serde_json::from_slice(body).map_err(|error| not_json(&error))?;
    match path_of_nul(&value) {
        Some(path) => Err(ApiError::field(path, "must not contain the character NUL")),
        None => Ok(value),
    }
}

/// Reads a body into its type.
pub fn parse<T: DeserializeOwned>(body: Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(Strict(body)).map_err(|error| {
        let path = error.path().to_string();
        refusal(if path == "." { "" } else { &path }, &error.inner().to_string())
    })
}

/// Reads a body straight into its type, with no tree of it in between: for bodies of callers whom nobody knows yet.
pub fn parse_bytes<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    // serde would also take an array for a struct.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(ApiError::invalid("The body must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut reader);
    let read = read.map_err(|error| match error.inner().is_data() {
        true => {
            let (path, message) = (error.path().to_string(), error.inner().to_string());
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
            refusal(if path == "." { "" } else { &path }, message)
        }
        false => not_json(error.inner()),
    })?;
    reader.end().map_err(|error| not_json(&error))?;
    Ok(read)
}

/// Where it breaks off being JSON. The parser's words about that are about punctuation and repeat nothing of the body.
fn not_json(error: &serde_json::Error) -> ApiError {
    let message = error.to_string();
    let why = message.rsplit_once(" at line ").map_or(message.as_str(), |(why, _)| why);
    let (line, column) = (error.line(), error.column());
    ApiError::invalid(format!("The body is not valid JSON: {why} (line {line}, column {column})"))
}

/// As `parse`, for a value found at `field` of the body.
pub fn parse_at<T: DeserializeOwned>(field: &str, body: Value) -> Result<T, ApiError> {
    parse(body).map_err(|error| error.under(field))
}

/// Turns serde's message into one about the field. serde quotes the offending value; only what it expected is kept.
fn refusal(path: &str, message: &str) -> ApiError {
    let quoted = |prefix: &str| message.strip_prefix(prefix)?.split('`').nth(1);
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    if let Some(name) = quoted("missing field ") {
        return ApiError::field(below(name), "is required");
    }
    if let Some(name) = quoted("unknown field ") {
        // serde has already stepped into the field on some ways, and not on others.
        let path = if path.rsplit('.').next() == Some(name) { path.to_owned() } else { below(name) };
        return ApiError::field(path, "is not a field of this object");
    }
    let text = match message.rsplit_once(", expected ") {
        Some((_, expected)) => format!("must be {}", spoken(expected)),
        // The library's words are about characters, and repeat them.
        None if message.starts_with("UUID parsing failed") => "must be an id, as its list shows it (a UUID)".to_owned(),
        None => message.to_owned(),
    };
    if path.is_empty() { ApiError::invalid(text) } else { ApiError::field(path, text) }
}

/// What serde expected, without the names of our types.
fn spoken(expected: &str) -> &str {
    match expected {
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number of at least 0",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        expected if expected.starts_with("struct ") || expected.starts_with("enum ") => "an object",
        expected => expected,
    }
}

/// Postgres cannot store NUL in text, and nobody means it.
fn path_of_nul(value: &Value) -> Option<String> {
    let joined = |name: String, rest: String| if rest.is_empty() { name } else { format!("{name}.{rest}") };
    match value {
        Value::String(text) => text.contains('\0').then(String::new),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(n, item)| path_of_nul(item).map(|rest| joined(format!("[{n}]"), rest)))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let rest = if name.contains('\0') { Some(String::new()) } else { path_of_nul(field) };
            rest.map(|rest| joined(name.replace('\0', "\u{fffd}"), rest))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests;
