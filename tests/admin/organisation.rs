//! The organisation, its settings and its security settings: what can be set, what is refused, and what it does to
//! the people it speaks of.

use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};

const ORGANISATION: &str = "/admin/organisation";
const SECURITY: &str = "/admin/organisation/security-settings";
const AUTH: &str = "/admin/organisation/auth-settings";

async fn put(client: &Client, path: &str, body: Value) -> Value {
    let answer = client.put(path, &body).await;
    assert_eq!(answer.status, 200, "PUT {path} {body}: {}", answer.text());
    answer.json()
}

/// Status, and the field that is to blame.
async fn refused(client: &Client, path: &str, body: Value) -> (u16, String) {
    let answer = client.put(path, &body).await;
    let field = answer.json()["data"]["errors"][0]["field"].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), field)
}

#[tokio::test]
async fn an_organisation_shows_its_defaults_and_keeps_what_is_set() {
    let service = Service::start().await;
    let client = service.administrator();
    let seen = client.get(ORGANISATION).await.json();
    let expected = json!({
        "id": service.home.organisation_id,
        "object": "organisation",
        "name": "Home",
        "owner_id": service.home.owner_id,
        "default_workspace_id": service.home.workspace_id,
        "settings": {
            "debug_log": 1,
            "user_api_key_ttl": 0,
            "user_api_key_max_ttl": 0,
            "service_api_key_ttl": 0,
            "service_api_key_max_ttl": 0,
            "admin_api_key_ttl": 0,
            "admin_api_key_max_ttl": 0,
            "user_api_key_count": -1,
            "user_api_key_auto_create": 0,
            "user_api_key_rotation_period": null,
            "block_inline_config": false,
            "cache_max_age": null,
            "cost_in_answers": 1,
            "relay_with_guardrails": [],
            "export_settings": { "deniedFields": [] },
            "scim_only_user_management": false,
            "workspace_overrides": {
                "data_visibility": false, "analytics": false, "prompts": false, "logs": false, "api_keys": false,
                "virtual_keys": false, "configs": false, "guardrails": false, "integrations": false,
                "workspace_management": false,
            },
        },
        "metadata_schemas": { "api_key": null, "workspace": null },
        "log_retention_display": 90,
        "metrics_retention_display": 365,
        "created_at": seen["created_at"],
        "last_updated_at": seen["last_updated_at"],
    });
    assert_eq!(seen, expected);
    let schema = json!({ "type": "object", "additionalProperties": true, "required": ["team"] });
    let body = json!({ "name": "Acme 🦀", "metadata_schemas": { "api_key": schema } });
    let changed = put(&client, ORGANISATION, body).await;
    put(&client, ORGANISATION, json!({ "settings": { "user_api_key_ttl": 60, "debug_log": false } })).await;
    let seen = client.get(ORGANISATION).await.json();
    assert_eq!((&seen["name"], &changed["name"]), (&json!("Acme 🦀"), &json!("Acme 🦀")));
    assert_eq!((&seen["settings"]["user_api_key_ttl"], &seen["settings"]["debug_log"]), (&json!(60), &json!(0)));
    assert_eq!(seen["metadata_schemas"]["api_key"], schema);
    assert!(seen["last_updated_at"].as_str() > seen["created_at"].as_str());
    let cleared = put(&client, ORGANISATION, json!({ "metadata_schemas": { "api_key": null } })).await;
    assert_eq!(cleared["metadata_schemas"]["api_key"], Value::Null);
}

