//! How the OpenAPI document shows workspaces.

use super::{Workspace, members};
use crate::crud::{Resource as _, tenant_settings};
use crate::identity::access::security;
use crate::limits::{self, docs as limit_docs};
use crate::openapi::schema::{self, Schema};
use crate::openapi::{Doc, choices};

pub fn docs(base: &str) -> Vec<Doc> {
    let item = format!("{base}/{{workspaceId}}");
    let statuses = choices(&["active", "archived"]).says("Archived ones are for those who run the organisation.");
    let with_members = workspace("WorkspaceWithUsers").need("users", schema::list(members::docs::member()));
    let deletion = schema::object("WorkspaceDeletion")
        .need("name", schema::any_text().eg("Marketing").says("The workspace's name, repeated."))
        .may("force_delete", schema::flag().says("Archive what is in it too."));
    let format = schema::any_text().eg("plain").says("`plain` leaves the icon out of the name.");
    let docs = [
        Doc::list::<Workspace>(&workspace("Workspace"))
            .filter("status", statuses.clone())
            .filter("name", schema::any_text().eg("Mark").says("Part of the name with its icon."))
            .filter("exact_name", schema::any_text().eg("Marketing"))
            .filter("name_format", format.clone()),
        Doc::create::<Workspace>(new()).answer(workspace("Workspace")),
        Doc::get(&item, "Read a workspace and its members")
            .filter("status", statuses)
            .filter("name_format", format)
            .answer(with_members)
            .tagged(),
        Doc::update::<Workspace>(change()).answer(workspace("Workspace")),
        Doc::remove(&item, "Archive a workspace and what is in it").body(deletion).conditional(),
    ];
    docs.into_iter().map(|doc| doc.moved(Workspace::PATH, base)).collect()
}

fn name() -> Schema {
    schema::text(1..=255).eg("🚀 Marketing").says("A leading emoji becomes the icon.")
}

fn slug() -> Schema {
    schema::slug().eg("ws-market-3f9a01").or_null()
}

fn new() -> Schema {
    let member = schema::either([members::docs::sent(), schema::uuid()]);
    schema::object("NewWorkspace")
        .need("name", name())
        .may("slug", slug().says("Made of the name when absent; cannot be changed."))
        .with(&change().optional())
        .may("name", name())
        .may("users", schema::either([schema::list(member), schema::nothing()]))
}

fn change() -> Schema {
    let names = || {
        let name = schema::text(1..=255).eg("pg-pii-3f9a01");
        let says =
            "Ids or slugs of guardrails of this workspace or of the organisation; they run after the organisation's.";
        schema::list(name)
            .at_most(crate::resources::guardrails::named::MAX_DEFAULTS)
            .or_null()
            .eg(serde_json::json!([]))
            .says(says)
    };
    let defaults = schema::object("WorkspaceDefaultsChange")
        .may("metadata", metadata().or_null())
        .may("input_guardrails", names())
        .may("output_guardrails", names())
        .may("user_api_key_config", schema::any_text().eg("pc-main-3f9a01").or_null());
    schema::object("WorkspaceChange")
        .may("name", name().or_null())
        .may("icon", schema::any_text().eg("🚀").or_null().says("One emoji; an empty text clears it."))
        .may("description", schema::text(0..=1000).eg("Campaigns").or_null())
        .may("defaults", defaults.or_null())
        .may("usage_limits", limit_docs::usage_limits())
        .may("rate_limits", limit_docs::rate_limits(&limits::USUAL_RATES))
        .may("settings", tenant_settings::docs().0.or_null())
        .may("security_settings", security::docs("SecuritySettingsChange").eg(serde_json::json!({})).or_null())
        .may(
            "priority",
            schema::whole(1..=100)
                .eg(10)
                .or_null()
                .says("Its part of providers that limit their concurrency, beside other workspaces."),
        )
        .may("reset_usage", schema::flag().or_null())
}

fn metadata() -> Schema {
    schema::map(schema::any_text().eg("search"))
}

fn workspace(title: &str) -> Schema {
    let names = || schema::list(schema::any_text().eg("pg-pii-3f9a01"));
    let defaults = schema::object("WorkspaceDefaults")
        .need("metadata", metadata().or_null())
        .need("is_default", schema::bit())
        .need("input_guardrails", names())
        .need("output_guardrails", names())
        .need("user_api_key_config", schema::any_text().eg("pc-main-3f9a01").or_null())
        .need("object", schema::fixed("workspace"));
    schema::shown(title, "workspace")
        .need("slug", schema::slug().eg("ws-market-3f9a01"))
        .need("name", schema::any_text().eg("🚀 Marketing"))
        .need("icon", schema::any_text().eg("🚀").or_null())
        .need("description", schema::any_text().eg("Campaigns").or_null())
        .need("is_default", schema::bit())
        .need("status", schema::choice(&["active", "archived"]))
        .need("defaults", defaults.or_null())
        .need("usage_limits", schema::list(limit_docs::usage_state()).or_null())
        .need("rate_limits", limit_docs::rate_limits_shown(&limits::USUAL_RATES).or_null())
        .need("security_settings", security::docs("SecuritySettings").whole())
        .need("settings", tenant_settings::docs().1)
        .need("priority", schema::whole(1..=100).eg(10))
        .need("last_reset_at", schema::time().or_null())
        .need("organisation_id", schema::uuid())
        .need("created_by", schema::uuid().or_null())
        .need("creation_source", schema::any_text().eg("manual"))
        .need("scim_source_id", schema::any_text().or_null().eg(serde_json::Value::Null))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}
