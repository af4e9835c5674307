//! How the OpenAPI document shows who may use what of an MCP server, and people's connections to the server behind it.

use super::done;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use crate::resources::mcp_integrations::docs::{KINDS, capability_filters, listed, server_capabilities_shown};

const ITEM: &str = "/mcp-servers/{id}";
const MASK: &str = "ey*****Q8s";

pub fn docs() -> Vec<Doc> {
    let user_access = format!("{ITEM}/user-access");
    let connections = format!("{ITEM}/connections");
    let tokens = format!("{ITEM}/tokens");
    vec![
        capability_filters(in_workspace(Doc::get(&capabilities(), "List what an MCP server shows of its integration")))
            .answer(server_capabilities_shown()),
        Doc::put(&capabilities(), "Enable and disable what an MCP server shows of its integration")
            .details("What its integration disables stays disabled. What was not listed yet is remembered.")
            .body(flags())
            .answer(done()),
        in_workspace(Doc::get(&user_access, "List which people may use an MCP server"))
            .details("Members of its workspace, and owners and admins of the organisation.")
            .filter("page", schema::whole(1..=i64::MAX).eg(1).or_empty().says("Which page; the first is 1."))
            .filter("page_size", schema::whole(0..=i64::MAX).eg(100).or_empty().says("Rows on a page, at most 500."))
            .filter("search", schema::any_text().eg("ada").says("Part of a name or an e-mail address."))
            .answer(people()),
        Doc::put(&user_access, "Set which people may use an MCP server").body(people_change()).answer(done()),
        in_workspace(Doc::get(&format!("{user_access}/check"), "Check whether a person may use an MCP server"))
            .details("Whoever holds only `mcp.invoke` may ask about themselves alone.")
            .filter("user_id", schema::uuid().or_empty().says("Who; the caller when absent."))
            .answer(schema::object("McpAccess").need("has_access", schema::flag().eg(true).says("Whether they may."))),
        in_workspace(Doc::get(&connections, "List connections to the server behind an MCP server"))
            .details("The caller's own for keys of people, all for others. Those of others need `mcp_servers.read`.")
            .filter("user_id", schema::uuid().or_empty().says("Only of this person."))
            .filter("current_page", schema::whole(0..=i64::MAX).eg(0).or_empty().says("Which page; the first is 0."))
            .filter("page_size", schema::whole(0..=i64::MAX).eg(100).or_empty().says("Rows on a page, at most 500."))
            .answer(connected()),
        in_workspace(Doc::remove(&connections, "End a connection to the server behind an MCP server"))
            .details("Erases the person's tokens, and revokes them where their issuer can be told. That of another person needs `mcp_servers.update`.")
            .filter("user_id", schema::uuid().or_empty().says("Whose; the caller's when absent."))
            .body(schema::object("McpDisconnection").may("user_id", schema::uuid().or_null().says("As in the query.")))
            .answer(done()),
        in_workspace(Doc::get(&tokens, "Read your tokens at the server behind an MCP server"))
            .details("Masked; nulls when there are none.")
            .answer(tokens_shown())
            .also(503),
        Doc::put(&tokens, "Store your tokens at the server behind an MCP server")
            .details("For clients that got them by themselves. They are sealed, used as they are, and not refreshed.")
            .body(tokens_sent())
            .answer(done())
            .also(503),
        in_workspace(Doc::remove(&tokens, "Erase your tokens at the server behind an MCP server")).answer(done()),
        in_workspace(Doc::get(&format!("{ITEM}/client-info"), "Read how the gateway is registered for an MCP server"))
            .details("At the authorisation server of the server behind it; nulls before somebody connected.")
            .answer(client_info())
            .also(503),
        in_workspace(Doc::get(&format!("{ITEM}/connect"), "Get a link to connect to the server behind an MCP server"))
            .details(
                "For integrations with the auth_type `oauth_auto` or `oauth`. Open the link in your browser: it asks whom it \
                 connects, sends you to the authorisation server, and stores the tokens that come back for you alone.",
            )
            .answer(link())
            .also(503),
    ]
}

