//! What a route is to a guardrail: which shape its texts stand in, and what kind of request it is.

use crate::request::native_route::NativeRoute;
use shared::guardrails::Shape;
use shared::providers::Family;

/// Families whose texts are looked at, and vendors' own routes; of all others only the kind of request is.
pub fn shape(family: Family, native: Option<NativeRoute>) -> Shape {
    match family {
        _ if native.is_some_and(NativeRoute::is_google) => Shape::Gemini,
        _ if native.is_some() => Shape::Converse,
        Family::Chat => Shape::Chat,
        Family::Complete => Shape::Completions,
        Family::Messages => Shape::Messages,
        Family::Responses => Shape::Responses,
        Family::Embed => Shape::Embeddings,
        _ => Shape::Other,
    }
}

/// One of `shared::guardrails::REQUEST_TYPES`.
pub fn request_type(family: Option<Family>, method: &http::Method, is_stream: bool) -> &'static str {
    let Some(family) = family else { return "proxy" };
    let is = |wanted: &http::Method| method == wanted;
    match (family, is_stream) {
        (Family::Chat, true) => "stream-chatComplete",
        (Family::Chat, false) => "chatComplete",
        (Family::Complete, true) => "stream-complete",
        (Family::Complete, false) => "complete",
        (Family::Messages, true) => "stream-messages",
        (Family::Messages, false) => "messages",
        (Family::Responses, _) if is(&http::Method::POST) => "createModelResponse",
        (Family::Responses, _) if is(&http::Method::DELETE) => "deleteModelResponse",
        (Family::Responses, _) => "getModelResponse",
        (Family::Embed, _) => "embed",
        (Family::Rerank, _) => "rerank",
        (Family::Moderate, _) => "moderate",
        (Family::Image, _) => "imageGenerate",
        (Family::ImageEdit | Family::ImageVariation, _) => "imageEdit",
        (Family::Speech, _) => "createSpeech",
        (Family::Transcribe, _) => "createTranscription",
        (Family::Translate, _) => "createTranslation",
        (Family::Realtime, _) => "realtime",
        (Family::Files, _) if is(&http::Method::POST) => "uploadFile",
        (Family::Files, _) if is(&http::Method::DELETE) => "deleteFile",
        (Family::Files, _) => "listFiles",
        (Family::Batches, _) if is(&http::Method::POST) => "createBatch",
        (Family::Batches, _) => "listBatches",
        (Family::FineTuning, _) if is(&http::Method::POST) => "createFinetune",
        (Family::FineTuning, _) => "listFinetunes",
        (Family::Ocr | Family::CountTokens, _) => "proxy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::guardrails::is_request_type;

    #[test]
    fn every_route_is_of_a_kind_that_lists_can_name() {
        for family in Family::ALL.map(Some).into_iter().chain([None]) {
            for method in [http::Method::GET, http::Method::POST, http::Method::DELETE] {
                for is_stream in [false, true] {
                    let kind = request_type(family, &method, is_stream);
                    assert!(is_request_type(kind), "{family:?} {method} {kind}");
                }
            }
        }
    }
}
