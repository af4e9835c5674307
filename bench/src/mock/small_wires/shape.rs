//! The fields of these wires' requests.

use super::super::fields::Kind::{self, Flag, List, Number, Object, OneOf, Text, Whole};
use super::super::fields::Shape;

pub static STABILITY_FIRST: Shape = Shape::new(
    &["text_prompts"],
    &[
        ("text_prompts", List(&Kind::Shape(&WEIGHTED))),
        ("width", Whole),
        ("height", Whole),
        ("samples", Whole),
        ("seed", Whole),
        ("steps", Whole),
        ("cfg_scale", Number),
        ("sampler", Text),
        ("style_preset", Text),
        ("clip_guidance_preset", Text),
    ],
);
static WEIGHTED: Shape = Shape::new(&["text"], &[("text", Text), ("weight", Number)]);

pub static STABILITY_SECOND: Shape = Shape::new(
    &["prompt"],
    &[
        ("prompt", Text),
        ("negative_prompt", Text),
        ("model", Text),
        ("aspect_ratio", OneOf(&["1:1", "16:9", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21"])),
        ("seed", Whole),
        ("output_format", OneOf(&["png", "jpeg", "webp"])),
        ("style_preset", Text),
        ("cfg_scale", Number),
        ("mode", Text),
        ("strength", Number),
    ],
);

pub static FIREWORKS: Shape = Shape::new(
    &["prompt"],
    &[
        ("prompt", Text),
        ("negative_prompt", Text),
        ("width", Whole),
        ("height", Whole),
        ("samples", Whole),
        ("seed", Whole),
        ("steps", Whole),
        ("cfg_scale", Number),
        ("sampler", Text),
        ("safety_check", Flag),
    ],
);

pub static FIREWORKS_WORKFLOW: Shape = Shape::new(
    &["prompt"],
    &[
        ("prompt", Text),
        ("aspect_ratio", Text),
        ("seed", Whole),
        ("num_inference_steps", Whole),
        ("guidance_scale", Number),
    ],
);

pub static SILICONFLOW: Shape = Shape::new(
    &["prompt"],
    &[
        ("prompt", Text),
        ("negative_prompt", Text),
        ("image_size", Text),
        ("batch_size", Whole),
        ("seed", Whole),
        ("num_inference_steps", Whole),
        ("guidance_scale", Number),
        ("prompt_enhancement", Flag),
    ],
);

pub static HYPERBOLIC: Shape = Shape::new(
    &["model_name", "prompt"],
    &[
        ("model_name", Text),
        ("prompt", Text),
        ("negative_prompt", Text),
        ("width", Whole),
        ("height", Whole),
        ("seed", Whole),
        ("steps", Whole),
        ("cfg_scale", Number),
        ("sampler", Text),
        ("style_preset", Text),
    ],
);

pub static WORKERS: Shape = Shape::new(
    &["prompt"],
    &[
        ("prompt", Text),
        ("negative_prompt", Text),
        ("width", Whole),
        ("height", Whole),
        ("seed", Whole),
        ("steps", Whole),
        ("num_steps", Whole),
        ("guidance", Number),
    ],
);

pub static SEGMIND: Shape = Shape::new(
    &["prompt", "base64"],
    &[
        ("prompt", Text),
        ("negative_prompt", Text),
        ("img_width", Whole),
        ("img_height", Whole),
        ("samples", Whole),
        ("seed", Whole),
        ("style", Text),
        ("num_inference_steps", Whole),
        ("guidance_scale", Number),
        ("base64", Flag),
    ],
);

pub static FAL: Shape = Shape::new(
    &["prompt"],
    &[
        ("prompt", Text),
        ("negative_prompt", Text),
        ("image_size", Object),
        ("aspect_ratio", Text),
        ("num_images", Whole),
        ("seed", Whole),
        ("num_inference_steps", Whole),
        ("guidance_scale", Number),
        ("output_format", Text),
        ("sync_mode", Flag),
    ],
);

pub static ORACLE: Shape = Shape::new(
    &["compartmentId", "servingMode", "chatRequest"],
    &[("compartmentId", Text), ("servingMode", Kind::Shape(&SERVING)), ("chatRequest", Kind::Shape(&CHAT_REQUEST))],
);
static SERVING: Shape = Shape::new(
    &["servingType"],
    &[("servingType", OneOf(&["ON_DEMAND", "DEDICATED"])), ("modelId", Text), ("endpointId", Text)],
);
static CHAT_REQUEST: Shape = Shape::new(
    &["apiFormat"],
    &[
        ("apiFormat", OneOf(&["GENERIC", "COHERE"])),
        ("messages", List(&Kind::Shape(&MESSAGE))),
        ("message", Text),
        ("chatHistory", List(&Object)),
        ("preambleOverride", Text),
        ("toolResults", List(&Object)),
        ("isStream", Flag),
        ("streamOptions", Object),
        ("maxTokens", Whole),
        ("maxCompletionTokens", Whole),
        ("temperature", Number),
        ("topP", Number),
        ("topK", Whole),
        ("frequencyPenalty", Number),
        ("presencePenalty", Number),
        ("seed", Whole),
        ("stop", List(&Text)),
        ("stopSequences", List(&Text)),
        ("numGenerations", Whole),
        ("logitBias", Object),
        ("logProbs", Whole),
        ("tools", List(&Object)),
        ("toolChoice", Object),
        ("isParallelToolCalls", Flag),
        ("responseFormat", Object),
        ("reasoningEffort", Text),
        ("metadata", Object),
    ],
);
static MESSAGE: Shape = Shape::new(
    &["role"],
    &[
        ("role", OneOf(&["SYSTEM", "DEVELOPER", "USER", "ASSISTANT", "TOOL"])),
        ("content", List(&Object)),
        ("name", Text),
        ("toolCalls", List(&Object)),
        ("toolCallId", Text),
    ],
);

pub static REKA: Shape = Shape::new(
    &["model_name", "conversation_history"],
    &[
        ("model_name", Text),
        ("conversation_history", List(&Kind::Shape(&SIDE))),
        ("request_output_len", Whole),
        ("temperature", Number),
        ("runtime_top_p", Number),
        ("runtime_top_k", Whole),
        ("stop_words", List(&Text)),
        ("random_seed", Whole),
        ("frequency_penalty", Number),
        ("presence_penalty", Number),
        ("length_penalty", Number),
        ("retrieval_dataset", Text),
        ("use_search_engine", Flag),
    ],
);
static SIDE: Shape =
    Shape::new(&["type", "text"], &[("type", OneOf(&["human", "model"])), ("text", Text), ("media_url", Text)]);

pub static TRITON: Shape = Shape::new(
    &["text_input"],
    &[
        ("text_input", Text),
        ("max_tokens", Whole),
        ("temperature", Number),
        ("top_p", Number),
        ("top_k", Whole),
        ("stop_words", List(&Text)),
        ("bad_words", List(&Text)),
        ("random_seed", Whole),
    ],
);

pub static RANK: Shape = Shape::new(
    &["query", "records"],
    &[
        ("model", Text),
        ("query", Text),
        ("records", List(&Object)),
        ("topN", Whole),
        ("ignoreRecordDetailsInResponse", Flag),
    ],
);

pub static AI21_EMBED: Shape =
    Shape::new(&["texts"], &[("texts", List(&Text)), ("type", OneOf(&["segment", "query"]))]);
