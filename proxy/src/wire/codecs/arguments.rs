//! Arguments of a call: JSON text in OpenAI's formats, an object everywhere else.

use super::error::CodecError;
use crate::wire::conversation::{ToolUse, WireFormat};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The text of an object, as it came. Nothing at all means no arguments (contract 7.0).
pub(super) fn object_text(call: &ToolUse, format: WireFormat) -> Result<&str, CodecError> {
    let text = call.arguments.trim();
    if text.is_empty() {
        return Ok("{}");
    }
    let is_object = text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    if is_object {
        return Ok(text);
    }
    let field = ["tool_calls.", &call.name, ".arguments"].concat();
    Err(CodecError::Unsupported { field, format, hint: ": it is not a JSON object" })
}

/// For answers, which must not fail: a model's broken JSON reaches the caller as text in an object.
pub(super) fn object_value(arguments: &str) -> Value {
    if arguments.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(value @ Value::Object(_)) => value,
        _ => {
            let mut map = Map::new();
            map.insert("invalid_arguments".into(), arguments.into());
            Value::Object(map)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_objects_pass_to_formats_that_need_one() {
        for (arguments, text, value) in [
            ("", Some("{}"), json!({})),
            (" {\"a\": 1} ", Some("{\"a\": 1}"), json!({ "a": 1 })),
            ("[1]", None, json!({ "invalid_arguments": "[1]" })),
            ("{\"a\":", None, json!({ "invalid_arguments": "{\"a\":" })),
        ] {
            let call = ToolUse { name: "f".into(), arguments: arguments.into(), ..ToolUse::default() };
            assert_eq!(object_text(&call, WireFormat::Messages).ok(), text, "{arguments}");
            assert_eq!(object_value(arguments), value, "{arguments}");
        }
    }
}
