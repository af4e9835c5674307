//! How the OpenAPI document shows API keys.

use super::ApiKeyRow;
use super::lookup::STATUSES;
use super::rotation_policy::MIN_TRANSITION;
use crate::crud::Resource as _;
use crate::limits::{self, docs as limit_docs};
use crate::openapi::schema::{self, Schema};
use crate::openapi::{Doc, choices};
use serde_json::{Value, json};

const KINDS: &[&str] = &["workspace-service", "workspace-user", "organisation-service"];

pub fn docs() -> Vec<Doc> {
    let made = || {
        let secret = schema::any_text().eg("pk_…").says("The secret, shown this once.");
        schema::shown("", ApiKeyRow::OBJECT).need("key", secret)
    };
    let at_once = schema::whole(0..=0).says("The old secret ends at once.");
    let period = schema::either([transition(), at_once]).says("How long the old secret stays good; 0 ends it at once.");
    let wish = schema::object("Rotation").may("key_transition_period_ms", period);
    let ends = schema::time().or_null().says("Until then both secrets work; null when nobody had seen the old one.");
    let rotated = made().need("key_transition_expires_at", ends);
    let in_workspace = |body: Schema| body.may("workspace_id", schema::any_text().eg("ws-market-3f9a01").or_null());
    let for_user = |body: Schema| body.may("user_id", schema::uuid().or_null().says("Whose key it is."));
    vec![
        Doc::post("/api-keys/organisation/service", "Create an admin key")
            .body(new("NewAdminKey", "workspaces.list"))
            .answer(made()),
        Doc::post("/api-keys/workspace/service", "Create a key for a workspace's services")
            .body(in_workspace(new("NewServiceKey", "completions.write")))
            .answer(made()),
        Doc::post("/api-keys/workspace/user", "Create a key that acts for a person")
            .body(for_user(in_workspace(new("NewUserKey", "completions.write"))))
            .answer(made()),
        Doc::list::<ApiKeyRow>(&key())
            .filter("type", choices(KINDS))
            .filter("status", choices(&STATUSES))
            .filter("ids", schema::any_text().eg("0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11").says("UUIDs, by commas.")),
        Doc::read::<ApiKeyRow>(&key()),
        Doc::update::<ApiKeyRow>(change()),
        Doc::delete::<ApiKeyRow>(),
        Doc::post("/api-keys/{id}/rotate", "Give a key a new secret").body(wish).answer(rotated).conditional(),
    ]
}

/// The calling key, about itself.
pub fn own() -> Doc {
    let own = schema::shown("OwnKey", ApiKeyRow::OBJECT)
        .with(&described())
        .need("workspace_slug", schema::any_text().eg("ws-market-3f9a01").or_null())
        .need("usage_limits", schema::any_object().or_null());
    Doc::get("/api-keys/self", "Read the calling key").answer(own)
}

/// A key that came with joining a workspace.
pub fn issued() -> Schema {
    schema::object("IssuedKey")
        .need("workspace_id", schema::uuid())
        .need("user_id", schema::uuid())
        .need("id", schema::uuid())
        .may("key", schema::any_text().eg("pk_…").says(SECRET))
}

const SECRET: &str = "The secret, shown this once. It is left out where the caller does not hold all that the key can do, \
                      or where their role is below its owner's: rotating the key shows a fresh one to who may have it.";

fn name() -> Schema {
    schema::text(1..=100).eg("Checkout")
}

fn transition() -> Schema {
    let says = "How long the old secret stays good, in milliseconds; at least half an hour, less than the period.";
    schema::whole(MIN_TRANSITION..=i64::MAX).eg(3_600_000).or_null().says(says)
}

fn new(title: &str, scope: &str) -> Schema {
    let home = schema::uuid().or_null().says("If sent, the caller's own.");
    let sent = sent().without("reset_usage").may("scopes", scopes(scope));
    schema::object(title).with(&sent).may("organisation_id", home)
}

fn scopes(example: &str) -> Schema {
    schema::list(schema::any_text().eg(example)).or_null().says("All that can be given when absent.")
}

