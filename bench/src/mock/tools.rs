//! Which tools the mock calls, and with what, on every wire alike: the one that the request insists on, the first when
//! any will do, and as many side by side as a fault asks for.

use serde_json::{Value, json};

use super::fault::Fault;
use super::sample;

/// More calls than this are not made, whatever a fault asks for.
const MAX_CALLS: usize = 128;

pub struct Tool {
    pub name: String,
    /// JSON Schema of its arguments; null when it takes none.
    pub schema: Value,
}

#[derive(Default)]
pub enum Choice {
    /// The model may call or not: the mock does not.
    #[default]
    Free,
    Any,
    Named(String),
}

pub struct ToolCall {
    pub name: String,
    pub arguments: Value,
}

impl Tool {
    /// From an object with a name, and the schema under one of these names.
    pub fn read(tool: &Value, schemas: &[&str]) -> Option<Self> {
        let schema = schemas.iter().map(|name| &tool[*name]).find(|schema| !schema.is_null());
        Some(Self { name: tool["name"].as_str()?.to_owned(), schema: schema.cloned().unwrap_or_default() })
    }
}

pub fn calls(tools: &[Tool], choice: &Choice, fault: &Fault) -> Vec<ToolCall> {
    if let Some(call) = &fault.call {
        return vec![ToolCall { name: call.name.clone(), arguments: call.arguments.clone() }];
    }
    if let Some(count) = fault.tool_calls {
        return tools.iter().cycle().take(if tools.is_empty() { 0 } else { count.min(MAX_CALLS) }).map(call).collect();
    }
    match choice {
        Choice::Free => Vec::new(),
        Choice::Any => tools.first().map(call).into_iter().collect(),
        Choice::Named(name) => match tools.iter().find(|tool| tool.name == *name) {
            Some(tool) => vec![call(tool)],
            None => vec![ToolCall { name: name.clone(), arguments: usual() }],
        },
    }
}

fn call(tool: &Tool) -> ToolCall {
    let has_properties = tool.schema["properties"].as_object().is_some_and(|properties| !properties.is_empty());
    let arguments = if has_properties { sample::of_schema(&tool.schema) } else { usual() };
    ToolCall { name: tool.name.clone(), arguments }
}

fn usual() -> Value {
    json!({ "city": "Paris" })
}

#[cfg(test)]
mod tests {
    use super::super::fault::ScriptedCall;
    use super::*;

    fn names(choice: &Choice, fault: &Fault) -> Vec<String> {
        let tools = ["a", "b"].map(|name| Tool { name: name.to_owned(), schema: Value::Null });
        calls(&tools, choice, fault).into_iter().map(|call| call.name).collect()
    }

    #[test]
    fn a_choice_or_a_fault_decides_what_is_called() {
        let fault = Fault::default();
        assert!(names(&Choice::Free, &fault).is_empty());
        assert_eq!(names(&Choice::Any, &fault), ["a"]);
        assert_eq!(names(&Choice::Named("b".into()), &fault), ["b"]);
        assert_eq!(names(&Choice::Named("c".into()), &fault), ["c"]);
        let three = Fault { tool_calls: Some(3), ..Fault::default() };
        assert_eq!(names(&Choice::Free, &three), ["a", "b", "a"]);
        assert!(calls(&[], &Choice::Free, &three).is_empty());
        let scripted = ScriptedCall { name: "d".into(), arguments: json!({ "path": "x" }) };
        assert_eq!(names(&Choice::Any, &Fault { call: Some(scripted), ..three }), ["d"]);
    }

    #[test]
    fn arguments_follow_the_schema() {
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let tool = Tool { name: "weather".into(), schema };
        assert_eq!(call(&tool).arguments, json!({ "city": "Paris" }));
    }
}
