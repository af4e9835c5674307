//! What each command does, with a database connection of its own.

use crate::app::settings::Settings;
use crate::audit;
use crate::audit::chain::ChainEnd;
use crate::audit::verify::{self, ChainReport};
use crate::cli::compare_costs::{self, Comparison, Invoice};
use crate::cli::leases::{self, Holder};
use crate::cli::unconfirmed::{self, Unconfirmed, Verdict};
use crate::cli::verify_limits::{self, Finding, Verified};
use crate::http::backpressure::db_queue::DbQueue;
use crate::logs::erase::{self, Erased, ErasureMode, ErasureSubject};
use anyhow::Context as _;
use chrono::{Days, NaiveDate, NaiveTime, Utc};
use serde_json::json;
use shared::bootstrap::{self, FirstKeys};
use shared::db::usage_slots::{self, DayVerdict};
use shared::db::{self, migrate};
use shared::key_rotation::{report, rotation};
use shared::log_store::LogStore;
use shared::secrets::seal::{MasterKeys, Sealer};
use shared::settings::Database;
use std::time::Duration;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

/// Brings the schema up to date.
pub async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    let mut client = db::connect_direct(&settings.database).await?;
    let applied = migrate::run(&mut client).await?;
    tracing::info!(migrations = ?applied.migrations, "the schema is current");
    Ok(())
}

/// Makes the first organisation; `None` when there is one already.
pub async fn first_start(settings: &Settings) -> anyhow::Result<Option<FirstKeys>> {
    let mut client = db::connect(&settings.database).await?;
    let tx = client.transaction().await?;
    let made = bootstrap::run_within(&tx, &settings.bootstrap, &settings.identity.api_key_prefix).await?;
    if let Some(keys) = &made {
        record_organisation(&tx, keys).await?;
    }
    tx.commit().await?;
    Ok(made)
}

pub async fn create_organisation(settings: &Settings, name: &str, owner_email: &str) -> anyhow::Result<FirstKeys> {
    let mut client = db::connect(&settings.database).await?;
    let tx = client.transaction().await?;
    let prefix = &settings.identity.api_key_prefix;
    let keys = bootstrap::create_organisation_within(&tx, name, owner_email, prefix).await?;
    record_organisation(&tx, &keys).await?;
    tx.commit().await?;
    Ok(keys)
}

/// The first record of a trail: where the organisation and its first key come from.
async fn record_organisation(tx: &Transaction<'_>, keys: &FirstKeys) -> Result<(), tokio_postgres::Error> {
    let mut record = audit::AuditRecord::by_system(keys.organisation_id, "organisation", "create");
    record.resource_id = Some(keys.organisation_id.to_string());
    record.after = Some(json!({
        "default_workspace_id": keys.workspace_id, "owner_id": keys.owner_id, "admin_key_id": keys.admin_key.id,
    }));
    audit::record(tx, &record).await
}

/// Verifies the audit trail of one organisation or of all.
pub async fn verify_audit(
    settings: &Settings,
    organisation: Option<Uuid>,
    anchor: Option<ChainEnd>,
) -> anyhow::Result<Vec<ChainReport>> {
    let mut client = db::connect(&settings.database).await?;
    verify::verify(&mut client, organisation, anchor).await
}

/// The most days that are looked at by one command.
const MAX_DAYS: i64 = 3660;

/// Compares figures with logs, each day in a transaction of its own, the latest first.
pub async fn verify_figures(
    settings: &Settings,
    from: NaiveDate,
    until: Option<NaiveDate>,
) -> anyhow::Result<Vec<(NaiveDate, DayVerdict)>> {
    let unbounded = Database { database_statement_timeout_ms: 0, ..settings.database.clone() };
    let mut client = db::connect(&unbounded).await?;
    let mut day = until.unwrap_or_else(|| Utc::now().date_naive() - Days::new(1));
    if (day - from).num_days() > MAX_DAYS {
        anyhow::bail!("name at most {MAX_DAYS} days");
    }
    let mut verdicts = Vec::new();
    while day >= from {
        let tx = client.transaction().await?;
        let verdict = usage_slots::verify_day(&tx, day.and_time(NaiveTime::MIN).and_utc()).await?;
        tx.commit().await?;
        verdicts.push((day, verdict));
        day = day - Days::new(1);
    }
    Ok(verdicts)
}

/// How long replaced data keys stay, for proxies that have not heard of the new ones yet.
const GRACE: Duration = Duration::from_secs(5);

/// Which keys secrets are sealed with.
pub async fn key_status(settings: &Settings) -> anyhow::Result<report::Report> {
    let client = db::connect(&settings.database).await?;
    Ok(report::status(&client, &sealer(settings)?).await?)
}

