//! Tools that run at one vendor, in a request for another. One tool less is a poorer answer; a refusal would be none at all, and
//! agents send such tools with every turn. Searching the web is what vendors share: it becomes the target's own search where
//! its row says that there is one. The rest is left out, and noted.

use super::options::Dropped;
use crate::wire::conversation::{NativeValue, Part, Request, Tool, ToolChoice, WireFormat};
use serde_json::{Map, Value, json};

const WEB_SEARCH: &str = "web_search";

/// Makes the request one that can be written in `format`. `has_web_search`: the provider searches the web itself.
pub fn fit(request: &mut Request, format: WireFormat, has_web_search: bool, dropped: &mut Dropped) {
    let has_foreign = request.tools.iter().any(|tool| is_foreign(tool, format));
    let mut has_search = false;
    if has_foreign {
        let functions = request.tools.iter().filter(|tool| matches!(tool, Tool::Function(_))).count();
        let has_own = request.tools.iter().any(|tool| matches!(tool, Tool::Function(own) if own.name == WEB_SEARCH));
        // Google takes its search beside no functions.
        let may_search = has_web_search && !has_own && (format != WireFormat::Gemini || functions == 0);
        let tools = std::mem::take(&mut request.tools);
        for (index, tool) in tools.into_iter().enumerate() {
            let native = match tool {
                Tool::Native(native) if native.format != format => native,
                own => {
                    request.tools.push(own);
                    continue;
                }
            };
            match web_search(&native, format).filter(|_| may_search && !has_search) {
                Some(own) => {
                    has_search = true;
                    request.tools.push(Tool::Native(NativeValue::new(format, own)));
                }
                None if is_nested(&native, format) => request.tools.push(Tool::Native(native)),
                None => dropped.note(format!("tools[{index}] ({})", native.kind())),
            }
        }
    }
    fit_choice(request, format, has_search, dropped);
    fit_results(request, format);
}

fn is_foreign(tool: &Tool, format: WireFormat) -> bool {
    matches!(tool, Tool::Native(native) if native.format != format)
}

/// A choice of what is not there is none.
fn fit_choice(request: &mut Request, format: WireFormat, has_search: bool, dropped: &mut Dropped) {
    let is_there = match &request.tool_choice {
        Some(ToolChoice::Named(name)) => {
            let is_function = |tool: &Tool| match tool {
                Tool::Function(function) => function.name == *name,
                Tool::Native(native) => native.value.get("name").and_then(Value::as_str) == Some(name),
            };
            if request.tools.iter().any(is_function) {
                return;
            }
            // The only tool is used anyway; Anthropic can be made to.
            if has_search && name.starts_with(WEB_SEARCH) {
                let is_named = format == WireFormat::Messages;
                request.tool_choice = is_named.then(|| ToolChoice::Named(WEB_SEARCH.into()));
                return;
            }
            false
        }
        Some(ToolChoice::Required) => !request.tools.is_empty(),
        _ => true,
    };
    if !is_there {
        request.tool_choice = None;
        dropped.note("tool_choice");
    }
}

/// Tools that an agent's own search found are functions in the list, so a word about them is enough.
fn fit_results(request: &mut Request, format: WireFormat) {
    let parts = request.turns.iter_mut().flat_map(|turn| &mut turn.parts);
    let results = parts.filter_map(|part| match part {
        Part::ToolResult(result) => Some(&mut result.parts),
        _ => None,
    });
    for part in results.flatten() {
        if let Part::Native(native) = part
            && native.format != format
            && native.kind() == "tool_reference"
        {
            let name = native.value.get("tool_name").and_then(Value::as_str).unwrap_or_default();
            *part = Part::text(format!("The tool {name} can be called now."));
        }
    }
}

/// `{type: T, T: {name: N, …}}` of chat, which the writer of messages knows. Chat's freeform tools look the same.
fn is_nested(native: &NativeValue, format: WireFormat) -> bool {
    let inner = || native.value.get(native.kind()).and_then(|inner| inner.get("name"));
    (native.format, format) == (WireFormat::Chat, WireFormat::Messages)
        && native.kind() != "custom"
        && inner().is_some_and(Value::is_string)
}

