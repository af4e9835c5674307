//! Tools with their input schema, and the choice between them (contract 7.3, 6.3).

use super::block_reader::read_cache;
use super::block_writer::write_cache;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{Fields, MAX_TOOLS};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::schema;
use crate::wire::conversation::{Extra, FunctionTool, NativeValue, Request, Tool, ToolChoice, WireFormat};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Messages;
/// Fields of Anthropic's tools that callers of chat may write too.
static SHARED_FIELDS: &[&str] = &["defer_loading", "allowed_callers", "input_examples"];

pub(super) fn read_tools(body: &mut Fields<'_>) -> Result<Vec<Tool>, CodecError> {
    let path = body.path;
    let path = path.field("tools");
    let mut tools = Vec::new();
    for (index, value) in body.bounded_list("tools", MAX_TOOLS)?.into_iter().enumerate() {
        let mut tool = Fields::new(value, path.item(index))?;
        // Tools that run at Anthropic have a type with a date in it.
        if tool.peek_str("type").is_some_and(|kind| kind != "custom") {
            tools.push(Tool::Native(NativeValue::new(FORMAT, tool.into_value())));
            continue;
        }
        tool.take("type");
        tools.push(Tool::Function(FunctionTool {
            name: tool.required_string("name")?,
            description: tool.string("description")?,
            parameters: tool.object("input_schema")?.map(Value::Object),
            strict: tool.boolean("strict")?,
            cache: read_cache(&mut tool)?,
            extra: Extra::new(FORMAT, tool.rest()),
        }));
    }
    Ok(tools)
}

/// The choice, and whether several calls at once are allowed.
pub(super) fn read_choice(body: &mut Fields<'_>) -> Result<(Option<ToolChoice>, Option<bool>), CodecError> {
    let path = body.path;
    let path = path.field("tool_choice");
    let Some(object) = body.object("tool_choice")? else { return Ok((None, None)) };
    let mut choice = Fields::from_map(object, path);
    let is_serial = choice.boolean("disable_parallel_tool_use")?;
    let read = match choice.required_string("type")?.as_str() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Named(choice.required_string("name")?),
        _ => return Err(path.field("type").problem("is not a known choice of tools")),
    };
    Ok((Some(read), is_serial.map(|is_serial| !is_serial)))
}

pub(super) fn write(w: &mut JsonWriter<'_>, request: &Request) -> Result<(), CodecError> {
    let (tools, choice) = request.narrowed_tools();
    if tools.is_empty() {
        return Ok(());
    }
    w.array_field("tools");
    for (index, tool) in tools.into_iter().enumerate() {
        match tool {
            Tool::Function(function) => write_function(w, function),
            Tool::Native(native) => write_native(w, native, index)?,
        }
    }
    w.close_array();
    let is_serial = request.settings.parallel_tool_calls == Some(false);
    let choice = match choice {
        None if is_serial => ToolChoice::Auto,
        None => return Ok(()),
        Some(choice) => choice,
    };
    w.object_field("tool_choice");
    match &choice {
        ToolChoice::Auto | ToolChoice::Allowed { .. } => w.string_field("type", "auto"),
        ToolChoice::None => w.string_field("type", "none"),
        ToolChoice::Required => w.string_field("type", "any"),
        ToolChoice::Named(name) => {
            w.string_field("type", "tool");
            w.string_field("name", name);
        }
    }
    if let Some(is_parallel) = request.settings.parallel_tool_calls
        && choice != ToolChoice::None
    {
        w.bool_field("disable_parallel_tool_use", !is_parallel);
    }
    w.close_object();
    Ok(())
}

fn write_function(w: &mut JsonWriter<'_>, tool: &FunctionTool) {
    w.open_object();
    w.string_field("name", &tool.name);
    w.optional_string("description", tool.description.as_deref());
    match &tool.parameters {
        Some(parameters) => w.value_field("input_schema", parameters),
        None => w.value_field("input_schema", &schema::empty_object()),
    }
    if let Some(strict) = tool.strict {
        w.bool_field("strict", strict);
    }
    write_cache(w, tool.cache.as_ref());
    w.fields(tool.extra.fields_for(FORMAT));
    if tool.extra.fields_for(FORMAT).next().is_none() {
        w.fields(SHARED_FIELDS.iter().filter_map(|name| Some((*name, tool.extra.shared(name)?))));
    }
    w.close_object();
}

/// `{type: T, T: {name: N, …}}` of chat is `{name: T, type: N, …}` here.
fn write_native(w: &mut JsonWriter<'_>, native: &NativeValue, index: usize) -> Result<(), CodecError> {
    if let Some(own) = native.in_format(FORMAT) {
        w.value(own);
        return Ok(());
    }
    let unsupported = || CodecError::unsupported_tool(index, native, FORMAT);
    let chat = native.in_format(WireFormat::Chat).ok_or_else(unsupported)?;
    let kind = chat.get("type").and_then(Value::as_str).ok_or_else(unsupported)?;
    let inner = chat.get(kind).and_then(Value::as_object).ok_or_else(unsupported)?;
    let name = inner.get("name").and_then(Value::as_str).ok_or_else(unsupported)?;
    w.open_object();
    w.string_field("name", kind);
    w.string_field("type", name);
    w.fields(inner.iter().filter(|(name, _)| *name != "name").map(|(name, value)| (name.as_str(), value)));
    w.close_object();
    Ok(())
}