#[tokio::test]
async fn what_an_organisation_cannot_be_is_refused_and_changes_nothing() {
    let service = Service::start().await;
    let client = service.administrator();
    let before = client.get(ORGANISATION).await.json();
    for (body, field) in [
        (json!({}), ""),
        (json!({ "invented": 1 }), "invented"),
        (json!({ "name": "" }), "name"),
        (json!({ "name": "x".repeat(256) }), "name"),
        (json!({ "name": 7 }), "name"),
        (json!({ "settings": 7 }), "settings"),
        (json!({ "name": "ok", "settings": { "invented": 1 } }), "settings.invented"),
        (json!({ "settings": { "user_api_key_count": -2 } }), "settings.user_api_key_count"),
        (json!({ "settings": { "workspace_overrides": { "x": true } } }), "settings.workspace_overrides.x"),
        (json!({ "metadata_schemas": { "user": null } }), "metadata_schemas.user"),
        (
            json!({ "metadata_schemas": { "workspace": { "type": "array" } } }),
            "metadata_schemas.workspace.additionalProperties",
        ),
    ] {
        assert_eq!(refused(&client, ORGANISATION, body.clone()).await, (400, field.into()), "{body}");
    }
    assert_eq!(client.get(ORGANISATION).await.json(), before);
    let trail = service.trail(service.home.organisation_id).await;
    assert_eq!(trail.len(), 11);
    for row in trail {
        assert_eq!((&row["resource_type"], &row["response_status_code"]), (&json!("organisation"), &json!(400)));
    }
}

#[tokio::test]
async fn two_changes_of_settings_at_once_are_both_kept() {
    let service = Service::start().await;
    let client = service.administrator();
    for round in 1..=10 {
        let (ttl, count) = (
            json!({ "settings": { "user_api_key_ttl": round } }),
            json!({ "settings": { "user_api_key_count": round } }),
        );
        let (one, two) = tokio::join!(client.put(ORGANISATION, &ttl), client.put(ORGANISATION, &count));
        assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
        let settings = &client.get(ORGANISATION).await.json()["settings"];
        assert_eq!((&settings["user_api_key_ttl"], &settings["user_api_key_count"]), (&json!(round), &json!(round)));
    }
}

#[tokio::test]
async fn security_settings_have_their_defaults_and_decide_what_people_may_do() {
    let service = Service::start().await;
    let client = service.administrator();
    let seen = client.get(SECURITY).await.json();
    let off: Vec<_> = seen.as_object().unwrap().iter().filter(|(_, value)| **value == json!(false)).collect();
    let off: Vec<_> = off.into_iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "membersWritePrompts",
        "membersWriteApiKeys",
        "membersWriteVirtualKeys",
        "membersWriteConfigs",
        "membersWriteGuardrails",
    ];
    assert_eq!(off, expected);
    assert_eq!(seen.as_object().unwrap().len(), 35);
    let member = service.person_client(service.home.workspace_id, service.person("member", Some("member")).await).await;
    let write = async |name: &str| member.post("/labels", &json!({ "name": name })).await.status.as_u16();
    assert_eq!(write("one").await, 403);
    let changed = put(&client, SECURITY, json!({ "membersWritePrompts": true })).await;
    assert_eq!((&changed["membersWritePrompts"], &changed["membersViewPrompts"]), (&json!(true), &json!(true)));
    assert_eq!(write("two").await, 200);
    put(&client, SECURITY, json!({ "membersViewPrompts": false })).await;
    assert_eq!(member.get("/labels").await.status, 403);
    assert_eq!(client.get(SECURITY).await.json()["membersWritePrompts"], true, "what was not sent stays");
    for (body, field) in [
        (json!({ "invented": true }), "invented"),
        (json!({ "membersViewLogs": 1 }), "membersViewLogs"),
        (json!({ "membersViewLogs": null }), "membersViewLogs"),
        (json!({}), ""),
    ] {
        assert_eq!(refused(&client, SECURITY, body).await, (400, field.into()));
    }
    let last = service.trail(service.home.organisation_id).await.pop().unwrap();
    assert_eq!((&last["resource_type"], &last["response_status_code"]), (&json!("organisation"), &json!(400)));
}

