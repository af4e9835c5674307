//! Ids of answers that are written anew.

use crate::conversation::WireFormat;

/// As the ids of a format look.
pub(in crate::walk) fn answer_id(format: WireFormat, request_id: &str) -> String {
    let prefix = match format {
        WireFormat::Chat => "chatcmpl-",
        WireFormat::Completions => "cmpl-",
        WireFormat::Messages => "msg_",
        WireFormat::Responses => "resp_",
        WireFormat::Gemini | WireFormat::Converse | WireFormat::Cohere => "",
    };
    let bare: String = request_id.chars().filter(|letter| *letter != '-').collect();
    [prefix, &bare].concat()
}