/// The target's own search for another vendor's.
fn web_search(native: &NativeValue, format: WireFormat) -> Option<Value> {
    let kind = native.kind();
    let is_search = match native.format {
        WireFormat::Gemini => matches!(kind, "googleSearch" | "google_search"),
        WireFormat::Responses | WireFormat::Messages => kind.starts_with(WEB_SEARCH),
        _ => false,
    };
    if !is_search {
        return None;
    }
    let asked = &native.value;
    let named = |name: &str| asked.get(name).filter(|value| !value.is_null()).cloned();
    let allowed = named("allowed_domains").or_else(|| asked.pointer("/filters/allowed_domains").cloned());
    let allowed = allowed.filter(|list| list.as_array().is_some_and(|list| !list.is_empty()));
    let mut own = Map::new();
    match format {
        WireFormat::Gemini => return Some(json!({ "googleSearch": {} })),
        WireFormat::Messages => {
            own.insert("type".into(), "web_search_20250305".into());
            own.insert("name".into(), WEB_SEARCH.into());
            own.extend(allowed.map(|list| ("allowed_domains".to_owned(), list)));
        }
        WireFormat::Responses => {
            own.insert("type".into(), WEB_SEARCH.into());
            own.extend(allowed.map(|list| ("filters".to_owned(), json!({ "allowed_domains": list }))));
        }
        _ => return None,
    }
    own.extend(named("user_location").map(|place| ("user_location".to_owned(), place)));
    Some(Value::Object(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::codecs::by_format;

    /// What becomes of tools, and what is noted.
    fn fitted(from: WireFormat, body: Value, to: WireFormat, has_search: bool) -> (Value, Vec<String>) {
        let mut request = by_format(from).unwrap().read_request(body.to_string().as_bytes()).unwrap();
        let mut dropped = Dropped::default();
        fit(&mut request, to, has_search, &mut dropped);
        let mut out = Vec::new();
        let unsaid = by_format(to).unwrap().write_request(&request, &Default::default(), &mut out).unwrap();
        let mut written: Value = serde_json::from_slice(&out).unwrap();
        let names = dropped.names().chain(unsaid.names()).map(str::to_owned).collect();
        (json!({ "tools": written["tools"].take(), "tool_choice": written["tool_choice"].take() }), names)
    }

    #[test]
    fn a_search_becomes_the_targets_own_and_other_tools_of_a_vendor_are_left_out() {
        let codex = json!({ "model": "m", "input": "x", "tool_choice": { "type": "web_search" }, "tools": [
            { "type": "web_search", "filters": { "allowed_domains": ["a.example"] } }, { "type": "code_interpreter" },
        ] });
        let (sent, names) = fitted(WireFormat::Responses, codex.clone(), WireFormat::Messages, true);
        let own = json!([{ "type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.example"] }]);
        assert_eq!(sent["tools"], own);
        assert_eq!(sent["tool_choice"], json!({ "type": "tool", "name": "web_search" }));
        assert_eq!(names, ["tools[1] (code_interpreter)"]);
        let (sent, names) = fitted(WireFormat::Responses, codex.clone(), WireFormat::Gemini, true);
        assert_eq!(sent["tools"], json!([{ "googleSearch": {} }]));
        assert_eq!(names, ["tools[1] (code_interpreter)"]);
        let (sent, names) = fitted(WireFormat::Responses, codex, WireFormat::Chat, false);
        assert_eq!(sent, json!({ "tools": null, "tool_choice": null }));
        assert_eq!(names, ["tools[0] (web_search)", "tools[1] (code_interpreter)", "tool_choice"]);
        let claude = json!({ "model": "m", "max_tokens": 1, "messages": [{ "role": "user", "content": "x" }], "tools": [
            { "name": "f", "input_schema": { "type": "object" } }, { "type": "web_search_20250305", "name": "web_search" },
        ] });
        let (sent, names) = fitted(WireFormat::Messages, claude.clone(), WireFormat::Responses, true);
        assert_eq!((&sent["tools"][1], names.len()), (&json!({ "type": "web_search" }), 0));
        let (sent, names) = fitted(WireFormat::Messages, claude, WireFormat::Gemini, true);
        assert_eq!(sent["tools"].as_array().unwrap().len(), 1, "Google takes its search beside no functions");
        assert_eq!(names, ["tools[1] (web_search_20250305)"]);
    }

    #[test]
    fn a_tool_of_the_callers_own_that_is_called_so_stays_the_only_one() {
        let body = json!({ "model": "m", "input": "x", "tools": [
            { "type": "function", "name": "web_search", "parameters": {} }, { "type": "web_search" } ] });
        let (sent, names) = fitted(WireFormat::Responses, body, WireFormat::Messages, true);
        assert_eq!((sent["tools"].as_array().unwrap().len(), names), (1, vec!["tools[1] (web_search)".to_owned()]));
    }
}
