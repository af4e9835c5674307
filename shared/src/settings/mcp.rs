//! MCP servers behind the gateway's own address.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "MCP")]
pub struct McpSettings {
    /// Where MCP clients reach the proxy, without a path at its end; unset: as each request says.
    #[arg(long, env = "MCP_BASE_URL")]
    pub mcp_base_url: Option<String>,
    /// Origins of web pages that may call MCP servers (comma list); `*` is any.
    #[arg(long, env = "MCP_ALLOWED_ORIGINS", value_delimiter = ',')]
    pub mcp_allowed_origins: Vec<String>,
    /// Issuers of the tokens that MCP clients may log in with (comma list of URLs).
    #[arg(long, env = "MCP_AUTHORIZATION_SERVERS", value_delimiter = ',')]
    pub mcp_authorization_servers: Vec<String>,
    /// Longest silence of an MCP server before and inside its answer to a call, in milliseconds.
    #[arg(long, env = "MCP_CALL_TIMEOUT_MS", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(100..=86_400_000))]
    pub mcp_call_timeout_ms: u64,
    /// Longest silence of a stream that a client listens to between calls, in seconds.
    #[arg(long, env = "MCP_STREAM_IDLE_S", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub mcp_stream_idle_s: u64,
}
