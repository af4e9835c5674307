//! One row per endpoint family. Only what the gateway reads is described; everything else of a body is the provider's
//! and passes untouched.

use super::super::doc::Doc;
use super::super::schema::{self, Schema};
use serde_json::{Value, json};

pub struct Family {
    pub doc: Doc,
    /// The body is a form and not JSON.
    pub takes_form: bool,
    pub gives: FamilyAnswer,
    /// One of these is needed.
    pub scopes: &'static [&'static str],
}

#[derive(Debug, Clone, Copy)]
pub enum FamilyAnswer {
    Json,
    /// A stream of events when the request asks for one.
    JsonOrEvents,
    Bytes(&'static str),
    Websocket,
}

impl FamilyAnswer {
    pub fn status(self) -> &'static str {
        match self {
            Self::Websocket => "101",
            _ => "200",
        }
    }
}

impl From<Doc> for Family {
    fn from(doc: Doc) -> Self {
        Self { doc, takes_form: false, gives: FamilyAnswer::Json, scopes: &["completions.write"] }
    }
}

impl Family {
    fn streams(mut self) -> Self {
        self.gives = FamilyAnswer::JsonOrEvents;
        self.doc = self.doc.details("With `stream: true` the answer is a stream of server-sent events.");
        self
    }

    fn gives(mut self, gives: FamilyAnswer) -> Self {
        self.gives = gives;
        self
    }

    fn form(mut self, fields: Schema) -> Self {
        self.takes_form = true;
        self.doc = self.doc.body(fields);
        self
    }
}

pub fn families() -> Vec<Family> {
    generation().into_iter().chain(native()).chain(media()).chain(provider_objects()).chain(models()).collect()
}

fn post(path: &str, summary: &str, body: Schema, answer: Value) -> Family {
    Doc::post(path, summary).body(body).answer(schema::any_object().eg(answer)).into()
}

/// A body with the model that decides where it goes.
fn asking(title: &str, model: &str) -> Schema {
    schema::object(title).need("model", model_of(model))
}

fn model_of(example: &str) -> Schema {
    schema::any_text().eg(example).says("`@slug/model` names a provider of the workspace too.")
}

fn input(example: impl Into<Value>) -> Schema {
    schema::anything().eg(example).says("Text, or a list.")
}

fn messages() -> Schema {
    schema::list(schema::any_object().eg(json!({ "role": "user", "content": "Say hello." })))
}

fn generation() -> Vec<Family> {
    let chat =
        asking("ChatCompletionRequest", "gpt-4o-mini").need("messages", messages()).may("stream", schema::flag());
    let complete = asking("CompletionRequest", "gpt-3.5-turbo-instruct").may("prompt", input("Say hello."));
    let respond = asking("ResponseRequest", "gpt-4o").may("input", input("Say hello.")).may("stream", schema::flag());
    let message = asking("MessageRequest", "claude-sonnet-4-5").need("messages", messages());
    let count = asking("TokenCountRequest", "claude-sonnet-4-5").need("messages", messages());
    let message = message.may("max_tokens", schema::whole(1..=i64::MAX).eg(100)).may("stream", schema::flag());
    let embed = asking("EmbeddingRequest", "text-embedding-3-small").need("input", input("A sentence."));
    let moderate = schema::object("ModerationRequest").need("input", input("A sentence.")).may(
        "model",
        model_of("text-moderation-latest").says("OpenAI is sent `text-moderation-latest` where none is named."),
    );
    let rerank = asking("RerankRequest", "rerank-v3.5").may("query", schema::any_text().eg("Which?"));
    let ocr = asking("OcrRequest", "mistral-ocr-latest").may("document", schema::any_object());
    let run = schema::object("PromptCompletionRequest")
        .may("variables", schema::any_object().eg(json!({ "name": "Ada" })))
        .may("stream", schema::flag());
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11 });
    let completed = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4o-mini", "usage": usage,
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello." }, "finish_reason": "stop" }],
    });
    vec![
        post("/chat/completions", "Complete a chat", chat, completed.clone()).streams(),
        post("/completions", "Complete a text", complete.may("stream", schema::flag()), json!({
            "id": "cmpl-1", "object": "text_completion", "choices": [{ "index": 0, "text": "Hello." }], "usage": usage,
        }))
        .streams(),
        post("/responses", "Make a response", respond, json!({ "id": "resp_1", "object": "response", "output": [] }))
            .streams(),
        post("/messages", "Answer messages in Anthropic's format", message, json!({
            "id": "msg_1", "type": "message", "role": "assistant", "content": [{ "type": "text", "text": "Hello." }],
        }))
        .streams(),
        post("/messages/count_tokens", "Count the tokens of messages", count, json!({ "input_tokens": 9 })),
        post("/embeddings", "Embed texts", embed, json!({
            "object": "list", "data": [{ "object": "embedding", "index": 0, "embedding": [0.5, -0.25] }],
        })),
        post("/moderations", "Judge whether texts are harmful", moderate, json!({
            "id": "modr-1", "model": "text-moderation-latest", "results": [{ "flagged": false }],
        })),
        post("/rerank", "Order documents by relevance", rerank, json!({ "results": [{ "index": 0, "relevance_score": 0.9 }] })),
        post("/ocr", "Read a document", ocr, json!({ "pages": [] })),
        post("/prompts/{promptId}/completions", "Run a prompt", run, completed).streams(),
    ]
}

