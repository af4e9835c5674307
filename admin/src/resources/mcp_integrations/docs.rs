//! How the OpenAPI document shows MCP integrations.

use super::McpIntegration;
use super::change::{AUTH, TRANSPORTS};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use crate::resources::integrations::docs::{made, mappings};
use serde_json::json;

pub const KINDS: [&str; 5] = ["tool", "prompt", "resource", "resource_template", "instructions"];

pub fn docs() -> Vec<Doc> {
    let item = "/mcp-integrations/{id}";
    let capabilities = format!("{item}/capabilities");
    let workspaces = format!("{item}/workspaces");
    let done = || schema::object("").need("success", schema::flag().eg(true).says("Always true."));
    let update = made("").without("object").need("warnings", warnings());
    vec![
        Doc::create::<McpIntegration>(new())
            .answer(made("mcp-integration").need("warnings", warnings()))
            .also(409)
            .also(503),
        Doc::list::<McpIntegration>(&whole())
            .answer(listed("McpIntegrationList").need("data", schema::list(whole())))
            .search()
            .filter("organisation_id", schema::any_text().eg("").says("Ignored: a key belongs to one organisation."))
            .filter("type", schema::choice(&["all", "organisation", "workspace"]).says("Of which level.")),
        Doc::read::<McpIntegration>(&whole()),
        Doc::update::<McpIntegration>(new().without("slug").as_change("McpIntegrationChange")).answer(update).also(503),
        Doc::delete::<McpIntegration>().details("Archives it together with its MCP servers.").answer(done()),
        Doc::get(&format!("{item}/metadata"), "Read what an MCP server said of itself").answer(metadata()),
        Doc::post(&format!("{item}/test"), "Greet an MCP server")
            .details("Sends `initialize`, for at most 10 s. What the server says is not repeated.")
            .answer(tested())
            .also(503),
        Doc::post(&format!("{item}/sync"), "Ask an MCP server what it offers")
            .details(
                "Lists its tools, prompts, resources and templates now. Vanished ones are removed; new ones start \
                 enabled; those that are told otherwise than they were approved wait for approval. With a body the \
                 server is not asked: what the body says is stored, and nothing is approved by it.",
            )
            .body(pushed())
            .answer(synced())
            .also(503),
        capability_filters(Doc::get(&capabilities, "List what an MCP server offers")).answer(capabilities_shown()),
        Doc::put(&capabilities, "Enable and disable what an MCP server offers")
            .details(
                "What was not listed yet is remembered, so it can be disabled before the first sync. A tool or prompt \
                 whose description or schema changed since it was approved (`pin_state` `changed`) is disabled until \
                 `approved` accepts it; enabling alone does not. What a server tells models about itself is the \
                 capability `instructions` of this type.",
            )
            .body(capabilities_change())
            .answer(done())
            .also(409),
        Doc::get(&workspaces, "List which workspaces may use an MCP integration")
            .filter("version", schema::any_text().eg("2").says("Any value asks for `data` and `total`."))
            .answer(schema::any_object().says("`workspaces`, or `data` and `total`, and `global_workspace_access`.")),
        Doc::put(&workspaces, "Set which workspaces may use an MCP integration")
            .details("All of it happens or nothing. Access for all reaches workspaces that are made later.")
            .body(access_change())
            .answer(done()),
    ]
}

fn warnings() -> Schema {
    schema::list(
        schema::any_text()
            .eg("configurations.user_identity_forwarding.method: bearer sends on tokens of other issuers alone"),
    )
    .eg(json!([]))
    .says("What should be known although it was saved.")
}

pub fn listed(title: &str) -> Schema {
    schema::object(title)
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("All matches, on this page and others."))
        .need("has_more", schema::flag().says("Whether there are further pages."))
}

