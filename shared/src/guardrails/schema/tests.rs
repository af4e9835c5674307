//! Documents judged by the keywords of the draft, schemas that cannot be used, and those that would never end.

use super::*;
use serde_json::json;

fn is_valid(schema: &Value, document: &Value) -> bool {
    let schema = Schema::parse(schema, "schema").unwrap_or_else(|fault| panic!("{schema}: {fault}"));
    schema.errors(document, &mut Fuel::default()).unwrap().is_empty()
}

#[test]
fn a_document_is_valid_by_the_keywords_of_the_draft() {
    for (schema, valid, invalid) in [
        (json!({ "type": "string" }), json!("a"), json!(1)),
        (json!({ "type": ["string", "null"] }), json!(null), json!(1)),
        (json!({ "type": "integer" }), json!(1.0), json!(1.5)),
        (json!({ "type": "number" }), json!(1), json!("1")),
        (json!({ "enum": [1, "a", null] }), json!(1.0), json!(2)),
        (json!({ "const": { "a": [1] } }), json!({ "a": [1.0] }), json!({ "a": [1, 2] })),
        (json!({ "minimum": 1, "exclusiveMaximum": 3 }), json!(1), json!(3)),
        (json!({ "multipleOf": 0.1 }), json!(0.3), json!(0.35)),
        (json!({ "minLength": 2, "maxLength": 3 }), json!("éé"), json!("é")),
        (json!({ "pattern": "^a+$" }), json!("aa"), json!("b")),
        (json!({ "required": ["a"] }), json!({ "a": 1 }), json!({})),
        (json!({ "properties": { "a": { "type": "string" } } }), json!({ "b": 1 }), json!({ "a": 1 })),
        (json!({ "properties": { "a": true }, "additionalProperties": false }), json!({ "a": 1 }), json!({ "b": 1 })),
        (json!({ "patternProperties": { "^x": { "type": "number" } } }), json!({ "xa": 1 }), json!({ "xa": "b" })),
        (json!({ "propertyNames": { "maxLength": 2 } }), json!({ "ab": 1 }), json!({ "abc": 1 })),
        (json!({ "minProperties": 1 }), json!({ "a": 1 }), json!({})),
        (json!({ "dependentRequired": { "a": ["b"] } }), json!({ "a": 1, "b": 1 }), json!({ "a": 1 })),
        (json!({ "dependentSchemas": { "a": { "required": ["b"] } } }), json!({ "b": 1 }), json!({ "a": 1 })),
        (json!({ "items": { "type": "number" } }), json!([1, 2]), json!([1, "a"])),
        (json!({ "prefixItems": [{ "type": "string" }], "items": false }), json!(["a"]), json!(["a", 1])),
        (json!({ "contains": { "const": 1 }, "maxContains": 1 }), json!([1, 2]), json!([1, 1])),
        (json!({ "contains": { "const": 1 } }), json!([0, 1]), json!([0])),
        (json!({ "uniqueItems": true }), json!([1, 2]), json!([1, 1.0])),
        (json!({ "maxItems": 1 }), json!([1]), json!([1, 2])),
        (json!({ "allOf": [{ "minimum": 1 }, { "maximum": 2 }] }), json!(2), json!(3)),
        (json!({ "anyOf": [{ "const": 1 }, { "const": 2 }] }), json!(2), json!(3)),
        (json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 5 }] }), json!(2), json!(6)),
        (json!({ "not": { "type": "string" } }), json!(1), json!("a")),
        (json!({ "if": { "minimum": 5 }, "then": { "multipleOf": 5 }, "else": { "const": 1 } }), json!(10), json!(2)),
        (json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "string" } } }), json!("x"), json!(1)),
        (json!({ "$ref": "#b", "$defs": { "a": { "$anchor": "b", "type": "string" } } }), json!("x"), json!(1)),
        (
            json!({ "properties": { "a": { "$ref": "#" } }, "maxProperties": 1 }),
            json!({ "a": { "a": {} } }),
            json!({ "a": { "a": 1, "b": 1 } }),
        ),
        (json!({ "format": "email", "type": "string" }), json!("no mail"), json!(1)),
        (json!(true), json!(1), Value::Null),
    ] {
        assert!(is_valid(&schema, &valid), "{schema} {valid}");
        assert!(schema == json!(true) || !is_valid(&schema, &invalid), "{schema} {invalid}");
    }
}

