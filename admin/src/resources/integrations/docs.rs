//! How the OpenAPI document shows integrations.

use super::{Integration, provider_fields};
use crate::limits::{self, docs as limit_docs};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::{Value, json};

pub fn docs() -> Vec<Doc> {
    let item = "/integrations/{slug}";
    let models = format!("{item}/models");
    let workspaces = format!("{item}/workspaces");
    let tags = schema::any_text().eg("{\"team\":\"search\"}").says("A JSON object of which everything must match.");
    let by_name = schema::any_text().eg("house-1,house-2").says("Separated by commas.");
    let change = || models_change();
    vec![
        Doc::create::<Integration>(new()).answer(made("integration")).also(409).also(503),
        Doc::list::<Integration>(&listed())
            .search()
            .filter("type", schema::choice(&["all", "organisation", "workspace"]))
            .filter("tags", tags),
        Doc::read::<Integration>(&whole()),
        Doc::update::<Integration>(self::change()).also(503),
        Doc::delete::<Integration>().forcible().details("Archives it together with its providers in all workspaces."),
        Doc::get(&models, "List the models of an integration").answer(models_shown()),
        Doc::put(&models, "Allow, forbid and add models").body(change()).also(503),
        Doc::put(&format!("{item}/integration-models"), "Allow, forbid and add models").body(change()).also(503),
        Doc::remove(&models, "Take models of one's own away")
            .filter("slugs", by_name)
            .body(schema::object("").may("models", schema::list(schema::any_text().eg("house-1")).or_null())),
        Doc::get(&workspaces, "List who may use an integration").answer(access_shown()),
        Doc::put(&workspaces, "Set who may use an integration")
            .details("All of it happens or nothing. Access for all reaches workspaces that are made later.")
            .body(access_change()),
    ]
}

/// The answer to a create.
pub fn made(object: &str) -> Schema {
    schema::object("").need("id", schema::uuid()).need("slug", schema::slug()).need("object", schema::fixed(object))
}

pub fn tags() -> Schema {
    schema::map(schema::text(0..=255).eg("search")).or_null()
}

pub fn mappings() -> Schema {
    let one = schema::object("SecretMapping")
        .need("target_field", schema::any_text().eg("key"))
        .need("secret_reference_id", schema::name_of("openai-production"))
        .may("secret_key", schema::text(1..=255).eg("api_key").or_null())
        .may("value_format", schema::choice(&["string", "json"]));
    schema::list(one).or_null()
}

fn new() -> Schema {
    schema::object("NewIntegration")
        .need("name", schema::text(1..=255).eg("OpenAI production"))
        .need("ai_provider_id", schema::any_text().eg("openai").says("Cannot be changed."))
        .may("slug", schema::slug().eg("openai-production").or_null().says("Made of the name when absent."))
        .with(&account())
        .may("create_default_provider", schema::flag().eg(true).or_null())
        .may("default_provider_slug", schema::slug().eg("openai").or_null())
}

fn change() -> Schema {
    schema::object("IntegrationChange")
        .may("name", schema::text(1..=255).eg("OpenAI production").or_null())
        .with(&account())
}

fn account() -> Schema {
    // `image` and `additional_units` are groups.
    let factor = || schema::number(0).eg(1.1).or_null();
    let factors = schema::either([factor(), schema::map(factor()).eg(json!({ "default": 1.1 }))]);
    let multiplier = schema::map(factors).eg(json!({ "default": 1.1 })).or_null();
    let pricing = schema::object("PricingAdjustments").may("multiplier", multiplier).closed();
    schema::object("")
        .may("description", schema::text(0..=1024).eg("The account of the research group").or_null())
        .may("key", schema::any_text().eg("sk-proj-0123456789").or_null().says("Sealed, and never shown again."))
        .may("configurations", configurations().or_null())
        .may("tags", tags())
        .may("secret_mappings", mappings())
        .may("pricing_adjustments", pricing.or_null())
}

/// The account itself, for a trial.
pub fn tried_account() -> Schema {
    schema::object("TriedAccount")
        .may("key", schema::any_text().eg("sk-proj-0123456789").or_null().says("Not stored."))
        .may("configurations", configurations().or_null())
}

fn configurations() -> Schema {
    provider_fields::described(schema::object("AccountSettings"))
        .eg(json!({ "openai_organization": "org-1", "custom_headers": { "x-team": "search" } }))
        .says("Fields by provider; secret ones are sealed, and shown as masked_<field>. On update field by field.")
        .prefixed(&["masked_"])
}

fn listed() -> Schema {
    schema::shown("IntegrationItem", "integration")
        .need("slug", schema::slug().eg("openai-production"))
        .need("name", schema::any_text().eg("OpenAI production"))
        .need("description", schema::any_text().eg("The account of the research group").or_null())
        .need("ai_provider_id", schema::any_text().eg("openai"))
        .need("organisation_id", schema::uuid())
        .need("workspace_id", schema::slug().eg("ws-market-3f9a01").or_null().says("The workspace's slug."))
        .need("type", schema::choice(&["organisation", "workspace"]))
        .need("status", schema::choice(&["active", "archived"]))
        .need("tags", tags())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}

