//! How secret references are described in the OpenAPI document.

use super::SecretReference;
use crate::openapi::{Doc, choices, schema};
use shared::secrets::ManagerKind;

pub fn docs() -> [Doc; 5] {
    let kinds = ManagerKind::ALL.map(ManagerKind::as_str);
    let config = schema::any_object()
        .eg(serde_json::json!({ "vault_auth_type": "token", "vault_addr": "https://vault.example.com", "vault_token": "hvs.…" }))
        .says("How to authenticate: `aws_auth_type` (accessKey, assumedRole, serviceRole), `azure_auth_mode` (entra, \
               managed, default) or `vault_auth_type` (token, approle, kubernetes), and the fields of that way. Secrets are shown as `masked_…` only. Ways that use \
               the gateway's own identity are refused unless its operator lends it (`SECRETS_OWN_IDENTITY`).");
    let common = schema::object("")
        .need("name", schema::text(1..=255).eg("OpenAI key in Vault"))
        .may("description", schema::text(0..=1024).eg("For the support bot").or_null())
        .need("secret_path", schema::text(1..=1024).eg("secret/data/openai"))
        .may(
            "secret_key",
            schema::text(1..=255).eg("api_key").or_null().says("The entry of a secret that holds several."),
        )
        .may("tags", schema::map(schema::any_text().or_null()).eg(serde_json::json!({ "team": "red" })).or_null());
    let served = schema::object("")
        .may("allow_all_workspaces", schema::flag().or_null())
        .may(
            "allowed_workspaces",
            schema::list(schema::name_of("ws-market-3f9a01"))
                .or_null()
                .says("At least one; not together with allow_all_workspaces."),
        )
        .may(
            "allowed_hosts",
            schema::list(schema::text(1..=255).eg("llm.example.com")).at_most(50).or_null().says(
                "Hosts (`host` or `host:port`) that the value may be sent to beside the own address of an \
                       integration's provider. An integration or model with any other host cannot use the reference.",
            ),
        )
        .may("organisation_id", schema::uuid().or_null().says("The caller's; nothing else is accepted."));
    let sent = schema::object("NewSecretReference")
        .with(&common)
        .may("slug", schema::slug().eg("openai-key").or_null())
        .need("manager_type", schema::choice(&kinds).eg("hashicorp_vault"))
        .need("auth_config", config.clone())
        .with(&served);
    let listed = schema::shown("SecretReferenceItem", "secret-reference")
        .need("name", schema::text(1..=255).eg("OpenAI key in Vault"))
        .need("slug", schema::slug().eg("openai-key"))
        .need("manager_type", schema::choice(&kinds).eg("hashicorp_vault"))
        .need("status", schema::fixed("ACTIVE"))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time());
    let shown = schema::object("SecretReference")
        .with(&listed)
        .with(&common)
        .need("organisation_id", schema::uuid())
        .need("auth_config", schema::any_object().eg(serde_json::json!({ "vault_auth_type": "token", "vault_addr": "https://vault.example.com", "masked_vault_token": "hv*****9ab" })))
        .need("allow_all_workspaces", schema::flag())
        .need("allowed_workspaces", schema::list(schema::slug().eg("ws-market-3f9a01")).says("Empty when all are allowed."))
        .need("allowed_hosts", schema::list(schema::any_text().eg("llm.example.com")))
        .need("created_by", schema::uuid().or_null())
        .whole();
    // Slug and kind never change, so they are no fields of a change.
    let change = schema::object("SecretReferenceChange")
        .with(&common)
        .with(&served)
        .may("name", schema::text(1..=255).eg("OpenAI key in Vault").or_null())
        .may("secret_path", schema::text(1..=1024).eg("secret/data/openai").or_null())
        .may("auth_config", config.or_null().says("Merged field by field. A change of `vault_addr` or `azure_vault_url` has to bring the secrets with it."))
        .optional();
    let created = schema::object("")
        .need("id", schema::uuid())
        .need("slug", schema::slug().eg("openai-key"))
        .need("object", schema::fixed("secret-reference"));
    [
        Doc::list::<SecretReference>(&listed)
            .search()
            .filter("manager_type", choices(&kinds))
            .filter("tags", schema::any_text().eg(r#"{"team":"red"}"#).says("A JSON object; all of it must match.")),
        Doc::create::<SecretReference>(sent).answer(created).also(503),
        Doc::read::<SecretReference>(&shown),
        Doc::update::<SecretReference>(change).also(503),
        Doc::delete::<SecretReference>(),
    ]
}
