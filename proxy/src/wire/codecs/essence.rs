//! What of a request or an answer every format can say, in one order, so that two of them can be compared after a
//! translation there and back. What a format may lose is left out here and listed by the golden files instead.

use super::chat::request_writer::ATTACHED;
use super::messages::JSON_INSTRUCTION;
use super::{base64_text, schema};
use crate::wire::conversation::{
    Answer, FinishReason, Media, MediaSource, Part, Request, ResponseFormat, Role, Tool, ToolChoice, ToolUse,
};
use serde_json::Value;

#[derive(Debug, PartialEq)]
pub(super) struct Essence {
    system: Vec<String>,
    turns: Vec<TurnEssence>,
    tools: Vec<(String, Option<Value>)>,
    choice: Option<ToolChoice>,
    schema: Option<Value>,
    is_json: bool,
    max_tokens: Option<u64>,
    stop: Vec<String>,
}

#[derive(Debug, PartialEq)]
struct TurnEssence {
    role: Role,
    text: String,
    media: Vec<(MediaSource, Option<String>)>,
    calls: Vec<CallEssence>,
    /// Ids and texts.
    results: Vec<(String, String)>,
}

#[derive(Debug, PartialEq)]
struct CallEssence {
    id: String,
    name: String,
    arguments: Value,
}

pub(super) fn of_request(request: &Request) -> Essence {
    let system = request.all_system_texts().into_iter().map(|text| text.text);
    let has_json_word = request.all_system_texts().iter().any(|text| text.text == JSON_INSTRUCTION);
    let turns = request.alternating_turns().into_iter().map(|(role, parts)| of_turn(role, &parts));
    let tools = request.tools.iter().filter_map(|tool| match tool {
        Tool::Function(function) => Some((function.name.clone(), function.parameters.clone())),
        Tool::Native(_) => None,
    });
    let schema = match &request.response_format {
        Some(ResponseFormat::JsonSchema(format)) => Some(format.schema.clone()),
        _ => None,
    };
    Essence {
        system: system.filter(|text| !text.is_empty() && text != JSON_INSTRUCTION).collect(),
        turns: turns.filter(|turn| !turn.is_empty()).collect(),
        tools: tools.collect(),
        choice: request.tool_choice.clone(),
        is_json: has_json_word || request.response_format == Some(ResponseFormat::JsonObject),
        schema,
        max_tokens: request.settings.max_tokens,
        stop: request.settings.stop.clone(),
    }
}

impl Essence {
    /// Where tools are said otherwise, the golden files show how.
    pub fn without_tools(mut self, is_without: bool) -> Self {
        if is_without {
            self.tools.clear();
            self.choice = None;
        }
        self
    }

    /// The same without what was reported as dropped.
    pub fn without(mut self, dropped: &[&str]) -> Self {
        if dropped.contains(&"stop") {
            self.stop.clear();
        }
        self
    }

    /// What is known to be said otherwise there: closed schemas, a default length.
    pub fn told_to(mut self, target: &str) -> Self {
        if self.tools.is_empty() {
            self.choice = None;
        }
        if matches!(target, "messages" | "converse") {
            self.max_tokens = None;
        }
        if target == "messages" {
            self.schema = self.schema.map(|schema| schema::closed_objects(&schema));
        }
        for (_, parameters) in &mut self.tools {
            parameters.get_or_insert_with(schema::empty_object);
        }
        self
    }
}

/// Whether a format is told of other tools than the request has: fewer in place of a choice, Google's own by their
/// names, those of the history where there must be some.
pub(super) fn tells_other_tools(request: &Request, target: &str) -> bool {
    let is_narrowed = matches!(request.tool_choice, Some(ToolChoice::Allowed { .. } | ToolChoice::None));
    let is_googles = |tool: &Tool| matches!(tool, Tool::Function(function) if function.name == "google_search");
    match target {
        "cohere" => true,
        "messages" => is_narrowed,
        "gemini" => is_narrowed || request.tools.iter().any(is_googles),
        "converse" => is_narrowed || request.tools.is_empty(),
        _ => false,
    }
}

