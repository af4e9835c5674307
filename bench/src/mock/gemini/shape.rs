//! The fields of Gemini's requests, as its REST reference and Vertex's list them.

use super::super::fields::Kind::{Any, Flag, List, Number, Object, OneOf, Text, Whole};
use super::super::fields::{Kind, Shape};

pub static GENERATE: Shape = Shape::new(
    &["contents"],
    &[
        ("contents", List(&Kind::Shape(&CONTENT))),
        ("systemInstruction", Kind::Shape(&CONTENT)),
        ("tools", List(&Kind::Shape(&TOOL))),
        ("toolConfig", Kind::Shape(&TOOL_CONFIG)),
        ("safetySettings", List(&Object)),
        ("generationConfig", Kind::Shape(&CONFIG)),
        ("cachedContent", Text),
        ("labels", Object),
        ("model", Text),
        ("modelArmorConfig", Object),
        ("serviceTier", Text),
        ("store", Flag),
    ],
);

pub static EMBED: Shape = Shape::new(&["content"], EMBED_FIELDS);
pub static BATCH: Shape = Shape::new(&["requests"], &[("requests", List(&Kind::Shape(&BATCHED)))]);
static BATCHED: Shape = Shape::new(&["model", "content"], EMBED_FIELDS);
const EMBED_FIELDS: &[(&str, Kind)] = &[
    ("model", Text),
    ("content", Kind::Shape(&CONTENT)),
    ("taskType", Text),
    ("title", Text),
    ("outputDimensionality", Whole),
    ("autoTruncate", Flag),
    ("embedContentConfig", Object),
];

pub static PREDICT: Shape =
    Shape::new(&["instances"], &[("instances", List(&Kind::Shape(&INSTANCE))), ("parameters", Object)]);
static INSTANCE: Shape = Shape::new(&["content"], &[("content", Text), ("taskType", Text), ("title", Text)]);

pub static COUNT: Shape = Shape::new(
    &[],
    &[
        ("contents", List(&Kind::Shape(&CONTENT))),
        ("generateContentRequest", Kind::Shape(&GENERATE)),
        ("systemInstruction", Kind::Shape(&CONTENT)),
        ("tools", List(&Kind::Shape(&TOOL))),
        ("generationConfig", Kind::Shape(&CONFIG)),
        ("instances", Any),
        ("model", Text),
    ],
);

static CONTENT: Shape = Shape::new(
    &["parts"],
    &[("role", OneOf(&["user", "model", "function", "system"])), ("parts", List(&Kind::Shape(&PART)))],
);

static PART: Shape = Shape::new(
    &[],
    &[
        ("text", Text),
        ("inlineData", Kind::Shape(&BLOB)),
        ("fileData", Kind::Shape(&FILE)),
        ("functionCall", Kind::Shape(&CALL)),
        ("functionResponse", Kind::Shape(&RESPONSE)),
        ("executableCode", Object),
        ("codeExecutionResult", Object),
        ("toolCall", Object),
        ("toolResponse", Object),
        ("thought", Flag),
        ("thoughtSignature", Text),
        ("videoMetadata", Object),
        ("mediaResolution", Object),
        ("partMetadata", Object),
    ],
);
static BLOB: Shape = Shape::new(&["mimeType", "data"], &[("mimeType", Text), ("data", Text), ("displayName", Text)]);
static FILE: Shape = Shape::new(&["fileUri"], &[("mimeType", Text), ("fileUri", Text), ("displayName", Text)]);
static CALL: Shape = Shape::new(
    &["name"],
    &[("id", Text), ("name", Text), ("args", Object), ("partialArgs", Any), ("willContinue", Flag)],
);
static RESPONSE: Shape = Shape::new(
    &["name", "response"],
    &[
        ("id", Text),
        ("name", Text),
        ("response", Object),
        ("parts", List(&Object)),
        ("willContinue", Flag),
        ("scheduling", Text),
    ],
);

static TOOL: Shape = Shape::new(
    &[],
    &[
        ("functionDeclarations", List(&Kind::Shape(&DECLARATION))),
        ("googleSearch", Object),
        ("googleSearchRetrieval", Object),
        ("codeExecution", Object),
        ("urlContext", Object),
        ("googleMaps", Object),
        ("enterpriseWebSearch", Object),
        ("retrieval", Object),
        ("computerUse", Object),
        ("fileSearch", Object),
        ("mcpServers", Any),
    ],
);
static DECLARATION: Shape = Shape::new(
    &["name"],
    &[
        ("name", Text),
        ("description", Text),
        ("parameters", Object),
        ("parametersJsonSchema", Any),
        ("response", Object),
        ("responseJsonSchema", Any),
        ("behavior", Text),
    ],
);
static TOOL_CONFIG: Shape = Shape::new(
    &[],
    &[
        ("functionCallingConfig", Kind::Shape(&CALLING)),
        ("retrievalConfig", Object),
        ("includeServerSideToolInvocations", Flag),
    ],
);
static CALLING: Shape = Shape::new(
    &[],
    &[
        ("mode", OneOf(&["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"])),
        ("allowedFunctionNames", List(&Text)),
        ("streamFunctionCallArguments", Flag),
    ],
);

static CONFIG: Shape = Shape::new(
    &[],
    &[
        ("temperature", Number),
        ("topP", Number),
        ("topK", Number),
        ("candidateCount", Whole),
        ("maxOutputTokens", Whole),
        ("stopSequences", List(&Text)),
        ("seed", Whole),
        ("presencePenalty", Number),
        ("frequencyPenalty", Number),
        ("responseLogprobs", Flag),
        ("logprobs", Whole),
        ("responseMimeType", Text),
        ("responseSchema", Object),
        ("responseJsonSchema", Any),
        ("_responseJsonSchema", Any),
        ("responseModalities", List(&Text)),
        ("thinkingConfig", Kind::Shape(&THINKING)),
        ("speechConfig", Object),
        ("imageConfig", Object),
        ("mediaResolution", Text),
        ("audioTimestamp", Flag),
        ("routingConfig", Object),
        ("modelSelectionConfig", Object),
        ("enableEnhancedCivicAnswers", Flag),
        ("enableAffectiveDialog", Flag),
    ],
);
static THINKING: Shape = Shape::new(
    &[],
    &[
        ("includeThoughts", Flag),
        ("thinkingBudget", Whole),
        (
            "thinkingLevel",
            OneOf(&[
                "THINKING_LEVEL_UNSPECIFIED",
                "MINIMAL",
                "LOW",
                "MEDIUM",
                "HIGH",
                "minimal",
                "low",
                "medium",
                "high",
            ]),
        ),
    ],
);
