//! That the document is complete and true to itself.

mod config_language;
mod fits;
mod sentences;

use super::*;
use crate::resources;
use fits::faults;
use std::collections::BTreeSet;

/// Resources, by their tag, that are built and still to be described.
const UNDESCRIBED: &[&str] = &[];

fn document() -> Value {
    let routes = resources::routes();
    super::document(routes.docs(), routes.built())
}

fn described(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let one = |(path, item): (&String, &'_ Value)| {
        let path = path.clone();
        item.as_object().unwrap().keys().map(move |method| (method.clone(), path.clone())).collect::<Vec<_>>()
    };
    paths.flat_map(one).map(|(method, path)| (format!("{method} {path}"), &document["paths"][&path][&method])).collect()
}

#[test]
fn every_operation_of_the_route_table_is_listed_once() {
    let document = document();
    let managed = described(&document).iter().filter(|(_, one)| one["tags"][0] != "inference").count();
    assert_eq!(managed, operations().count());
}

#[test]
fn operation_ids_are_unique() {
    let document = document();
    let ids: Vec<_> = described(&document).iter().map(|(_, one)| one["operationId"].to_string()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn the_document_says_which_interface_it_is_and_what_each_operation_needs() {
    let document = document();
    assert_eq!(document["info"]["version"], "2.0.0");
    assert_eq!(document["info"]["x-compatible-release"], "1.12.0");
    let export = &document["paths"]["/logs/exports/{exportId}"]["get"];
    assert_eq!(export["x-feature-flag"], "DATA_EXPORTS_ENABLED");
    assert_eq!(export["x-scopes"]["anyOf"][0], "logs.export");
    assert!(export["description"].as_str().unwrap().contains("`logs.export`"), "{export}");
    assert_eq!(export["parameters"][0]["name"], "exportId");
    assert!(export["responses"]["402"].is_object());
    let price = &document["paths"]["/model-configs/pricing/{provider}/{model}"]["get"];
    assert_eq!(price["security"], json!([]));
}

#[test]
fn what_is_not_built_says_so_and_promises_nothing() {
    let document = document();
    for (name, one) in described(&document) {
        let is_built = one["x-implemented"] == true;
        assert_eq!(one["responses"]["501"].is_null(), is_built, "{name}");
        let success = match name.as_str() {
            "get /realtime" => "101",
            _ if one["responses"]["303"].is_object() => "303",
            _ => "200",
        };
        assert_eq!(one["responses"][success].is_object(), is_built, "{name}");
    }
}

#[test]
fn every_operation_that_is_built_is_described() {
    let routes = resources::routes();
    let has_doc = |operation| routes.docs().iter().any(|(one, _)| *one == operation);
    for operation in routes.built() {
        let tag = operation::tag(&operation.path.split('/').skip(1).collect::<Vec<_>>());
        assert!(has_doc(*operation) || UNDESCRIBED.contains(&tag), "describe {operation:?} (see openapi.rs)");
    }
    for (operation, _) in routes.docs() {
        let times = routes.docs().iter().filter(|(one, _)| one == operation).count();
        assert!(resources::is_built(operation) && times == 1, "{operation:?} is described {times} times");
    }
}

#[test]
fn every_example_fits_its_own_schema() {
    let document = document();
    for (name, one) in described(&document) {
        let answers = one["responses"].as_object().unwrap().values();
        let contents = answers.chain([&one["requestBody"]]).filter_map(|part| part["content"].get("application/json"));
        // The gateway's own headers stand among the components.
        let parameters = one["parameters"].as_array().unwrap().iter().filter(|one| one.get("$ref").is_none());
        for part in contents.chain(parameters) {
            assert!(part.get("example").is_some(), "{name}: no example in {part}");
            let faults = faults(&document, &part["schema"], &part["example"]);
            assert!(faults.is_empty(), "{name}: {faults:?} in {}", part["example"]);
        }
    }
    for (name, response) in document["components"]["responses"].as_object().unwrap() {
        let content = &response["content"]["application/json"];
        let faults = faults(&document, &content["schema"], &content["example"]);
        assert!(faults.is_empty(), "{name}: {faults:?}");
    }
}

#[test]
fn an_example_that_does_not_fit_is_found() {
    let document = document();
    let label = json!({ "$ref": "#/components/schemas/Label" });
    let mut example = schema_example(&document, "/labels/{labelId}");
    assert!(faults(&document, &label, &example).is_empty());
    example["id"] = "no id".into();
    assert_eq!(faults(&document, &label, &example).len(), 1);
    example["name"] = Value::Null;
    assert_eq!(faults(&document, &label, &example).len(), 2);
}

fn schema_example(document: &Value, path: &str) -> Value {
    document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["example"].clone()
}

#[test]
fn a_title_names_one_schema() {
    let routes = resources::routes();
    let mut known: Map<String, Value> = Map::new();
    for (path, method, part) in rendered(routes.docs(), routes.built()) {
        let mut own = Map::new();
        components::hoisted(part, &mut own);
        for (title, schema) in own {
            let first = known.entry(title.clone()).or_insert_with(|| schema.clone());
            assert_eq!(*first, schema, "{method} {path} has another {title}");
        }
    }
}
