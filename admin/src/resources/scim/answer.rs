//! Answers in the protocol's form: its media type, entity tags, lists, and only the attributes that were asked for.

use crate::app::App;
use crate::http::{ApiError, Query};
use crate::identity::Call;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

/// What came of an operation.
#[derive(Debug)]
pub struct Done {
    pub status: StatusCode,
    pub body: Option<Value>,
}

pub type Outcome = Result<Done, ApiError>;

impl Done {
    pub fn ok(body: Value) -> Self {
        Self { status: StatusCode::OK, body: Some(body) }
    }

    pub fn created(body: Value) -> Self {
        Self { status: StatusCode::CREATED, body: Some(body) }
    }

    pub fn gone() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: None }
    }

    /// A resource that was read: nothing, if the caller has it in this version.
    pub fn read(call: &Call, body: Value) -> Self {
        let has = call.origin.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        match (has, body["meta"]["version"].as_str()) {
            (Some(has), Some(version)) if names(has, version) => Self { status: StatusCode::NOT_MODIFIED, body: None },
            _ => Self::ok(body),
        }
    }

    /// With only the attributes that the query asks for.
    pub fn chosen(mut self, query: &Query) -> Self {
        self.body = self.body.map(|body| chosen(body, query));
        self
    }
}

impl IntoResponse for Done {
    fn into_response(self) -> Response {
        let Some(body) = self.body else { return self.status.into_response() };
        let text = |name: &str| body["meta"][name].as_str().and_then(|text| HeaderValue::from_str(text).ok());
        let (version, location) = (text("version"), text("location"));
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/scim+json"));
        headers.extend(version.map(|version| (header::ETAG, version)));
        if self.status == StatusCode::CREATED {
            headers.extend(location.map(|location| (header::LOCATION, location)));
        }
        response
    }
}

/// Where the protocol's resources are.
pub fn base(app: &App) -> String {
    format!("{}/v1/scim", app.public_url)
}

pub fn version(changed: DateTime<Utc>) -> String {
    format!("W/\"{}\"", changed.timestamp_micros())
}

/// 412 when the caller means another version.
pub fn matches(call: &Call, version: &str) -> Result<(), ApiError> {
    let wanted = call.origin.headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok());
    match wanted {
        Some(wanted) if !names(wanted, version) => Err(ApiError::Scim {
            status: StatusCode::PRECONDITION_FAILED,
            kind: "",
            detail: "The resource has changed since this version".into(),
        }),
        _ => {
            call.origin.mark_compared();
            Ok(())
        }
    }
}

fn names(tags: &str, version: &str) -> bool {
    let plain = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    tags.split(',').any(|tag| tag.trim() == "*" || plain(tag) == plain(version))
}

/// The page asked for: first index (from 1), and how many.
pub fn page(query: &Query) -> Result<(i64, i64), ApiError> {
    const MAX_PAGE: i64 = 1000;
    let number = |name: &str, default: i64| match query.text(name) {
        None => Ok(default),
        Some(text) => text.parse::<i64>().map_err(|_| ApiError::field(name, "must be a whole number")),
    };
    Ok((number("startIndex", 1)?.max(1), number("count", 100)?.clamp(0, MAX_PAGE)))
}

pub fn list(total: i64, start: i64, resources: Vec<Value>) -> Done {
    Done::ok(json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": resources.len(),
        "Resources": resources,
    }))
}

/// `attributes` and `excludedAttributes` by their first part; id, schemas and meta are always there.
pub fn chosen(body: Value, query: &Query) -> Value {
    let (wanted, unwanted) = (query.list("attributes"), query.list("excludedAttributes"));
    let Value::Object(fields) = body else { return body };
    if wanted.is_empty() && unwanted.is_empty() {
        return Value::Object(fields);
    }
    let mut selected = Map::new();
    for (name, mut value) in fields {
        let is_named = |path: &String| first(path).eq_ignore_ascii_case(&name) || path.eq_ignore_ascii_case(&name);
        let is_always = matches!(name.as_str(), "id" | "schemas");
        if is_always || (wanted.is_empty() && !unwanted.iter().any(|path| is_named(path) && !path.contains('.'))) {
            unwanted.iter().filter(|path| is_named(path)).for_each(|path| without_part(&mut value, path));
            selected.insert(name, value);
        } else if !wanted.is_empty() && wanted.iter().any(is_named) {
            selected.insert(name, value);
        }
    }
    Value::Object(selected)
}

fn first(path: &str) -> &str {
    let plain = if path.starts_with("urn:") { path.rsplit(':').next().unwrap_or(path) } else { path };
    plain.split('.').next().unwrap_or(plain)
}

fn without_part(value: &mut Value, path: &str) {
    let Some((_, part)) = path.split_once('.') else { return };
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| without_part(item, path)),
        Value::Object(fields) => fields.retain(|name, _| !name.eq_ignore_ascii_case(part)),
        _ => {}
    }
}
