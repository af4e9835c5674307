//! What kind of request it is, by the names that `allowedRequestTypes` uses.

/// Every name; those with `stream-` are of requests that ask for a stream.
pub static REQUEST_TYPES: &[&str] = &[
    "complete",
    "chatComplete",
    "embed",
    "rerank",
    "moderate",
    "stream-complete",
    "stream-chatComplete",
    "stream-messages",
    "proxy",
    "imageGenerate",
    "imageEdit",
    "createSpeech",
    "createTranscription",
    "createTranslation",
    "realtime",
    "uploadFile",
    "listFiles",
    "retrieveFile",
    "deleteFile",
    "retrieveFileContent",
    "createBatch",
    "retrieveBatch",
    "cancelBatch",
    "listBatches",
    "getBatchOutput",
    "listFinetunes",
    "createFinetune",
    "retrieveFinetune",
    "cancelFinetune",
    "createModelResponse",
    "getModelResponse",
    "deleteModelResponse",
    "listResponseInputItems",
    "messages",
    "otel",
];

pub fn is_request_type(name: &str) -> bool {
    REQUEST_TYPES.contains(&name)
}
