//! Which workspaces the body of an export names.

use super::NewExport;
use crate::http::ApiError;
use serde_json::{Map, Value};

/// By id or slug, one, several with commas or in a list, or `*`; clients name them among the filters, too.
pub fn named(body: &NewExport) -> Result<Option<String>, ApiError> {
    let own = [("workspace_id", body.workspace_id.as_ref()), ("workspace_slug", body.workspace_slug.as_ref())];
    match first(own)? {
        Some(names) => Ok(Some(names)),
        None => among(&body.filters),
    }
}

/// Among filters alone, as a change may have them.
pub fn among(filters: &Map<String, Value>) -> Result<Option<String>, ApiError> {
    first([
        ("filters.workspace_id", filters.get("workspace_id")),
        ("filters.workspace_slug", filters.get("workspace_slug")),
    ])
}

fn first(places: [(&str, Option<&Value>); 2]) -> Result<Option<String>, ApiError> {
    for (field, value) in places {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            return texts(value).map(Some).ok_or_else(|| {
                ApiError::field(field, "must be the id or slug of a workspace, a list of them, or `*`")
            });
        }
    }
    Ok(None)
}

fn texts(value: &Value) -> Option<String> {
    let names: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    let names = names.join(",");
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(body: Value) -> Result<Option<String>, u16> {
        let mut whole = json!({ "filters": {}, "requested_data": ["id"] });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        named(&serde_json::from_value(whole).unwrap()).map_err(|error| error.status().as_u16())
    }

    #[test]
    fn workspaces_are_named_in_the_body_or_among_the_filters() {
        for (body, expected) in [
            (json!({}), Ok(None)),
            (json!({ "workspace_id": null }), Ok(None)),
            (json!({ "workspace_id": "a" }), Ok(Some("a"))),
            (json!({ "workspace_slug": ["a", "b"] }), Ok(Some("a,b"))),
            (json!({ "filters": { "workspace_slug": "a,b" } }), Ok(Some("a,b"))),
            (json!({ "filters": { "workspace_id": "*" } }), Ok(Some("*"))),
            (json!({ "workspace_id": "a", "filters": { "workspace_slug": "b" } }), Ok(Some("a"))),
            (json!({ "workspace_id": [] }), Err(400)),
            (json!({ "workspace_id": 7 }), Err(400)),
            (json!({ "filters": { "workspace_slug": [1] } }), Err(400)),
        ] {
            assert_eq!(found(body.clone()), expected.map(|names| names.map(str::to_owned)), "{body}");
        }
    }
}
