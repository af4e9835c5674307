//! Why an MCP server is not asked at all.

use super::{Refusal, RefusalCode as Code, RefusalKind as Kind};

impl Refusal {
    /// Also the answer for servers of other workspaces, and for those that are closed to the caller.
    pub fn unknown_mcp_server(slug: &str) -> Self {
        let message = format!("there is no MCP server `{slug}` that this key may use");
        Self::new(404, Kind::NotFound, Code::NotFound, message)
    }

    pub fn origin_not_allowed() -> Self {
        let message = "pages of this origin may not call MCP servers (MCP_ALLOWED_ORIGINS)";
        Self::new(403, Kind::Permission, Code::InvalidHeader, message).about("origin")
    }
}