fn capabilities() -> String {
    format!("{ITEM}/capabilities")
}

fn in_workspace(doc: Doc) -> Doc {
    doc.filter("workspace_id", schema::any_text().eg("").says("Narrows the view of an admin key to one workspace."))
}

fn flags() -> Schema {
    let one = schema::object("McpServerCapabilityChange")
        .need("name", schema::text(1..=512).eg("search"))
        .need("type", schema::any_text().eg("tool").says(&format!("One of {}.", KINDS.join(", "))))
        .need("enabled", schema::flag());
    schema::object("McpServerCapabilitiesChange").may("capabilities", schema::list(one).says("At least one."))
}

fn people() -> Schema {
    let one = schema::object("McpUserAccess")
        .need("user_id", schema::uuid().says("Who."))
        .need("first_name", schema::any_text().eg("Ada").or_null())
        .need("last_name", schema::any_text().eg("Lovelace").or_null())
        .need("enabled", schema::flag().eg(true).says("Whether they may use the server."))
        .need("has_override", schema::flag().says("Whether that is set for them, and not the default."))
        .need(
            "connection_status",
            schema::choice(&["connected", "not_connected"]).says("Whether they have tokens at the server behind it."),
        );
    let items = || schema::list(one.clone()).says("People who can act in the server's workspace.");
    listed("McpUserAccessList")
        .need("data", items())
        .need("user_access", items())
        .need("default_user_access", schema::choice(&["allow", "deny"]).says("What holds for everybody else."))
}

fn people_change() -> Schema {
    let one = schema::object("McpPersonAccess")
        .need("user_id", schema::uuid().says("Who."))
        .need("enabled", schema::flag().eg(true).says("Whether they may use the server."));
    schema::object("McpUserAccessChange")
        .may("user_access", schema::list(one).or_null().says("Exceptions for single people, at most 1000."))
        .may(
            "default_user_access",
            schema::any_text().eg("deny").or_null().says("`allow` or `deny`: what holds for everybody else."),
        )
}

fn connected() -> Schema {
    let one = schema::object("McpConnection")
        .need("user_id", schema::uuid().says("Whose it is."))
        .need("connected", schema::flag().eg(true).says("False when its tokens are over and cannot be refreshed."))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time());
    listed("McpConnectionList").need("data", schema::list(one))
}

fn tokens_shown() -> Schema {
    let masked = |says: &str| schema::any_text().eg(MASK).or_null().says(says);
    schema::object("McpTokens")
        .need("access_token", masked("The access token, masked."))
        .need("refresh_token", masked("The refresh token, masked."))
        .need("expires_at", schema::time().or_null().says("When the access token ends; null when that is not known."))
}

fn tokens_sent() -> Schema {
    schema::object("NewMcpTokens")
        .need(
            "access_token",
            schema::text(1..=16384).eg("eyJhbGciOiJFUzI1NiJ9.e30.sig").says("Sent as a bearer token."),
        )
        .may("refresh_token", schema::text(1..=16384).eg("r-2f1c9a").or_null().says("Kept with it."))
        .may("expires_at", schema::moment().or_null())
}

fn client_info() -> Schema {
    schema::object("McpClientInfo")
        .need("client_id", schema::any_text().eg("gw-7f3a").or_null().says("Who the gateway is there."))
        .need("client_secret", schema::any_text().eg(MASK).or_null().says("Its secret, masked."))
}

fn link() -> Schema {
    let url = "https://gateway.example.com/mcp-oauth/start?state=…";
    schema::object("McpConnectLink")
        .need("authorization_url", schema::any_text().eg(url).says("To be opened in the person's browser, once."))
        .need("expires_at", schema::time().says("Until when it can be."))
}
