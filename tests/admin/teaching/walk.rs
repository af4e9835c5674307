//! Every operation is sent one unknown field, one unknown parameter, one wrong type and one misspelt word, and answers
//! with an error that names it. What to send is read from the OpenAPI document, so a new operation is walked too.

use super::fault;
use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Map, Value, json};
use shared::model::KeyKind;
use shared::routes::{Access, Operation, operations};

struct Walk {
    document: Value,
    administrator: Client,
    member: Client,
    person: Client,
    stranger: Client,
}

impl Walk {
    fn client(&self, operation: &Operation) -> &Client {
        match operation.access {
            Access::Keys(kinds) if kinds.contains(KeyKind::OrganisationService) => &self.administrator,
            Access::Keys(kinds) if kinds.contains(KeyKind::WorkspaceService) => &self.member,
            Access::Keys(_) => &self.person,
            Access::Public | Access::ScimToken | Access::Session => &self.stranger,
        }
    }

    async fn send(&self, operation: &Operation, query: &str, body: Option<&Value>) -> Answer {
        let fill = |segment: &str| match segment.strip_prefix('{') {
            Some(name) if name.starts_with('*') => "a/b".to_owned(),
            Some(_) => "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11".to_owned(),
            None => segment.to_owned(),
        };
        let path = operation.path.split('/').map(fill).collect::<Vec<_>>().join("/");
        let method = Method::from_bytes(operation.method.as_str().as_bytes()).unwrap();
        let request = self.client(operation).request(method, &format!("{path}{query}"));
        whole(body.into_iter().fold(request, |request, body| request.json(body))).await
    }

    /// The fields of the object that an operation takes, with what the document says of each.
    fn fields(&self, operation: &Operation) -> Map<String, Value> {
        let path = operation.path.replace("{*", "{");
        let described = &self.document["paths"][path][operation.method.as_str().to_ascii_lowercase()];
        let schema = &described["requestBody"]["content"]["application/json"]["schema"];
        self.object(schema).and_then(|object| object["properties"].as_object()).cloned().unwrap_or_default()
    }

    /// The first object among the forms of a schema.
    fn object<'d>(&'d self, schema: &'d Value) -> Option<&'d Value> {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.object(self.document.pointer(&reference[1..])?);
        }
        match schema["anyOf"].as_array() {
            Some(forms) => forms.iter().find_map(|form| self.object(form)),
            None => schema.get("properties").map(|_| schema),
        }
    }
}

fn has_type(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind)))
}

#[tokio::test]
async fn every_operation_names_what_it_does_not_understand() {
    let service = Service::start().await;
    let walk = Walk {
        document: service.client().get("/openapi.json").await.json(),
        administrator: service.administrator(),
        member: service.workspace_client(service.home.workspace_id).await,
        person: service.person_client(service.home.workspace_id, service.home.owner_id).await,
        stranger: service.client(),
    };
    let (mut fields, mut types, mut words) = (0, 0, 0);
    // It refuses every body, whatever is in it.
    // Protocols of identity providers pass over what they do not know; what is about sessions is in `login`.
    let built = operations().filter(|one| !one.is_of_protocol() && one.access != Access::Session);
    let built = built.filter(|one| admin::resources::is_built(one) && one.path != "/api-keys/{type}/{subType}");
    for operation in built {
        let named = format!("{} {}", operation.method.as_str(), operation.path);
        let refused = walk.send(operation, "?invented_parameter=1", None).await;
        assert!(refused.status == 400, "{named}: {}", refused.text());
        fault(&refused, "invented_parameter");
        // Beside its own fields it takes every parameter of a model.
        if operation.method.as_str() == "GET" || operation.path == "/prompts/{promptId}/render" {
            continue;
        }
        let refused = walk.send(operation, "", Some(&json!({ "invented_field": 1 }))).await;
        assert!(refused.status == 400, "{named}: {}", refused.text());
        fault(&refused, "invented_field");
        fields += 1;
        let known = walk.fields(operation);
        if let Some((name, _)) = known.iter().find(|(_, field)| has_type(field, "string")) {
            let refused = walk.send(operation, "", Some(&json!({ name: ["list"] }))).await;
            assert_eq!(
                fault(&refused, name)["message"].as_str().map(|text| text.starts_with("must be ")),
                Some(true),
                "{named}"
            );
            types += 1;
        }
        let is_word = |field: &Value| field["enum"].as_array().is_some_and(|values| values[0].is_string());
        if let Some((name, field)) = known.iter().find(|(_, field)| is_word(field)) {
            let word = field["enum"][0].as_str().unwrap();
            let refused = walk.send(operation, "", Some(&json!({ name: format!("{word}z") }))).await;
            let found = fault(&refused, name);
            assert!(found["allowed"].as_array().unwrap().contains(&json!(word)), "{named}: {found}");
            words += 1;
        }
    }
    assert!(fields > 50 && types > 20 && words > 8, "{fields} fields, {types} types, {words} words were tried");
}
