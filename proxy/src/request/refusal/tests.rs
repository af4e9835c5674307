//! Every refusal, in every dialect.

use super::*;
use serde_json::Value;

fn hit() -> LimitHit {
    LimitHit { scope: "policy", rate: None, wait_ms: None, unit: crate::limits::Unit::Requests }
}

fn every() -> Vec<Refusal> {
    vec![
        Refusal::missing_api_key(),
        Refusal::invalid_api_key(),
        Refusal::expired_api_key(),
        Refusal::insufficient_scope("s"),
        Refusal::rejected_token(&Rejection::Workspace("w".into())),
        Refusal::workspace_mismatch(),
        Refusal::missing_provider(),
        Refusal::invalid_provider("p"),
        Refusal::router_error("w"),
        Refusal::unknown_slug("s"),
        Refusal::provider_not_available("s", "w"),
        Refusal::model_not_allowed("m", "s"),
        Refusal::unknown_model("w"),
        Refusal::secret_unavailable("i", "w"),
        Refusal::bad_account("p", "w"),
        Refusal::credential_unavailable("p", "w", None),
        Refusal::credential_unavailable("p", "w", Some(5)),
        Refusal::invalid_config("w".into()),
        Refusal::inline_blocked(Inline::Config),
        Refusal::inline_blocked(Inline::Provider),
        Refusal::inline_blocked(Inline::CustomHost),
        Refusal::inline_blocked(Inline::ProviderUrl("aws-region")),
        Refusal::inline_blocked(Inline::ForwardHeaders),
        Refusal::invalid_custom_host("h"),
        Refusal::endpoint_not_supported("p", "w"),
        Refusal::upgrade_refused(),
        Refusal::leads_past_the_gateway(),
        Refusal::invalid_forward_headers("f"),
        Refusal::invalid_metadata("m"),
        Refusal::invalid_header("h", "w"),
        Refusal::repeated_header("h"),
        Refusal::invalid_query("q", "w"),
        Refusal::model_not_found("m"),
        Refusal::invalid_content_type(),
        Refusal::damaged_encoding("w"),
        Refusal::unknown_content_encoding("e"),
        Refusal::invalid_json("w"),
        Refusal::invalid_parameter("m".into(), "f"),
        Refusal::unsupported_parameter("m".into(), "f"),
        Refusal::invalid_form(),
        Refusal::body_too_large(1),
        Refusal::headers_too_large(1),
        Refusal::body_timeout(),
        Refusal::method_not_allowed("X"),
        Refusal::not_found(),
        Refusal::not_implemented("x"),
        Refusal::not_ready(),
        Refusal::no_room(NoRoom::ForAnybody),
        Refusal::no_room(NoRoom::ForThisOrganisation),
        Refusal::no_room(NoRoom::ForThisWorkspace),
        Refusal::rate_limited("m".into(), 1, hit()),
        Refusal::budget_exhausted("m".into(), hit()),
        Refusal::price_unknown("m".into(), hit()),
        Refusal::limits_unknown("m".into(), hit()),
        Refusal::timeout(1),
        Refusal::gateway_timeout(1),
        Refusal::out_of_time(),
        Refusal::upstream_unreachable("p", "w"),
        Refusal::invalid_upstream_response("p", "w"),
        Refusal::upstream_error(500, "m".into()),
        Refusal::control_plane_unavailable(),
        Refusal::internal(),
        Refusal::denied_by_guardrail(None, "{}"),
        Refusal::unreadable("w"),
    ]
}

#[test]
fn every_refusal_has_a_listed_code_and_every_listed_code_a_refusal() {
    let used: Vec<RefusalCode> = every().iter().map(|refusal| refusal.code).collect();
    for code in &used {
        assert_eq!(RefusalCode::ALL.get(*code as usize), Some(code), "{code:?} is not at its place in ALL");
    }
    for code in RefusalCode::ALL {
        assert!(used.contains(code), "{code:?} is never used");
    }
}

#[test]
fn every_dialect_finds_its_message_where_its_clients_look() {
    let refusal = Refusal::invalid_api_key();
    for (dialect, pointers) in [
        (Dialect::OpenAi, vec!["/error/message", "/message"]),
        (Dialect::Responses, vec!["/error/message", "/message"]),
        (Dialect::Anthropic, vec!["/error/message"]),
        (Dialect::Google, vec!["/error/message"]),
        (Dialect::Aws, vec!["/message"]),
        (Dialect::ControlPlane, vec!["/error/message", "/data/message", "/message"]),
        (Dialect::Plain, vec!["/message"]),
    ] {
        let body: Value = serde_json::from_slice(&refusal.body(dialect, "id", None)).unwrap();
        for pointer in pointers {
            assert_eq!(body.pointer(pointer).unwrap(), "the API key is not valid", "{dialect:?} {pointer}");
        }
    }
}
