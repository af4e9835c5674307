//! What the processes print about themselves.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logs")]
pub struct Logs {
    /// Filter of log lines, for example `info` or `proxy=debug,info`.
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub log_level: String,
    /// Form of log lines.
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Json,
    Text,
}
