//! How long logs and metrics are kept.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Retention")]
pub struct Retention {
    /// Days that logs of calls, their bodies and exports of them are kept; 0 is for ever.
    ///
    /// Whole days (UTC) are dropped.
    #[arg(long, env = "LOG_RETENTION_DISPLAY", default_value_t = 90, value_parser = days())]
    pub log_retention_display: u32,
    /// Days that figures (what analytics add up) are kept; 0 is for ever.
    #[arg(long, env = "METRICS_RETENTION_DISPLAY", default_value_t = 365, value_parser = days())]
    pub metrics_retention_display: u32,
}

/// A thousand years: more is a slip of the keyboard, and no date.
fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=365_000)
}
