//! Tool specifications and the choice between them (contract 7.6, 7.12).

use super::blocks::{read_cache, write_cache};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{Fields, MAX_TOOLS};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::Dropped;
use crate::wire::codecs::schema;
use crate::wire::conversation::{Extra, FunctionTool, NativeValue, Part, Request, Tool, ToolChoice, WireFormat};

const FORMAT: WireFormat = WireFormat::Converse;

pub(super) fn read(body: &mut Fields<'_>, request: &mut Request) -> Result<(), CodecError> {
    let path = body.path;
    let path = path.field("toolConfig");
    let Some(object) = body.object("toolConfig")? else { return Ok(()) };
    let mut config = Fields::from_map(object, path);
    let list = path.field("tools");
    for (index, value) in config.bounded_list("tools", MAX_TOOLS)?.into_iter().enumerate() {
        let item = list.item(index);
        let mut tool = Fields::new(value, item)?;
        if let Some(point) = tool.object("cachePoint")? {
            if let Some(Tool::Function(last)) = request.tools.last_mut() {
                last.cache = Some(read_cache(point));
            }
            continue;
        }
        let Some(spec) = tool.object("toolSpec")? else {
            request.tools.push(Tool::Native(NativeValue::new(FORMAT, tool.into_value())));
            continue;
        };
        let mut spec = Fields::from_map(spec, item.field("toolSpec"));
        request.tools.push(Tool::Function(FunctionTool {
            name: spec.required_string("name")?,
            description: spec.string("description")?,
            parameters: spec.inner("inputSchema").take("json"),
            strict: spec.boolean("strict")?,
            cache: None,
            extra: Extra::new(FORMAT, spec.rest()),
        }));
    }
    let mut choice = config.inner("toolChoice");
    request.tool_choice = if choice.has("auto") {
        Some(ToolChoice::Auto)
    } else if choice.has("any") {
        Some(ToolChoice::Required)
    } else {
        choice.inner("tool").string("name")?.map(ToolChoice::Named)
    };
    Ok(())
}

pub(super) fn write(w: &mut JsonWriter<'_>, request: &Request, dropped: &mut Dropped) -> Result<(), CodecError> {
    let used = names_in_history(request);
    let (tools, mut choice) = request.narrowed_tools();
    // Contract 7.12: with tool blocks in the history there must be tools, so `none` cannot be said then.
    if choice == Some(ToolChoice::None) {
        if used.is_empty() {
            return Ok(());
        }
        dropped.note("tool_choice");
        choice = None;
    }
    if tools.is_empty() && used.is_empty() {
        return Ok(());
    }
    w.object_field("toolConfig");
    w.array_field("tools");
    for (index, tool) in tools.iter().enumerate() {
        match tool {
            Tool::Function(function) => write_function(w, function),
            Tool::Native(native) => match native.in_format(FORMAT) {
                Some(own) => w.value(own),
                None => return Err(CodecError::unsupported_tool(index, native, FORMAT)),
            },
        }
    }
    if tools.is_empty() {
        for name in used {
            write_function(w, &FunctionTool { name: name.to_owned(), ..FunctionTool::default() });
        }
    }
    w.close_array();
    match choice {
        None | Some(ToolChoice::None | ToolChoice::Allowed { .. }) => {}
        Some(ToolChoice::Auto) => write_choice(w, "auto", None),
        Some(ToolChoice::Required) => write_choice(w, "any", None),
        Some(ToolChoice::Named(name)) => write_choice(w, "tool", Some(&name)),
    }
    w.close_object();
    Ok(())
}

fn write_choice(w: &mut JsonWriter<'_>, kind: &str, name: Option<&str>) {
    w.object_field("toolChoice");
    w.object_field(kind);
    w.optional_string("name", name);
    w.close_object();
    w.close_object();
}

/// A description may not be empty there; the name will do.
fn write_function(w: &mut JsonWriter<'_>, tool: &FunctionTool) {
    let description = tool.description.as_deref().filter(|text| !text.is_empty()).unwrap_or(&tool.name);
    w.open_object();
    w.object_field("toolSpec");
    w.string_field("name", &tool.name);
    w.string_field("description", description);
    w.object_field("inputSchema");
    match &tool.parameters {
        Some(parameters) => w.value_field("json", parameters),
        None => w.value_field("json", &schema::empty_object()),
    }
    w.close_object();
    if let Some(strict) = tool.strict {
        w.bool_field("strict", strict);
    }
    w.fields(tool.extra.fields_for(FORMAT));
    w.close_object();
    w.close_object();
    write_cache(w, tool.cache.as_ref());
}

fn names_in_history(request: &Request) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for part in request.turns.iter().flat_map(|turn| &turn.parts) {
        if let Part::ToolUse(call) = part
            && !names.contains(&call.name.as_str())
        {
            names.push(&call.name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_history_with_calls_declares_them_even_without_tools() {
        let body =
            br#"{"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]}]}"#;
        let request = super::super::request_reader::read(body).unwrap();
        let mut out = Vec::new();
        let mut w = JsonWriter::new(&mut out);
        w.open_object();
        write(&mut w, &request, &mut Dropped::default()).unwrap();
        w.close_object();
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value.pointer("/toolConfig/tools/0/toolSpec/name"), Some(&Value::from("f")));
    }
}
