//! The command line of `gateway-admin`: its settings and its commands.

use crate::app::settings::Settings;
use crate::audit::chain::ChainEnd;
use crate::cli::unconfirmed::Verdict;
use crate::logs::erase::ErasureMode;
use shared::cost::prices::import::ListFormat;
use std::path::PathBuf;
use uuid::Uuid;

/// The control plane of Portcullis. Without a command it migrates the database, makes the first organisation when
/// there is none, and serves.
#[derive(Debug, clap::Parser)]
#[command(name = "gateway-admin", version)]
pub struct Arguments {
    #[command(flatten)]
    pub settings: Settings,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Bring the database to this version's schema, and stop.
    Migrate,
    /// Make a further organisation, and print its admin key once.
    CreateOrganisation {
        /// Name of the organisation.
        #[arg(long)]
        name: String,
        /// E-mail address of its owner.
        #[arg(long)]
        owner_email: String,
    },
    /// Mail domains of organisations.
    Domains {
        #[command(subcommand)]
        command: DomainsCommand,
    },
    /// Print a link by which somebody signs in once, within ten minutes. For the first owner, and for whoever their identity
    /// provider keeps out.
    LoginLink {
        /// E-mail address of the person.
        #[arg(long)]
        email: String,
        /// The organisation, where the person is in several.
        #[arg(long, value_name = "UUID")]
        organisation: Option<Uuid>,
    },
    /// The keys that stored secrets are sealed with.
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// What proxies hold of rate limits and budgets.
    Limits {
        #[command(subcommand)]
        command: LimitsCommand,
    },
    /// Prices of models.
    Prices {
        #[command(subcommand)]
        command: PricesCommand,
    },
    /// What calls cost.
    Costs {
        #[command(subcommand)]
        command: CostsCommand,
    },
    /// Logs of calls.
    Logs {
        #[command(subcommand)]
        command: LogsCommand,
    },
    /// Figures about calls.
    Analytics {
        #[command(subcommand)]
        command: AnalyticsCommand,
    },
    /// The audit trail.
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum DomainsCommand {
    /// Vouch for an organisation's domain, as if its DNS record had been seen.
    Verify {
        #[arg(long, value_name = "UUID")]
        organisation: Uuid,
        /// As example.com.
        #[arg(long)]
        domain: String,
    },
    /// Take a domain from the organisation that has it, so that it can be proved anew. Its people stay.
    Release {
        /// As example.com.
        #[arg(long)]
        domain: String,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum KeysCommand {
    /// Say which master keys are in the keyring and how many data keys are under each.
    Status,
    /// Put every data key under the first master key of the keyring, while everything runs. To rotate the master key: add
    /// the new one as the first line, wait until all services have read it (a second), run this and `keys verify`,
    /// then remove the old line.
    Rotate {
        /// Also give every organisation a new data key and seal its secrets anew.
        #[arg(long)]
        data_keys: bool,
    },
    /// Open every sealed value and say which do not open. Ends with status 0 when all do and every data key is under the
    /// first master key, 3 when not, 1 when it could not be found out.
    Verify,
}

#[derive(Debug, clap::Subcommand)]
pub enum LimitsCommand {
    /// Say which proxies hold parts of budgets, when each was last heard of, and how much it holds.
    Holders,
    /// Give back what a proxy held whose disk is lost. Until then it counts as spent, because nobody knows what its journal
    /// would have said; afterwards what it spent and had not stored is not counted. Never for a proxy that still runs
    /// or whose journal will come: that gives everything back by itself.
    Release {
        /// As `limits holders` names it.
        #[arg(long, value_name = "UUID")]
        holder: Uuid,
    },
    /// List what strict budgets promised to calls whose proxy died before they were over, the oldest first. It is charged
    /// until somebody reconciles it, because the provider may have been paid.
    Unconfirmed,
    /// Settle what such a call was charged, after a look at the provider's bill.
    Reconcile {
        /// The request, as `limits unconfirmed` names it.
        #[arg(long, value_name = "UUID")]
        request: Uuid,
        /// Whether the provider was paid: the charge stays (spent) or is taken back (unspent).
        #[arg(long, value_enum)]
        verdict: Verdict,
    },
    /// Compare every budget of keys, tokens, workspaces, providers, integrations and policies, in its running period, and the
    /// totals of today with the sum of its logs. Tells each that differs, by how much and why: expired or erased logs, calls
    /// and batches that were under way when the period began, a policy that was changed. Rates are not compared: their
    /// windows end too soon. Ends with status 1 when differences are left that nothing explains.
    Verify {
        /// Of this organisation alone.
        #[arg(long, value_name = "UUID")]
        organisation: Option<Uuid>,
        /// Set counters with an unexplained difference to what the logs add up to, while everything runs. Each is recorded in
        /// the audit trail.
        #[arg(long)]
        mend: bool,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum PricesCommand {
    /// Read a price list, say what it changes (new, changed, gone, refused and why), and store it with today's date in the folder
    /// of prices that services ask first (MODEL_CONFIGS_PRICING_LOG_STORE_PATH, else MODEL_CONFIGS_PRICING_LOCAL_PATH). Files that
    /// are replaced stay under `editions`; logs keep the price they have. Models that a public list does not name keep theirs.
    /// Every organisation has the import in its audit trail.
    Import {
        /// The list. Without it, the files of MODEL_CONFIGS_PROXY_URL are fetched.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Whose format it has; told by its rows without this. A file of ours is named after its provider, as openai.json.
        #[arg(long, value_enum, value_name = "FORMAT")]
        from: Option<ListFormat>,
        /// Only say what would change.
        #[arg(long)]
        plan: bool,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum CostsCommand {
    /// Compare a provider's bill with the logs, by day (UTC) and model: the cost that is logged, the one that is billed, and the
    /// difference. Reads the exports of costs that OpenAI and Anthropic offer (CSV); which one it is shows in its head line.
    /// Ends with status 1 when rows of the bill could not be read.
    Compare {
        /// The export.
        #[arg(value_name = "BILL")]
        bill: PathBuf,
        /// Only with logs of this workspace; without it, of the whole installation.
        #[arg(long, value_name = "UUID")]
        workspace: Option<Uuid>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum LogsCommand {
    /// Erase what the logs of an organisation hold of one person or one trace: rows, bodies and feedback. Calls that proxies
    /// have yet to store, and files that were exported before, are not reached.
    Erase {
        #[arg(long, value_name = "UUID")]
        organisation: Uuid,
        /// As the metadata `_user` names them.
        #[arg(long, required_unless_present = "trace", conflicts_with = "trace")]
        user: Option<String>,
        /// Id of the trace.
        #[arg(long)]
        trace: Option<String>,
        /// Whether rows are kept for counting, without anything that could tell whose they were.
        #[arg(long, value_enum)]
        mode: ErasureMode,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum AnalyticsCommand {
    /// Check that the figures that analytics are read from are what the logs add up to, day by day (UTC) from the latest on,
    /// and build those again that are not. Days from before there were such figures are built, if they follow on one
    /// another. Ends with status 0 when all agreed, 3 when some had to be built again, 1 when it could not be found out.
    Verify {
        /// The first day, as 2026-01-15.
        #[arg(long, value_name = "DAY")]
        from: chrono::NaiveDate,
        /// The last day; yesterday without it.
        #[arg(long, value_name = "DAY")]
        until: Option<chrono::NaiveDate>,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum AuditCommand {
    /// Check the hash chain of the audit trail, say which records were edited, removed or added, and where it ends.
    /// Ends with status 0 when it is intact, 3 when it is not, 1 when it could not be read.
    Verify {
        /// Only the trail of this organisation.
        #[arg(long, value_name = "UUID")]
        organisation: Option<Uuid>,
        /// An end that was printed or logged earlier: the trail must still contain it.
        #[arg(long, value_name = "NUMBER:HASH", requires = "organisation")]
        anchor: Option<ChainEnd>,
    },
}
