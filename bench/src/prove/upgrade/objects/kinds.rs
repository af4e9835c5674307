//! One object or more of every kind, in an order in which each finds what it refers to. `<step.field>` stands for a field of
//! what an earlier step was answered.

use super::By;
use http::Method;
use serde_json::{Value, json};

/// What may be answered otherwise after an upgrade, by kind and field, because it is about time and not about what was stored.
const CHANGING: &[(&str, &str)] = &[
    // The programs give signs of life, and ask MCP servers again.
    ("deployments", "last_sync_at"),
    ("deployments", "status"),
    ("MCP integrations", "last_synced_at"),
    ("MCP servers", "last_synced_at"),
    // A list that grows.
    ("audit rows", "total"),
];

/// A request that makes or changes something, and the addresses at which that is read.
pub struct Step {
    pub kind: &'static str,
    pub name: &'static str,
    pub by: By,
    pub method: Method,
    pub path: String,
    pub body: String,
    pub content_type: &'static str,
    pub reads: Vec<String>,
}

pub fn may_change(kind: &str, field: &str) -> bool {
    CHANGING.contains(&(kind, field))
}

/// Whether nothing in this answer is still under way.
pub fn is_at_rest(kind: &str, answer: &Value) -> bool {
    const WORKING: &[&str] = &["files", "batches", "MCP integrations", "MCP servers"];
    const UNDER_WAY: &[&str] = &["validating", "in_progress", "finalizing", "pending", "syncing"];
    let is_over = |one: &Value| {
        let states = [&one["status"], &one["metadata"]["sync_status"], &one["sync_status"]];
        !states.iter().filter_map(|state| state.as_str()).any(|state| UNDER_WAY.contains(&state))
    };
    !WORKING.contains(&kind) || answer["data"].as_array().map_or(is_over(answer), |rows| rows.iter().all(is_over))
}

impl Step {
    fn by_application(mut self) -> Self {
        self.by = By::Application;
        self
    }

    fn typed(mut self, content_type: &'static str, body: &str) -> Self {
        (self.content_type, self.body) = (content_type, body.to_owned());
        self
    }
}

/// Makes something of this kind under a name.
fn post(kind: &'static str, name: &'static str, path: &str, body: Value, reads: &[&str]) -> Step {
    step(Method::POST, (kind, name), path, &body, reads)
}

/// Changes something, or sets it where it always is.
fn put(kind: &'static str, path: &str, body: Value, reads: &[&str]) -> Step {
    step(Method::PUT, (kind, kind), path, &body, reads)
}

fn step(method: Method, (kind, name): (&'static str, &'static str), path: &str, body: &Value, reads: &[&str]) -> Step {
    let reads = reads.iter().map(|path| format!("/v1{path}")).collect();
    let (path, body) = (format!("/v1{path}"), body.to_string());
    Step { kind, name, by: By::Administrator, method, path, body, content_type: "application/json", reads }
}

