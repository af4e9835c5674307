//! The fields of Converse, as AWS's service model lists them, and of the embedding models that `invoke` takes.

use super::super::fields::Kind::{Any, Flag, List, Number, Object, OneOf, Text, Whole};
use super::super::fields::{Kind, Shape};

pub static CONVERSE: Shape = Shape::new(
    &["messages"],
    &[
        ("messages", List(&Kind::Shape(&MESSAGE))),
        ("system", List(&Kind::Shape(&SYSTEM))),
        ("inferenceConfig", Kind::Shape(&INFERENCE)),
        ("toolConfig", Kind::Shape(&TOOL_CONFIG)),
        ("guardrailConfig", Object),
        ("additionalModelRequestFields", Any),
        ("additionalModelResponseFieldPaths", List(&Text)),
        ("promptVariables", Object),
        ("requestMetadata", Object),
        ("performanceConfig", Object),
        ("serviceTier", Object),
        ("outputConfig", Kind::Shape(&OUTPUT)),
    ],
);

pub static TITAN_EMBED: Shape = Shape::new(
    &["inputText"],
    &[("inputText", Text), ("dimensions", Whole), ("normalize", Flag), ("embeddingTypes", List(&Text))],
);

pub static COHERE_EMBED: Shape = Shape::new(
    &["texts", "input_type"],
    &[
        ("texts", List(&Text)),
        ("input_type", OneOf(&["search_document", "search_query", "classification", "clustering", "image"])),
        ("truncate", OneOf(&["NONE", "LEFT", "RIGHT", "START", "END"])),
        ("embedding_types", List(&Text)),
        ("images", List(&Text)),
        ("output_dimension", Whole),
        ("max_tokens", Whole),
    ],
);

static MESSAGE: Shape = Shape::new(
    &["role", "content"],
    &[("role", OneOf(&["user", "assistant", "system"])), ("content", List(&Kind::Shape(&BLOCK)))],
);

static SYSTEM: Shape =
    Shape::union(&[("text", Text), ("guardContent", Object), ("cachePoint", Kind::Shape(&CACHE_POINT))]);

static BLOCK: Shape = Shape::union(&[
    ("text", Text),
    ("image", Kind::Shape(&IMAGE)),
    ("document", Kind::Shape(&DOCUMENT)),
    ("video", Object),
    ("audio", Object),
    ("toolUse", Kind::Shape(&TOOL_USE)),
    ("toolResult", Kind::Shape(&TOOL_RESULT)),
    ("guardContent", Object),
    ("cachePoint", Kind::Shape(&CACHE_POINT)),
    ("reasoningContent", Kind::Shape(&REASONING)),
    ("citationsContent", Object),
    ("searchResult", Object),
]);

static IMAGE: Shape = Shape::new(
    &["format", "source"],
    &[("format", OneOf(&["png", "jpeg", "gif", "webp"])), ("source", Kind::Shape(&IMAGE_SOURCE))],
);
static IMAGE_SOURCE: Shape = Shape::union(&[("bytes", Text), ("s3Location", Object)]);
static DOCUMENT: Shape = Shape::new(
    &["name", "source"],
    &[
        ("format", OneOf(&["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"])),
        ("name", Text),
        ("source", Kind::Shape(&DOCUMENT_SOURCE)),
        ("context", Text),
        ("citations", Object),
    ],
);
static DOCUMENT_SOURCE: Shape =
    Shape::union(&[("bytes", Text), ("s3Location", Object), ("text", Text), ("content", List(&Object))]);
static TOOL_USE: Shape = Shape::new(
    &["toolUseId", "name", "input"],
    &[("toolUseId", Text), ("name", Text), ("input", Object), ("type", Text)],
);
static TOOL_RESULT: Shape = Shape::new(
    &["toolUseId", "content"],
    &[
        ("toolUseId", Text),
        ("content", List(&Kind::Shape(&RESULT_BLOCK))),
        ("status", OneOf(&["success", "error"])),
        ("type", Text),
    ],
);
static RESULT_BLOCK: Shape = Shape::union(&[
    ("json", Any),
    ("text", Text),
    ("image", Kind::Shape(&IMAGE)),
    ("document", Kind::Shape(&DOCUMENT)),
    ("video", Object),
    ("searchResult", Object),
]);
static REASONING: Shape = Shape::union(&[("reasoningText", Kind::Shape(&REASONING_TEXT)), ("redactedContent", Text)]);
static REASONING_TEXT: Shape = Shape::new(&["text"], &[("text", Text), ("signature", Text)]);
static CACHE_POINT: Shape = Shape::new(&["type"], &[("type", OneOf(&["default"])), ("ttl", Text)]);

static INFERENCE: Shape =
    Shape::new(&[], &[("maxTokens", Whole), ("temperature", Number), ("topP", Number), ("stopSequences", List(&Text))]);

static TOOL_CONFIG: Shape =
    Shape::new(&["tools"], &[("tools", List(&Kind::Shape(&TOOL))), ("toolChoice", Kind::Shape(&TOOL_CHOICE))]);
static TOOL: Shape = Shape::union(&[
    ("toolSpec", Kind::Shape(&TOOL_SPEC)),
    ("systemTool", Object),
    ("cachePoint", Kind::Shape(&CACHE_POINT)),
]);
static TOOL_SPEC: Shape = Shape::new(
    &["name", "inputSchema"],
    &[("name", Text), ("description", Text), ("inputSchema", Kind::Shape(&INPUT_SCHEMA)), ("strict", Flag)],
);
static INPUT_SCHEMA: Shape = Shape::union(&[("json", Object)]);
static TOOL_CHOICE: Shape = Shape::union(&[("auto", Object), ("any", Object), ("tool", Kind::Shape(&TOOL_NAME))]);
static TOOL_NAME: Shape = Shape::new(&["name"], &[("name", Text)]);

static OUTPUT: Shape = Shape::new(&[], &[("textFormat", Kind::Shape(&TEXT_FORMAT)), ("effort", Text)]);
static TEXT_FORMAT: Shape =
    Shape::new(&["type", "structure"], &[("type", OneOf(&["json_schema"])), ("structure", Object)]);