#[tokio::test]
async fn opening_a_category_for_override_starts_every_workspace_from_the_organisations_values() {
    let service = Service::start().await;
    let client = service.administrator();
    let member = service.person_client(service.home.workspace_id, service.person("member", Some("member")).await).await;
    service.sql(r#"UPDATE workspaces SET security_settings = '{"membersViewPrompts": true}'"#).await;
    put(&client, SECURITY, json!({ "membersViewPrompts": false })).await;
    put(&client, ORGANISATION, json!({ "settings": { "workspace_overrides": { "prompts": true } } })).await;
    assert_eq!(member.get("/labels").await.status, 403, "an old value of the workspace does not come back to life");
    put(&client, SECURITY, json!({ "membersViewPrompts": true })).await;
    assert_eq!(member.get("/labels").await.status, 403, "the workspace decides now");
    put(&client, ORGANISATION, json!({ "settings": { "workspace_overrides": { "prompts": false } } })).await;
    assert_eq!(member.get("/labels").await.status, 200);
}

#[tokio::test]
async fn auth_settings_are_checked_and_never_show_a_secret() {
    let service = Service::start().await;
    let client = service.administrator();
    let token = "scim-0123456789abcdef0123456789abcdef";
    let body = json!({
        "jwks_json": { "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": "abc", "kid": "1" }] },
        "oidc": { "issuer": "https://id.test", "client_id": "c" },
        "saml": { "metadata_url": "https://id.test/saml" },
        "allowed_domains": [{ "domain": "acme.test", "verified": true }],
        "session_settings": { "max_session_ttl": 3600 },
        "scim": { "enabled": true, "token": token },
    });
    put(&client, AUTH, body.clone()).await;
    put(&client, AUTH, body).await;
    let seen = client.get(AUTH).await.json();
    let scim = json!({
        "enabled": true, "masked_token": "sc*****def", "workspace_prefix": "ws-", "role_separator": "-role-",
        "group_based_user_provisioning": false,
    });
    assert_eq!(seen["scim"], scim);
    assert_eq!(
        seen["allowed_domains"],
        json!([{ "domain": "acme.test", "verified": false, "allow_subdomains": false }]),
        "a client's word proves nothing"
    );
    assert_eq!(seen["jwks_json"]["keys"][0]["kid"], "1");
    let stored =
        "SELECT row_to_json(o)::text FROM organisations o UNION ALL SELECT row_to_json(a)::text FROM audit_logs a";
    for row in service.database.client().await.query(stored, &[]).await.unwrap() {
        let text: String = row.get(0);
        assert!(!text.contains(token), "{text}");
    }
    let private = json!({ "jwks_json": { "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": "abc", "d": "s3cret" }] } });
    for (body, field) in [
        (private, "jwks_json.keys[0].d"),
        (json!({ "jwks_url": "https://id.test/keys" }), "jwks_json"),
        (json!({ "scim": { "token": "short" } }), "scim.token"),
        (
            json!({ "oidc": { "issuer": "https://id.test", "client_id": "c", "client_secret": "" } }),
            "oidc.client_secret",
        ),
        (json!({ "oidc": { "issuer": "https://id.test" } }), "oidc.client_id"),
        (json!({}), ""),
    ] {
        assert_eq!(refused(&client, AUTH, body.clone()).await, (400, field.into()), "{body}");
    }
    let other = service.client().with_key(&service.organisation().await.admin_key.key);
    let taken = other.put(AUTH, &json!({ "scim": { "token": token } })).await;
    assert_eq!(taken.status, 409, "a token names one organisation");
    put(&client, AUTH, json!({ "scim": { "token": null } })).await;
    put(&other, AUTH, json!({ "scim": { "token": token } })).await;
}

