//! Every header of a request that the gateway reads under its own prefix, with what it says. The proxy reads them by
//! hand (`request/headers.rs`), the OpenAPI document lists them from here; a test of the proxy holds the two together.

/// One header: its name after the prefix, an example, and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayHeader {
    pub suffix: &'static str,
    pub example: &'static str,
    pub says: &'static str,
}

const fn header(suffix: &'static str, example: &'static str, says: &'static str) -> GatewayHeader {
    GatewayHeader { suffix, example, says }
}

/// In the order in which a reader wants to know them.
pub static REQUEST: &[GatewayHeader] = &[
    header(
        "api-key",
        "pk_0123456789abcdef",
        "The gateway's own key, or a token (JWT). May also come as `Authorization: Bearer`, where that is not the provider's key, or as x-api-key or x-goog-api-key.",
    ),
    header(
        "provider",
        "@openai-main",
        "The provider: `@slug` of one that the workspace stores, or a name, as openai, whose own key goes in `Authorization`.",
    ),
    header(
        "config",
        "pc-main-3f9a01",
        "The config to follow: its slug, or the object itself (ConfigObject). Replaces the default config of the key and the workspace.",
    ),
    header(
        "metadata",
        "{\"_user\":\"ada\",\"tier\":\"pro\"}",
        "A JSON object of short texts, kept with the request; conditions, limits and logs look at them. `_user` names the person; the body's user is taken where it is absent.",
    ),
    header(
        "trace-id",
        "checkout-42",
        "Joins several requests; made when absent, and repeated in the answer. At most 128 characters.",
    ),
    header(
        "request-timeout",
        "8000",
        "Milliseconds until the head of the provider's answer, then 408. Wins over request_timeout of a config.",
    ),
    header("retry-count", "2", "How often to try again, 0 to 5, where no config says it. Older clients send it."),
    header(
        "forward-headers",
        "x-tenant, x-session",
        "Names of the client's headers that are sent on to the provider, by commas. Wins over forward_headers of a config.",
    ),
    header(
        "custom-host",
        "https://llm.example.com/v1",
        "Another base URL of the provider, with its version segment; needs a provider for the wire format.",
    ),
    header("virtual-key", "openai-main", "The old name of `x-gateway-provider: @slug`."),
    header("mode", "proxy openai", "How older clients name a provider."),
    header("debug", "false", "`false`: what request and answer say is not stored, only their numbers."),
    header(
        "include-cost",
        "true",
        "`true`: streams tell what they cost in a comment before their end, and answers are held until they are whole, so that their head does.",
    ),
    header("sensitive-headers", "x-session", "Names of headers whose values are masked in logs, by commas."),
    header(
        "fetch-integrated-models",
        "true",
        "`true`: `GET /models` lists the workspace's models although a provider is named.",
    ),
    header(
        "cache",
        "simple",
        "Whether the answer may be one that was kept, in place of what the config says: `simple`, `semantic`, or an object \
         like a config's `cache`.",
    ),
    header("cache-force-refresh", "true", "The provider is asked although an answer is kept, which is replaced."),
    header("cache-namespace", "tenant-7", "Answers are kept apart by this text in place of metadata and headers."),
    header("openai-organization", "org-1", "OpenAI: the organisation that is billed."),
    header("openai-project", "proj_1", "OpenAI: the project that is billed."),
    header("openai-beta", "assistants=v2", "Sent as openai-beta."),
    header("anthropic-beta", "prompt-caching-2024-07-31", "Sent as anthropic-beta."),
    header("anthropic-version", "2023-06-01", "Sent as anthropic-version."),
    header(
        "strict-open-ai-compliance",
        "false",
        "`false`: translated answers also show thinking, citations and the provider's own finish reasons.",
    ),
    header("strict-openai-compliance", "false", "Another spelling of strict-open-ai-compliance."),
    header(
        "client-auth",
        "gwd_0123456789abcdef",
        "The token of the deployment that a request came through; set by a proxy of one's own.",
    ),
    header("span-id", "4f1c9a", "The client's id of this call, for its log."),
    header("span-name", "summarise", "The client's name of this call, for its log."),
    header("parent-span-id", "a03b77", "The span that this call is a part of, for its log."),
    header("runtime", "node", "What the client runs on, for its log."),
    header("runtime-version", "v22.1.0", "The version of that, for its log."),
    header("package-version", "1.2.0", "The version of the client's library, for its log."),
    header(
        "audio-file-duration",
        "12500",
        "Milliseconds of the audio that is sent, to price it by where the answer does not say it.",
    ),
];

