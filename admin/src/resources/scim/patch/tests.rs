//! The spellings of identity providers, as they were recorded.

use super::*;

const SEVERAL: &[&str] = &["emails", "roles"];

fn patched(resource: Value, operations_sent: Value) -> Result<Value, String> {
    let Value::Object(resource) = resource else { panic!("an object") };
    let body = json!({ "Operations": operations_sent });
    let operations = operations(body.as_object().unwrap()).map_err(|error| error.to_string())?;
    apply(resource, operations, SEVERAL).map(Value::Object).map_err(|error| error.to_string())
}

#[test]
fn the_three_spellings_do_the_same() {
    for operation in [
        json!({ "op": "Replace", "path": "active", "value": "False" }),
        json!({ "op": "replace", "value": { "active": "False" } }),
        json!({ "op": "Add", "path": "urn:ietf:params:scim:schemas:core:2.0:User:active", "value": "False" }),
    ] {
        let after = patched(json!({ "active": true, "name": { "givenName": "Ada" } }), json!([operation])).unwrap();
        assert_eq!(after, json!({ "active": "False", "name": { "givenName": "Ada" } }), "{operation}");
    }
}

#[test]
fn paths_reach_parts_and_chosen_values() {
    for (before, operation, after) in [
        (
            json!({ "name": { "givenName": "Ada" } }),
            json!({ "op": "replace", "value": { "name.familyName": "King", "displayname": "A" } }),
            json!({ "name": { "givenName": "Ada", "familyName": "King" }, "displayName": "A" }),
        ),
        (
            json!({}),
            json!({ "op": "Add", "path": "emails[type eq \"work\"].value", "value": "a@x.test" }),
            json!({ "emails": [{ "type": "work", "value": "a@x.test" }] }),
        ),
        (
            json!({ "emails": [{ "type": "work", "value": "a" }, { "type": "home", "value": "b" }] }),
            json!({ "op": "remove", "path": "emails[type eq \"home\"]" }),
            json!({ "emails": [{ "type": "work", "value": "a" }] }),
        ),
        (
            json!({ "roles": [] }),
            json!({ "op": "Add", "path": "roles[primary eq \"True\"].value", "value": "admin" }),
            json!({ "roles": [{ "primary": true, "value": "admin" }] }),
        ),
        (json!({ "externalId": "1" }), json!({ "op": "remove", "path": "externalId" }), json!({})),
        (
            json!({}),
            json!({ "op": "add", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
                    "value": "Sales" }),
            json!({ "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { "department": "Sales" } }),
        ),
    ] {
        assert_eq!(patched(before, json!([operation.clone()])).unwrap(), after, "{operation}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for operation in [
        json!({ "op": "move", "path": "active", "value": true }),
        json!({ "op": "remove" }),
        json!({ "op": "replace", "value": "text" }),
        json!({ "op": "replace", "path": "emails[", "value": 1 }),
        json!({ "op": "replace", "path": "[a pr]", "value": 1 }),
        json!({ "op": "replace", "path": "name[a pr]", "value": 1 }),
        json!({ "op": "replace", "path": 7, "value": 1 }),
        json!({ "op": "replace", "path": "active" }),
    ] {
        assert!(patched(json!({}), json!([operation.clone()])).is_err(), "{operation}");
    }
    assert!(operations(json!({ "Operations": vec![json!({}); 1001] }).as_object().unwrap()).is_err());
}
