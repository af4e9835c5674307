//! Names that carry secrets, and names that only look so.

use super::*;

#[test]
fn names_that_carry_secrets_are_known() {
    for (name, expected) in [
        ("authorization", true),
        ("proxy-authorization", true),
        ("x-api-key", true),
        ("x-goog-api-key", true),
        ("x-gateway-api-key", true),
        ("x-acme-api-key", true),
        ("x-gateway-virtual-key", true),
        ("x-gateway-client-auth", true),
        ("x-gateway-config", true),
        ("x-acme-config", true),
        ("x-gateway-aws-secret-access-key", true),
        ("x-gateway-aws-external-id", true),
        ("x-gateway-vertex-service-account-json", true),
        ("x-amz-security-token", true),
        ("cookie", true),
        ("set-cookie", true),
        ("sec-websocket-protocol", true),
        ("content-type", false),
        ("x-gateway-provider", false),
        ("x-gateway-metadata", false),
        ("x-stainless-lang", false),
        ("user-agent", false),
        ("x-ratelimit-remaining-tokens", false),
        ("anthropic-ratelimit-tokens-limit", false),
        ("x-my-token", true),
        ("cookies", true),
        ("x-password-hint", true),
        ("x-credentials", true),
        ("x-amz-signature", true),
        ("x-secret", true),
        ("token", true),
        ("x-toke", false),
        ("x-ke", false),
    ] {
        assert_eq!(is_secret(name), expected, "{name}");
    }
}

#[test]
fn what_every_head_holds_is_harmless_whatever_its_length() {
    for name in [
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-type",
        "content-length",
        "content-encoding",
        "transfer-encoding",
        "date",
        "server",
        "server-timing",
        "cache-control",
        "vary",
        "origin",
        "referer",
        "expect",
        "traceparent",
        "x-request-id",
        "x-gateway-provider",
        "x-gateway-trace-id",
        "x-gateway-request-id",
        "x-gateway-metadata",
        "x-gateway-custom-host",
        "x-gateway-cache-status",
        "x-gateway-last-used-option-index",
        "x-gateway-retry-attempt-count",
        "openai-organization",
        "openai-project",
        "openai-beta",
        "openai-version",
        "openai-processing-ms",
        "anthropic-version",
        "anthropic-beta",
    ] {
        assert!(is_harmless(name) && !is_secret(name), "{name}");
        assert!(!is_harmless(&name[1..]) && !is_harmless(&format!("{name}s")), "nothing but {name}");
    }
}

#[test]
fn a_query_keeps_its_form_and_loses_its_secrets() {
    for (sent, kept) in [
        ("/v1/x", "/v1/x"),
        ("/v1/x?a=1&key=sk-1&b", "/v1/x?a=1&key=*****&b"),
        ("/v1/x?API%2DKEY=sk-1", "/v1/x?API%2DKEY=*****"),
        ("/v1/x?model=m&X-Amz-Signature=s=t", "/v1/x?model=m&X-Amz-Signature=*****"),
    ] {
        assert_eq!(url(sent), kept);
    }
}
