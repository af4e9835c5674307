//! How the OpenAPI document shows MCP servers.

mod access;

use super::McpServer;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use crate::resources::integrations::docs::made;
use crate::resources::mcp_integrations::docs::{metadata, synced, tested};

pub fn docs() -> Vec<Doc> {
    let item = "/mcp-servers/{id}";
    let list = schema::object("McpServerList")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("All matches, on this page and others."))
        .need("has_more", schema::flag().says("Whether there are further pages."))
        .need("data", schema::list(reached()));
    let mut docs = vec![
        Doc::create::<McpServer>(new()).answer(made("mcp-server")).also(409),
        Doc::list::<McpServer>(&reached())
            .answer(list)
            .search()
            .filter("id", schema::any_text().eg("").says("Ids, separated by commas.")),
        Doc::read::<McpServer>(&reached()),
        Doc::update::<McpServer>(change()).answer(made("").without("object")),
        Doc::delete::<McpServer>().details("Erases the connections of people to it.").answer(done()),
        Doc::get(&format!("{item}/metadata"), "Read what the server behind an MCP server said of itself")
            .answer(metadata()),
        Doc::post(&format!("{item}/metadata/sync"), "Ask the server behind an MCP server who it is")
            .answer(synced())
            .also(503),
        Doc::post(&format!("{item}/test"), "Greet the server behind an MCP server").answer(tested()).also(503),
        Doc::post(&format!("{item}/capabilities/sync"), "Ask the server behind an MCP server what it offers")
            .answer(synced())
            .also(503),
    ];
    docs.extend(access::docs());
    docs
}

fn done() -> Schema {
    schema::object("").need("success", schema::flag().eg(true).says("Always true."))
}

fn change() -> Schema {
    schema::object("McpServerChange")
        .may("name", schema::text(1..=255).eg("Issues").or_null())
        .may("mcp_integration_id", schema::name_of("issue-tracker").or_null().says("Cannot be changed."))
        .may("description", schema::text(0..=500).eg("For support").or_null())
}

fn new() -> Schema {
    let slug = schema::text(3..=50).matching("^[a-zA-Z0-9_-]+$").eg("issues");
    schema::object("NewMcpServer")
        .need("name", schema::text(1..=255).eg("Issues"))
        .need("mcp_integration_id", schema::name_of("issue-tracker").says("Id or slug of an MCP integration."))
        .may("slug", slug.or_null().says("Made of the name when absent."))
        .may("description", schema::text(0..=500).eg("For support").or_null())
}

fn reached() -> Schema {
    schema::shown("McpServer", "mcp-server")
        .need(
            "url",
            schema::any_text().eg("https://gateway.example.com/issues/mcp").says("Where its clients reach it."),
        )
        .need("organisation_id", schema::uuid())
        .need("slug", schema::slug())
        .need("name", schema::any_text().eg("Issues"))
        .need("description", schema::any_text().or_null())
        .need("status", schema::choice(&["active", "archived"]))
        .need("owner_id", schema::uuid().or_null().says("Who made it."))
        .need("workspace_id", schema::uuid())
        .need("workspace_name", schema::any_text().says("The name of its workspace."))
        .need("workspace_slug", schema::any_text().says("The slug of its workspace."))
        .need("mcp_integration_id", schema::uuid().says("The integration that it is an instance of."))
        .need("mcp_integration_slug", schema::any_text().says("The slug of its integration."))
        .need("mcp_integration_url", schema::any_text().says("Where the server behind it is."))
        .need("auth_type", schema::any_text().eg("none").says("How the server behind it is authenticated to."))
        .need("mcp_integration_details", integration())
        .need("metadata", metadata())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}

fn integration() -> Schema {
    schema::object("")
        .need("id", schema::uuid().says("Its id."))
        .need("slug", schema::slug().says("Its slug."))
        .need("status", schema::choice(&["active", "archived"]))
        .need("url", schema::any_text().eg("https://mcp.example.com/mcp").says("Where the server is."))
        .need("transport", schema::any_text().eg("http").says("How the server is spoken to."))
        .need("auth_type", schema::any_text().eg("none").says("How the server is authenticated to."))
        .need("configurations", schema::any_object().says("Settings, with masks in the place of secrets."))
        .says("The integration that it is an instance of.")
}