impl TurnEssence {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.media.is_empty() && self.calls.is_empty() && self.results.is_empty()
    }
}

fn of_turn(role: Role, parts: &[&Part]) -> TurnEssence {
    let mut turn = TurnEssence { role, text: String::new(), media: Vec::new(), calls: Vec::new(), results: Vec::new() };
    for part in parts {
        match part {
            Part::Text(text) => turn.text.push_str(&text.text),
            Part::Refusal(text) => turn.text.push_str(text),
            Part::Audio(Media { transcript: Some(words), .. }) => turn.text.push_str(words),
            Part::Image(media) | Part::Audio(media) | Part::File(media) => turn.media.push(of_media(media)),
            Part::ToolUse(call) => turn.calls.push(of_call(call)),
            Part::ToolResult(result) => {
                let texts = result.parts.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text.text.as_str()),
                    _ => None,
                });
                let texts: String = texts.filter(|text| *text != ATTACHED).collect();
                turn.results.push((result.id.clone(), texts));
                let media = result.parts.iter().filter_map(|part| match part {
                    Part::Image(media) | Part::File(media) => Some(of_media(media)),
                    _ => None,
                });
                turn.media.extend(media);
            }
            Part::Thinking(_) | Part::RedactedThinking(_) | Part::Native(_) => {}
        }
    }
    turn
}

fn of_media(media: &Media) -> (MediaSource, Option<String>) {
    let source = match &media.source {
        MediaSource::Text(text) => MediaSource::Base64(base64_text::encode(text)),
        source => source.clone(),
    };
    let is_data = matches!(source, MediaSource::Base64(_));
    // Two names of one type.
    let media_type = media.media_type.clone().map(|name| name.replace("audio/mpeg", "audio/mp3"));
    (source, media_type.filter(|_| is_data))
}

fn of_call(call: &ToolUse) -> CallEssence {
    let text = if call.arguments.is_empty() { "{}" } else { &call.arguments };
    let arguments: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    let arguments = match arguments.get("invalid_arguments") {
        Some(broken) => broken.clone(),
        None => arguments,
    };
    CallEssence { id: call.id.clone(), name: call.name.clone(), arguments }
}

#[derive(Debug, PartialEq)]
pub(super) struct AnswerEssence {
    text: String,
    calls: Vec<CallEssence>,
    reason: Option<&'static str>,
    prompt: u64,
    output: u64,
}

pub(super) fn of_answer(answer: &Answer) -> AnswerEssence {
    let choice = answer.choices.first();
    let parts: Vec<&Part> = choice.into_iter().flat_map(|choice| &choice.parts).collect();
    let turn = of_turn(Role::Assistant, &parts);
    let reason = choice.and_then(|choice| choice.finish.as_ref()).map(|finish| finish.reason.coarse());
    AnswerEssence {
        text: turn.text,
        calls: turn.calls,
        // Absent means stop (contract 7.0).
        reason: reason
            .or(Some(FinishReason::Stop))
            .and_then(|reason| super::finish_reasons::write(crate::wire::conversation::WireFormat::Chat, reason)),
        prompt: answer.usage.as_ref().map_or(0, |usage| usage.prompt()),
        output: answer.usage.as_ref().map_or(0, |usage| usage.output),
    }
}

impl AnswerEssence {
    /// Completions have neither calls nor a word for them; Cohere has no word for what was withheld.
    pub fn told_to(mut self, target: &str) -> Self {
        match target {
            "completions" => {
                self.calls.clear();
                self.reason = None;
            }
            "cohere" if self.reason == Some("content_filter") => self.reason = Some("stop"),
            _ => {}
        }
        // Where no id was given, each writer makes one.
        for call in &mut self.calls {
            if call.id.is_empty() || call.id.starts_with("call_gw") {
                call.id = "made".into();
            }
        }
        self
    }
}
