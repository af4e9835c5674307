//! The answers that are not what was asked for. Their examples are written by the very code that writes the answers,
//! so they cannot differ.

use super::doc::Doc;
use super::schema::{self, Schema, any_text, fixed, list, object};
use crate::http::{ApiError, ChangedSince};
use serde_json::{Map, Value, json};
use shared::routes::{Access, Method, Operation, Scopes};

const REQUEST_ID: &str = "6f1c8a52-8a52-4c0e-8f0e-7a1f2f1f0a11";

/// Each once; operations point here.
pub fn responses() -> Value {
    let rows = kinds().into_iter().map(|(name, text, error)| {
        let schema = if matches!(error, ApiError::NotListed(_)) { not_listed() } else { schema() };
        let content = json!({ "schema": schema.json, "example": error.body(REQUEST_ID, None) });
        let response = json!({
            "description": format!("{text} ({}).", error.code()),
            "headers": super::operation::headers(),
            "content": { "application/json": content },
        });
        (name.to_owned(), response)
    });
    let mut all: Map<String, Value> = rows.collect();
    all.insert("ScimError".into(), scim());
    Value::Object(all)
}

/// What identity providers get instead.
fn scim() -> Value {
    let error = object("ScimError")
        .need(
            "schemas",
            list(any_text().eg("urn:ietf:params:scim:api:messages:2.0:Error")).says("Says that it is an error."),
        )
        .need("status", any_text().eg("400").says("The status of the answer."))
        .need("detail", any_text().eg("userName: is required").says("The reason, for people."))
        .may("scimType", any_text().eg("invalidValue").says("The reason, for programs."));
    let content = json!({ "schema": error.json, "example": ApiError::field("userName", "is required").scim_body() });
    json!({
        "description": "Refused, in the form that SCIM prescribes.",
        "headers": super::operation::headers(),
        "content": { "application/scim+json": content, "application/json": content },
    })
}

fn kinds() -> Vec<(&'static str, &'static str, ApiError)> {
    vec![
        ("Invalid", "The request is not valid", ApiError::field("name", "is required")),
        ("Unauthenticated", "No valid credential", ApiError::Unauthenticated("No valid credential was sent")),
        ("FeatureOff", "The feature is switched off", ApiError::FeatureOff { setting: "API_ACCESS_ENABLED" }),
        (
            "Forbidden",
            "The credential may not do this",
            ApiError::MissingScope { needs: Scopes::Any(&["prompts.create"]) },
        ),
        ("NotFound", "No such object, or not in reach of the credential", ApiError::NotFound("label")),
        ("NotListed", "Not in the price list", ApiError::NotListed("price for this model")),
        (
            "Conflict",
            "It exists already, is in use, or is in the wrong state",
            ApiError::Conflict("There is a label with this name already".into()),
        ),
        (
            "Changed",
            "The object is no longer as `If-Match` says; `data.changed` tells who changed which fields",
            ApiError::Changed(Box::new(ChangedSince {
                at: "2026-01-15T10:30:00.000Z".into(),
                by_type: Some("user".into()),
                by_id: Some(uuid::Uuid::nil()),
                by_name: Some("Ada Lovelace".into()),
                fields: vec!["name".into()],
            })),
        ),
        (
            "TooLarge",
            "The body is larger than the operation reads (`x-body-limit`)",
            ApiError::TooLarge { limit: 1 << 20 },
        ),
        (
            "RateLimited",
            "More at once, or more often, than allowed; `Retry-After` says when to come back",
            ApiError::RateLimited { message: crate::http::backpressure::log_queries::TOO_MANY, retry_after: 5 },
        ),
        ("Failed", "The server failed", ApiError::Internal),
        ("NotBuilt", "Part of the interface, not built yet", ApiError::NotBuilt),
        ("Unavailable", "The database cannot be reached, or took too long for what was asked", ApiError::Unavailable),
    ]
}

