//! Tools of a responses request. What no other format has, and what agents cannot do without, is carried as functions: freeform
//! tools, tools in a namespace (`carried_tools`), and `local_shell` and `apply_patch` (`known_tools`).

use super::known_tools::{self, KnownTool};
use crate::wire::codecs::chat::tools::read_choice;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_TOOLS};
use crate::wire::conversation::carried_tools::{INPUT, function_name};
use crate::wire::conversation::{
    CarriedAs, CarriedTool, CarriedTools, Extra, FunctionTool, NativeValue, Request, Tool, ToolChoice, WireFormat,
};
use serde_json::{Value, json};

const FORMAT: WireFormat = WireFormat::Responses;

pub(super) fn read_tools(body: &mut Fields<'_>, request: &mut Request) -> Result<(), CodecError> {
    let path = body.path;
    let path = path.field("tools");
    let list = body.bounded_list("tools", MAX_TOOLS)?;
    let kind = |tool: &Value| tool.get("type").and_then(Value::as_str).map(str::to_owned);
    let is_carried = |tool: &Value| {
        kind(tool).is_some_and(|kind| matches!(&*kind, "custom" | "namespace") || known_tools::by_kind(&kind).is_some())
    };
    let mut carried = list.iter().any(is_carried).then(|| Box::new(CarriedTools::default()));
    if let Some(carried) = &mut carried {
        carried.written = list.clone();
    }
    request.carried = carried;
    // A function of the caller's own that has such a name keeps it.
    let is_taken = |name: &str| list.iter().any(|tool| tool.get("name").and_then(Value::as_str) == Some(name));
    let known = known_tools::KNOWN_TOOLS.iter().filter(|tool| !is_taken(tool.name));
    let mut known: Vec<&KnownTool> = known.collect();
    for (index, value) in list.into_iter().enumerate() {
        let asked = kind(&value);
        // Each of them once.
        if let Some(place) = known.iter().position(|tool| asked.as_deref() == Some(tool.name)) {
            let tool = known.remove(place);
            let name = carried_name(tool.name.to_owned(), None, tool.carried_as, request);
            request.tools.push(Tool::Function(FunctionTool { name, ..tool.function() }));
        } else {
            read_tool(Fields::new(value, path.item(index))?, None, request)?;
        }
        if request.tools.len() > MAX_TOOLS {
            return Err(CodecError::TooMany { field: "tools".into(), most: MAX_TOOLS });
        }
    }
    Ok(())
}

fn read_tool(mut tool: Fields<'_>, namespace: Option<&Namespace>, request: &mut Request) -> Result<(), CodecError> {
    let place = tool.path;
    match (tool.peek_str("type"), namespace) {
        (Some("function"), _) => {
            tool.take("type");
            let name = tool.required_string("name")?;
            let function = FunctionTool {
                name: carried_name(name, namespace, CarriedAs::Function, request),
                description: tool.string("description")?.or_else(|| namespace?.description.clone()),
                parameters: tool.object("parameters")?.map(Value::Object),
                strict: tool.boolean("strict")?,
                cache: None,
                extra: Extra::new(FORMAT, tool.rest()),
            };
            request.tools.push(Tool::Function(function));
        }
        (Some("custom"), _) => {
            let name = tool.required_string("name")?;
            let description = tool.string("description")?.or_else(|| namespace?.description.clone());
            let mut format = tool.inner("format");
            let grammar = format.string("definition")?.map(|text| (format.string("syntax").ok().flatten(), text));
            let name = carried_name(name, namespace, CarriedAs::Freeform, request);
            request.tools.push(Tool::Function(freeform_function(name, description, grammar)));
        }
        (Some("namespace"), None) => {
            let own = Namespace { name: tool.required_string("name")?, description: tool.string("description")? };
            for (index, value) in tool.bounded_list("tools", MAX_TOOLS)?.into_iter().enumerate() {
                read_tool(Fields::new(value, place.item(index))?, Some(&own), request)?;
            }
        }
        _ => request.tools.push(Tool::Native(NativeValue::new(FORMAT, tool.into_value()))),
    }
    Ok(())
}

struct Namespace {
    name: String,
    description: Option<String>,
}

/// What the function is called, and a note of what it stands for where that is something else.
fn carried_name(name: String, namespace: Option<&Namespace>, carried_as: CarriedAs, request: &mut Request) -> String {
    let namespace = namespace.map(|own| own.name.clone());
    let function = function_name(namespace.as_deref(), &name);
    if let Some(carried) = request.carried.as_mut().filter(|_| carried_as != CarriedAs::Function || namespace.is_some())
    {
        carried.push(CarriedTool { function: function.clone(), namespace, name, carried_as });
    }
    function
}

/// One text, and in the description what it must look like: no other format has grammars.
fn freeform_function(
    name: String,
    description: Option<String>,
    grammar: Option<(Option<String>, String)>,
) -> FunctionTool {
    let grammar = grammar.map(|(syntax, definition)| {
        let syntax = syntax.map(|syntax| format!(" ({syntax})")).unwrap_or_default();
        format!("`{INPUT}` is plain text that follows this grammar{syntax}:\n{definition}")
    });
    let texts: Vec<String> = description.into_iter().chain(grammar).collect();
    FunctionTool {
        name,
        description: (!texts.is_empty()).then(|| texts.join("\n\n")),
        parameters: Some(json!({
            "type": "object", "properties": { INPUT: { "type": "string" } }, "required": [INPUT],
            "additionalProperties": false,
        })),
        ..FunctionTool::default()
    }
}

/// A choice of a tool that is no function names it by its type: whoever writes the request knows what became of it.
pub(super) fn read_named_choice(choice: Value, path: &FieldPath<'_>) -> Result<ToolChoice, CodecError> {
    let text = |name: &str| choice.get(name).and_then(Value::as_str).map(str::to_owned);
    match text("type").as_deref() {
        None | Some("function" | "allowed_tools") => read_choice(choice, path),
        Some(kind) => Ok(ToolChoice::Named(match text("name") {
            Some(name) => function_name(text("namespace").as_deref(), &name),
            None => kind.to_owned(),
        })),
    }
}
