//! Tools that OpenAI's models know by their kind alone, and that their clients run: `local_shell` and `apply_patch`. Other models
//! get functions of these names, whose arguments are what the item of a call says (`action`, `operation`); what they call comes
//! back as such items.

use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::conversation::{CarriedAs, FunctionTool};
use serde_json::{Map, Value, json};

/// What the items of a tool are called.
pub(super) struct KnownTool {
    pub carried_as: CarriedAs,
    /// The kind of the tool, and the name of the function.
    pub name: &'static str,
    pub call: &'static str,
    pub output: &'static str,
    /// Where a call says what is to be done.
    pub field: &'static str,
    /// What of it the function takes.
    pub arguments: &'static [&'static str],
    pub id_prefix: &'static str,
}

pub(super) static KNOWN_TOOLS: [KnownTool; 2] = [
    KnownTool {
        carried_as: CarriedAs::LocalShell,
        name: "local_shell",
        call: "local_shell_call",
        output: "local_shell_call_output",
        field: "action",
        arguments: &["command", "env", "working_directory", "user", "timeout_ms"],
        id_prefix: "lsh",
    },
    KnownTool {
        carried_as: CarriedAs::ApplyPatch,
        name: "apply_patch",
        call: "apply_patch_call",
        output: "apply_patch_call_output",
        field: "operation",
        arguments: &["type", "path", "diff"],
        id_prefix: "apc",
    },
];

pub(super) fn by_kind(kind: &str) -> Option<&'static KnownTool> {
    KNOWN_TOOLS.iter().find(|tool| tool.name == kind)
}

pub(super) fn by_call(kind: &str) -> Option<&'static KnownTool> {
    KNOWN_TOOLS.iter().find(|tool| tool.call == kind)
}

pub(super) fn is_output(kind: &str) -> bool {
    KNOWN_TOOLS.iter().any(|tool| tool.output == kind)
}

/// None of tools whose calls are functions or texts.
pub(super) fn by_carried(carried_as: CarriedAs) -> Option<&'static KnownTool> {
    KNOWN_TOOLS.iter().find(|tool| tool.carried_as == carried_as)
}

impl KnownTool {
    pub fn function(&self) -> FunctionTool {
        let text = |says: &str| json!({ "type": "string", "description": says });
        let (description, properties, required) = match self.carried_as {
            CarriedAs::ApplyPatch => (
                "Creates, updates or deletes one file.",
                json!({
                    "type": { "type": "string", "enum": OPERATIONS },
                    "path": text("The path of the file, relative to the working directory."),
                    "diff": text(
                        "The change in the V4A diff format, without its envelope: lines that begin with `+`, `-` or a blank, \
                         and `@@` before each hunk; of a new file all lines with `+`. Left out to delete a file.",
                    ),
                }),
                json!(["type", "path"]),
            ),
            _ => (
                "Runs a command on the user's machine and returns what it writes.",
                json!({
                    "command": { "type": "array", "items": { "type": "string" },
                        "description": "The program and its arguments." },
                    "working_directory": text("Where the command is run."),
                    "timeout_ms": { "type": "integer", "description": "When it is given up, in milliseconds." },
                }),
                json!(["command"]),
            ),
        };
        FunctionTool {
            name: self.name.to_owned(),
            description: Some(description.to_owned()),
            parameters: Some(json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            })),
            ..FunctionTool::default()
        }
    }

    /// What the item of a call says, as arguments of the function.
    pub fn arguments(&self, asked: Option<Value>) -> String {
        let Some(Value::Object(mut fields)) = asked else { return "{}".to_owned() };
        let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        fields.retain(|name, value| self.arguments.contains(&name.as_str()) && !is_empty(value));
        Value::Object(fields).to_string()
    }

    /// The other way round. Of arguments that are none an item says what its client will refuse to run.
    pub fn write_field(&self, w: &mut JsonWriter<'_>, arguments: &str) {
        let read: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
        let text = |name: &str| read.get(name).and_then(Value::as_str);
        w.object_field(self.field);
        match self.carried_as {
            CarriedAs::ApplyPatch => {
                let kind = text("type").filter(|kind| OPERATIONS.contains(kind)).unwrap_or("update_file");
                w.string_field("type", kind);
                w.string_field("path", text("path").unwrap_or_default());
                if kind != "delete_file" {
                    w.string_field("diff", text("diff").unwrap_or(if read.is_empty() { arguments } else { "" }));
                }
            }
            _ => {
                w.string_field("type", "exec");
                w.value_field("command", &command(read.get("command")));
                let env = read.get("env").filter(|env| env.is_object()).cloned();
                w.value_field("env", &env.unwrap_or_else(|| json!({})));
                for name in ["working_directory", "user"] {
                    w.optional_string(name, text(name));
                }
                if let Some(timeout) = read.get("timeout_ms").and_then(Value::as_u64) {
                    w.integer_field("timeout_ms", timeout);
                }
            }
        }
        w.close_object();
    }
}

const OPERATIONS: [&str; 3] = ["create_file", "update_file", "delete_file"];

/// A list of texts; one text is a line for a shell.
fn command(asked: Option<&Value>) -> Value {
    match asked {
        Some(Value::String(line)) => json!(["bash", "-lc", line]),
        Some(Value::Array(list)) => {
            let word = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            list.iter().map(word).collect()
        }
        _ => json!([]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: &str, arguments: &str) -> Value {
        let mut out = Vec::new();
        let mut writer = JsonWriter::new(&mut out);
        writer.open_object();
        by_kind(kind).unwrap().write_field(&mut writer, arguments);
        writer.close_object();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn what_a_call_says_becomes_arguments_and_comes_back() {
        for (kind, item) in [
            (
                "local_shell",
                json!({ "type": "exec", "command": ["ls", "-l"], "env": {}, "working_directory": "/w", "timeout_ms": 9 }),
            ),
            ("local_shell", json!({ "type": "exec", "command": ["x"], "env": { "A": "b" }, "user": "u" })),
            ("apply_patch", json!({ "type": "update_file", "path": "a.rs", "diff": "@@\n-a\n+\"é\"\n" })),
            ("apply_patch", json!({ "type": "delete_file", "path": "a.rs" })),
        ] {
            let tool = by_kind(kind).unwrap();
            let arguments = tool.arguments(Some(item.clone()));
            assert_eq!(written(kind, &arguments)[tool.field], item, "{arguments}");
        }
        assert_eq!(by_kind("local_shell").unwrap().arguments(None), "{}");
    }

    #[test]
    fn arguments_that_keep_to_no_schema_make_an_item_all_the_same() {
        for (kind, arguments, item) in [
            (
                "local_shell",
                r#"{"command":"ls | wc"}"#,
                json!({ "type": "exec", "command": ["bash", "-lc", "ls | wc"], "env": {} }),
            ),
            (
                "local_shell",
                r#"{"command":["sleep",1],"timeout_ms":"9"}"#,
                json!({ "type": "exec", "command": ["sleep", "1"], "env": {} }),
            ),
            ("local_shell", "not JSON", json!({ "type": "exec", "command": [], "env": {} })),
            ("apply_patch", "*** Begin Patch", json!({ "type": "update_file", "path": "", "diff": "*** Begin Patch" })),
            ("apply_patch", r#"{"type":"move","path":7}"#, json!({ "type": "update_file", "path": "", "diff": "" })),
        ] {
            assert_eq!(written(kind, arguments)[by_kind(kind).unwrap().field], item, "{arguments}");
        }
    }
}
