//! `make prove`: what the product promises under weight and in trouble, on the programs that are shipped. Each proof starts a
//! stack of its own, prints its figures, and says of every promise whether it held.

mod analytics;
mod batches;
mod bill;
mod bodies;
mod brownout;
mod catalogue;
pub mod client;
mod crash;
mod disconnect;
mod disconnect_tokens;
mod exports;
mod groups;
mod handover;
mod hostile;
mod ingest;
mod journal;
mod load;
mod log_rows;
mod logs;
mod mcp_streams;
mod outage;
mod patterns;
mod prompts;
mod propagation;
mod redis;
mod report;
mod rotation;
mod scim;
mod stack;
mod storm;
mod streams;
mod tagged;
mod tail;
pub mod upgrade;
mod upload;
mod webhooks;

use std::time::Duration;

pub use report::Report;

/// The proofs, by the name of the command that runs them.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Proof {
    /// A large upload and download through the relay lane: the same bytes, little memory.
    Upload {
        /// Size of each transfer, in bytes.
        #[arg(long, default_value_t = 300 << 20)]
        bytes: u64,
    },
    /// Many streams at once: all complete, little memory.
    Streams {
        #[arg(long, default_value_t = 1000)]
        count: usize,
    },
    /// Clients that listen to an MCP server in silence: none is dropped, little memory.
    McpStreams {
        #[arg(long, default_value_t = 1000)]
        count: usize,
    },
    /// Clients that leave: how soon the provider sees it.
    Disconnect {
        /// How many clients leave in each situation.
        #[arg(long, default_value_t = 100)]
        count: usize,
    },
    /// Streams cut by their clients at random bytes: what is counted against what the provider said.
    DisconnectTokens {
        /// How many streams are cut.
        #[arg(long, default_value_t = 1000)]
        count: usize,
    },
    /// Postgres gone under load, then admin gone.
    Outage {
        /// How long Postgres is away.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Keys created and revoked: how soon a running proxy heeds it, also with very many keys loaded.
    Propagation {
        /// How many keys are many.
        #[arg(long, default_value_t = 200_000)]
        keys: u32,
    },
    /// A provider that fails now and then: what its users notice, and what it is asked on top.
    Brownout {
        /// How many requests are made.
        #[arg(long, default_value_t = 20_000)]
        count: usize,
    },
    /// The proxy killed again and again under load: nothing that reached a client is missing in the logs.
    Crash {
        #[arg(long, default_value_t = 100)]
        kills: u32,
    },
    /// Postgres gone, frozen and out of connections under load: all logs arrive, once.
    Journal {
        /// How long each time.
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// The journal of an outage sent to Postgres: how many records a second.
    Ingest {
        #[arg(long, default_value_t = 100_000)]
        records: u64,
        /// Keep bodies as well; they are sent at the same time, elsewhere.
        #[arg(long)]
        bodies: bool,
    },
    /// Very many calls with bodies: objects, disk, memory, how soon they are read, and a person erased from them.
    Bodies {
        /// How many.
        #[arg(long, default_value_t = 100_000)]
        calls: u64,
    },
    /// Very many logs: how soon some of them are found, and an old day is gone.
    Logs {
        /// How many.
        #[arg(long, default_value_t = 1_000_000)]
        rows: u64,
    },
    /// Very many logs over three months: how soon every graph and group of them is there.
    Analytics {
        /// How many.
        #[arg(long, default_value_t = 2_000_000)]
        rows: u64,
    },
    /// A large export, and admin killed half way: little memory, every log, none twice.
    Exports {
        /// How many logs.
        #[arg(long, default_value_t = 200_000)]
        rows: u64,
    },
    /// A new process takes over under load; then a drain.
    Handover,
    /// Master key and data keys replaced under load; the old master key opens nothing afterwards.
    Rotation {
        /// How many accounts with a sealed key there are, beside the one that is called.
        #[arg(long, default_value_t = 200)]
        accounts: usize,
    },
    /// Edits of a large catalogue: how soon a running proxy heeds them, and how much it reads for each.
    Catalogue {
        #[arg(long, default_value_t = 10_000)]
        providers: u32,
        #[arg(long, default_value_t = 1_000)]
        configs: u32,
    },
    /// Many prompts with many versions: time and memory to hold them, and how soon a published one has effect.
    Prompts {
        #[arg(long, default_value_t = 10_000)]
        prompts: u32,
        /// Of each.
        #[arg(long, default_value_t = 20)]
        versions: u32,
    },
    /// A directory provisioned by SCIM: how soon everybody is there, and what a change of a large group writes.
    Scim {
        #[arg(long, default_value_t = 5_000)]
        users: usize,
        #[arg(long, default_value_t = 500)]
        groups: usize,
    },
    /// Three proxies and more clients than limits allow, in calm, with a proxy killed and with the store restarted.
    Storm,
    /// Steady load for minutes with default settings: what storing logs and bodies does to the slowest calls.
    Tail {
        /// Calls a second.
        #[arg(long, default_value_t = 1200)]
        rate: u32,
        /// How long with default settings; without a journal as long again, half before and half after.
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// A tenant that does all that could hurt others, and one that should not notice.
    Hostile {
        /// How long the two are there together.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// From earlier releases to this one, under load: no long lock, no failed call, nothing lost, and back again.
    Upgrade {
        /// Logs that are there before.
        #[arg(long, default_value_t = 100_000)]
        rows: u64,
    },
    /// Patterns and schemas of guardrails that are written to burn time, each on a long text.
    Patterns {
        /// How long, in bytes.
        #[arg(long, default_value_t = 1 << 20)]
        bytes: usize,
    },
    /// Many requests at once that a slow webhook judges: no thread waits for it, little memory.
    Webhooks {
        #[arg(long, default_value_t = 1000)]
        count: usize,
    },
    /// Batches with proxies killed and Postgres away, over a large input, and beside live traffic: every row once, little memory.
    Batches {
        /// Rows of the batch whose proxies are killed.
        #[arg(long, default_value_t = 10_000)]
        rows: u32,
        #[arg(long, default_value_t = 20)]
        kills: u32,
        /// How long Postgres is away.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Of the large input.
        #[arg(long, default_value_t = 200_000_000)]
        bytes: u64,
    },
    /// Every kind of paid call, with the proxy killed again and again: what the provider bills is what the logs say, and strict
    /// budgets hold.
    Bill {
        #[arg(long, default_value_t = 20_000)]
        calls: u32,
        #[arg(long, default_value_t = 20)]
        kills: u32,
    },
    /// A policy with very many groups: memory, the cost of a request, and values that are made up.
    Groups {
        #[arg(long, default_value_t = 100_000)]
        groups: u64,
    },
}

impl Proof {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Upload { .. } => "upload",
            Self::Streams { .. } => "streams",
            Self::McpStreams { .. } => "mcp-streams",
            Self::Disconnect { .. } => "disconnect",
            Self::DisconnectTokens { .. } => "disconnect-tokens",
            Self::Outage { .. } => "outage",
            Self::Propagation { .. } => "propagation",
            Self::Brownout { .. } => "brownout",
            Self::Crash { .. } => "crash",
            Self::Journal { .. } => "journal",
            Self::Ingest { .. } => "ingest",
            Self::Bodies { .. } => "bodies",
            Self::Logs { .. } => "logs",
            Self::Analytics { .. } => "analytics",
            Self::Exports { .. } => "exports",
            Self::Handover => "handover",
            Self::Rotation { .. } => "rotation",
            Self::Catalogue { .. } => "catalogue",
            Self::Prompts { .. } => "prompts",
            Self::Scim { .. } => "scim",
            Self::Storm => "storm",
            Self::Tail { .. } => "tail",
            Self::Hostile { .. } => "hostile",
            Self::Upgrade { .. } => "upgrade",
            Self::Patterns { .. } => "patterns",
            Self::Webhooks { .. } => "webhooks",
            Self::Batches { .. } => "batches",
            Self::Bill { .. } => "bill",
            Self::Groups { .. } => "groups",
        }
    }

    /// Runs the proof; true when every promise held.
    pub async fn run(&self) -> anyhow::Result<bool> {
        let mut report = Report::new(self.name());
        match *self {
            Self::Upload { bytes } => upload::prove(bytes, &mut report).await?,
            Self::Streams { count } => streams::prove(count, &mut report).await?,
            Self::McpStreams { count } => mcp_streams::prove(count, &mut report).await?,
            Self::Disconnect { count } => disconnect::prove(count, &mut report).await?,
            Self::DisconnectTokens { count } => disconnect_tokens::prove(count, &mut report).await?,
            Self::Outage { seconds } => outage::prove(Duration::from_secs(seconds), &mut report).await?,
            Self::Propagation { keys } => propagation::prove(keys, &mut report).await?,
            Self::Brownout { count } => brownout::prove(count, &mut report).await?,
            Self::Crash { kills } => crash::prove(kills, &mut report).await?,
            Self::Journal { seconds } => journal::prove(Duration::from_secs(seconds), &mut report).await?,
            Self::Ingest { records, bodies } => ingest::prove(records, bodies, &mut report).await?,
            Self::Bodies { calls } => bodies::prove(calls, &mut report).await?,
            Self::Logs { rows } => logs::prove(rows, &mut report).await?,
            Self::Analytics { rows } => analytics::prove(rows, &mut report).await?,
            Self::Exports { rows } => exports::prove(rows, &mut report).await?,
            Self::Handover => handover::prove(&mut report).await?,
            Self::Rotation { accounts } => rotation::prove(accounts, &mut report).await?,
            Self::Catalogue { providers, configs } => catalogue::prove(providers, configs, &mut report).await?,
            Self::Prompts { prompts, versions } => prompts::prove(prompts, versions, &mut report).await?,
            Self::Scim { users, groups } => scim::prove(users, groups, &mut report).await?,
            Self::Storm => storm::prove(&mut report).await?,
            Self::Tail { rate, seconds } => tail::prove(rate, Duration::from_secs(seconds), &mut report).await?,
            Self::Hostile { seconds } => hostile::prove(Duration::from_secs(seconds), &mut report).await?,
            Self::Upgrade { rows } => upgrade::prove(rows, &mut report).await?,
            Self::Patterns { bytes } => patterns::prove(bytes, &mut report)?,
            Self::Webhooks { count } => webhooks::prove(count, &mut report).await?,
            Self::Batches { rows, kills, seconds, bytes } => {
                batches::prove(rows, kills, Duration::from_secs(seconds), bytes, &mut report).await?;
            }
            Self::Bill { calls, kills } => bill::prove(calls, kills, &mut report).await?,
            Self::Groups { groups } => groups::prove(groups, &mut report).await?,
        }
        Ok(report.finish())
    }
}