/// Those that change nothing of a request: they are recorded in its log.
pub static RECORDED: [&str; 7] =
    ["span-id", "span-name", "parent-span-id", "runtime", "runtime-version", "package-version", "audio-file-duration"];

/// Every header of an answer under the prefix, and those beside it that are the gateway's too, by their full names.
pub static RESPONSE: &[GatewayHeader] = &[
    header(
        "x-gateway-request-id",
        "019a0000-0000-7000-8000-000000000000",
        "The id of the request, and of its log; on every answer.",
    ),
    header(
        "x-request-id",
        "019a0000-0000-7000-8000-000000000000",
        "The same id under the name that SDKs show, unless the provider sent its own.",
    ),
    header("x-gateway-trace-id", "checkout-42", "The trace: the client's, or made."),
    header("x-gateway-provider", "openai", "The name of the provider that was asked last."),
    header(
        "x-gateway-last-used-option-index",
        "config.targets[1]",
        "The target that answered, as a path in the config; `config` when it has no targets.",
    ),
    header(
        "x-gateway-retry-attempt-count",
        "0",
        "Which retry succeeded: 0 for none, -1 when they were used up or not worth waiting for.",
    ),
    header("x-gateway-attempt-count", "1", "How many calls of providers were made."),
    header("x-should-retry", "false", "`false` when the gateway itself has tried in vain: SDKs then do not try again."),
    header(
        "x-gateway-warnings",
        "retry.attempts: must be from 0 to 5: 9 was taken as 5",
        "What was ignored or taken otherwise of the request, by semicolons.",
    ),
    header(
        "x-gateway-cache-status",
        "DISABLED",
        "What the cache did: HIT, SEMANTIC HIT, MISS, SEMANTIC MISS, REFRESH or DISABLED.",
    ),
    header(
        "x-gateway-guardrails",
        "failed",
        "`failed` on what is relayed to a provider's own path, where a guardrail that does not deny has failed: status and bytes are the provider's.",
    ),
    header(
        "x-gateway-cost",
        "0.0035",
        "What the call cost in US dollars, with adjusted prices; 0 from the cache. On answers that are held whole.",
    ),
    header("x-gateway-cost-state", "exact", "`exact`, `estimated` where usage was not reported, or `unknown`."),
    header("x-gateway-overhead-ms", "0.412", "Milliseconds that the gateway itself took, beside the cost."),
    header(
        "server-timing",
        "gateway;dur=0.4, upstream;dur=420",
        "Milliseconds that the gateway and the provider took.",
    ),
    header("x-ratelimit-limit-requests", "60", "Requests that the rate with the least left allows."),
    header("x-ratelimit-remaining-requests", "59", "How many of them are left."),
    header("x-ratelimit-reset-requests", "12s", "When there will be more."),
    header("x-ratelimit-limit-tokens", "100000", "Tokens that the rate with the least left allows."),
    header("x-ratelimit-remaining-tokens", "99876", "How many of them are left."),
    header("x-ratelimit-reset-tokens", "12s", "When there will be more."),
    header("x-gateway-ratelimit-scope", "api_key", "Of a refusal: whose limit it was."),
    header("retry-after-ms", "850", "Of a refusal by a rate: milliseconds until there is room."),
];