/// The refusals an operation may answer with.
pub fn for_operation(operation: &Operation, is_built: bool, doc: Option<&Doc>) -> Map<String, Value> {
    let also = doc.map_or(&[][..], |doc| doc.also.as_slice());
    let is_by_key = matches!(operation.access, Access::Keys(_));
    let is_write = operation.method != Method::Get;
    let is_scim = operation.access == Access::ScimToken;
    let missing = if operation.path.starts_with("/model-configs/") { "NotListed" } else { "NotFound" };
    let rows = [
        (400, "Invalid", true),
        (401, "Unauthenticated", operation.access != Access::Public),
        (402, "FeatureOff", is_by_key || operation.feature.is_some()),
        (403, "Forbidden", is_by_key || is_scim || operation.access == Access::Session),
        (404, missing, is_by_key || operation.path.contains('{')),
        (409, "Conflict", (is_by_key || is_scim) && is_write),
        (412, "Changed", doc.is_some_and(|doc| doc.reads_condition)),
        (413, "TooLarge", true),
        (429, "RateLimited", is_by_key),
        (500, "Failed", true),
        (501, "NotBuilt", !is_built),
        (503, "Unavailable", true),
    ];
    let applying = rows.into_iter().filter(|(status, _, applies)| *applies || also.contains(status));
    applying
        .map(|(status, name, _)| (status, if is_scim { "ScimError" } else { name }))
        .map(|(status, name)| (status.to_string(), json!({ "$ref": format!("#/components/responses/{name}") })))
        .collect()
}

pub fn schema() -> Schema {
    let error = object("")
        .need("message", any_text())
        .need("type", any_text().eg("invalid_request_error"))
        .need("param", any_text().or_null())
        .need("code", code());
    with_error("Error", error)
}

/// In the public price list `error` is a text.
fn not_listed() -> Schema {
    with_error("NotListed", any_text())
}

fn with_error(title: &str, error: Schema) -> Schema {
    let wrong = object("FieldError").need("field", any_text().eg("name")).need("message", any_text().eg("is required"));
    let wrong = wrong
        .may("value", schema::anything().eg("admn").says("What was sent, where it can be no secret."))
        .may("allowed", list(any_text().eg("admin")).says("What may stand there, where that can be listed."))
        .may("nearest", any_text().eg("admin").says("What was probably meant."))
        .may("code", any_text().eg("AB01_MISSING").says("The rule, for faults of a config."))
        .may("path", any_text().eg("retry.attempts").says("As `field`; for faults of a config, where in the config."));
    let user = object("InUseBy")
        .need("object", any_text().eg("config").says("What kind of object it is."))
        .need("id", schema::uuid().says("Its id."))
        .need("name", any_text().eg("pc-main-3f9a01").says("Its slug or name."))
        .need("workspace_id", schema::uuid().or_null().says("The workspace it belongs to."));
    let data = object("").need("message", any_text()).need("errorCode", code()).need("errors", list(wrong));
    let data = data.may("in_use_by", list(user).says("Of a delete that was refused: who relies on the object."));
    let changed = object("")
        .need("at", schema::time().says("When it was last changed."))
        .need("by_type", any_text().eg("user").or_null().says("`user`, `api_key` or `system`."))
        .need("by_id", schema::uuid().or_null().says("Who changed it: a key, or else a person."))
        .need("by_name", any_text().eg("Ada Lovelace").or_null().says("What that key or person is called."))
        .need("fields", list(any_text().eg("name")).says("The fields that the last change set."));
    let data = data.may("changed", changed.says("Of a change that `If-Match` forbids: what was changed meanwhile."));
    object(title)
        .need("success", fixed(false))
        .need("message", any_text())
        .need("data", data)
        .need("error", error)
        .need("request_id", schema::uuid())
}

fn code() -> Schema {
    any_text().eg("AB01").says("AB01 to AB10: the reason, for programs.")
}