#[tokio::test]
async fn the_oidc_client_secret_is_sealed_and_stays_with_its_issuer() {
    let service = Service::start().await;
    let client = service.administrator();
    let oidc = |more: Value| {
        let mut oidc = json!({ "issuer": "https://id.test", "client_id": "c" });
        oidc.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "oidc": oidc })
    };
    let is_sealed = async || -> bool {
        let sql = "SELECT auth_secrets IS NOT NULL FROM organisations WHERE id = $1";
        let row = service.database.client().await.query_one(sql, &[&service.home.organisation_id]).await;
        row.unwrap().get(0)
    };
    for (change, mask) in [
        (oidc(json!({})), json!(null)),
        (oidc(json!({ "client_secret": "client-s3cret" })), json!("cl*****ret")),
        (oidc(json!({ "scopes": ["groups"] })), json!("cl*****ret")),
        (json!({ "saml": null }), json!("cl*****ret")),
        (oidc(json!({ "client_secret": "cl*****ret" })), json!("cl*****ret")),
        (oidc(json!({ "issuer": "https://other.test" })), json!(null)),
        (oidc(json!({ "client_secret": "client-s3cret" })), json!("cl*****ret")),
        (json!({ "oidc": null }), json!(null)),
    ] {
        let shown = put(&client, AUTH, change.clone()).await;
        assert_eq!(shown["oidc"]["masked_client_secret"], mask, "{change}");
        assert!(!shown.to_string().contains("client-s3cret"), "{shown}");
        assert_eq!(is_sealed().await, !mask.is_null(), "{change}");
    }
}

#[tokio::test]
async fn default_guardrails_are_what_is_stored_and_what_is_not_sent_stays() {
    let service = Service::start().await;
    let (client, path) = (service.administrator(), "/admin/organisation/defaults");
    let none = json!({ "input_guardrails": [], "output_guardrails": [] });
    assert_eq!(client.get(path).await.json(), none);
    let one = json!([{ "id": uuid::Uuid::nil(), "slug": "pg-one" }]);
    let stored = json!({ "input_guardrails": one, "output_guardrails": one });
    service.sql(&format!("UPDATE organisations SET defaults = '{stored}'")).await;
    assert_eq!(client.get(path).await.json(), stored);
    for (body, field) in [
        (json!({ "input_guardrails": ["pg-unknown"] }), json!("input_guardrails[0]")),
        (json!({ "input_guardrails": null, "output_guardrails": ["pg-unknown"] }), json!("output_guardrails[0]")),
        (json!({ "input_guardrails": vec![""; 1000] }), json!("input_guardrails")),
        (json!({ "output_guardrails": 1 }), json!("output_guardrails")),
        (json!({}), json!(null)),
    ] {
        let refused = client.put(path, &body).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]["param"]), (400, &field), "{body}");
    }
    assert_eq!(client.get(path).await.json(), stored, "what was refused changed nothing");
    let half = json!({ "input_guardrails": [], "output_guardrails": one });
    assert_eq!(put(&client, path, json!({ "input_guardrails": null })).await, half);
    assert_eq!(client.get(path).await.json(), half);
    assert_eq!(put(&client, path, json!({ "output_guardrails": [] })).await, none);
    let trail = service.trail(service.home.organisation_id).await;
    let last = trail.iter().rev().find(|row| row["response_status_code"] == 200).unwrap();
    assert_eq!((&last["before"], &last["after"]), (&half, &none), "{last}");
}

#[tokio::test]
async fn each_organisation_sees_and_changes_itself_alone() {
    let service = Service::start().await;
    let other = service.client().with_key(&service.organisation().await.admin_key.key);
    for (path, body) in [
        (ORGANISATION, json!({ "name": "Changed" })),
        (SECURITY, json!({ "membersViewLogs": false })),
        (AUTH, json!({ "jwks_url": "https://id.test/keys" })),
    ] {
        let before = service.administrator().get(path).await.json();
        put(&other, path, body).await;
        assert_eq!(service.administrator().get(path).await.json(), before, "{path}");
        assert_ne!(other.get(path).await.json(), before, "{path}");
    }
}
