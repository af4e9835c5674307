//! What differs between two JSON documents, as steps that turn one into the other.

use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub op: DiffOperation,
    /// As `targets[0].weight`; empty for the whole.
    pub path: String,
    pub from: Option<Value>,
    pub to: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffOperation {
    Add,
    Remove,
    Replace,
}

/// Objects are compared by key, arrays by position; the order of keys means nothing.
pub fn diff(from: &Value, to: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(from), Some(to), &mut found);
    found
}

fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, found: &mut Vec<Difference>) {
    let op = match (from, to) {
        (None, None) => return,
        (Some(from), Some(to)) if from == to => return,
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            let keys = from.keys().chain(to.keys().filter(|key| !from.contains_key(*key)));
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, from.get(key), to.get(key), found);
            }
            return;
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) => {
            for index in 0..from.len().max(to.len()) {
                compare(&format!("{path}[{index}]"), from.get(index), to.get(index), found);
            }
            return;
        }
        (None, Some(_)) => DiffOperation::Add,
        (Some(_), None) => DiffOperation::Remove,
        (Some(_), Some(_)) => DiffOperation::Replace,
    };
    found.push(Difference { op, path: path.to_owned(), from: from.cloned(), to: to.cloned() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_said_at_its_deepest_path() {
        for (from, to, expected) in [
            (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), json!([])),
            (json!({"a": 1}), json!({"a": 2}), json!([{"op": "replace", "path": "a", "from": 1, "to": 2}])),
            (
                json!({"t": [{"w": 1}, {"w": 2}]}),
                json!({"t": [{"w": 1}, {"w": 3}, {"x": null}]}),
                json!([
                    {"op": "replace", "path": "t[1].w", "from": 2, "to": 3},
                    {"op": "add", "path": "t[2]", "from": null, "to": {"x": null}},
                ]),
            ),
            (
                json!({"a": {"b": 1}, "c": 1}),
                json!({"a": []}),
                json!([
                    {"op": "replace", "path": "a", "from": {"b": 1}, "to": []},
                    {"op": "remove", "path": "c", "from": 1, "to": null},
                ]),
            ),
            (json!(1), json!({}), json!([{"op": "replace", "path": "", "from": 1, "to": {}}])),
        ] {
            assert_eq!(json!(diff(&from, &to)), expected, "{from} to {to}");
        }
    }
}