fn whole() -> Schema {
    schema::shown("Integration", "integration")
        .with(&listed())
        .need("masked_key", schema::any_text().eg("sk*****789").or_null())
        .need("configurations", schema::any_object().eg(json!({ "openai_organization": "org-1" })))
        .need("global_workspace_access", global_shown())
        .need("global_workspace_access_settings", global_shown())
        .need("allow_all_models", schema::flag())
        .need("workspace_count", schema::whole(0..=i64::MAX))
        .need("secret_mappings", mappings())
        .need("pricing_adjustments", schema::any_object().or_null())
        .need("owner_id", schema::uuid().or_null())
}

fn models_change() -> Schema {
    let own = schema::object("ModelSettings")
        .may("custom_host", schema::any_text().eg("https://llm.example.com/v1").or_null())
        .may("custom_headers", schema::map(schema::any_text().eg("search")).or_null());
    let model = schema::object("ModelChange")
        .need("slug", schema::text(1..=255).eg("house-1"))
        .need("enabled", schema::flag().eg(true))
        .may("is_custom", schema::flag().eg(true).or_null())
        .may("is_finetune", schema::flag().or_null())
        .may("base_model_slug", schema::text(1..=255).eg("gpt-4o").or_null())
        .may("configurations", own.or_null())
        .may("pricing_config", price().or_null());
    schema::object("ModelsChange")
        .may("models", schema::list(model).at_most(5000))
        .may("allow_all_models", schema::flag().or_null())
        .may("key", schema::any_text().eg("sk-…").or_null().says(AGAIN))
        .may("configurations", configurations().titled("AccountSettingsAgain").eg(Value::Null).says(AGAIN).or_null())
}

const AGAIN: &str = "The integration's own secrets, sent again. Needed where a model gets a `custom_host` of another origin \
                     than the integration's, because they go there with it.";

fn price() -> Schema {
    let rates = schema::any_object().eg(json!({ "request_token": { "price": 0.00025 } })).says("In cents.");
    schema::object("ModelPrice").may("type", schema::fixed("static")).need("pay_as_you_go", rates)
}

fn models_shown() -> Schema {
    let model = schema::object("IntegrationModel")
        .need("slug", schema::any_text().eg("gpt-4o"))
        .need("name", schema::any_text().eg("gpt-4o"))
        .need("enabled", schema::flag().eg(true))
        .need("is_custom", schema::flag())
        .need("is_finetune", schema::flag())
        .may("base_model_slug", schema::any_text().eg("gpt-4o"))
        .need("pricing_config", schema::any_object().or_null())
        .need("configurations", schema::any_object().or_null())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time());
    schema::object("IntegrationModels")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX))
        .need("allow_all_models", schema::flag().eg(true))
        .need("models", schema::list(model))
}

fn access_change() -> Schema {
    let limits = |one: Schema| {
        one.may("usage_limits", limit_docs::usage_limits())
            .may("rate_limits", limit_docs::rate_limits(&limits::USUAL_RATES).says("At most one."))
    };
    let provider = |one: Schema| {
        one.may("create_default_provider", schema::flag().eg(true).or_null())
            .may("default_provider_slug", schema::slug().eg("openai").or_null())
    };
    let workspace = schema::object("WorkspaceAccessChange")
        .need("id", schema::name_of("ws-market-3f9a01"))
        .need("enabled", schema::flag().eg(true))
        .may("reset_usage", schema::flag());
    let global = schema::object("GlobalAccessChange").need("enabled", schema::flag());
    let change = schema::object("IntegrationAccessChange")
        .may("workspaces", schema::list(provider(limits(workspace))).or_null())
        .may("global_workspace_access", limits(global).or_null())
        .may("override_existing_workspace_access", schema::flag().says("Close all that are not listed."))
        .may("override_existing_workspaces_access", schema::flag().says("The same in another spelling."));
    let eg = json!({ "workspaces": [{ "id": "ws-market-3f9a01", "enabled": true }] });
    provider(change).eg(eg)
}

fn access_shown() -> Schema {
    let workspace = limits_shown(schema::object("WorkspaceAccess"))
        .need("id", schema::slug().eg("ws-market-3f9a01"))
        .need("enabled", schema::flag().eg(true))
        .need("status", schema::choice(&["active", "exhausted"]))
        .need("last_reset_at", schema::time().or_null())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time());
    schema::object("IntegrationAccess")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX))
        .need("workspaces", schema::list(workspace))
        .need("global_workspace_access", global_shown())
}

fn global_shown() -> Schema {
    limits_shown(schema::object("GlobalAccess")).need("enabled", schema::flag())
}

fn limits_shown(object: Schema) -> Schema {
    object
        .need("usage_limits", schema::list(limit_docs::usage_state()).or_null())
        .need("rate_limits", limit_docs::rate_limits_shown(&limits::USUAL_RATES).or_null())
}
