//! What this server can do, for identity providers that ask: its abilities, its two kinds of resources and their
//! schemas. Always the same, but for the address.

use super::answer::{self, Done, Outcome, base};
use super::bulk::MAX_OPERATIONS;
use super::groups::GROUP;
use super::person::USER;
use crate::app::App;
use crate::http::ApiError;
use crate::identity::Call;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

pub async fn provider(State(app): State<App>, _call: Call) -> Outcome {
    Ok(Done::ok(json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
        "patch": { "supported": true },
        "bulk": { "supported": true, "maxOperations": MAX_OPERATIONS, "maxPayloadSize": 1 << 20 },
        "filter": { "supported": true, "maxResults": 1000 },
        "changePassword": { "supported": false },
        "sort": { "supported": false },
        "etag": { "supported": true },
        "authenticationSchemes": [{
            "type": "oauthbearertoken",
            "name": "Bearer token",
            "description": "The SCIM token from the organisation's auth settings.",
            "primary": true,
        }],
        "meta": {
            "resourceType": "ServiceProviderConfig",
            "location": format!("{}/ServiceProviderConfig", base(&app)),
        },
    })))
}

pub async fn resource_types(State(app): State<App>, call: Call) -> Outcome {
    refuse_filter(&call)?;
    Ok(answer::list(2, 1, kinds(&base(&app))))
}

pub async fn resource_type(State(app): State<App>, _call: Call, Path(id): Path<String>) -> Outcome {
    one(kinds(&base(&app)), &id, "resource type")
}

pub async fn schemas(State(app): State<App>, call: Call) -> Outcome {
    refuse_filter(&call)?;
    Ok(answer::list(2, 1, described(&base(&app))))
}

pub async fn schema(State(app): State<App>, _call: Call, Path(id): Path<String>) -> Outcome {
    one(described(&base(&app)), &id, "schema")
}

fn one(all: Vec<Value>, id: &str, kind: &'static str) -> Outcome {
    let found = all.into_iter().find(|one| one["id"].as_str().is_some_and(|one| one.eq_ignore_ascii_case(id)));
    found.map(Done::ok).ok_or(ApiError::NotFound(kind))
}

/// As RFC 7644, 4 wants it.
fn refuse_filter(call: &Call) -> Result<(), ApiError> {
    match call.query().text("filter") {
        None => Ok(()),
        Some(_) => Err(ApiError::Scim {
            status: StatusCode::FORBIDDEN,
            kind: "",
            detail: "What the server can do is not filtered".into(),
        }),
    }
}

fn kinds(base: &str) -> Vec<Value> {
    let kind = |name: &str, path: &str, schema: &str| {
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
            "id": name,
            "name": name,
            "endpoint": path,
            "schema": schema,
            "meta": { "resourceType": "ResourceType", "location": format!("{base}/ResourceTypes/{name}") },
        })
    };
    vec![kind("User", "/Users", USER), kind("Group", "/Groups", GROUP)]
}

fn attribute(name: &str, kind: &str, description: &str) -> Value {
    let mut attribute = json!({
        "name": name, "type": kind, "multiValued": false, "description": description, "required": false,
        "mutability": "readWrite", "returned": "default",
    });
    if kind == "string" {
        attribute["caseExact"] = false.into();
        attribute["uniqueness"] = "none".into();
    }
    attribute
}

/// The attribute with these properties instead.
fn with(mut attribute: Value, properties: Value) -> Value {
    if let (Value::Object(all), Value::Object(new)) = (&mut attribute, properties) {
        all.extend(new);
    }
    attribute
}

fn described(base: &str) -> Vec<Value> {
    let schema = |id: &str, name: &str, description: &str, attributes: Value| {
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Schema"],
            "id": id,
            "name": name,
            "description": description,
            "attributes": attributes,
            "meta": { "resourceType": "Schema", "location": format!("{base}/Schemas/{id}") },
        })
    };
    vec![schema(USER, "User", "A person.", user()), schema(GROUP, "Group", "People of one kind.", group())]
}

fn user() -> Value {
    let name = [
        attribute("formatted", "string", "The whole name."),
        attribute("familyName", "string", "The last name."),
        attribute("givenName", "string", "The first name."),
    ];
    let email = [
        with(attribute("value", "string", "The address."), json!({ "required": true })),
        with(attribute("type", "string", "What it is for."), json!({ "canonicalValues": ["work", "home", "other"] })),
        attribute("primary", "boolean", "Whether it is the one that counts."),
    ];
    let role = [
        with(attribute("value", "string", "The role."), json!({ "canonicalValues": ["admin", "member"] })),
        attribute("primary", "boolean", "Whether it is the one that counts."),
    ];
    let read_only = |one: Value| with(one, json!({ "mutability": "readOnly" }));
    let group = [
        read_only(attribute("value", "string", "The id of the group.")),
        read_only(reference("The address of the group.", "Group")),
        read_only(attribute("display", "string", "The name of the group.")),
        read_only(attribute("type", "string", "Always direct.")),
    ];
    json!([
        with(
            attribute("userName", "string", "The name of the person, an e-mail address."),
            json!({ "required": true, "uniqueness": "server" })
        ),
        with(attribute("name", "complex", "The parts of the name."), json!({ "subAttributes": name })),
        attribute("displayName", "string", "The name to show."),
        with(attribute("active", "boolean", "Whether the person may do anything."), json!({ "required": true })),
        with(
            attribute("emails", "complex", "Addresses."),
            json!({ "multiValued": true, "required": true, "subAttributes": email })
        ),
        with(
            attribute("roles", "complex", "The role in the organisation."),
            json!({ "multiValued": true, "subAttributes": role })
        ),
        with(
            read_only(attribute("groups", "complex", "The groups that the person is in.")),
            json!({ "multiValued": true, "subAttributes": group })
        ),
    ])
}

fn group() -> Value {
    let immutable = |one: Value| with(one, json!({ "mutability": "immutable" }));
    let member = [
        immutable(attribute("value", "string", "The id of the person.")),
        immutable(reference("The address of the person.", "User")),
        immutable(with(attribute("type", "string", "Always User."), json!({ "canonicalValues": ["User"] }))),
    ];
    json!([
        with(
            attribute("displayName", "string", "The name of the group."),
            json!({ "required": true, "uniqueness": "server" })
        ),
        with(attribute("members", "complex", "Who is in it."), json!({ "multiValued": true, "subAttributes": member })),
    ])
}

fn reference(description: &str, to: &str) -> Value {
    with(attribute("$ref", "reference", description), json!({ "referenceTypes": [to] }))
}
