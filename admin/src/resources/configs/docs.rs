//! Configs and their versions, described.

use super::Config;
use crate::openapi::schema::{self, Schema};
use crate::openapi::{Doc, choices};
use serde_json::json;

pub fn docs() -> Vec<Doc> {
    let item = item();
    let whole = whole(&item);
    vec![
        Doc::list::<Config>(&item).search().filter("status", choices(&["active", "archived"])).answer(listed(&item)),
        Doc::create::<Config>(new()).details(WRITTEN).answer(created()),
        Doc::read::<Config>(&whole).filter("version", version().or_empty().says("The id of an older version.")),
        Doc::update::<Config>(change()).answer(updated()),
        Doc::delete::<Config>().details("Refused while an API key or the workspace's user keys start from it."),
        Doc::get("/configs/{slug}/versions", "List the versions of a config")
            .pages(crate::http::PageSizes::USUAL)
            .answer(listed(&numbered(&whole))),
        Doc::get("/configs/{slug}/versions/diff", "Compare two versions of a config")
            .filter("from", version().says("The id of a version; required."))
            .filter("to", version().says("The id of a version; the current one if absent."))
            .answer(differences()),
        Doc::post("/configs/{slug}/rollback", "Go back to an older version of a config")
            .details("Makes a new version with the content of the old one.")
            .body(schema::object("ConfigRollback").need("version_id", version()))
            .answer(updated())
            .tagged()
            .conditional(),
    ]
}

const WRITTEN: &str = "The config is an object, or its JSON as text. Every fault is reported in `data.errors` with its \
                       code and path; unknown fields are refused.";

fn version() -> Schema {
    schema::name_of("9b2f8a52-8a52-4c0e-8f0e-7a1f2f1f0a11")
}

fn content() -> Schema {
    let example = json!({
        "strategy": { "mode": "fallback", "on_status_codes": [429, 503] },
        "retry": { "attempts": 2 },
        "targets": [{ "provider": "@openai-main" }, { "provider": "@backup", "override_params": { "model": "small" } }],
    });
    schema::any_object().eg(example)
}

fn sent_config() -> Schema {
    schema::either([content(), schema::any_text()])
}

fn is_default() -> Schema {
    schema::either([schema::bit().eg(1), schema::flag()])
        .or_null()
        .says("1 makes it the workspace's default, in place of another.")
}

fn new() -> Schema {
    schema::object("NewConfig")
        .need("name", schema::text(1..=255).eg("Main router"))
        .need("config", sent_config())
        .may("slug", schema::slug().eg("pc-main").or_null().says("Made of the name when absent; cannot be changed."))
        .may("isDefault", is_default())
}

fn change() -> Schema {
    schema::object("ConfigChange")
        .may("name", schema::text(1..=255).eg("Main router").or_null())
        .may("config", sent_config().or_null())
        .may("status", schema::choice(&["active", "archived"]).or_null())
        .may("isDefault", is_default())
}

fn item() -> Schema {
    schema::shown("Config", "config")
        .need("name", schema::text(1..=255).eg("Main router"))
        .need("slug", schema::slug().eg("pc-main-r-3f9a01"))
        .need("organisation_id", schema::uuid())
        .need("workspace_id", schema::uuid())
        .need("is_default", schema::bit())
        .need("status", schema::choice(&["active", "archived"]))
        .need("owner_id", schema::uuid().or_null())
        .need("updated_by", schema::uuid().or_null())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}

fn whole(item: &Schema) -> Schema {
    schema::object("WholeConfig")
        .with(item)
        .need("config", schema::any_text().eg(content().example().to_string()).says("The config as JSON text."))
        .need("format", schema::fixed("json"))
        .need("type", schema::fixed("ORG_CONFIG"))
        .need("version_id", schema::uuid())
        .need("success", schema::fixed(true))
        .need("data", schema::object("").need("config", content()))
}

fn numbered(whole: &Schema) -> Schema {
    schema::object("ConfigVersion")
        .with(whole)
        .need("version", schema::whole(1..=i64::MAX))
        .need("created_by", schema::uuid().or_null())
}

fn listed(item: &Schema) -> Schema {
    schema::object("")
        .need("success", schema::fixed(true))
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("All matches, on this page and others."))
        .need("data", schema::list(item.clone()))
}

fn created() -> Schema {
    let ids =
        schema::object("").need("id", schema::uuid()).need("version_id", schema::uuid()).need("slug", schema::slug());
    schema::object("")
        .with(&ids)
        .need("object", schema::fixed("config"))
        .need("success", schema::fixed(true))
        .need("data", ids)
        .need("warnings", warnings())
}

fn updated() -> Schema {
    schema::object("")
        .need("version_id", schema::uuid())
        .need("object", schema::fixed("config"))
        .need("success", schema::fixed(true))
        .need("data", schema::object("").need("version_id", schema::uuid()))
        .need("warnings", warnings())
}

fn warnings() -> Schema {
    schema::list(schema::any_text().eg("config.provider: this workspace has no provider @nope yet"))
        .eg(json!([]))
        .says("What should be known although it was saved, as providers that do not exist yet.")
}

fn differences() -> Schema {
    let difference = schema::object("Difference")
        .need("op", schema::choice(&["replace", "add", "remove"]))
        .need("path", schema::any_text().eg("targets[0].weight"))
        .need("from", schema::anything().eg(1))
        .need("to", schema::anything().eg(2));
    listed(&difference).need("from", schema::uuid()).need("to", schema::uuid())
}
