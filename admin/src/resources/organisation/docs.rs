//! How the OpenAPI document shows the organisation and its settings.

use super::settings::{CACHE_AGES, MAX_RELAYED_PATH_LENGTH, MAX_RELAYED_PATHS};
use crate::identity::access::security;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::{Value, json};
use shared::routes::Method;

/// All of them are parts of one object, which has one tag.
pub fn docs() -> Vec<Doc> {
    let tagged = |doc: Doc| if doc.method == Method::Get { doc.tagged() } else { doc.conditional() };
    described().into_iter().map(tagged).collect()
}

fn described() -> Vec<Doc> {
    let security = || security::docs("SecuritySettings").whole();
    vec![
        Doc::get("/admin/organisation", "Read the organisation").answer(organisation()),
        Doc::put("/admin/organisation", "Change the organisation").body(change()).answer(organisation()),
        Doc::get("/admin/organisation/defaults", "Read guardrails of every request").answer(guardrails("Defaults")),
        Doc::put("/admin/organisation/defaults", "Change guardrails of every request")
            .body(guardrails_change())
            .answer(guardrails("Defaults")),
        Doc::get("/admin/organisation/security-settings", "Read what managers and members may do").answer(security()),
        Doc::put("/admin/organisation/security-settings", "Change what managers and members may do")
            .body(security::docs("SecuritySettingsChange"))
            .answer(security()),
        Doc::get("/admin/organisation/auth-settings", "Read how people and tokens are recognised").answer(auth()),
        Doc::put("/admin/organisation/auth-settings", "Change how people and tokens are recognised")
            .body(auth_change())
            .answer(auth()),
    ]
}

fn guardrails(title: &str) -> Schema {
    let named = || {
        schema::object("DefaultGuardrail")
            .need("id", schema::uuid())
            .need("slug", schema::any_text().eg("pg-pii-3f9a01"))
    };
    schema::object(title)
        .need("input_guardrails", schema::list(named()))
        .need("output_guardrails", schema::list(named()))
}

fn guardrails_change() -> Schema {
    let names = || {
        let name = schema::text(1..=255).eg("pg-pii-3f9a01");
        let says = "Ids or slugs of guardrails of the whole organisation; null for none.";
        schema::list(name).at_most(crate::resources::guardrails::named::MAX_DEFAULTS).or_null().eg(json!([])).says(says)
    };
    schema::object("DefaultsChange").may("input_guardrails", names()).may("output_guardrails", names())
}

fn metadata_schemas() -> Schema {
    let one = || {
        let example = json!({ "type": "object", "additionalProperties": true, "required": ["team"],
                              "properties": { "team": { "type": "string" } } });
        schema::any_object().eg(example).or_null()
    };
    schema::object("MetadataSchemas").may("api_key", one()).may("workspace", one().eg(Value::Null))
}

fn organisation() -> Schema {
    schema::shown("Organisation", "organisation")
        .need("name", schema::any_text().eg("Acme"))
        .need("owner_id", schema::uuid().or_null())
        .need("default_workspace_id", schema::uuid().or_null())
        .need("settings", settings())
        .need("metadata_schemas", metadata_schemas().whole())
        .need("log_retention_display", days("logs of calls are"))
        .need("metrics_retention_display", days("metrics are"))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}

fn days(what: &str) -> Schema {
    schema::whole(0..=365_000).eg(90).says(&format!("Days that {what} kept, as the operator says; 0 is for ever."))
}

fn settings() -> Schema {
    let exports = schema::object("ExportSettings").need("deniedFields", schema::list(schema::any_text().eg("request")));
    schema::object("OrganisationSettings")
        .need("debug_log", schema::bit().eg(1))
        .need("user_api_key_ttl", schema::whole(0..=i64::MAX).eg(0))
        .need("user_api_key_max_ttl", schema::whole(0..=i64::MAX).eg(0))
        .need("service_api_key_ttl", schema::whole(0..=i64::MAX).eg(0))
        .need("service_api_key_max_ttl", schema::whole(0..=i64::MAX).eg(0))
        .need("admin_api_key_ttl", schema::whole(0..=i64::MAX).eg(0))
        .need("admin_api_key_max_ttl", schema::whole(0..=i64::MAX).eg(0))
        .need("user_api_key_count", schema::whole(-1..=i64::MAX).eg(-1))
        .need("user_api_key_auto_create", schema::bit())
        .need("user_api_key_rotation_period", schema::whole(1..=365).eg(30).or_null())
        .need("block_inline_config", schema::flag())
        .need("cost_in_answers", schema::bit().eg(1))
        .need("cache_max_age", schema::whole(CACHE_AGES).eg(86400).or_null())
        .need("relay_with_guardrails", relayed_paths())
        .need("export_settings", exports)
        .need("scim_only_user_management", schema::flag())
        .need("workspace_overrides", overrides("WorkspaceOverrides").whole())
}