#[test]
fn an_error_names_its_place() {
    let schema = json!({ "properties": { "a/b": { "items": { "type": "string" } } }, "required": ["c"] });
    let errors =
        Schema::parse(&schema, "schema").unwrap().errors(&json!({ "a/b": ["x", 1] }), &mut Fuel::default()).unwrap();
    let told: Vec<(&str, &str)> = errors.iter().map(|error| (&*error.path, &*error.message)).collect();
    assert_eq!(told, [("", "lacks the member `c`"), ("/a~1b/1", "is not of type \"string\"")]);
}

#[test]
fn what_cannot_be_judged_is_refused_when_it_is_read() {
    for (schema, why) in [
        (json!("string"), "must be a schema"),
        (json!({ "type": "text" }), "one of null"),
        (json!({ "properties": [] }), "an object of schemas"),
        (json!({ "properties": { "a": 1 } }), "must be a schema"),
        (json!({ "anyOf": [] }), "a list of schemas"),
        (json!({ "minLength": -1 }), "a whole number"),
        (json!({ "multipleOf": 0 }), "above 0"),
        (json!({ "required": "a" }), "a list of texts"),
        (json!({ "pattern": "(?=a)" }), "look-around"),
        (json!({ "$ref": "https://example.com/schema" }), "only places inside"),
        (json!({ "$ref": "#/$defs/none" }), "not in this schema"),
        (json!({ "$dynamicRef": "#a" }), "not supported"),
        (json!({ "unevaluatedProperties": false }), "not supported"),
        (json!({ "description": "a".repeat(MAX_SIZE) }), "longer than"),
    ] {
        let Err(fault) = Schema::parse(&schema, "schema") else { panic!("{schema}") };
        assert!(fault.message.contains(why), "{schema}: {fault}");
        assert!(fault.path.starts_with("schema"), "{fault}");
    }
}

/// A schema that is applied a thousand times, to the document or to its items.
fn repeated(schema: &Value) -> Value {
    match schema.get("const") {
        Some(_) => json!({ "items": schema }),
        None => json!({ "allOf": vec![json!({ "$ref": "#/$defs/a" }); 1000], "$defs": { "a": schema } }),
    }
}

#[test]
fn the_fuel_is_for_all_documents_together() {
    let schema = Schema::parse(&json!({ "items": { "minimum": 0 } }), "schema").unwrap();
    let document = json!(vec![1; 60_000]);
    let mut fuel = Fuel::default();
    assert_eq!(schema.errors(&document, &mut fuel), Ok(Vec::new()));
    assert_eq!(schema.errors(&document, &mut fuel), Err(OutOfFuel));
}

#[test]
fn a_hostile_schema_runs_out_of_fuel() {
    let mut doubling = json!({ "$defs": { "a0": {} }, "$ref": "#/$defs/a40" });
    for level in 1..=40 {
        let below = format!("#/$defs/a{}", level - 1);
        doubling["$defs"][format!("a{level}")] = json!({ "allOf": [{ "$ref": below }, { "$ref": below }] });
    }
    for (schema, document) in [
        (doubling, json!(1)),
        (json!({ "$ref": "#" }), json!(1)),
        (json!({ "anyOf": [{ "$ref": "#" }] }), json!(1)),
        // Little to apply, and much to read each time.
        (repeated(&json!({ "pattern": "b$" })), json!("a".repeat(1 << 20))),
        (repeated(&json!({ "maxLength": 1 })), json!("a".repeat(1 << 20))),
        (repeated(&json!({ "patternProperties": { "b$": true } })), json!({ ("a".repeat(1 << 20)): 1 })),
        (repeated(&json!({ "const": "a".repeat(1 << 14) })), json!(vec!["a".repeat(1 << 14); 1000])),
        (json!({ "items": { "required": vec!["a"; 1000] } }), json!(vec![json!({}); 1000])),
        (json!({ "uniqueItems": true }), json!((0..10_000).collect::<Vec<_>>())),
    ] {
        assert_eq!(
            Schema::parse(&schema, "schema").unwrap().errors(&document, &mut Fuel::default()),
            Err(OutOfFuel),
            "{schema}"
        );
    }
}
