//! Ids of answers that are written anew.

use crate::wire::conversation::WireFormat;

/// As the ids of a format look.
pub(in crate::engine) fn answer_id(format: WireFormat, request_id: &str) -> String {
    let prefix = match format {
        WireFormat::Chat => "chatcmpl-",
        WireFormat::Completions => "cmpl-",
        WireFormat::Messages => "msg_",
        WireFormat::Responses => "resp_",
        WireFormat::Gemini | WireFormat::Converse | WireFormat::Cohere => "",
    };
    let mut id = String::with_capacity(prefix.len() + request_id.len());
    id.push_str(prefix);
    request_id.split('-').for_each(|part| id.push_str(part));
    id
}
