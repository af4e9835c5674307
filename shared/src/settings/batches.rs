//! Batches that the gateway runs itself.

use super::features::on_or_off;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Batches")]
pub struct BatchSettings {
    /// Whether this proxy runs batches (ON or OFF). One that does not still takes and shows them.
    #[arg(long, env = "BATCH_RUNNER", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub batch_runner: bool,
    /// Rows of a batch that are begun at a time, by all proxies together.
    #[arg(long, env = "BATCH_ROWS", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub batch_rows: u32,
    /// Seconds between two such groups of rows of a batch.
    #[arg(long, env = "BATCH_EVERY_SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub batch_every_seconds: u32,
    /// Rows of batches that this proxy has under way at once.
    #[arg(long, env = "BATCH_CONCURRENCY", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub batch_concurrency: u32,
}
