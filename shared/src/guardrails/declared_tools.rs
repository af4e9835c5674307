//! The tools that a request brings, by kind and name, in whichever format it is written.

use super::subject::Shape;
use serde_json::Value;

/// `(kind, name)`: a tool without a name has that of its kind.
pub fn declared_tools(shape: Shape, request: &Value) -> Vec<(String, String)> {
    match shape {
        Shape::Gemini => gemini(request),
        Shape::Converse => converse(request),
        _ => items(request.get("tools")).map(typed).collect(),
    }
}

fn typed(tool: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let kind = text(&tool["type"]).unwrap_or_default();
    let name = text(&tool["function"]["name"]).or_else(|| text(&tool["name"])).unwrap_or_else(|| kind.clone());
    (kind, name)
}

/// An entry holds a list of functions, tools of Google's by their names, or both.
fn gemini(request: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in items(request.get("tools")) {
        for (key, value) in entry.as_object().into_iter().flatten() {
            match key.as_str() {
                "functionDeclarations" | "function_declarations" => {
                    found.extend(items(Some(value)).map(|function| ("function".to_owned(), name(function))));
                }
                other => found.push((other.to_owned(), other.to_owned())),
            }
        }
    }
    found
}

/// An entry is one tool under the name of its kind; points of the cache are none.
fn converse(request: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in items(request.pointer("/toolConfig/tools")) {
        for (key, value) in entry.as_object().into_iter().flatten() {
            match key.as_str() {
                "cachePoint" => {}
                "toolSpec" => found.push(("function".to_owned(), name(value))),
                other => found
                    .push((other.to_owned(), Some(name(value)).filter(|n| !n.is_empty()).unwrap_or(other.to_owned()))),
            }
        }
    }
    found
}

fn name(tool: &Value) -> String {
    tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The items of a list, or the one object that stands in its place.
fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().chain(value.filter(|value| value.is_object()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_format_tells_its_tools() {
        for (shape, request, expected) in [
            (
                Shape::Chat,
                json!({ "tools": [{ "type": "function", "function": { "name": "a" } }] }),
                vec![("function", "a")],
            ),
            (
                Shape::Messages,
                json!({ "tools": [{ "name": "a" }, { "type": "web_search" }] }),
                vec![("", "a"), ("web_search", "web_search")],
            ),
            (
                Shape::Gemini,
                json!({ "tools": [{ "functionDeclarations": [{ "name": "a" }, { "name": "b" }], "googleSearch": {} }] }),
                vec![("function", "a"), ("function", "b"), ("googleSearch", "googleSearch")],
            ),
            (Shape::Gemini, json!({ "tools": { "function_declarations": { "name": "a" } } }), vec![("function", "a")]),
            (
                Shape::Converse,
                json!({ "toolConfig": { "tools": [{ "toolSpec": { "name": "a" } }, { "systemTool": { "name": "b" } }, { "cachePoint": {} }] } }),
                vec![("function", "a"), ("systemTool", "b")],
            ),
            (Shape::Converse, json!({ "tools": [{ "toolSpec": { "name": "a" } }] }), vec![]),
            (Shape::Chat, json!({}), vec![]),
        ] {
            let found = declared_tools(shape, &request);
            let found: Vec<(&str, &str)> = found.iter().map(|(kind, name)| (kind.as_str(), name.as_str())).collect();
            assert_eq!(found, expected, "{request}");
        }
    }
}