fn sent() -> Schema {
    let defaults = schema::object("KeyDefaultsChange")
        .may("metadata", schema::map(schema::any_text().eg("search")).or_null())
        .may("config_id", schema::text(1..=255).eg("pc-main-3f9a01").or_null())
        .may("allow_config_override", schema::flag().or_null())
        .may("cost_in_answers", schema::flag().or_null());
    let policy = schema::object("RotationPolicyChange")
        .may("rotation_period", schema::choice(&["monthly", "weekly"]).or_null())
        .may("rotation_period_days", schema::whole(1..=365).or_null().eg(Value::Null))
        .may("next_rotation_at", schema::moment().or_null())
        .may("key_transition_period_ms", transition())
        .may("status", schema::anything().eg("ACTIVE"))
        .closed();
    schema::object("")
        .need("name", name())
        .may("description", schema::text(0..=200).eg("The shop's checkout").or_null())
        .may("scopes", scopes("completions.write"))
        .may("rate_limits", limit_docs::rate_limits(&limits::KEY_RATES))
        .may("usage_limits", limit_docs::usage_limits())
        .may("reset_usage", schema::flag().or_null())
        .may("defaults", defaults.or_null())
        .may("alert_emails", schema::list(schema::email()).at_most(20).or_null())
        .may("expires_at", schema::moment().or_null())
        .may("rotation_policy", policy.or_null())
}

fn change() -> Schema {
    let status = schema::choice(&["active", "suspended"]).or_null();
    let says = "`suspended` switches the key off at once, `active` on again.";
    schema::object("KeyChange").with(&sent()).optional().may("name", name().or_null()).may("status", status.says(says))
}

/// What a key shows of itself and what others are shown of it.
fn described() -> Schema {
    schema::object("")
        .need("name", schema::any_text().eg("Checkout"))
        .need("description", schema::any_text().eg("The shop's checkout").or_null())
        .need("key", schema::any_text().eg("pk*****7aZ").says("Masked."))
        .need("type", schema::choice(KINDS))
        .need("organisation_id", schema::uuid())
        .need("workspace_id", schema::uuid().or_null())
        .need("user_id", schema::uuid().or_null())
        .need("status", schema::choice(&STATUSES))
        .need("scopes", schema::list(schema::any_text().eg("completions.write")))
        .need("rate_limits", limit_docs::rate_limits_shown(&limits::KEY_RATES))
        .need("expires_at", schema::time().or_null())
        .need("last_reset_at", schema::time().or_null())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}

fn key() -> Schema {
    let defaults = schema::object("KeyDefaults")
        .need("metadata", schema::map(schema::any_text().eg("search")).or_null())
        .need("config_id", schema::any_text().eg("pc-main-3f9a01").or_null())
        .need("allow_config_override", schema::flag().eg(true))
        .need("cost_in_answers", schema::flag().eg(true));
    let policy = schema::object("RotationPolicy")
        .need("rotation_period", schema::choice(&["monthly", "weekly"]).or_null())
        .need("rotation_period_days", schema::whole(1..=365).or_null().eg(Value::Null))
        .need("next_rotation_at", schema::time().or_null())
        .need("key_transition_period_ms", schema::whole(0..=i64::MAX).eg(3_600_000))
        .need("status", schema::any_text().eg("ACTIVE"));
    schema::shown("Key", ApiKeyRow::OBJECT)
        .with(&described())
        .need("creation_mode", schema::any_text().eg("manual"))
        .need("usage_limits", limit_docs::usage_state().or_null())
        .need("next_usage_reset_at", schema::time().or_null())
        .need("reset_usage", schema::bit().or_null())
        .need("expiry_enforced", schema::bit())
        .need("defaults", defaults)
        .need("allow_config_override", schema::bit().eg(1))
        .need("api_key_defaults_id", schema::nothing())
        .need("alert_emails", schema::list(schema::any_text().eg("ada@example.com")).or_null())
        .need("rotation_policy", policy.or_null())
        .need("last_rotated_at", schema::time().or_null().eg(json!(null)))
        .need("suspended_at", schema::time().or_null().eg(Value::Null).says("Since when it is switched off."))
        .need("is_unclaimed", schema::flag().says("Whether nobody has seen the secret; rotating shows a fresh one."))
}