fn new() -> Schema {
    let settings = schema::any_object()
        .eg(json!({ "custom_headers": { "x-api-key": "secret" } }))
        .says(
            "`custom_headers`, `oauth_metadata` (`client_id`, `client_secret`, `scope`, and endpoints where they cannot be \
             discovered), `forward_headers`, `user_identity_forwarding`, `jwt_validation` and others. Secrets are sealed and shown as masks.",
        );
    schema::object("NewMcpIntegration")
        .need("name", schema::text(1..=255).eg("Issue tracker"))
        .need("url", schema::text(1..=2048).eg("https://mcp.example.com/mcp").says("Where the server is, over HTTP."))
        .need("auth_type", schema::any_text().eg("none").says(&format!("One of {}.", AUTH.join(", "))))
        .need(
            "transport",
            schema::any_text().eg("http").says(&format!("One of {}; never stdio.", TRANSPORTS.join(", "))),
        )
        .may("slug", schema::slug().eg("issue-tracker").or_null().says("Made of the name when absent."))
        .may("description", schema::text(0..=1024).eg("Issues of the research group").or_null())
        .may("configurations", settings.or_null())
        .may(
            "secret_mappings",
            mappings().says("`custom_headers` or `headers` from a secret reference that names the server's host."),
        )
}

fn whole() -> Schema {
    let text = schema::any_text;
    schema::shown("McpIntegration", "mcp-integration")
        .need("slug", schema::slug())
        .need("name", text().eg("Issue tracker"))
        .need("description", text().or_null())
        .need("owner_id", schema::uuid().or_null().says("Who made it."))
        .need("organisation_id", schema::uuid())
        .need("workspace_id", schema::uuid().or_null())
        .need("status", schema::choice(&["active", "archived"]))
        .need("type", schema::choice(&["organisation", "workspace"]).says("Whose it is."))
        .need("url", text().eg("https://mcp.example.com/mcp").says("Where the server is."))
        .need("auth_type", schema::any_text().eg("none").says("How the server is authenticated to."))
        .need("transport", schema::choice(&TRANSPORTS).says("How the server is spoken to."))
        .need("configurations", schema::any_object().says("Settings, with masks in the place of secrets."))
        .need("secret_mappings", mappings())
        .need("workspaces_count", schema::whole(0..=i64::MAX).says("How many workspaces were given access."))
        .need("global_workspace_access", schema::any_object().says("Whether later workspaces get access."))
        .need("metadata", metadata())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
        .need("updated_at", schema::time().says("As last_updated_at."))
}

pub fn metadata() -> Schema {
    let text = |says: &str| schema::any_text().or_null().says(says);
    schema::object("McpMetadata")
        .need("title", text("Its title."))
        .need("description", text("Its description."))
        .need("icons", schema::any_object().or_null().says("Its icons, in a list of this name."))
        .need("server_name", text("Its name."))
        .need("server_version", text("Its version."))
        .need("protocol_version", text("The revision of the protocol that it chose."))
        .need("website_url", text("Its website."))
        .need("instructions", text("What it tells models about its use."))
        .need("capability_flags", schema::any_object().or_null().says("The capabilities that it declares."))
        .need(
            "sync_status",
            schema::choice(&["pending", "syncing", "synced", "failed"]).says("How the last sync went."),
        )
        .need("sync_error", text("Why the last sync failed."))
        .need("last_synced_at", schema::time().or_null().says("When a sync last succeeded."))
}

pub fn tested() -> Schema {
    schema::object("McpTest")
        .need("success", schema::flag().eg(true).says("Whether the server answered as the protocol says."))
        .need("status_code", schema::whole(0..=999).eg(200).or_null().says("The status of its answer."))
        .need("response_time_ms", schema::whole(0..=i64::MAX).or_null().says("How long it took."))
        .need("url", schema::any_text().eg("https://mcp.example.com/mcp").or_null().says("What was called."))
        .need("server_name", schema::any_text().or_null().says("What the server calls itself."))
        .need("error", schema::any_text().or_null().says("What went wrong."))
        .need("message", schema::any_text().says("The outcome in a sentence."))
}

pub fn synced() -> Schema {
    let count = || schema::whole(0..=i64::MAX).says("How many there are.");
    let details = schema::object("")
        .need("tools", count())
        .need("prompts", count())
        .need("resources", count())
        .need("resource_templates", count())
        .says("What the server offers.");
    schema::object("McpSync")
        .need("success", schema::flag().eg(true).says("Whether what it offers is stored."))
        .need("message", schema::any_text().says("The outcome in a sentence."))
        .need("details", details)
}