fn relayed_paths() -> Schema {
    schema::list(schema::text(1..=MAX_RELAYED_PATH_LENGTH).eg("/v1/audio/**")).at_most(MAX_RELAYED_PATHS)
}

fn overrides(title: &str) -> Schema {
    security::categories().fold(schema::object(title), |all, name| all.may(name, schema::flag())).closed()
}

fn change() -> Schema {
    const MAX_LIFETIME: i64 = 100 * 365 * 86400;
    let switch = || schema::either([schema::bit(), schema::flag(), schema::nothing()]);
    let days = schema::whole(1..=365).eg(30);
    let period = schema::either([days, schema::choice(&["weekly", "monthly"]), schema::nothing()]);
    let exports = schema::object("ExportSettingsChange")
        .need("deniedFields", schema::list(schema::any_text().eg("request")))
        .closed();
    let settings = schema::object("OrganisationSettingsChange")
        .may("debug_log", switch())
        .may("user_api_key_ttl", schema::whole(0..=MAX_LIFETIME).eg(86400).or_null())
        .may("user_api_key_max_ttl", schema::whole(0..=MAX_LIFETIME).eg(604_800).or_null())
        .may("service_api_key_ttl", schema::whole(0..=MAX_LIFETIME).eg(86400).or_null())
        .may("service_api_key_max_ttl", schema::whole(0..=MAX_LIFETIME).eg(604_800).or_null())
        .may("admin_api_key_ttl", schema::whole(0..=MAX_LIFETIME).eg(86400).or_null())
        .may("admin_api_key_max_ttl", schema::whole(0..=MAX_LIFETIME).eg(604_800).or_null())
        .may("user_api_key_count", schema::whole(-1..=i64::from(i32::MAX)).eg(10).or_null())
        .may("user_api_key_auto_create", switch())
        .may("user_api_key_rotation_period", period)
        .may("block_inline_config", schema::flag().or_null())
        .may("cost_in_answers", switch())
        .may("cache_max_age", schema::whole(CACHE_AGES).eg(86400).or_null())
        .may("relay_with_guardrails", relayed_paths().or_null())
        .may("export_settings", exports.or_null())
        .may("scim_only_user_management", schema::flag().or_null())
        .may("workspace_overrides", overrides("WorkspaceOverridesChange").or_null())
        .closed();
    schema::object("OrganisationChange")
        .may("name", schema::text(1..=255).eg("Acme").or_null())
        .may("settings", settings.or_null())
        .may("metadata_schemas", metadata_schemas().titled("MetadataSchemasChange").closed().or_null())
}

const IDLE: &str = "Seconds after which a session that nobody uses ends; null: eight hours.";
const CLAIM: &str = "The claim that is looked at: its name, or the path to it with dots.";
const CLAIM_VALUE: &str = "What the claim must be, or have among its values.";
const CLAIM_ROLE: &str = "The role that it gives: `admin` or `member` of the organisation, or any of a workspace.";
const CLAIM_RULES: &str = "Roles and workspaces that claims of the identity provider give, at each login.";
const LINKS: &str = "Whether nobody is mailed one-time links; the operator's command still makes them.";
const PROVIDERS: &str = "Further OIDC providers, each for people of certain mail domains.";
const TRUST_EMAIL: &str = "Whether addresses count as verified where the provider says nothing of it.";

fn auth() -> Schema {
    let text = |example: &str| schema::any_text().eg(example).or_null();
    let domain = schema::object("Domain")
        .need("domain", schema::any_text().eg("example.com"))
        .need("verified", schema::flag())
        .need("allow_subdomains", schema::flag());
    let scim = schema::object("ScimSettings")
        .need("enabled", schema::flag())
        .need("masked_token", text("01*****def"))
        .need("workspace_prefix", schema::any_text().eg("ws-"))
        .need("role_separator", schema::any_text().eg("-role-"))
        .need("group_based_user_provisioning", schema::flag());
    let session = schema::object("")
        .need("max_session_ttl", schema::whole(900..=31_536_000).eg(86400).or_null())
        .need("idle_timeout", schema::whole(300..=31_536_000).eg(28800).or_null().says(IDLE));
    let rule = schema::object("ClaimRule")
        .need("claim", schema::any_text().eg("groups").says(CLAIM))
        .need("value", schema::any_text().eg("platform").says(CLAIM_VALUE))
        .may("workspace_id", schema::uuid().says("The workspace that it gives; without it, the organisation."))
        .need("role", schema::choice(&["admin", "manager", "member"]).says(CLAIM_ROLE));
    schema::object("AuthSettings")
        .need("jwks_url", text("https://id.example.com/keys"))
        .need("jwks_json", schema::any_object().or_null().eg(Value::Null))
        .need("jwt_issuer", text("https://id.example.com"))
        .need("jwt_audiences", schema::list(schema::any_text().eg("gateway")).or_null())
        .need(
            "oidc",
            schema::any_object().eg(json!({ "issuer": "https://id.example.com", "client_id": "gateway" })).or_null(),
        )
        .need("oidc_providers", schema::list(schema::any_object()).says(PROVIDERS).eg(json!([])))
        .need("claim_rules", schema::list(rule).says(CLAIM_RULES))
        .need("disable_login_links", schema::flag().says(LINKS))
        .need("saml", schema::any_object().or_null().eg(Value::Null))
        .need("allowed_domains", schema::list(domain))
        .need("disable_auto_provision_user", schema::flag())
        .need("session_settings", session)
        .need("scim", scim)
}

