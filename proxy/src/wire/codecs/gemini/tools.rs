//! Function declarations, Google's own tools, and the choice between them (contract 7.4, 7.12).

use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_TOOLS};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::schema;
use crate::wire::conversation::{Extra, FunctionTool, NativeValue, Request, Tool, ToolChoice, WireFormat};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Gemini;
/// Function names that mean tools of Google's (contract 7.4), in both spellings.
static NATIVE_NAMES: &[(&str, &str)] = &[
    ("googleSearch", "googleSearch"),
    ("google_search", "googleSearch"),
    ("googleSearchRetrieval", "googleSearchRetrieval"),
    ("google_search_retrieval", "googleSearchRetrieval"),
    ("computerUse", "computerUse"),
    ("computer_use", "computerUse"),
    ("googleMaps", "googleMaps"),
    ("google_maps", "googleMaps"),
];

pub(super) fn read_tools(body: &mut Fields<'_>) -> Result<Vec<Tool>, CodecError> {
    let path = body.path;
    let path = path.field("tools");
    let mut tools = Vec::new();
    for (index, value) in body.bounded_list("tools", MAX_TOOLS)?.into_iter().enumerate() {
        let mut tool = Fields::new(value, path.item(index))?;
        let declarations = tool.either("functionDeclarations", "function_declarations");
        if let Some(Value::Array(list)) = declarations {
            for function in list {
                tools.push(Tool::Function(read_function(function, path.item(index))?));
                if tools.len() > MAX_TOOLS {
                    return Err(CodecError::TooMany { field: "tools".into(), most: MAX_TOOLS });
                }
            }
        }
        let rest = tool.rest();
        if !rest.is_empty() {
            tools.push(Tool::Native(NativeValue::new(FORMAT, Value::Object(rest))));
        }
    }
    Ok(tools)
}

fn read_function(value: Value, path: FieldPath<'_>) -> Result<FunctionTool, CodecError> {
    let mut function = Fields::new(value, path)?;
    let json_schema = function.either("parametersJsonSchema", "parameters_json_schema");
    let own_schema = function.take("parameters").map(schema::from_google);
    Ok(FunctionTool {
        name: function.required_string("name")?,
        description: function.string("description")?,
        parameters: json_schema.or(own_schema),
        extra: Extra::new(FORMAT, function.rest()),
        ..FunctionTool::default()
    })
}

pub(super) fn read_choice(body: &mut Fields<'_>) -> Result<Option<ToolChoice>, CodecError> {
    let path = body.path;
    let Some(Value::Object(map)) = body.either("toolConfig", "tool_config") else { return Ok(None) };
    let mut config = Fields::from_map(map, path.field("toolConfig"));
    let Some(Value::Object(map)) = config.either("functionCallingConfig", "function_calling_config") else {
        return Ok(None);
    };
    let mut calling = Fields::from_map(map, path.field("toolConfig.functionCallingConfig"));
    let mode = calling.string("mode")?.unwrap_or_default();
    let names = match calling.either("allowedFunctionNames", "allowed_function_names") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    Ok(match (mode.to_ascii_uppercase().as_str(), names.as_slice()) {
        ("NONE", _) => Some(ToolChoice::None),
        ("ANY", []) => Some(ToolChoice::Required),
        ("ANY", [_]) => names.into_iter().next().map(ToolChoice::Named),
        ("ANY", _) => Some(ToolChoice::Allowed { names, is_required: true }),
        ("VALIDATED" | "AUTO", [_, ..]) => Some(ToolChoice::Allowed { names, is_required: false }),
        ("AUTO", []) => Some(ToolChoice::Auto),
        _ => None,
    })
}

pub(super) fn write(w: &mut JsonWriter<'_>, request: &Request) -> Result<(), CodecError> {
    // A list of allowed names exists for forced calls only; for free ones fewer tools are sent.
    let is_free_list = matches!(&request.tool_choice, Some(ToolChoice::Allowed { is_required: false, .. }));
    let (tools, choice) = match is_free_list {
        true => request.narrowed_tools(),
        false => (request.tools.iter().collect(), request.tool_choice.clone()),
    };
    if tools.is_empty() {
        return Ok(());
    }
    w.array_field("tools");
    let mut functions: Vec<&FunctionTool> = Vec::new();
    for (index, tool) in tools.into_iter().enumerate() {
        match tool {
            Tool::Function(function) => match native_name(&function.name) {
                Some(name) => {
                    w.open_object();
                    let settings = function.parameters.as_ref().filter(|value| is_settings(value));
                    w.value_field(name, settings.unwrap_or(&Value::Object(Map::new())));
                    w.close_object();
                }
                None => functions.push(function),
            },
            Tool::Native(native) => match native.in_format(FORMAT) {
                Some(own) => w.value(own),
                None => return Err(CodecError::unsupported_tool(index, native, FORMAT)),
            },
        }
    }
    if !functions.is_empty() {
        w.open_object();
        w.array_field("functionDeclarations");
        for function in &functions {
            write_function(w, function);
        }
        w.close_array();
        w.close_object();
    }
    w.close_array();
    if let (Some(choice), false) = (choice, functions.is_empty()) {
        write_choice(w, &choice);
    }
    Ok(())
}

fn native_name(name: &str) -> Option<&'static str> {
    NATIVE_NAMES.iter().find(|(known, _)| *known == name).map(|(_, native)| *native)
}

/// Parameters of such a "function" are the tool's settings, unless they are a schema.
fn is_settings(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.contains_key("type") && !map.contains_key("properties"))
}

fn write_function(w: &mut JsonWriter<'_>, function: &FunctionTool) {
    w.open_object();
    w.string_field("name", &function.name);
    w.optional_string("description", function.description.as_deref());
    if let Some(parameters) = &function.parameters {
        w.value_field("parametersJsonSchema", parameters);
    }
    w.fields(function.extra.fields_for(FORMAT));
    w.close_object();
}

fn write_choice(w: &mut JsonWriter<'_>, choice: &ToolChoice) {
    let (mode, names): (&str, &[String]) = match choice {
        ToolChoice::Auto => ("AUTO", &[]),
        ToolChoice::None => ("NONE", &[]),
        ToolChoice::Required => ("ANY", &[]),
        ToolChoice::Named(name) => ("ANY", std::slice::from_ref(name)),
        ToolChoice::Allowed { names, .. } => ("ANY", names),
    };
    w.object_field("toolConfig");
    w.object_field("functionCallingConfig");
    w.string_field("mode", mode);
    if !names.is_empty() {
        w.array_field("allowedFunctionNames");
        names.iter().for_each(|name| w.string(name));
        w.close_array();
    }
    w.close_object();
    w.close_object();
}