fn pushed() -> Schema {
    let one = schema::object("PushedMcpCapability")
        .need("name", schema::text(1..=512).eg("search"))
        .need("type", schema::any_text().eg("tool").says(&format!("One of {}.", KINDS.join(", "))))
        .open();
    let info = schema::any_object().eg(json!({ "name": "tracker", "version": "2.1" })).or_null();
    schema::object("McpSyncPush")
        .may("server_info", info.says("What the server said of itself; left out, it stays as it is."))
        .may(
            "capabilities",
            schema::list(one).or_null().says("Everything that it offers; left out, it stays as it is."),
        )
}

fn capabilities_change() -> Schema {
    let one = schema::object("McpCapabilityChange")
        .need("name", schema::text(1..=512).eg("search"))
        .need("type", schema::any_text().eg("tool").says(&format!("One of {}.", KINDS.join(", "))))
        .may("enabled", schema::flag().or_null().says("Needed where nothing is approved and no price is set."))
        .may("approved", schema::flag().eg(true).or_null().says("Accepts what the server tells of it now; only true."))
        .may("definition_hash", hash().or_null().says("What is approved, as it was listed; another one is refused."))
        .may(
            "price",
            schema::number(0).or_null().says("Of a call, in US cents; null takes it away. Tools and prompts."),
        );
    schema::object("McpCapabilitiesChange").may("capabilities", schema::list(one).says("At least one."))
}

fn hash() -> Schema {
    schema::any_text().eg("5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9")
}

fn capability(title: &str) -> Schema {
    schema::object(title)
        .need("name", schema::any_text().eg("search"))
        .need("type", schema::choice(&KINDS).says("What it is."))
        .need("enabled", schema::flag().eg(true).says("Whether it can be used."))
        .need("pin_state", schema::choice(&["approved", "changed"]).says("`changed` waits for approval."))
        .need("pinned_hash", hash().or_null().says("SHA-256 of what was approved of it."))
        .need("definition_hash", hash().or_null().says("SHA-256 of what the server tells of it now."))
        .need("price", schema::number(0).or_null().says("Of a call that is answered without an error, in US cents."))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
        .open()
}

fn capabilities_shown() -> Schema {
    capabilities_list("McpCapabilities", &capability("McpCapability"))
}

/// The same of an MCP server.
pub fn server_capabilities_shown() -> Schema {
    let says = "Whether its integration lets it be used; `enabled` is that and the server's own flag.";
    let one = capability("McpServerCapability").need("integration_enabled", schema::flag().eg(true).says(says));
    capabilities_list("McpServerCapabilities", &one)
}

/// The parameters of a list of capabilities.
pub fn capability_filters(doc: Doc) -> Doc {
    doc.filter("page", schema::whole(1..=i64::MAX).eg(1).or_empty().says("Which page; the first is 1."))
        .filter("page_size", schema::whole(0..=i64::MAX).eg(100).or_empty().says("Rows on a page, at most 500."))
        .filter("type", schema::choice(&KINDS).or_empty().says("Only of this type."))
}

fn capabilities_list(title: &str, one: &Schema) -> Schema {
    let items = || schema::list(one.clone()).says("What the server offers, as it describes it.");
    listed(title)
        .need("data", items())
        .need("capabilities", items())
        .need("counts", schema::any_object().says("How many there are of each type, and how many are enabled."))
}

fn access_change() -> Schema {
    let one = schema::object("McpWorkspaceAccessChange")
        .need("id", schema::name_of("ws-market-3f9a01"))
        .need("enabled", schema::flag().eg(true));
    let global = schema::object("McpGlobalAccessChange").need("enabled", schema::flag());
    schema::object("McpAccessChange")
        .may("workspaces", schema::list(one).says("Each with its access.").or_null())
        .may("global_workspace_access", global.or_null())
        .may("override_existing_workspace_access", schema::flag().says("Close all that are not listed."))
        .eg(json!({ "workspaces": [{ "id": "ws-market-3f9a01", "enabled": true }] }))
}
