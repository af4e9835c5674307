//! What a route is to a guardrail: which shape its texts stand in, and what kind of request it is.

use crate::request::native_route::NativeRoute;
use shared::guardrails::Shape;
use shared::providers::Family;

/// Families whose texts are looked at, and vendors' own routes; of all others only the kind of request is.
pub fn shape(family: Family, native: Option<NativeRoute>) -> Shape {
    match family {
        Family::CountTokens => Shape::Other,
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

/// One of `shared::guardrails::REQUEST_TYPES`. `rest` is what the path says behind its family.
pub fn request_type(family: Option<(Family, &str)>, method: &http::Method, is_stream: bool) -> &'static str {
    let Some((family, rest)) = family else { return "proxy" };
    let is = |wanted: &http::Method| method == wanted;
    let ends = |ending: &str| rest.ends_with(ending);
    match (family, is_stream) {
        (Family::Chat, true) => "stream-chatComplete",
        (Family::Chat, false) => "chatComplete",
        (Family::Complete, true) => "stream-complete",
        (Family::Complete, false) => "complete",
        (Family::Messages, true) => "stream-messages",
        (Family::Messages, false) => "messages",
        (Family::Responses, _) if is(&http::Method::POST) => "createModelResponse",
        (Family::Responses, _) if is(&http::Method::DELETE) => "deleteModelResponse",
        (Family::Responses, _) if ends("/input_items") => "listResponseInputItems",
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
        (Family::Files, _) if ends("/content") => "retrieveFileContent",
        (Family::Files, _) if is_whole(rest) => "listFiles",
        (Family::Files, _) => "retrieveFile",
        (Family::Batches, _) if is(&http::Method::POST) && ends("/cancel") => "cancelBatch",
        (Family::Batches, _) if is(&http::Method::POST) => "createBatch",
        (Family::Batches, _) if ends("/output") => "getBatchOutput",
        (Family::Batches, _) if is_whole(rest) => "listBatches",
        (Family::Batches, _) => "retrieveBatch",
        (Family::FineTuning, _) if is(&http::Method::POST) && ends("/cancel") => "cancelFinetune",
        (Family::FineTuning, _) if is(&http::Method::POST) => "createFinetune",
        (Family::FineTuning, _) if is_whole(rest) => "listFinetunes",
        (Family::FineTuning, _) => "retrieveFinetune",
        (Family::Ocr | Family::CountTokens, _) => "proxy",
    }
}

/// Whether all that there is of a family is meant, and not one of it.
fn is_whole(rest: &str) -> bool {
    rest.trim_matches('/').is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::guardrails::is_request_type;

    #[test]
    fn every_route_is_of_a_kind_that_lists_can_name() {
        for family in Family::ALL.map(Some).into_iter().chain([None]) {
            for method in [http::Method::GET, http::Method::POST, http::Method::DELETE] {
                for (rest, is_stream) in [("", false), ("", true), ("/1", false), ("/1/cancel", false)] {
                    let kind = request_type(family.map(|family| (family, rest)), &method, is_stream);
                    assert!(is_request_type(kind), "{family:?} {method} {kind}");
                }
            }
        }
    }

    #[test]
    fn what_is_kept_at_providers_has_a_kind_for_each_thing_that_is_done_with_it() {
        let (get, post, delete) = (http::Method::GET, http::Method::POST, http::Method::DELETE);
        for (family, rest, method, kind) in [
            (Family::Files, "", &get, "listFiles"),
            (Family::Files, "/f-1", &get, "retrieveFile"),
            (Family::Files, "/f-1/content", &get, "retrieveFileContent"),
            (Family::Files, "", &post, "uploadFile"),
            (Family::Files, "/f-1", &delete, "deleteFile"),
            (Family::Batches, "/", &get, "listBatches"),
            (Family::Batches, "/b-1", &get, "retrieveBatch"),
            (Family::Batches, "/b-1/output", &get, "getBatchOutput"),
            (Family::Batches, "/b-1/cancel", &post, "cancelBatch"),
            (Family::FineTuning, "/j-1", &get, "retrieveFinetune"),
            (Family::FineTuning, "/j-1/cancel", &post, "cancelFinetune"),
            (Family::Responses, "/r-1/input_items", &get, "listResponseInputItems"),
            (Family::Responses, "/r-1", &get, "getModelResponse"),
            (Family::Realtime, "", &get, "realtime"),
        ] {
            assert_eq!(request_type(Some((family, rest)), method, false), kind, "{method} {rest}");
        }
    }
}
