//! The fields of OpenAI's and Anthropic's requests, for the requests that ask to be held to them (`strict`, see
//! `fault`). Without that the mock stays lenient: much is tested with one body for all endpoints.

use serde_json::Value;

use super::fields::Kind::Any;
use super::fields::{Kind, Shape};
use super::route::Endpoint;

/// The version of Anthropic's API that no longer takes the parameters of sampling, whatever their value.
pub const WITHOUT_SAMPLING: &[u8] = b"2026-10-21";

pub fn sampling_flaw(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let found = ["temperature", "top_p", "top_k"].into_iter().find(|name| !body[*name].is_null());
    found.map(|name| format!("{name}: Extra inputs are not permitted"))
}

/// Why the provider would refuse this body, if it would.
pub fn flaw(endpoint: Endpoint, body: &[u8], is_vertex: bool) -> Option<String> {
    let shape = match endpoint {
        Endpoint::Chat => &CHAT,
        Endpoint::Responses => &RESPONSES,
        Endpoint::Messages if is_vertex => &VERTEX_MESSAGES,
        Endpoint::Messages => &MESSAGES,
        _ => return None,
    };
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    shape.flaw(&body)
}

static CHAT: Shape = Shape::new(
    &["model", "messages"],
    &[
        ("audio", Any),
        ("frequency_penalty", Any),
        ("function_call", Any),
        ("functions", Any),
        ("logit_bias", Any),
        ("logprobs", Any),
        ("max_completion_tokens", Any),
        ("max_tokens", Any),
        ("messages", Any),
        ("metadata", Any),
        ("modalities", Any),
        ("model", Any),
        ("moderation", Any),
        ("n", Any),
        ("parallel_tool_calls", Any),
        ("prediction", Any),
        ("presence_penalty", Any),
        ("prompt_cache_key", Any),
        ("prompt_cache_options", Any),
        ("prompt_cache_retention", Any),
        ("reasoning_effort", Any),
        ("response_format", Any),
        ("safety_identifier", Any),
        ("seed", Any),
        ("service_tier", Any),
        ("stop", Any),
        ("store", Any),
        ("stream", Any),
        ("stream_options", Any),
        ("temperature", Any),
        ("tool_choice", Any),
        ("tools", Any),
        ("top_logprobs", Any),
        ("top_p", Any),
        ("user", Any),
        ("verbosity", Any),
        ("web_search_options", Any),
    ],
);

static RESPONSES: Shape = Shape::new(
    &["model", "input"],
    &[
        ("access_programs", Any),
        ("background", Any),
        ("context_management", Any),
        ("conversation", Any),
        ("image", Any),
        ("include", Any),
        ("input", Any),
        ("instructions", Any),
        ("max_output_tokens", Any),
        ("max_tool_calls", Any),
        ("metadata", Any),
        ("model", Any),
        ("moderation", Any),
        ("parallel_tool_calls", Any),
        ("previous_response_id", Any),
        ("prompt", Any),
        ("prompt_cache_key", Any),
        ("prompt_cache_options", Any),
        ("prompt_cache_retention", Any),
        ("reasoning", Any),
        ("safety_identifier", Any),
        ("service_tier", Any),
        ("store", Any),
        ("stream", Any),
        ("stream_options", Any),
        ("temperature", Any),
        ("text", Any),
        ("tool_choice", Any),
        ("tools", Any),
        ("top_logprobs", Any),
        ("top_p", Any),
        ("truncation", Any),
        ("user", Any),
    ],
);

static MESSAGES: Shape = Shape::new(&["model", "max_tokens", "messages"], MESSAGES_FIELDS);

/// The model stands in the path, the version in the body.
static VERTEX_MESSAGES: Shape = Shape::new(&["anthropic_version", "max_tokens", "messages"], VERTEX_FIELDS);

const MESSAGES_FIELDS: &[(&str, Kind)] = &[
    ("cache_control", Any),
    ("container", Any),
    ("context_management", Any),
    ("diagnostics", Any),
    ("inference_geo", Any),
    ("max_tokens", Any),
    ("mcp_servers", Any),
    ("messages", Any),
    ("metadata", Any),
    ("model", Any),
    ("output_config", Any),
    ("output_format", Any),
    ("service_tier", Any),
    ("speed", Any),
    ("stop_sequences", Any),
    ("stream", Any),
    ("system", Any),
    ("temperature", Any),
    ("thinking", Any),
    ("tool_choice", Any),
    ("tools", Any),
    ("top_k", Any),
    ("top_p", Any),
];

const VERTEX_FIELDS: &[(&str, Kind)] = &[
    ("anthropic_version", Any),
    ("anthropic_beta", Any),
    ("cache_control", Any),
    ("context_management", Any),
    ("max_tokens", Any),
    ("messages", Any),
    ("metadata", Any),
    ("output_config", Any),
    ("output_format", Any),
    ("stop_sequences", Any),
    ("stream", Any),
    ("system", Any),
    ("temperature", Any),
    ("thinking", Any),
    ("tool_choice", Any),
    ("tools", Any),
    ("top_k", Any),
    ("top_p", Any),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_another_wire_is_refused() {
        for (endpoint, is_vertex, body, flaw_found) in [
            (Endpoint::Chat, false, r#"{"model":"m","messages":[]}"#, None),
            (Endpoint::Chat, false, r#"{"model":"m","messages":[],"input":1}"#, Some("input: unknown field")),
            (
                Endpoint::Messages,
                false,
                r#"{"model":"m","messages":[]}"#,
                Some("max_tokens: required field is missing"),
            ),
            (
                Endpoint::Messages,
                true,
                r#"{"anthropic_version":"v","max_tokens":1,"messages":[],"model":"m"}"#,
                Some("model: unknown field"),
            ),
            (Endpoint::Responses, false, r#"{"model":"m","input":"x","stream":true}"#, None),
            (Endpoint::Embeddings, false, r#"{"any":1}"#, None),
        ] {
            assert_eq!(flaw(endpoint, body.as_bytes(), is_vertex).as_deref(), flaw_found, "{body}");
        }
    }
}
