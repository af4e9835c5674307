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
    diff_within(from, to, usize::MAX).0
}

/// As `diff`, but no more than `most` differences; and whether these are all. What is left out costs nothing, so it
/// bounds answers about what strangers wrote.
pub fn diff_within(from: &Value, to: &Value, most: usize) -> (Vec<Difference>, bool) {
    let mut found = Found { differences: Vec::new(), most, path_bytes: 0, is_complete: true };
    compare("", Some(from), Some(to), &mut found);
    (found.differences, found.is_complete)
}

/// Bytes of all paths together: keys may be long, and each stands in the path of everything below it.
const MAX_PATHS: usize = 4 << 20;

struct Found {
    differences: Vec<Difference>,
    most: usize,
    path_bytes: usize,
    is_complete: bool,
}

impl Found {
    fn is_full(&mut self) -> bool {
        let is_full = self.differences.len() >= self.most || self.path_bytes > MAX_PATHS;
        self.is_complete &= !is_full;
        is_full
    }
}

fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, found: &mut Found) {
    if from == to || found.is_full() {
        return;
    }
    let op = match (from, to) {
        (None, None) => return,
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            let keys = from.keys().chain(to.keys().filter(|key| !from.contains_key(*key)));
            // A path is put together only where something differs.
            for key in keys.filter(|key| from.get(*key) != to.get(*key)) {
                if found.is_full() {
                    return;
                }
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, from.get(key), to.get(key), found);
            }
            return;
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) => {
            let places = 0..from.len().max(to.len());
            for index in places.filter(|index| from.get(*index) != to.get(*index)) {
                if found.is_full() {
                    return;
                }
                compare(&format!("{path}[{index}]"), from.get(index), to.get(index), found);
            }
            return;
        }
        (None, Some(_)) => DiffOperation::Add,
        (Some(_), None) => DiffOperation::Remove,
        (Some(_), Some(_)) => DiffOperation::Replace,
    };
    found.path_bytes += path.len();
    found.differences.push(Difference { op, path: path.to_owned(), from: from.cloned(), to: to.cloned() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_out_is_said_and_long_keys_do_not_multiply() {
        let (from, to) = (json!({ "a": [1, 2, 3] }), json!({ "a": [4, 5, 3] }));
        assert_eq!((diff_within(&from, &to, 2).0.len(), diff_within(&from, &to, 2).1), (2, true));
        assert_eq!((diff_within(&from, &to, 1).0.len(), diff_within(&from, &to, 1).1), (1, false));
        let inside = |value: i32| (0..10_000).map(|n| (n.to_string(), json!(value))).collect::<serde_json::Map<_, _>>();
        let long = "k".repeat(100_000);
        let (found, is_complete) = diff_within(&json!({ &long: inside(1) }), &json!({ &long: inside(2) }), usize::MAX);
        let paths: usize = found.iter().map(|one| one.path.len()).sum();
        assert!(!is_complete && paths < 8 << 20, "{paths} bytes of paths");
    }

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
