//! The OpenAPI document, made from the route table: it lists what is served and says of each operation who may call
//! it and whether it is built. Request and answer bodies join as their resources are built.

use crate::resources::is_built;
use serde_json::{Map, Value, json};
use shared::routes::{Access, Feature, KeySet, Operation, Scopes, operations};

/// The version of the interface description, and the release whose interface it is; neither is our own version.
const INTERFACE_VERSION: &str = "2.0.0";
const COMPATIBLE_RELEASE: &str = "1.12.0";

pub fn document() -> Value {
    let mut paths = Map::new();
    for operation in operations() {
        let path = operation.path.replace("{*", "{");
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[operation.method.as_str().to_ascii_lowercase()] = describe(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Portcullis control plane",
            "version": INTERFACE_VERSION,
            "x-compatible-release": COMPATIBLE_RELEASE,
        },
        "servers": [{ "url": "/v1" }],
        "paths": paths,
        "components": { "securitySchemes": security_schemes(), "schemas": { "Error": error_schema() } },
    })
}

fn describe(operation: &Operation) -> Value {
    let segments: Vec<&str> = operation.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let mut description = json!({
        "operationId": operation_id(operation, &segments),
        "tags": [segments.first()],
        "parameters": parameters(&segments),
        "security": security(operation.access),
        "responses": responses(operation),
        "x-scopes": scopes(operation.scopes),
        "x-implemented": is_built(operation),
    });
    if let Access::Keys(kinds) = operation.access {
        description["x-key-kinds"] = key_kinds(kinds);
    }
    if let Some(feature) = operation.feature {
        description["x-feature-flag"] = feature.setting().into();
    }
    description
}

/// `GET /configs/{slug}/versions` is `get_configs_slug_versions`: stable, and unique because paths are.
fn operation_id(operation: &Operation, segments: &[&str]) -> String {
    let words = segments.iter().map(|segment| segment.trim_matches(['{', '*', '}']).replace(['-', '.'], "_"));
    let method = operation.method.as_str().to_ascii_lowercase();
    std::iter::once(method).chain(words).collect::<Vec<_>>().join("_")
}

fn parameters(segments: &[&str]) -> Vec<Value> {
    let names =
        segments.iter().filter(|segment| segment.starts_with('{')).map(|segment| segment.trim_matches(['{', '*', '}']));
    names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })).collect()
}

fn security(access: Access) -> Value {
    match access {
        Access::Public => json!([]),
        Access::ScimToken => json!([{ "scimToken": [] }]),
        Access::Keys(_) => json!([{ "apiKey": [] }, { "bearer": [] }]),
    }
}

fn security_schemes() -> Value {
    json!({
        "apiKey": { "type": "apiKey", "in": "header", "name": "x-gateway-api-key" },
        "bearer": { "type": "http", "scheme": "bearer", "description": "An API key; read when x-gateway-api-key is absent." },
        "scimToken": { "type": "http", "scheme": "bearer", "description": "The organisation's SCIM token." },
    })
}

fn scopes(scopes: Scopes) -> Value {
    match scopes {
        Scopes::Any(names) => json!({ "anyOf": names }),
        Scopes::All(names) => json!({ "allOf": names }),
    }
}

fn key_kinds(kinds: KeySet) -> Value {
    let all = [
        (kinds.organisation_service, "organisation-service"),
        (kinds.workspace_service, "workspace-service"),
        (kinds.workspace_user, "workspace-user"),
        (kinds.jwt, "jwt"),
    ];
    all.iter().filter(|(held, _)| *held).map(|(_, name)| *name).collect()
}

fn responses(operation: &Operation) -> Value {
    let mut responses = Map::new();
    if is_built(operation) {
        let body = json!({ "application/json": { "schema": { "type": "object" } } });
        responses.insert("200".into(), json!({ "description": "Done.", "content": body }));
    }
    let feature = operation.feature.map(Feature::setting);
    for (status, applies, text) in [
        ("400", true, "The request is not valid (AB01)."),
        ("401", operation.access != Access::Public, "No valid credential (AB05)."),
        ("402", feature.is_some(), "The feature is switched off (AB09)."),
        ("403", matches!(operation.access, Access::Keys(_)), "The credential may not do this (AB03)."),
        ("404", operation.path.contains('{'), "No such object (AB08)."),
        ("413", true, "The body is larger than 20 MiB (AB01)."),
        ("500", true, "The server failed (AB04)."),
        ("501", !is_built(operation), "Not built yet (AB10)."),
        ("503", true, "The database cannot be reached (AB04)."),
    ] {
        if applies {
            let body = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
            responses.insert(status.into(), json!({ "description": text, "content": body }));
        }
    }
    responses.into()
}

fn error_schema() -> Value {
    let text = json!({ "type": "string" });
    let field = json!({ "type": "object", "properties": { "field": text, "message": text } });
    let data = json!({ "message": text, "errorCode": text, "errors": { "type": "array", "items": field } });
    let error = json!({ "message": text, "type": text, "param": { "type": ["string", "null"] }, "code": text });
    json!({
        "type": "object",
        "required": ["success", "message", "data", "error", "request_id"],
        "properties": {
            "success": { "const": false },
            "message": text,
            "data": { "type": "object", "properties": data },
            "error": { "type": "object", "properties": error },
            "request_id": text,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_of_the_route_table_is_described_once() {
        let document = document();
        let described: usize =
            document["paths"].as_object().unwrap().values().map(|item| item.as_object().unwrap().len()).sum();
        assert_eq!(described, operations().count());
    }

    #[test]
    fn operation_ids_are_unique() {
        let document = document();
        let items = document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
        let ids: Vec<_> = items.map(|one| one["operationId"].as_str().unwrap()).collect();
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }

    #[test]
    fn the_document_says_which_interface_it_is_and_what_each_operation_needs() {
        let document = document();
        assert_eq!(document["info"]["version"], "2.0.0");
        assert_eq!(document["info"]["x-compatible-release"], "1.12.0");
        let export = &document["paths"]["/logs/exports/{exportId}"]["get"];
        assert_eq!(export["x-feature-flag"], "DATA_EXPORTS_ENABLED");
        assert_eq!(export["x-scopes"]["anyOf"][0], "logs.export");
        assert_eq!(export["parameters"][0]["name"], "exportId");
        assert!(export["responses"]["402"].is_object() && export["responses"]["501"].is_object());
        let price = &document["paths"]["/model-configs/pricing/{provider}/{model}"]["get"];
        assert_eq!(price["security"], json!([]));
        assert!(document["paths"]["/api-keys/self"]["get"]["responses"]["501"].is_null());
    }
}
