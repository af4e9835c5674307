//! The fields of Cohere's requests, second version.

use super::super::fields::Kind::{Any, Flag, List, Number, Object, OneOf, Text, TextOr, Whole};
use super::super::fields::{Kind, Shape};

pub static CHAT: Shape = Shape::new(
    &["model", "messages"],
    &[
        ("model", Text),
        ("messages", List(&Kind::Shape(&MESSAGE))),
        ("stream", Flag),
        ("tools", List(&Kind::Shape(&TOOL))),
        ("tool_choice", OneOf(&["REQUIRED", "NONE"])),
        ("strict_tools", Flag),
        ("documents", List(&TextOr(&Object))),
        ("citation_options", Object),
        ("response_format", Kind::Shape(&FORMAT)),
        ("safety_mode", OneOf(&["CONTEXTUAL", "STRICT", "OFF", "NONE"])),
        ("max_tokens", Whole),
        ("stop_sequences", List(&Text)),
        ("temperature", Number),
        ("seed", Whole),
        ("frequency_penalty", Number),
        ("presence_penalty", Number),
        ("k", Whole),
        ("p", Number),
        ("logprobs", Flag),
        ("thinking", Kind::Shape(&THINKING)),
        ("priority", Whole),
        ("raw_prompting", Flag),
    ],
);

static MESSAGE: Shape = Shape::new(
    &["role"],
    &[
        ("role", OneOf(&["user", "assistant", "system", "developer", "tool"])),
        ("content", TextOr(&List(&Kind::Shape(&PART)))),
        ("tool_calls", List(&Kind::Shape(&CALL))),
        ("tool_plan", Text),
        ("tool_call_id", Text),
        ("citations", List(&Object)),
    ],
);

static PART: Shape = Shape::new(
    &["type"],
    &[
        ("type", OneOf(&["text", "image_url", "document", "thinking"])),
        ("text", Text),
        ("image_url", Object),
        ("document", Object),
        ("thinking", Text),
    ],
);

static CALL: Shape = Shape::new(
    &["id", "type", "function"],
    &[("id", Text), ("type", OneOf(&["function"])), ("function", Kind::Shape(&CALLED))],
);
static CALLED: Shape = Shape::new(&["name", "arguments"], &[("name", Text), ("arguments", Text)]);

static TOOL: Shape =
    Shape::new(&["type", "function"], &[("type", OneOf(&["function"])), ("function", Kind::Shape(&FUNCTION))]);
static FUNCTION: Shape =
    Shape::new(&["name", "parameters"], &[("name", Text), ("description", Text), ("parameters", Object)]);

static FORMAT: Shape =
    Shape::new(&["type"], &[("type", OneOf(&["text", "json_object"])), ("json_schema", Object), ("schema", Object)]);
static THINKING: Shape = Shape::new(&["type"], &[("type", OneOf(&["enabled", "disabled"])), ("token_budget", Whole)]);

pub static EMBED: Shape = Shape::new(
    &["model", "input_type"],
    &[
        ("model", Text),
        ("input_type", OneOf(&["search_document", "search_query", "classification", "clustering", "image"])),
        ("texts", List(&Text)),
        ("images", List(&Text)),
        ("inputs", List(&Object)),
        ("max_tokens", Whole),
        ("output_dimension", Whole),
        ("embedding_types", List(&OneOf(&["float", "int8", "uint8", "binary", "ubinary", "base64"]))),
        ("truncate", OneOf(&["NONE", "START", "END"])),
        ("priority", Whole),
    ],
);

pub static RERANK: Shape = Shape::new(
    &["model", "query", "documents"],
    &[
        ("model", Text),
        ("query", Text),
        ("documents", List(&TextOr(&Object))),
        ("top_n", Whole),
        ("max_tokens_per_doc", Whole),
        ("return_documents", Flag),
        ("rank_fields", Any),
        ("priority", Whole),
    ],
);