pub fn steps() -> Vec<Step> {
    [
        organisation(),
        people(),
        keys(),
        catalogue(),
        routing(),
        guardrails(),
        prompts(),
        mcp(),
        logs(),
        batches(),
        rest(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn organisation() -> Vec<Step> {
    const KEYS: &str = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo";
    let auth = "/admin/organisation/auth-settings";
    vec![
        put(
            "organisation settings",
            "/admin/organisation",
            json!({ "name": "Acme before", "settings": { "debug_log": 1 } }),
            &["/admin/organisation"],
        ),
        put(
            "security settings",
            "/admin/organisation/security-settings",
            json!({ "membersViewLogs": true, "managersViewAllData": true }),
            &["/admin/organisation/security-settings"],
        ),
        put(
            "sign-in settings",
            auth,
            json!({ "jwks_json": { "keys": [{ "kty": "RSA", "kid": "one", "alg": "RS256", "n": KEYS, "e": "AQAB" }] } }),
            &[auth],
        ),
        post(
            "workspaces",
            "team",
            "/admin/workspaces",
            json!({ "name": "Team", "description": "of <organisation>", "usage_limits": { "credit_limit": 5 },
                "defaults": { "metadata": { "team": "a" } } }),
            &["/admin/workspaces/<team.id>", "/admin/workspaces#pages", "/workspaces#pages"],
        ),
        post(
            "deployments",
            "deployment",
            "/deployments",
            json!({ "name": "Frankfurt", "slug": "frankfurt", "type": "production" }),
            &["/deployments/<deployment.id>"],
        ),
    ]
}

fn people() -> Vec<Step> {
    vec![
        post(
            "invitations",
            "invitation",
            "/admin/users/invites",
            json!({ "email": "ada@acme.test", "role": "member",
                "workspaces": [{ "id": "<team.id>", "role": "manager" }] }),
            &["/admin/users/invites/<invitation.id>", "/admin/users/invites#pages"],
        ),
        post(
            "members of workspaces",
            "member",
            "/admin/workspaces/<team.id>/users",
            json!({ "users": [{ "id": "<owner>", "role": "manager" }] }),
            &["/admin/workspaces/<team.id>/users#pages", "/admin/users#pages", "/admin/users/<owner>"],
        ),
        post("mail domains", "domain", "/admin/domains", json!({ "domain": "acme.test" }), &["/admin/domains"]),
        post("SAML keys", "saml", "/admin/saml-keys", json!({}), &["/admin/saml-keys"]),
        post(
            "groups of a directory",
            "mapping",
            "/scim/workspaces",
            json!({ "workspace_id": "<team.id>", "role": "Member", "scim_group_name": "Engineers" }),
            &["/scim/workspaces"],
        ),
    ]
}

fn keys() -> Vec<Step> {
    let limited = json!({ "name": "Limited", "scopes": ["completions.write", "logs.view"], "workspace_id": "<workspace>",
        "rate_limits": [{ "type": "requests", "unit": "rpm", "value": 600 }],
        "usage_limits": { "credit_limit": 50, "periodic_reset": "monthly" },
        "defaults": { "metadata": { "app": "search" } }, "expires_at": "2099-01-15T10:30:00Z" });
    vec![
        post("keys", "key", "/api-keys/workspace/service", limited, &["/api-keys/<key.id>", "/api-keys#pages"]),
        post(
            "keys of the organisation",
            "organisation_key",
            "/api-keys/organisation/service",
            json!({ "name": "Automation", "scopes": ["prompts.list", "configs.read"] }),
            &["/api-keys/<organisation_key.id>"],
        ),
        post(
            "keys of people",
            "user_key",
            "/api-keys/workspace/user",
            json!({ "name": "Own", "scopes": ["completions.write"], "workspace_id": "<workspace>", "user_id": "<owner>" }),
            &["/api-keys/<user_key.id>"],
        ),
    ]
}

fn catalogue() -> Vec<Step> {
    let vault = json!({ "vault_auth_type": "token", "vault_addr": "https://vault.test", "vault_token": "hvs.before" });
    let models = json!({ "models": [{ "slug": "house/model", "enabled": true, "is_custom": true,
        "base_model_slug": "gpt-4o", "pricing_config": { "pay_as_you_go": { "request_token": { "price": 0.5 },
        "response_token": { "price": 1.5 } } } }] });
    vec![
        post(
            "secret references",
            "secret",
            "/secret-references",
            json!({ "name": "Vault", "slug": "vault", "manager_type": "hashicorp_vault", "auth_config": vault,
                "secret_path": "secret/data/app" }),
            &["/secret-references/<secret.id>"],
        ),
        post(
            "integrations",
            "integration",
            "/integrations",
            json!({ "name": "Main", "slug": "main", "ai_provider_id": "openai", "key": "sk-main-0123456789",
                "workspace_id": "<workspace>", "create_default_provider": false,
                "configurations": { "custom_host": "<provider>" } }),
            &["/integrations/main", "/integrations#pages"],
        ),
        put("models of integrations", "/integrations/main/models", models, &["/integrations/main/models"]),
        post(
            "integrations of other providers",
            "bedrock",
            "/integrations",
            json!({ "name": "Aws", "slug": "aws", "ai_provider_id": "bedrock", "configurations":
                { "aws_auth_type": "accessKey", "aws_region": "us-east-1", "aws_access_key_id": "AKIAEXAMPLE",
                  "aws_secret_access_key": "secret-before" } }),
            &["/integrations/aws"],
        ),
        put(
            "workspaces of integrations",
            "/integrations/aws/workspaces",
            json!({ "workspaces": [{ "id": "<workspace>", "enabled": true }] }),
            &["/integrations/aws/workspaces"],
        ),
        post(
            "providers",
            "provider",
            "/providers",
            json!({ "name": "House", "slug": "house", "integration_id": "main", "workspace_id": "<workspace>",
                "note": "before", "usage_limits": { "credit_limit": 100 },
                "rate_limits": [{ "type": "requests", "unit": "rpm", "value": 6000 }] }),
            &["/providers/house?workspace_id=<workspace>", "/providers?workspace_id=<workspace>"],
        ),
        post(
            "virtual keys",
            "virtual",
            "/virtual-keys",
            json!({ "name": "Virtual", "provider": "open-ai", "key": "sk-virtual-0123456789", "workspace_id": "<workspace>",
                "usage_limits": { "credit_limit": 10 } }),
            &["/virtual-keys/<virtual.slug>?workspace_id=<workspace>"],
        ),
    ]
}

fn routing() -> Vec<Step> {
    let rule = |kind: &str, limit: &str, more: Value| {
        let mut body = json!({ "name": format!("Of {kind}"), "type": kind, limit: 1000, "workspace_id": "<workspace>",
            "conditions": [{ "key": "metadata._user", "value": "*" }], "group_by": [{ "key": "metadata._user" }] });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        body
    };
    vec![
        post(
            "labels",
            "label",
            "/labels",
            json!({ "name": "stable", "description": "d", "color_code": "#ffffff",
            "workspace_id": "<workspace>" }),
            &["/labels/<label.id>"],
        ),
        post(
            "configs",
            "config",
            "/configs",
            json!({ "name": "Before", "workspace_id": "<workspace>", "config": { "strategy": { "mode": "fallback" },
                "targets": [{ "provider": "@house", "override_params": { "model": "gpt-4o-mini" } },
                    { "provider": "openai", "api_key": "sk-inside-0123456789", "custom_host": "<provider>" }],
                "retry": { "attempts": 2, "on_status_codes": [429] } } }),
            &["/configs/<config.slug>", "/configs#pages"],
        ),
        put(
            "versions of configs",
            "/configs/<config.slug>",
            json!({ "config": { "provider": "@house", "retry": { "attempts": 1 } } }),
            &["/configs/<config.slug>", "/configs/<config.slug>/versions#pages"],
        ),
        post(
            "rate policies",
            "rate",
            "/policies/rate-limits",
            rule("requests", "value", json!({ "unit": "rpm" })),
            &["/policies/rate-limits/<rate.id>"],
        ),
        post(
            "usage policies",
            "usage",
            "/policies/usage-limits",
            rule("cost", "credit_limit", json!({ "periodic_reset": "monthly", "alert_threshold": 80 })),
            &["/policies/usage-limits/<usage.id>"],
        ),
    ]
}

fn guardrails() -> Vec<Step> {
    let checks = json!([{ "id": "default.contains", "parameters": { "operator": "none", "words": ["classified"] } },
        { "id": "default.pii", "parameters": { "categories": ["CREDIT_CARD"], "redact": true } }]);
    vec![
        post(
            "guardrails",
            "guardrail",
            "/guardrails",
            json!({ "name": "Words", "checks": checks, "actions": { "deny": true, "on_fail": { "feedback": { "value": -5 } } },
                "organisation_id": "<organisation>" }),
            &["/guardrails/<guardrail.slug>", "/guardrails#pages"],
        ),
        put(
            "versions of guardrails",
            "/guardrails/<guardrail.slug>",
            json!({ "actions": { "deny": false } }),
            &["/guardrails/<guardrail.slug>", "/guardrails/<guardrail.slug>/versions#pages"],
        ),
        put(
            "default guardrails",
            "/admin/organisation/defaults",
            json!({ "input_guardrails": ["<guardrail.slug>"] }),
            &["/admin/organisation/defaults"],
        ),
        put(
            "exclusions of workspaces",
            "/workspace-exclusions/input-guardrails",
            json!({ "workspaces": [{ "workspace_id": "<team.id>", "excluded": true }] }),
            &["/workspace-exclusions/input-guardrails"],
        ),
        post(
            "plugins",
            "plugin",
            "/plugins",
            json!({ "id": "aiguard", "credentials": { "apiKey": "ag-0123456789" } }),
            &["/plugins"],
        ),
    ]
}

fn prompts() -> Vec<Step> {
    let messages =
        json!([{ "role": "user", "content": "Hi {{name}}. {{>kind}}" }]).to_string().replace("kind", "<partial.slug>");
    vec![
        post(
            "collections",
            "collection",
            "/collections",
            json!({ "name": "Mails", "workspace_id": "<workspace>" }),
            &["/collections/<collection.id>"],
        ),
        post(
            "partials",
            "partial",
            "/prompts/partials",
            json!({ "name": "Kind", "string": "Be kind to {{name}}.", "workspace_id": "<workspace>" }),
            &["/prompts/partials/<partial.slug>", "/prompts/partials/<partial.slug>/versions"],
        ),
        post(
            "prompts",
            "prompt",
            "/prompts",
            json!({ "name": "Greeting", "collection_id": "<collection.id>", "string": messages, "virtual_key": "house",
                "parameters": { "model": "gpt-4o-mini", "temperature": 0.5 }, "workspace_id": "<workspace>",
                "tools": [{ "type": "function", "function": { "name": "f", "parameters": {} } }] }),
            &["/prompts/<prompt.slug>"],
        ),
        put(
            "versions of prompts",
            "/prompts/<prompt.slug>",
            json!({ "patch": true, "model": "gpt-4o" }),
            &["/prompts/<prompt.slug>", "/prompts/<prompt.slug>/versions", "/prompts/<prompt.slug>/versions/1"],
        ),
        put(
            "labels of prompts",
            "/prompts/<prompt.slug>/versions/1",
            json!({ "label_id": "<label.id>" }),
            &["/prompts/<prompt.slug>/versions/1"],
        ),
        put(
            "splits of labels",
            "/prompts/<prompt.slug>/labels/staging",
            json!({ "versions": [{ "version": 1, "weight": 90 }, { "version": 2, "weight": 10 }] }),
            &["/prompts/<prompt.slug>/labels"],
        ),
    ]
}

fn mcp() -> Vec<Step> {
    let secret = json!({ "custom_headers": { "x-key": "secret-before" } });
    vec![
        post(
            "MCP integrations",
            "mcp_integration",
            "/mcp-integrations",
            json!({ "name": "Tools", "slug": "tools", "url": "<mcp>", "auth_type": "headers", "transport": "http",
                "workspace_id": "<workspace>", "configurations": secret }),
            &["/mcp-integrations/tools", "/mcp-integrations/tools/capabilities"],
        ),
        post(
            "MCP servers",
            "mcp_server",
            "/mcp-servers",
            json!({ "name": "Server", "slug": "server", "mcp_integration_id": "tools", "workspace_id": "<workspace>" }),
            &["/mcp-servers/server"],
        ),
        put(
            "capabilities of MCP servers",
            "/mcp-servers/server/capabilities",
            json!({ "capabilities": [{ "name": "delete", "type": "tool", "enabled": false }] }),
            &["/mcp-servers/server/capabilities"],
        ),
        put(
            "people of MCP servers",
            "/mcp-servers/server/user-access",
            json!({ "default_user_access": "deny", "user_access": [{ "user_id": "<owner>", "enabled": true }] }),
            &["/mcp-servers/server/user-access"],
        ),
    ]
}

fn logs() -> Vec<Step> {
    let call = json!({
        "request": { "url": "https://api.openai.com/v1/chat/completions", "provider": "openai",
            "body": { "model": "gpt-4o", "messages": [{ "role": "user", "content": "before" }] } },
        "response": { "status": 200, "body": { "model": "gpt-4o", "usage": { "prompt_tokens": 5, "completion_tokens": 3 } } },
        "metadata": { "_user": "ada", "traceId": "reported-before" },
    });
    vec![
        post("reported logs", "reported", "/logs", call, &["/logs?trace_id=reported-before"]).by_application(),
        post(
            "feedback",
            "feedback",
            "/feedback",
            json!({ "trace_id": "reported-before", "value": 3, "weight": 0.5,
            "metadata": { "_user": "ada" } }),
            &[],
        )
        .by_application(),
        post(
            "log exports",
            "export",
            "/logs/exports",
            json!({ "filters": { "ai_org_model": ["openai__gpt-4o"] }, "requested_data": ["id", "cost"], "description": "d",
                "workspace_id": "<workspace>" }),
            &["/logs/exports/<export.id>", "/logs/exports#pages"],
        ),
        post(
            "saved filters",
            "saved",
            "/analytics/saved-filters",
            json!({ "name": "Failed", "filters": { "status_code": "500" } }),
            &["/analytics/saved-filters"],
        ),
    ]
}

fn batches() -> Vec<Step> {
    let row = json!({ "custom_id": "one", "method": "POST", "url": "/v1/chat/completions",
        "body": { "model": "gpt-4o-mini", "max_tokens": 5, "messages": [{ "role": "user", "content": "before" }] } });
    let form = format!(
        "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xYz\r\nContent-Disposition: form-data; \
         name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n{row}\n\r\n--xYz--\r\n"
    );
    let options = json!({ "x-gateway-provider": "openai", "x-gateway-custom-host": "<provider>",
        "authorization": "Bearer sk-mock" });
    vec![
        post("files", "file", "/files", json!({}), &["/files/<file.id>", "/files/<file.id>/content", "/files"])
            .by_application()
            .typed("multipart/form-data; boundary=xYz", &form),
        post(
            "batches",
            "batch",
            "/batches",
            json!({ "input_file_id": "<file.id>", "endpoint": "/v1/chat/completions", "completion_window": "immediate",
                "metadata": { "made": "before" }, "gateway_options": options }),
            &["/batches/<batch.id>", "/batches"],
        )
        .by_application(),
    ]
}

/// What came of everything before.
fn rest() -> Vec<Step> {
    vec![put(
        "audit rows",
        "/admin/organisation",
        json!({ "name": "Acme" }),
        &["/admin/organisation", "/audit-logs#pages"],
    )]
}
