//! Tools and the choice between them, in OpenAI's nested form. Cohere takes the same tools.

use super::content::{read_cache, write_cache};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_TOOLS};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::schema;
use crate::wire::conversation::{Extra, FunctionTool, NativeValue, Tool, ToolChoice, WireFormat};
use serde_json::Value;

pub(in crate::wire::codecs) fn read_tools(body: &mut Fields<'_>, format: WireFormat) -> Result<Vec<Tool>, CodecError> {
    let path = body.path;
    let path = path.field("tools");
    let mut tools = Vec::new();
    for (index, value) in body.bounded_list("tools", MAX_TOOLS)?.into_iter().enumerate() {
        let item = path.item(index);
        let mut tool = Fields::new(value, item)?;
        if tool.peek_str("type").unwrap_or("function") != "function" {
            tools.push(Tool::Native(NativeValue::new(format, tool.into_value())));
            continue;
        }
        let cache = read_cache(&mut tool)?;
        let inner = item.field("function");
        let function = tool.object("function")?.ok_or_else(|| inner.problem("is missing"))?;
        let mut function = read_function(Fields::from_map(function, inner), format)?;
        function.cache = cache.or(function.cache);
        tools.push(Tool::Function(function));
    }
    Ok(tools)
}

pub(super) fn read_function(mut function: Fields<'_>, format: WireFormat) -> Result<FunctionTool, CodecError> {
    let name = function.required_string("name")?;
    if name.is_empty() {
        return Err(function.path.field("name").problem("is empty"));
    }
    Ok(FunctionTool {
        name,
        description: function.string("description")?,
        parameters: function.object("parameters")?.map(Value::Object),
        strict: function.boolean("strict")?,
        cache: read_cache(&mut function)?,
        extra: Extra::new(format, function.rest()),
    })
}

pub(in crate::wire::codecs) fn read_choice(value: Value, path: &FieldPath<'_>) -> Result<ToolChoice, CodecError> {
    let unknown = || path.problem("is not a known choice of tools");
    match value {
        Value::String(word) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            // `any` is Mistral's word.
            "required" | "any" => Ok(ToolChoice::Required),
            _ => Err(unknown()),
        },
        Value::Object(_) => match value.get("type").and_then(Value::as_str) {
            Some("function") => {
                let name = value.pointer("/function/name").or_else(|| value.get("name")).and_then(Value::as_str);
                name.map(|name| ToolChoice::Named(name.to_owned())).ok_or_else(unknown)
            }
            Some("allowed_tools") => {
                let allowed = value.get("allowed_tools").unwrap_or(&value);
                let tools = allowed.get("tools").and_then(Value::as_array).ok_or_else(unknown)?;
                let name = |tool: &Value| {
                    let name = tool.pointer("/function/name").or_else(|| tool.get("name"));
                    name.and_then(Value::as_str).map(str::to_owned)
                };
                let is_required = allowed.get("mode").and_then(Value::as_str) == Some("required");
                Ok(ToolChoice::Allowed { names: tools.iter().filter_map(name).collect(), is_required })
            }
            _ => Err(unknown()),
        },
        _ => Err(unknown()),
    }
}

pub(in crate::wire::codecs) fn write_function(
    w: &mut JsonWriter<'_>,
    tool: &FunctionTool,
    format: WireFormat,
    shows_cache: bool,
) {
    w.open_object();
    w.string_field("type", "function");
    w.object_field("function");
    w.string_field("name", &tool.name);
    w.optional_string("description", tool.description.as_deref());
    match &tool.parameters {
        Some(parameters) => w.value_field("parameters", parameters),
        // Cohere demands a schema; chat reads none as an empty one.
        None if format == WireFormat::Cohere => w.value_field("parameters", &schema::empty_object()),
        None => {}
    }
    if let (Some(strict), WireFormat::Chat) = (tool.strict, format) {
        w.bool_field("strict", strict);
    }
    w.fields(tool.extra.fields_for(format));
    w.close_object();
    write_cache(w, tool.cache.as_ref().filter(|_| shows_cache));
    w.close_object();
}

pub(super) fn write_choice(w: &mut JsonWriter<'_>, choice: &ToolChoice) {
    w.key("tool_choice");
    match choice {
        ToolChoice::Auto => w.string("auto"),
        ToolChoice::None => w.string("none"),
        ToolChoice::Required => w.string("required"),
        ToolChoice::Named(name) => write_named(w, name),
        ToolChoice::Allowed { names, is_required } => {
            w.open_object();
            w.string_field("type", "allowed_tools");
            w.object_field("allowed_tools");
            w.string_field("mode", if *is_required { "required" } else { "auto" });
            w.array_field("tools");
            for name in names {
                write_named(w, name);
            }
            w.close_array();
            w.close_object();
            w.close_object();
        }
    }
}

fn write_named(w: &mut JsonWriter<'_>, name: &str) {
    w.open_object();
    w.string_field("type", "function");
    w.object_field("function");
    w.string_field("name", name);
    w.close_object();
    w.close_object();
}
