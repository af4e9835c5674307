//! One example of each resource, for the tests that walk over all of them. A write that is built and has no example
//! here fails `every_write_that_is_built_has_an_example`.

use crate::service::Service;
use serde_json::{Value, json};

/// A resource with the five operations at one path.
pub struct Sample {
    pub path: &'static str,
    /// A valid body to create one; `{n}` in texts is replaced by a number.
    pub body: Value,
    pub change: Value,
    /// A body that is wrong at `field`, for create and update alike.
    pub wrong: (Value, &'static str),
    /// The body that a delete needs.
    pub delete: Value,
    /// `resource_type` in the audit trail.
    pub recorded_as: &'static str,
    /// Whether a workspace's key can hold the scopes to make one, and rows belong to workspaces.
    pub is_in_workspace: bool,
}

pub fn samples() -> Vec<Sample> {
    let workspaces = ["/admin/workspaces", "/workspaces"].map(|path| Sample {
        path,
        body: json!({ "name": "Workspace {n}", "usage_limits": { "credit_limit": 5 } }),
        change: json!({ "description": "changed {n}" }),
        wrong: (json!({ "name": "x", "usage_limits": { "credit_limit": "5" } }), "usage_limits.credit_limit"),
        delete: json!({ "name": "Workspace {n}" }),
        recorded_as: "workspaces",
        is_in_workspace: false,
    });
    let keys = Sample {
        path: "/api-keys",
        body: json!({ "name": "Key {n}", "scopes": ["completions.write"] }),
        change: json!({ "description": "changed {n}" }),
        wrong: (json!({ "name": "x", "rate_limits": [{ "type": "requests" }] }), "rate_limits[0].unit"),
        delete: json!({}),
        recorded_as: "api_keys",
        is_in_workspace: true,
    };
    let deployments = Sample {
        path: "/deployments",
        body: json!({ "name": "Deployment {n}", "slug": "deployment-{n}", "type": "production" }),
        change: json!({ "name": "changed {n}" }),
        wrong: (json!({ "name": "x", "type": "staging" }), "type"),
        delete: json!({}),
        recorded_as: "deployments",
        is_in_workspace: false,
    };
    let plain = [Sample {
        path: "/labels",
        body: json!({ "name": "label-{n}", "description": "d", "color_code": "#fff" }),
        change: json!({ "description": null }),
        wrong: (json!({ "name": 7 }), "name"),
        delete: json!({}),
        recorded_as: "labels",
        is_in_workspace: true,
    }];
    let prompts = [
        Sample {
            path: "/collections",
            body: json!({ "name": "Collection {n}" }),
            change: json!({ "name": "changed {n}" }),
            wrong: (json!({ "name": 7 }), "name"),
            delete: json!({}),
            recorded_as: "collections",
            is_in_workspace: true,
        },
        Sample {
            path: "/prompts/partials",
            body: json!({ "name": "Partial {n}", "string": "Be kind to {{name}}." }),
            change: json!({ "string": "Be brief." }),
            wrong: (json!({ "string": 7 }), "string"),
            delete: json!({}),
            recorded_as: "partials",
            is_in_workspace: true,
        },
        Sample {
            path: "/prompts",
            body: json!({
                "name": "Prompt {n}", "string": "Greet {{name}}.", "parameters": { "model": "m" }, "virtual_key": "main",
            }),
            change: json!({ "patch": true, "string": "Greet." }),
            wrong: (json!({ "string": 7 }), "string"),
            delete: json!({}),
            recorded_as: "prompts",
            is_in_workspace: true,
        },
    ];
    let configs = Sample {
        path: "/configs",
        body: json!({ "name": "Config {n}", "config": { "provider": "@team" } }),
        change: json!({ "config": { "provider": "@team", "retry": { "attempts": 2 } } }),
        wrong: (json!({ "name": "x", "config": { "provider": "@team", "retry": {} } }), "config.retry.attempts"),
        delete: json!({}),
        recorded_as: "configs",
        is_in_workspace: true,
    };
    let secret_references = Sample {
        path: "/secret-references",
        body: json!({
            "name": "Reference {n}", "slug": "reference-{n}", "manager_type": "hashicorp_vault",
            "auth_config": { "vault_auth_type": "token", "vault_addr": "https://vault.test", "vault_token": "hvs.{n}" },
            "secret_path": "secret/data/app",
        }),
        change: json!({ "description": "changed {n}" }),
        wrong: (json!({ "name": "x", "secret_path": 7 }), "secret_path"),
        delete: json!({}),
        recorded_as: "secret_references",
        is_in_workspace: false,
    };
    let guardrails = Sample {
        path: "/guardrails",
        body: json!({
            "name": "Guardrail {n}", "actions": { "deny": true },
            "checks": [{ "id": "default.contains", "parameters": { "operator": "none", "words": ["x"] } }],
        }),
        change: json!({ "actions": { "deny": false } }),
        wrong: (json!({ "name": "x", "checks": [{ "id": 7 }], "actions": {} }), "checks[0].id"),
        delete: json!({}),
        recorded_as: "guardrails",
        is_in_workspace: true,
    };
    let catalogue = [
        Sample {
            path: "/integrations",
            body: json!({ "name": "Integration {n}", "slug": "integration-{n}", "ai_provider_id": "openai", "key": "sk-{n}" }),
            change: json!({ "description": "changed {n}" }),
            wrong: (json!({ "name": "x", "ai_provider_id": "openai", "configurations": 7 }), "configurations"),
            delete: json!({}),
            recorded_as: "integrations",
            is_in_workspace: true,
        },
        Sample {
            path: "/providers",
            body: json!({ "name": "Provider {n}", "slug": "provider-{n}", "integration_id": "account" }),
            change: json!({ "note": "changed {n}" }),
            wrong: (
                json!({ "name": "x", "integration_id": "account", "rate_limits": { "type": "requests" } }),
                "rate_limits.unit",
            ),
            delete: json!({}),
            recorded_as: "providers",
            is_in_workspace: true,
        },
        Sample {
            path: "/virtual-keys",
            body: json!({ "name": "Key {n}", "provider": "open-ai", "key": "sk-{n}" }),
            change: json!({ "note": "changed {n}" }),
            wrong: (json!({ "name": "x", "provider": "openai", "expires_at": 7 }), "expires_at"),
            delete: json!({}),
            recorded_as: "virtual_keys",
            is_in_workspace: true,
        },
    ];
    let mcp = [
        Sample {
            path: "/mcp-integrations",
            body: json!({
                "name": "Mcp {n}", "slug": "mcp-{n}", "url": "https://mcp.example.com/mcp", "auth_type": "headers",
                "transport": "http", "configurations": { "custom_headers": { "x-key": "secret-{n}" } },
            }),
            change: json!({ "description": "changed {n}" }),
            wrong: (json!({ "name": "x", "url": 7, "auth_type": "none", "transport": "http" }), "url"),
            delete: json!({}),
            recorded_as: "mcp_integrations",
            is_in_workspace: true,
        },
        Sample {
            path: "/mcp-servers",
            body: json!({ "name": "Server {n}", "slug": "server-{n}", "mcp_integration_id": "mcp-account" }),
            change: json!({ "description": "changed {n}" }),
            wrong: (json!({ "name": 7, "mcp_integration_id": "mcp-account" }), "name"),
            delete: json!({}),
            recorded_as: "mcp_servers",
            is_in_workspace: true,
        },
    ];
    let rule = json!({
        "name": "Policy {n}", "conditions": [{ "key": "metadata._user", "value": "*" }],
        "group_by": [{ "key": "metadata._user" }],
    });
    let policy = |path, kind: &str, limit: (&str, i64), more: Value| {
        let mut body = rule.clone();
        body["type"] = kind.into();
        body[limit.0] = limit.1.into();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut wrong = body.clone();
        wrong["conditions"][0]["key"] = "colour".into();
        Sample {
            path,
            body,
            change: json!({ "name": "changed {n}", limit.0: limit.1 + 1 }),
            wrong: (wrong, "conditions[0].key"),
            delete: json!({}),
            recorded_as: "policies",
            is_in_workspace: true,
        }
    };
    let policies = [
        policy("/policies/rate-limits", "requests", ("value", 10), json!({ "unit": "rpm" })),
        policy("/policies/usage-limits", "cost", ("credit_limit", 10), json!({ "periodic_reset": "monthly" })),
    ];
    plain
        .into_iter()
        .chain(policies)
        .chain([keys, configs, guardrails, secret_references, deployments])
        .chain(workspaces)
        .chain(catalogue)
        .chain(mcp)
        .chain(prompts)
        .collect()
}

impl Sample {
    /// Makes what its objects refer to. It may be there already.
    pub async fn prepare(&self, service: &Service) {
        if self.path == "/mcp-servers" {
            let body = json!({
                "name": "Account", "slug": "mcp-account", "url": "https://mcp.example.com/mcp", "auth_type": "none",
                "transport": "http", "workspace_id": service.home.workspace_id,
            });
            let answer = service.administrator().post("/mcp-integrations", &body).await;
            assert!([200, 409].contains(&answer.status.as_u16()), "{}", answer.text());
        }
        if self.path != "/providers" {
            return;
        }
        let body = json!({
            "name": "Account", "slug": "account", "ai_provider_id": "openai", "key": "sk-0123456789",
            "create_default_provider": false, "workspace_id": service.home.workspace_id,
        });
        let answer = service.administrator().post("/integrations", &body).await;
        assert!([200, 409].contains(&answer.status.as_u16()), "{}", answer.text());
    }