/// The same, after opening every secret.
pub async fn verify_keys(settings: &Settings) -> anyhow::Result<report::Report> {
    let client = db::connect(&settings.database).await?;
    Ok(report::verify(&client, &sealer(settings)?).await?)
}

/// Puts everything under the first master key, and under new data keys if asked for; then says how things stand.
pub async fn rotate_keys(
    settings: &Settings,
    data_keys: bool,
    tell: &mut dyn FnMut(rotation::Progress),
) -> anyhow::Result<report::Report> {
    let (mut client, sealer) = (db::connect(&settings.database).await?, sealer(settings)?);
    record_rotation(&mut client, data_keys).await?;
    rotation::rewrap(&mut client, &sealer, tell).await?;
    if data_keys {
        rotation::replace_data_keys(&mut client, &sealer, GRACE, tell).await?;
    }
    Ok(report::status(&client, &sealer).await?)
}

/// In the trail of every organisation whose secrets are concerned. Before the work, which is many transactions: one that
/// is interrupted has its record too.
async fn record_rotation(client: &mut Client, data_keys: bool) -> anyhow::Result<()> {
    const CONCERNED: &str = "SELECT DISTINCT organisation_id FROM data_keys ORDER BY organisation_id";
    let tx = client.transaction().await?;
    for row in tx.query(CONCERNED, &[]).await? {
        let mut record = audit::AuditRecord::by_system(row.try_get(0)?, "data_keys", "rotate");
        record.after = Some(json!({ "has_new_data_key": data_keys }));
        audit::record(&tx, &record).await?;
    }
    Ok(tx.commit().await?)
}

/// Erases what the logs of an organisation hold of somebody, and records that the operator did.
pub async fn erase_logs(
    settings: &Settings,
    organisation: Uuid,
    subject: &ErasureSubject,
    mode: ErasureMode,
) -> anyhow::Result<Erased> {
    let client = db::connect(&settings.database).await?;
    let known = client.query_opt("SELECT FROM organisations WHERE id = $1", &[&organisation]).await?;
    known.context("there is no such organisation")?;
    // Nobody waits for an answer here.
    let unbounded = Database { database_statement_timeout_ms: 0, ..settings.database.clone() };
    let line = DbQueue::new(db::pool(&unbounded).await?, 1);
    let erased = erase::erase(&line, &LogStore::open(&settings.log_store)?, organisation, subject, mode).await?;
    let mut record = audit::AuditRecord::by_system(organisation, "logs", "delete");
    record.resource_id = Some(subject.name().to_owned());
    record.after = Some(erased.shown());
    audit::record(&client, &record).await?;
    Ok(erased)
}

/// Which proxies hold parts of budgets.
pub async fn limit_holders(settings: &Settings) -> anyhow::Result<Vec<Holder>> {
    leases::holders(&db::connect(&settings.database).await?).await
}

/// Gives back what a lost proxy held.
pub async fn release_limits(settings: &Settings, holder: Uuid) -> anyhow::Result<u64> {
    leases::release(&mut db::connect(&settings.database).await?, holder).await
}

/// What calls of dead proxies were promised, and nobody has confirmed.
pub async fn unconfirmed_charges(settings: &Settings) -> anyhow::Result<Vec<Unconfirmed>> {
    unconfirmed::list(&db::connect(&settings.database).await?).await
}

/// Settles what such a call was charged.
pub async fn reconcile_charges(settings: &Settings, request: Uuid, verdict: Verdict) -> anyhow::Result<u64> {
    unconfirmed::reconcile(&mut db::connect(&settings.database).await?, request, verdict).await
}

/// Compares counters with logs, and sets those right that differ if asked to.
pub async fn verify_limits(
    settings: &Settings,
    organisation: Option<Uuid>,
    is_mending: bool,
    tell: &mut dyn FnMut(&Finding),
) -> anyhow::Result<Verified> {
    let unbounded = Database { database_statement_timeout_ms: 0, ..settings.database.clone() };
    verify_limits::verify(&mut db::connect(&unbounded).await?, organisation, is_mending, tell).await
}

/// Compares a bill with the logs.
pub async fn compare_costs(
    settings: &Settings,
    invoice: &Invoice,
    workspace: Option<Uuid>,
) -> anyhow::Result<Comparison> {
    let unbounded = Database { database_statement_timeout_ms: 0, ..settings.database.clone() };
    compare_costs::compare(&db::connect(&unbounded).await?, invoice, workspace).await
}

fn sealer(settings: &Settings) -> anyhow::Result<Sealer> {
    Ok(Sealer::new(MasterKeys::load(&settings.sealing)?))
}
