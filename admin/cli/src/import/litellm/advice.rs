//! Sentences for what has no place in files of objects: what to do instead.

/// By section and name; sections without a name speak for all of their fields.
static SENTENCES: &[(&str, &str, &str)] = &[
    ("litellm_params", "stream_timeout", "see stream_idle_timeout of configs, which counts silence"),
    ("litellm_params", "input_cost_per_token", "set the price at the integration's model (pricing_config)"),
    ("litellm_params", "output_cost_per_token", "set the price at the integration's model (pricing_config)"),
    ("litellm_params", "max_parallel_requests", "set `concurrency` of the provider, which lets calls wait"),
    ("litellm_params", "drop_params", "say which: drop_params of the target takes paths, as [\"logprobs\"]"),
    ("litellm_params", "additional_drop_params", "drop_params of the target takes the same paths"),
    ("litellm_params", "tags", "conditions on metadata choose targets"),
    ("litellm_params", "guardrails", "guardrails are objects: name them in the config's input_guardrails"),
    ("litellm_params", "mock_response", "nothing answers in place of a provider"),
    ("litellm_params", "", "no field of an account or a target"),
    (
        "model_info",
        "",
        "the gateway has facts and prices of models of its own; differing prices belong to the integration's model",
    ),
    ("model_list", "", "no field of an entry that the gateway has"),
    ("cache_params", "", "where and how answers are kept is a setting of the installation"),
    ("router_settings", "context_window_fallbacks", "a condition on the request or on_status_codes of a fallback"),
    (
        "router_settings",
        "content_policy_fallbacks",
        "a fallback whose on_status_codes holds 446, which a denying guardrail answers",
    ),
    ("router_settings", "retry_policy", "retry.on_status_codes of the config"),
    ("router_settings", "model_group_retry_policy", "retry of the target"),
    ("router_settings", "", "a setting of the installation, or nothing the gateway needs"),
    ("litellm_settings", "context_window_fallbacks", "a condition on the request or on_status_codes of a fallback"),
    (
        "litellm_settings",
        "content_policy_fallbacks",
        "a fallback whose on_status_codes holds 446, which a denying guardrail answers",
    ),
    ("litellm_settings", "drop_params", "say which: drop_params of a target takes paths, as [\"logprobs\"]"),
    (
        "litellm_settings",
        "callbacks",
        "logs, /metrics and traces are there without it; webhooks and guardrails are objects",
    ),
    ("litellm_settings", "success_callback", "logs, /metrics and traces are there without it"),
    ("litellm_settings", "failure_callback", "logs, /metrics and traces are there without it"),
    ("litellm_settings", "default_team_settings", "teams are workspaces: make one and its members"),
    ("litellm_settings", "default_internal_user_params", "roles and limits of members are the workspace's"),
    ("litellm_settings", "cache_params", "there is no `cache: true` beside it"),
    ("litellm_settings", "", "a setting of the installation, or nothing the gateway needs"),
    ("general_settings", "master_key", "the admin key is made at the first start; it is not imported"),
    ("general_settings", "database_url", "the gateway keeps its own database (DATABASE_URL)"),
    (
        "general_settings",
        "pass_through_endpoints",
        "any path of a provider works: /v1/proxy/<path> with its provider named",
    ),
    ("general_settings", "alerting", "alerts are rules over /metrics, and mails of budgets"),
    ("general_settings", "", "a setting of the installation: see conf/gateway.toml"),
    ("environment_variables", "", "set it where `portcullis apply` runs, if a variable of the files has this name"),
    ("mcp_servers", "description", "longer than the description of an MCP integration may be"),
    ("mcp_servers", "", "no field of an MCP integration; which tools may be called is set at the server"),
    ("", "guardrails", "checks differ: make them anew as guardrails (docs/guardrails.md)"),
    ("", "policies", "guardrails of a workspace hold for all of its calls"),
    ("", "credential_list", "write the credential at each model, or make an integration by hand"),
    ("", "vector_store_registry", "a provider's own stores are reached by its paths"),
    ("", "search_tools", "tools are MCP servers"),
    ("", "include", "import the included files one by one"),
    ("", "", "no section that the gateway has"),
];

pub fn sentence(section: &str, name: &str) -> String {
    let find = |name: &str| SENTENCES.iter().find(|(known, field, _)| *known == section && *field == name);
    find(name).or_else(|| find("")).map_or("nothing here takes it", |(.., sentence)| sentence).to_owned()
}
