//! The conditions of a strategy: a target's name, and the query by which it is chosen.

use super::{key, needed, reference};
use crate::openapi::schema::{Schema, any_text, anything, either, list, object, text};
use serde_json::{Value, json};

pub fn condition() -> Schema {
    object("ConfigCondition")
        .need("query", query())
        .need("then", needed(text(1..=usize::MAX).eg("big"), "The name of the target that is chosen then."))
        .closed()
}

fn query() -> Schema {
    let example = json!({ "metadata.tier": { "$eq": "pro" }, "params.max_tokens": { "$gte": 1000 } });
    let several = |example: Value| list(reference("ConfigQuery", example));
    let says = "Every entry must hold. Names are `metadata.<key>`, `params.<key>` (the client's body) or url.pathname; a \
                value is an object of operators, or anything else to be equal to.";
    let mut query = object("ConfigQuery")
        .may("$and", needed(several(json!({ "metadata.tier": "pro" })), "Every one of these must hold."))
        .may("$or", needed(several(json!({ "metadata.tier": "pro" })), "One of these must hold."))
        .eg(example.clone())
        .says(says);
    let literal = json!({ "type": ["string", "number", "boolean", "null", "array"] });
    let literal = Schema { json: literal, example: "pro".into() };
    query.json["additionalProperties"] = either([operators(), literal]).json;
    query.json["examples"] = json!([example]);
    query
}

/// Texts that begin with a number count as that number.
fn operators() -> Schema {
    let bound = |example: i64| Schema { json: json!({ "type": ["number", "string"] }), example: example.into() };
    let values = || list(anything()).eg(json!(["pro", "team"]));
    object("ConfigOperators")
        .may("$eq", key(anything().eg("pro"), "Equal to this, of the same type."))
        .may("$ne", key(anything().eg("free"), "Not equal to this; also of a name that the request lacks."))
        .may("$gt", needed(bound(100), "A number greater than this."))
        .may("$gte", needed(bound(100), "A number of at least this."))
        .may("$lt", needed(bound(100), "A number less than this."))
        .may("$lte", needed(bound(100), "A number of at most this."))
        .may("$in", needed(values(), "One of these."))
        .may("$nin", needed(values(), "None of these; also of a name that the request lacks."))
        .may(
            "$regex",
            needed(
                any_text().eg("^gpt-4"),
                "Holds a match of this regular expression, in upper and lower case as written; without look-around.",
            ),
        )
        .eg(json!({ "$gte": 1000 }))
        .closed()
}
