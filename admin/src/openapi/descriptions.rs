//! A sentence for every field and parameter that does not describe itself, put in when the document is made. Most names
//! mean the same wherever they stand (`created_at`), so they are written once, in `common`; `special` has the others.
//!
//! Resources say more where there is more to say (`schema::text(…).says(…)`): what they say is never replaced.

mod common;
mod special;

use serde_json::Value;

/// Where a field stands, as the tables name it.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The nearest named object around it, or the operation.
    title: &'a str,
    /// The field whose value it is a part of; empty at the top of a named object.
    outer: &'a str,
}

/// Puts in what is missing, in the whole document.
pub fn complete(document: &mut Value) {
    for group in ["schemas", "responses"] {
        for (title, part) in document["components"][group].as_object_mut().into_iter().flatten() {
            describe(part, Place { title, outer: "" });
        }
    }
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, operation) in paths.flat_map(|(_, item)| item.as_object_mut().into_iter().flatten()) {
        let title = operation["operationId"].as_str().unwrap_or_default().to_owned();
        describe(operation, Place { title: &title, outer: "" });
        for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
            describe_parameter(parameter, &title);
        }
    }
}

fn describe(part: &mut Value, place: Place<'_>) {
    match part {
        Value::Array(items) => items.iter_mut().for_each(|item| describe(item, place)),
        Value::Object(keywords) => {
            for (keyword, value) in keywords.iter_mut() {
                match (keyword.as_str(), value) {
                    // Data, which only looks like a schema.
                    ("example" | "examples" | "const" | "enum" | "default" | "parameters", _) => {}
                    ("properties", Value::Object(fields)) => {
                        for (name, field) in fields.iter_mut() {
                            describe_field(field, name, place);
                            describe(field, Place { outer: name, ..place });
                        }
                    }
                    (_, value) => describe(value, place),
                }
            }
        }
        _ => {}
    }
}

fn describe_field(field: &mut Value, name: &str, place: Place<'_>) {
    if has_description(field) {
        return;
    }
    let of = |outer: &str| special_of(outer, name);
    // `or_null` wraps what was said about the value.
    let inner = || field["anyOf"][0]["description"].as_str().map(str::to_owned);
    let sentence = of(place.title).or_else(|| of(place.outer)).or_else(|| override_of(place.title, name));
    let sentence = sentence.or_else(inner).or_else(|| common_of(name));
    put(field, sentence);
}

fn describe_parameter(parameter: &mut Value, operation: &str) {
    if has_description(parameter) {
        return;
    }
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    let place = parameter["in"].as_str().unwrap_or_default().to_owned();
    let own = || parameter["schema"]["description"].as_str().map(str::to_owned);
    let sentence = special_of(operation, &name).or_else(own).or_else(|| special_of(&place, &name));
    let sentence = sentence.or_else(|| common_of(&name));
    put(parameter, sentence);
}

fn has_description(part: &Value) -> bool {
    part["description"].as_str().is_some_and(|text| !text.is_empty())
}

fn put(part: &mut Value, sentence: Option<String>) {
    if let (Some(fields), Some(sentence)) = (part.as_object_mut(), sentence) {
        fields.insert("description".to_owned(), sentence.into());
    }
}

fn special_of(outer: &str, name: &str) -> Option<String> {
    let is_it = |key: &str| key.strip_prefix(outer).and_then(|rest| rest.strip_prefix('.')) == Some(name);
    let found = special::SENTENCES.iter().find(|(key, _)| !outer.is_empty() && is_it(key));
    found.map(|(_, sentence)| (*sentence).to_owned())
}

/// The special rows, for the test that each is used.
#[cfg(test)]
pub fn special_rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    special::SENTENCES.iter().copied()
}

fn common_of(name: &str) -> Option<String> {
    let found = common::SENTENCES.binary_search_by(|(key, _)| (*key).cmp(name)).ok();
    found.and_then(|at| common::SENTENCES.get(at)).map(|(_, text)| (*text).to_owned()).or_else(|| switch_of(name))
}

/// The groups of security settings, by which an organisation lets its workspaces decide.
fn override_of(title: &str, name: &str) -> Option<String> {
    let group = name.replace('_', " ");
    title
        .starts_with("WorkspaceOverrides")
        .then(|| format!("Whether a workspace may set its own security settings of {group}."))
}

/// Security settings say in their names who may do what: `membersWritePrompts`.
fn switch_of(name: &str) -> Option<String> {
    let people = [
        ("organisationAdmins", "administrators of the organisation"),
        ("managers", "managers"),
        ("members", "members"),
    ];
    let (rest, who) = people.iter().find_map(|(prefix, who)| name.strip_prefix(prefix).map(|rest| (rest, who)))?;
    let verbs = [("View", "see"), ("Write", "make, change and delete"), ("Update", "change")];
    let (what, may) = verbs.iter().find_map(|(prefix, may)| rest.strip_prefix(prefix).map(|what| (what, may)))?;
    let what = match what {
        "AllData" => "what others have made",
        "LogMetadata" => "the metadata of logs",
        "ApiKeys" => "API keys",
        "VirtualKeys" => "stored providers",
        "Ws" => "the workspace itself",
        "WsUsers" => "members of the workspace",
        "WsIntegrations" => "integrations of the workspace",
        "WsMcpIntegrations" => "MCP integrations of the workspace",
        "McpServers" => "MCP servers",
        "Analytics" => "analytics",
        "Prompts" => "prompts",
        "Logs" => "logs",
        "Configs" => "configs",
        "Guardrails" => "guardrails",
        _ => return None,
    };
    Some(format!("Whether {who} may {may} {what}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_common_table_is_sorted_so_that_it_can_be_searched() {
        let names: Vec<&str> = common::SENTENCES.iter().map(|(name, _)| *name).collect();
        let is_unsorted = names.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(is_unsorted, None);
    }

    #[test]
    fn what_a_resource_says_wins_then_its_own_row_then_the_common_one() {
        let mut document = json!({ "components": { "schemas": { "Difference": { "properties": {
            "op": { "description": "Own." }, "path": {}, "name": { "anyOf": [{ "description": "Inner." }, {}] }, "slug": {},
        } } } }, "paths": {} });
        complete(&mut document);
        let fields = &document["components"]["schemas"]["Difference"]["properties"];
        assert_eq!(fields["op"]["description"], "Own.");
        assert_eq!(fields["path"]["description"], "Where in the config.");
        assert_eq!(fields["name"]["description"], "Inner.");
        assert!(fields["slug"]["description"].as_str().unwrap().contains("short name"));
    }

    #[test]
    fn a_security_setting_is_read_from_its_name() {
        assert_eq!(switch_of("managersUpdateWs").unwrap(), "Whether managers may change the workspace itself.");
        assert_eq!(switch_of("membersDance"), None);
    }
}