/// Routes of other vendors' own clients, to any provider. They are served without `/v1` too, where those clients have them.
fn native() -> [Family; 4] {
    let says = "To any provider; the model of the path may be `@slug/model`, with its slash escaped or not.";
    let turn = |parts: &str| json!({ "role": "user", parts: [{ "text": "Say hello." }] });
    let google = |title: &str| {
        let contents = schema::list(schema::any_object().eg(turn("parts")));
        schema::object(title).need("contents", contents.says("The turns of the conversation, as Google has them."))
    };
    let aws =
        |title: &str| schema::object(title).need("messages", schema::list(schema::any_object().eg(turn("content"))));
    let generated = json!({
        "candidates": [{ "content": { "role": "model", "parts": [{ "text": "Hello." }] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11 },
    });
    let conversed = json!({
        "output": { "message": { "role": "assistant", "content": [{ "text": "Hello." }] } }, "stopReason": "end_turn",
        "usage": { "inputTokens": 9, "outputTokens": 2, "totalTokens": 11 }, "metrics": { "latencyMs": 0 },
    });
    let (generate, stream) = (google("GenerateContentRequest"), google("StreamGenerateContentRequest"));
    let (converse, converse_stream) = (aws("ConverseRequest"), aws("ConverseStreamRequest"));
    let all = [
        post("/models/{model}:generateContent", "Generate content in Google's format", generate, generated),
        post("/models/{model}:streamGenerateContent", "Stream content in Google's format", stream, json!({}))
            .gives(FamilyAnswer::Bytes("text/event-stream")),
        post("/model/{model}/converse", "Converse in Bedrock's format", converse, conversed),
        post("/model/{model}/converse-stream", "Stream in Bedrock's format", converse_stream, json!({}))
            .gives(FamilyAnswer::Bytes("application/vnd.amazon.eventstream")),
    ];
    all.map(|family| Family { doc: family.doc.details(says), ..family })
}

fn media() -> Vec<Family> {
    let speech = asking("SpeechRequest", "tts-1").need("input", schema::any_text().eg("Hello."));
    let image = asking("ImageRequest", "gpt-image-1").need("prompt", schema::any_text().eg("A cat."));
    let images = || json!({ "created": 1_750_000_000, "data": [{ "b64_json": "aW1hZ2U=" }] });
    let file = || schema::any_text().says("The bytes of the file.");
    let form = |title: &str, file_field: &str, model: &str| asking(title, model).need(file_field, file());
    let upload = |path: &str, summary: &str, fields: Schema, answer: Value| {
        Family::from(Doc::post(path, summary).answer(schema::any_object().eg(answer))).form(fields)
    };
    let heard = || json!({ "text": "Hello." });
    let transcribe = form("TranscriptionRequest", "file", "whisper-1").may("stream", schema::flag());
    vec![
        post("/audio/speech", "Speak a text", speech, json!({})).gives(FamilyAnswer::Bytes("audio/mpeg")),
        upload("/audio/transcriptions", "Write down speech", transcribe, heard()).streams(),
        upload("/audio/translations", "Translate speech", form("TranslationRequest", "file", "whisper-1"), heard()),
        post("/images/generations", "Make images", image, images()),
        upload("/images/edits", "Change images", form("ImageEditRequest", "image", "gpt-image-1"), images()),
        upload("/images/variations", "Vary an image", form("ImageVariationRequest", "image", "dall-e-2"), images()),
        Family::from(Doc::get("/realtime", "Open a realtime session").details(
            "A websocket, for `?model=` a model or `@slug/model`. A browser may send its key as the subprotocol \
                 `openai-insecure-api-key.<key>`.",
        ))
        .gives(FamilyAnswer::Websocket),
    ]
}

/// What providers keep: passed to the provider that headers or the config name, unchanged in both directions.
fn provider_objects() -> Vec<Family> {
    let object = |kind: &str, id: &str| schema::any_object().eg(json!({ "id": id, "object": kind }));
    let list = || schema::any_object().eg(json!({ "object": "list", "data": [], "has_more": false }));
    let batch = schema::object("BatchRequest")
        .need(
            "input_file_id",
            schema::any_text().says("A file of the provider, or of the gateway (`gwf-…`).").eg("file-1"),
        )
        .need("endpoint", schema::any_text().says("What the rows ask for.").eg("/v1/chat/completions"))
        .need(
            "completion_window",
            schema::any_text().says("`24h`, or `immediate`: the gateway runs the rows itself.").eg("24h"),
        )
        .may("metadata", schema::any_object().says("At most 16 pairs of texts: keys of 64 characters, values of 512."))
        .may(
            "model",
            schema::any_text().says("The model that is asked for in place of the rows' own.").eg("gpt-4o-mini"),
        )
        .may(
            "gateway_options",
            schema::any_object()
                .says(
                    "The gateway's own headers that a managed batch is run with; also completion_url and \
                     completion_secret. Secrets are sealed, and shown as a mask.",
                )
                .eg(json!({ "x-gateway-config": "pc-main-3f9a01" })),
        )
        .may("provider_options", schema::any_object().says("Further fields of the provider's batch."));
    let job = schema::object("FineTuningRequest")
        .need("model", schema::any_text().eg("gpt-4o-mini"))
        .need("training_file", schema::any_text().eg("file-1"));
    let file = schema::object("FileRequest")
        .need("file", schema::any_text().says("The bytes of the file."))
        .need("purpose", schema::any_text().eg("batch"));
    let mut all = vec![
        Family::from(Doc::post("/files", "Upload a file").answer(object("file", "file-1")).details(
            "To the provider that is named; without one, or with `x-gateway-provider: gateway`, the gateway keeps the file \
             itself, under an id that begins with `gwf-`. `purpose` is then `batch` or `fine-tune`.",
        ))
        .form(file),
        Family::from(Doc::get("/files/{id}/content", "Download a file"))
            .gives(FamilyAnswer::Bytes("application/octet-stream")),
        Family::from(Doc::get("/batches/{id}/output", "Download a batch's output"))
            .gives(FamilyAnswer::Bytes("application/octet-stream")),
    ];
    all.extend(
        [
            Doc::get("/responses/{id}", "Read a response").answer(object("response", "resp_1")),
            Doc::remove("/responses/{id}", "Delete a response").answer(object("response.deleted", "resp_1")),
            Doc::get("/responses/{id}/input_items", "List what a response was made from").answer(list()),
            Doc::get("/files", "List files").answer(list()),
            Doc::get("/files/{id}", "Read about a file").answer(object("file", "file-1")),
            Doc::remove("/files/{id}", "Delete a file").answer(object("file.deleted", "file-1")),
            Doc::post("/batches", "Start a batch").body(batch).answer(object("batch", "batch_1")).details(
                "At the provider that is named. Without one, or over a file that the gateway keeps (`gwf-…`), the gateway \
                 runs it, under an id that begins with `gwb-`; what is wrong with the file is told in `errors.data` with its \
                 line.",
            ),
            Doc::get("/batches", "List batches")
                .filter("limit", schema::whole(1..=100).eg(20))
                .filter("after", schema::any_text().says("The last batch of the page before.").eg("batch_1"))
                .answer(list()),
            Doc::get("/batches/{id}", "Read a batch")
                .filter(
                    "include_provider_details",
                    schema::flag().says("Adds what the provider last told of the batch that it runs for the gateway."),
                )
                .answer(object("batch", "batch_1")),
            Doc::post("/batches/{id}/cancel", "Cancel a batch").answer(object("batch", "batch_1")),
            Doc::post("/fine_tuning/jobs", "Start a fine-tuning job")
                .body(job)
                .answer(object("fine_tuning.job", "ftjob-1")),
            Doc::get("/fine_tuning/jobs", "List fine-tuning jobs").answer(list()),
            Doc::get("/fine_tuning/jobs/{id}", "Read a fine-tuning job").answer(object("fine_tuning.job", "ftjob-1")),
            Doc::post("/fine_tuning/jobs/{id}/cancel", "Cancel a fine-tuning job")
                .answer(object("fine_tuning.job", "ftjob-1")),
            Doc::get("/fine_tuning/jobs/{id}/events", "List a job's events").answer(list()),
            Doc::get("/fine_tuning/jobs/{id}/checkpoints", "List a job's checkpoints").answer(list()),
            Doc::post("/assistants", "Make an assistant")
                .body(schema::any_object())
                .answer(object("assistant", "asst_1")),
            Doc::post("/threads", "Begin a thread").body(schema::any_object()).answer(object("thread", "thread_1")),
            Doc::post("/threads/{id}/runs", "Run a thread")
                .body(schema::any_object())
                .answer(object("thread.run", "run_1")),
            Doc::post("/vector_stores", "Make a vector store")
                .body(schema::any_object())
                .answer(object("vector_store", "vs_1")),
            Doc::remove("/models/{model}", "Delete a fine-tuned model").answer(object("model", "ft:gpt-4o:1")),
        ]
        .map(Family::from),
    );
    all
}

fn models() -> [Family; 2] {
    let model = json!({
        "id": "@prod/gpt-4o", "slug": "gpt-4o", "canonical_slug": "gpt-4o", "object": "model", "created": 1_767_225_600,
        "owned_by": "openai", "context_window": 128_000, "max_output_tokens": 16_384, "input_modalities": ["text", "image"],
        "output_modalities": ["text"], "deprecation_date": "2027-10-23",
    });
    // A provider's own list has no total, and fields of its own.
    let list = json!({ "object": "list", "total": 1, "data": [model] });
    let all = Doc::get("/models", "List the models that can be asked")
        .details(
            "Without a provider: those of the workspace's providers, as `@slug/model`, each with its facts as far as they are \
             known (`context_window`, `max_output_tokens`, `input_modalities`, `output_modalities`, `deprecation_date`). \
             With one: its own list.",
        )
        .filter("ai_service", schema::any_text().says("Names of providers, comma separated.").eg("openai"))
        .filter("provider", schema::any_text().says("Slugs of the workspace's providers, comma separated.").eg("prod"))
        .filter("limit", schema::whole(1..=i64::MAX).eg(100))
        .filter("offset", schema::whole(0..=i64::MAX).eg(0))
        .filter("sort", schema::choice(&["id", "slug", "provider", "ai_service", "created"]))
        .filter("order", schema::choice(&["asc", "desc"]))
        .answer(schema::any_object().eg(list));
    let one = Doc::get("/models/{model}", "Show one model").answer(schema::any_object().eg(model));
    [all, one].map(|doc| Family { scopes: &["models.list", "completions.write"], ..Family::from(doc) })
}
