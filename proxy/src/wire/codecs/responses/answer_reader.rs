//! A response → the model.

use super::items::{read_content, read_item};
use crate::wire::codecs::chat;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::finish_reasons;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_PARTS};
use crate::wire::conversation::{Answer, Choice, Extra, Finish, FinishReason, Usage, WireFormat};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Responses;

pub(super) fn read(body: &[u8]) -> Result<Answer, CodecError> {
    read_response(Fields::parse(body)?, body)
}

pub(super) fn read_response(mut response: Fields<'_>, body: &[u8]) -> Result<Answer, CodecError> {
    let path = response.path;
    if let Some(error) = response.object("error")? {
        return Err(CodecError::Failed(Box::new(chat::from_error_object(200, error, body))));
    }
    if !response.has("output") {
        return Err(path.field("output").problem("is missing"));
    }
    let mut choice = Choice::default();
    let output = path.field("output");
    for (index, value) in response.bounded_list("output", MAX_PARTS)?.into_iter().enumerate() {
        let place = output.item(index);
        let mut item = Fields::new(value, place)?;
        if item.peek_str("type") == Some("message") {
            let content = item.take("content");
            choice.parts.extend(read_content(content, &place.field("content"), &mut choice.logprobs)?);
        } else {
            choice.parts.push(read_item(item)?);
        }
    }
    let reason = response.inner("incomplete_details").string("reason")?;
    choice.finish = finish(response.string("status")?.as_deref(), reason, choice.has_tool_use());
    let mut answer = Answer {
        id: response.string("id")?,
        model: response.string("model")?,
        created: response.integer("created_at")?,
        usage: response.object("usage")?.map(read_usage),
        choices: vec![choice],
        ..Answer::default()
    };
    response.take("object");
    let mut rest = response.rest();
    rest.retain(|_, value| !value.is_null());
    answer.extra = Extra::new(FORMAT, rest);
    Ok(answer)
}

pub(super) fn finish(status: Option<&str>, reason: Option<String>, has_tool_use: bool) -> Option<Finish> {
    match (status, reason) {
        (_, Some(reason)) => Some(finish_reasons::read(FORMAT, reason)),
        (Some("in_progress" | "queued"), None) => None,
        (Some("incomplete"), None) => Some(Finish::new(FinishReason::Length)),
        (_, None) if has_tool_use => Some(Finish::new(FinishReason::ToolUse)),
        _ => Some(Finish::new(FinishReason::Stop)),
    }
}

pub(super) fn read_usage(map: Map<String, Value>) -> Usage {
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let (input, output) = (fields.count("input_tokens"), fields.count("output_tokens"));
    let mut of_input = fields.inner("input_tokens_details");
    let reasoning = fields.inner("output_tokens_details").count("reasoning_tokens");
    let (cached, written) = (of_input.count("cached_tokens"), of_input.count("cache_write_tokens"));
    Usage { reasoning, ..Usage::from_sums(input, cached, written, output) }
}
