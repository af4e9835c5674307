//! MCP integrations (registered upstream servers) and MCP servers (a workspace's instances of them).

use super::operation::{ADMIN as A, ANY, Operation, USER, delete, get, post, put};

const CREATE: &[&str] = &["organisation_mcp_integrations.create", "workspace_mcp_integrations.create"];
const LIST: &[&str] = &["organisation_mcp_integrations.list", "workspace_mcp_integrations.list"];
const READ: &[&str] = &["organisation_mcp_integrations.read", "workspace_mcp_integrations.read"];
const UPDATE: &[&str] = &["organisation_mcp_integrations.update", "workspace_mcp_integrations.update"];
const DELETE: &[&str] = &["organisation_mcp_integrations.delete", "workspace_mcp_integrations.delete"];

pub(super) static MCP_INTEGRATIONS: &[Operation] = &[
    post(126, "/mcp-integrations", ANY, CREATE).audited("mcp_integrations", "create"),
    get(127, "/mcp-integrations", ANY, LIST),
    get(128, "/mcp-integrations/{id}", ANY, READ),
    put(129, "/mcp-integrations/{id}", ANY, UPDATE).audited("mcp_integrations", "update"),
    delete(130, "/mcp-integrations/{id}", ANY, DELETE).audited("mcp_integrations", "delete"),
    get(131, "/mcp-integrations/{id}/metadata", ANY, READ),
    post(132, "/mcp-integrations/{id}/test", ANY, UPDATE),
    post(133, "/mcp-integrations/{id}/sync", ANY, UPDATE).audited("mcp_integrations", "manage"),
    get(134, "/mcp-integrations/{id}/capabilities", ANY, READ),
    put(135, "/mcp-integrations/{id}/capabilities", ANY, UPDATE).audited("mcp_integrations", "update"),
    get(136, "/mcp-integrations/{id}/workspaces", A, &["organisation_mcp_integrations.read"]),
    put(137, "/mcp-integrations/{id}/workspaces", A, &["organisation_mcp_integrations.update"])
        .audited("mcp_integrations", "update"),
];

/// Where `mcp.invoke` is an alternative it opens only the caller's own connection; the handler narrows.
pub(super) static MCP_SERVERS: &[Operation] = &[
    post(138, "/mcp-servers", ANY, &["mcp_servers.create"]).audited("mcp_servers", "create"),
    get(139, "/mcp-servers", ANY, &["mcp_servers.list"]),
    get(140, "/mcp-servers/{id}", ANY, &["mcp_servers.read"]),
    put(141, "/mcp-servers/{id}", ANY, &["mcp_servers.update"]).audited("mcp_servers", "update"),
    delete(142, "/mcp-servers/{id}", ANY, &["mcp_servers.delete"]).audited("mcp_servers", "delete"),
    get(143, "/mcp-servers/{id}/metadata", ANY, &["mcp_servers.read"]),
    post(144, "/mcp-servers/{id}/metadata/sync", ANY, &["mcp_servers.update"]).audited("mcp_servers", "manage"),
    post(145, "/mcp-servers/{id}/test", ANY, &["mcp_servers.read"]),
    get(146, "/mcp-servers/{id}/capabilities", ANY, &["mcp_servers.read"]),
    put(147, "/mcp-servers/{id}/capabilities", ANY, &["mcp_servers.update"]).audited("mcp_servers", "update"),
    post(148, "/mcp-servers/{id}/capabilities/sync", ANY, &["mcp_servers.update"]).audited("mcp_servers", "manage"),
    get(149, "/mcp-servers/{id}/user-access", ANY, &["mcp_servers.read"]),
    put(150, "/mcp-servers/{id}/user-access", ANY, &["mcp_servers.update"]).audited("mcp_servers", "update"),
    get(151, "/mcp-servers/{id}/user-access/check", ANY, &["mcp.invoke", "mcp_servers.read"]),
    get(152, "/mcp-servers/{id}/connections", ANY, &["mcp_servers.read", "mcp.invoke"]),
    delete(153, "/mcp-servers/{id}/connections", ANY, &["mcp_servers.update", "mcp.invoke"])
        .audited("mcp_servers", "delete"),
    get(154, "/mcp-servers/{id}/tokens", USER, &["mcp.invoke"]),
    put(155, "/mcp-servers/{id}/tokens", USER, &["mcp.invoke"]).audited("mcp_servers", "update"),
    delete(156, "/mcp-servers/{id}/tokens", USER, &["mcp.invoke"]).audited("mcp_servers", "delete"),
    get(157, "/mcp-servers/{id}/client-info", ANY, &["mcp_servers.read"]),
    get(0, "/mcp-servers/{id}/connect", USER, &["mcp.invoke"]),
];