    /// Its list, of the first workspace where it must be of one.
    pub fn list_path(&self, service: &Service, query: &str) -> String {
        match ["/providers", "/virtual-keys", "/mcp-servers"].contains(&self.path) {
            true => format!("{}?{query}&workspace_id={}", self.path, service.home.workspace_id),
            false => format!("{}?{query}", self.path),
        }
    }

    /// Whether two of the same cannot be made.
    pub fn is_unique(&self) -> bool {
        let repeatable =
            ["/api-keys", "/configs", "/guardrails", "/virtual-keys", "/collections", "/prompts", "/prompts/partials"];
        !repeatable.contains(&self.path) && !self.is_revivable()
    }

    /// Whether a change finds archived ones too, so that it can bring them back.
    pub fn is_revivable(&self) -> bool {
        self.path.starts_with("/policies/")
    }

    /// Keys are made below their list, one path per kind.
    pub fn create_path(&self) -> &'static str {
        if self.path == "/api-keys" { "/api-keys/workspace/service" } else { self.path }
    }
}

/// Writes beyond the five operations of a resource, which have tests of their own.
pub static FURTHER: &[&str] = &[
    "/explain",
    "/deployments/{idOrSlug}/rotate-token",
    "/admin/workspaces/{workspaceId}/users",
    "/admin/workspaces/{workspaceId}/users/{userId}",
    "/workspaces/{workspaceId}/users",
    "/workspaces/{workspaceId}/users/{userId}",
    "/api-keys/organisation/service",
    "/api-keys/workspace/service",
    "/api-keys/workspace/user",
    "/api-keys/{type}/{subType}",
    "/api-keys/{id}/rotate",
    "/configs/{slug}/rollback",
    "/guardrails/test",
    "/guardrails/{id}/rollback",
    "/plugins",
    "/plugins/{id}",
    "/prompts/{promptId}/makeDefault",
    "/prompts/{promptId}/versions/{versionId}",
    "/prompts/{promptId}/labels/{labelId}",
    "/prompts/{promptId}/render",
    "/prompts/partials/{id}/makeDefault",
    "/admin/organisation",
    "/admin/organisation/defaults",
    "/admin/organisation/security-settings",
    "/admin/organisation/auth-settings",
    "/workspace-exclusions/input-guardrails",
    "/workspace-exclusions/output-guardrails",
    "/admin/users/{userId}",
    "/admin/users/{userId}/sessions",
    "/admin/users/invites",
    "/admin/users/invites/{inviteId}",
    "/admin/users/invites/{inviteId}/resend",
    "/admin/users/invites/accept",
    "/logs/exports",
    "/logs/exports/{exportId}",
    "/logs/exports/{exportId}/start",
    "/logs/exports/{exportId}/cancel",
    "/integrations/{slug}/models",
    "/integrations/{slug}/integration-models",
    "/integrations/{slug}/workspaces",
    "/integrations/{slug}/test",
    "/providers/types/{type}/test",
    "/mcp-integrations/{id}/test",
    "/mcp-integrations/{id}/sync",
    "/mcp-integrations/{id}/capabilities",
    "/mcp-integrations/{id}/workspaces",
    "/mcp-servers/{id}/metadata/sync",
    "/mcp-servers/{id}/test",
    "/mcp-servers/{id}/capabilities",
    "/mcp-servers/{id}/capabilities/sync",
    "/mcp-servers/{id}/user-access",
    "/mcp-servers/{id}/connections",
    "/mcp-servers/{id}/tokens",
    "/analytics/query",
    "/analytics/saved-filters",
    "/analytics/saved-filters/{id}",
    "/feedback",
    "/feedback/{id}",
    "/logs",
    "/logs/erase",
    "/cache",
    "/admin/domains",
    "/admin/domains/{domainId}",
    "/admin/domains/{domainId}/verify",
    "/admin/saml-keys",
    "/admin/saml-keys/activate",
    "/admin/saml-keys/standby",
    "/auth/saml/{organisationId}/acs",
    "/scim/workspaces",
    "/scim/workspaces/{mappingId}",
    "/scim/Users",
    "/scim/Users/{id}",
    "/scim/Groups",
    "/scim/Groups/{id}",
    "/scim/Bulk",
    "/policies/usage-limits/{id}/entities/reset",
    "/policies/usage-limits/{id}/entities/{entityId}/reset",
    "/auth/link",
    "/auth/sessions",
    "/auth/sessions/{sessionId}",
    "/auth/session/key",
    "/auth/logout",
    "/auth/owner-links",
    "/auth/backchannel-logout/{organisationId}",
];

/// The sample's body with its number.
pub fn numbered(value: &Value, n: usize) -> Value {
    serde_json::from_str(&value.to_string().replace("{n}", &n.to_string())).unwrap()
}