fn auth_change() -> Schema {
    let url = || schema::text(1..=2048).eg("https://id.example.com/keys").or_null().says("https, without credentials.");
    let oidc = schema::object("OidcChange")
        .need("issuer", schema::text(1..=1024).eg("https://id.example.com"))
        .need("client_id", schema::text(1..=255).eg("gateway"))
        .may("client_secret", schema::text(1..=4096).eg("s3cr3t-0123").or_null().says("Sealed; shown as a mask."))
        .may(
            "token_endpoint_auth_method",
            schema::choice(&["client_secret_basic", "client_secret_post", "none"]).or_null(),
        )
        .may("scopes", schema::list(schema::text(1..=255).eg("groups")).at_most(100).or_null())
        .may("trust_email", schema::flag().or_null().says(TRUST_EMAIL));
    let domains = schema::list(schema::text(1..=253).eg("example.com")).at_least(1).at_most(100);
    let provider = oidc
        .clone()
        .titled("OidcProviderChange")
        .need("domains", domains.says("The mail domains whose people it is for."))
        .closed();
    let oidc = oidc.closed();
    let rule = schema::object("ClaimRuleChange")
        .need("claim", schema::text(1..=255).eg("groups").says(CLAIM))
        .need("value", schema::text(1..=255).eg("platform").says(CLAIM_VALUE))
        .may("workspace_id", schema::any_text().eg("ws-market-3f9a01").or_null().says("Id or slug of a workspace."))
        .need("role", schema::choice(&["admin", "manager", "member"]).says(CLAIM_ROLE))
        .closed();
    let saml = super::auth_settings::saml::docs(url());
    let domain = schema::object("DomainChange")
        .need("domain", schema::text(1..=253).eg("example.com"))
        .may("verified", schema::flag())
        .may("allow_subdomains", schema::flag())
        .closed();
    let scim = schema::object("ScimSettingsChange")
        .may("enabled", schema::flag().or_null())
        .may("token", schema::text(32..=255).eg("0123456789abcdef0123456789abcdef").or_null())
        .may("workspace_prefix", schema::text(1..=64).eg("ws-").or_null())
        .may("role_separator", schema::text(1..=64).eg("-role-").or_null())
        .may("group_based_user_provisioning", schema::flag().or_null())
        .closed();
    let session = schema::object("SessionSettingsChange")
        .may("max_session_ttl", schema::whole(900..=31_536_000).eg(86400).or_null())
        .may("idle_timeout", schema::whole(300..=31_536_000).eg(28800).or_null().says(IDLE))
        .closed();
    let issuer =
        schema::text(1..=2048).eg("https://id.example.com").says("What `iss` of a token must be; null: anything.");
    let audiences = schema::list(schema::text(1..=2048).eg("gateway")).at_most(20);
    let audiences = audiences.says("`aud` of a token must name one of these; null or empty: it is not looked at.");
    let keys = schema::object("KeySet").need("keys", schema::list(schema::any_object()).at_most(100));
    schema::object("AuthSettingsChange")
        .may("jwks_url", url().says("Or jwks_json, not both."))
        .may("jwks_json", keys.or_null().eg(Value::Null))
        .may("jwt_issuer", issuer.or_null())
        .may("jwt_audiences", audiences.or_null())
        .may("oidc", oidc.or_null())
        .may("oidc_providers", schema::list(provider).at_most(20).or_null().eg(Value::Null).says(PROVIDERS))
        .may("claim_rules", schema::list(rule).at_most(500).or_null().eg(Value::Null).says(CLAIM_RULES))
        .may("disable_login_links", schema::flag().or_null().says(LINKS))
        .may("saml", saml.or_null().eg(Value::Null))
        .may("allowed_domains", schema::list(domain).at_most(1000).or_null())
        .may("disable_auto_provision_user", schema::flag().or_null())
        .may("session_settings", session.or_null())
        .may("scim", scim.or_null())
}
