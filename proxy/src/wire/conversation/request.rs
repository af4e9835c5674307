//! What a caller asks of a model.

use super::carried_tools::CarriedTools;
use super::format::{Extra, NativeValue, WireFormat};
use super::part::{CacheControl, Media, MediaSource, Part};
use super::settings::Settings;
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Absent where a format names the model in its path.
    pub model: Option<String>,
    /// The system texts before the first turn, in order.
    pub system: Vec<SystemText>,
    pub turns: Vec<Turn>,
    pub tools: Vec<Tool>,
    /// Which of them the caller wrote otherwise. Boxed, as hardly anybody does.
    pub carried: Option<Box<CarriedTools>>,
    pub tool_choice: Option<ToolChoice>,
    pub settings: Settings,
    pub response_format: Option<ResponseFormat>,
    pub extra: Extra,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SystemText {
    pub text: String,
    /// OpenAI's newer name of the role.
    pub is_developer: bool,
    pub cache: Option<CacheControl>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Between turns; formats without it move the text to the front.
    System,
    User,
    Assistant,
}

/// Tool results are parts of a user's turn, as they are for most vendors.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub role: Role,
    pub parts: Vec<Part>,
    /// OpenAI's name of a participant.
    pub name: Option<String>,
    pub extra: Extra,
}

impl Turn {
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, name: None, extra: Extra::default() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Tool {
    Function(FunctionTool),
    /// Runs at the vendor.
    Native(NativeValue),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionTool {
    pub name: String,
    pub description: Option<String>,
    /// JSON schema of the arguments.
    pub parameters: Option<Value>,
    pub strict: Option<bool>,
    pub cache: Option<CacheControl>,
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    None,
    /// Some tool must be called.
    Required,
    Named(String),
    /// Only these, freely or necessarily.
    Allowed {
        names: Vec<String>,
        is_required: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema(JsonSchemaFormat),
}

#[derive(Debug, Clone, PartialEq)]
pub struct JsonSchemaFormat {
    /// OpenAI wants a name; others have none.
    pub name: Option<String>,
    pub description: Option<String>,
    pub schema: Value,
    pub strict: Option<bool>,
}

impl Request {
    /// The tools that may be called at all, and how: formats without a list of allowed tools are sent fewer tools.
    pub fn narrowed_tools(&self) -> (Vec<&Tool>, Option<ToolChoice>) {
        match &self.tool_choice {
            Some(ToolChoice::Allowed { names, is_required }) => {
                let is_allowed = |tool: &&Tool| match tool {
                    Tool::Function(function) => names.contains(&function.name),
                    Tool::Native(_) => false,
                };
                let choice = if *is_required { ToolChoice::Required } else { ToolChoice::Auto };
                (self.tools.iter().filter(is_allowed).collect(), Some(choice))
            }
            choice => (self.tools.iter().collect(), choice.clone()),
        }
    }

    /// All system texts, those between turns included, for formats that have one place for them.
    pub fn all_system_texts(&self) -> Vec<SystemText> {
        let between = self.turns.iter().filter(|turn| turn.role == Role::System).flat_map(|turn| &turn.parts);
        let between = between.filter_map(|part| match part {
            Part::Text(text) => {
                Some(SystemText { text: text.text.clone(), is_developer: false, cache: text.cache.clone() })
            }
            _ => None,
        });
        self.system.iter().cloned().chain(between).collect()
    }

    /// The turns of user and assistant, neighbours of one role as one, for formats that want them to alternate.
    pub fn alternating_turns(&self) -> Vec<(Role, Vec<&Part>)> {
        let mut merged: Vec<(Role, Vec<&Part>)> = Vec::new();
        for turn in self.turns.iter().filter(|turn| turn.role != Role::System) {
            match merged.last_mut() {
                Some((role, parts)) if *role == turn.role => parts.extend(&turn.parts),
                _ => merged.push((turn.role, turn.parts.iter().collect())),
            }
        }
        merged
    }

    /// Whether any mark for a cache was set, for formats that have none.
    pub fn has_cache_control(&self) -> bool {
        let is_marked = |part: &Part| match part {
            Part::Text(text) => text.cache.is_some(),
            Part::Image(media) | Part::Audio(media) | Part::File(media) => media.cache.is_some(),
            Part::ToolUse(call) => call.cache.is_some(),
            Part::ToolResult(result) => result.cache.is_some(),
            _ => false,
        };
        let has_tool = self.tools.iter().any(|tool| matches!(tool, Tool::Function(tool) if tool.cache.is_some()));
        let has_system = self.system.iter().any(|text| text.cache.is_some());
        has_system || has_tool || self.turns.iter().flat_map(|turn| &turn.parts).any(is_marked)
    }

    /// A file that was uploaded to a vendor, where `format` has no place for its id: images in chat, any in the formats
    /// that take bytes and addresses only.
    pub fn foreign_file_id(&self, format: WireFormat) -> Option<&'static str> {
        use WireFormat::{Chat, Cohere, Completions, Converse, Gemini};
        let parts = self.turns.iter().filter(|turn| turn.role == Role::User).flat_map(|turn| &turn.parts);
        let is_id = |media: &Media| matches!(media.source, MediaSource::FileId(_));
        parts
            .filter(|part| match (part, format) {
                (Part::Image(media), Chat | Gemini | Converse | Cohere | Completions) => is_id(media),
                (Part::File(media), Gemini | Converse | Cohere | Completions) => is_id(media),
                _ => false,
            })
            .map(Part::kind)
            .next()
    }

    /// Something the user or a tool said that `format` has no word for. The model's own blocks may be left out of a
    /// history; these may not.
    pub fn foreign_user_block(&self, format: WireFormat) -> Option<&Value> {
        let parts = self.turns.iter().filter(|turn| turn.role == Role::User).flat_map(|turn| &turn.parts);
        parts
            .flat_map(|part| match part {
                Part::ToolResult(result) => result.parts.as_slice(),
                other => std::slice::from_ref(other),
            })
            .find_map(|part| match part {
                Part::Native(native) if native.format != format => Some(&native.value),
                _ => None,
            })
    }

    /// The name of the function that a call with this id named.
    pub fn tool_name_of(&self, id: &str) -> Option<&str> {
        self.turns.iter().rev().flat_map(|turn| &turn.parts).find_map(|part| match part {
            Part::ToolUse(call) if call.id == id => Some(call.name.as_str()),
            _ => None,
        })
    }
}
