//! The rows of batches. Whoever asks for one asks within one workspace; whoever does its next step has leased it, and saves
//! only if nobody changed its status meanwhile, as a cancellation does.

use super::files::FileOwner;
use super::files::managed::cut_page;
use super::options::{RunOptions, SealedOptions};
use super::record::{BatchRecord, NewBatch};
use crate::request::refusal::Refusal;
use crate::runtime::small_pool::{PostgresAway, SmallPool, bounded};
use serde_json::Value;
use shared::batches::BatchStatus;
use shared::secrets::seal::{SealError, Sealed, Sealer};
use shared::settings::Database;
use shared::telemetry::LogLimit;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Connections at once.
pub(crate) const CONNECTIONS: usize = 4;

impl From<PostgresAway> for Refusal {
    fn from(_: PostgresAway) -> Self {
        Self::batches_unavailable()
    }
}

/// What became of a new batch.
#[derive(Debug)]
pub enum Insertion {
    Made(Box<BatchRecord>),
    /// The workspace has too many that are not over.
    TooMany,
    /// There is nothing to seal its secrets with.
    NotSealed,
}

pub struct BatchRecords {
    /// The runner's statements go through it too.
    pub pool: SmallPool,
}

impl BatchRecords {
    pub fn new(database: Database) -> Self {
        Self { pool: SmallPool::new(database, CONNECTIONS) }
    }

    /// One more batch of a workspace that has less than `most` which are not over.
    pub async fn insert(&self, new: &NewBatch, most: i64, sealer: &Sealer) -> Result<Insertion, PostgresAway> {
        // Batches of a workspace begin one after the other, so that they cannot pass the bound together.
        const IN_TURN: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text, 56))";
        const OPEN: &str = "SELECT count(*) FROM batches WHERE organisation_id = $1 AND workspace_id = $2
            AND status IN ('validating', 'in_progress', 'finalizing', 'cancelling')";
        let insert = format!(
            "INSERT INTO batches (id, organisation_id, workspace_id, api_key_id, mode, endpoint, completion_window,
                input_file_id, model, gateway_options, sealed, provider_options, metadata, completion_url, expires_at,
                token)
             VALUES ($1, $2, $3, $4, $5, $6, $5, $7, $8, $9, $10, $11, $12, $13, now() + interval '24 hours', $14)
             RETURNING {}",
            BatchRecord::COLUMNS
        );
        let FileOwner { organisation, workspace } = new.owner;
        let (mode, metadata) = (new.mode.as_str(), new.metadata.clone().map(Value::Object));
        let (gateway, provider) =
            (Value::Object(new.gateway_options.clone()), Value::Object(new.provider_options.clone()));
        let secrets = (!new.secrets.is_empty()).then(|| serde_json::to_vec(&new.secrets).unwrap_or_default());
        let place = SealedOptions::place(organisation, new.id);
        let mut lent = self.pool.lend(new.owner.tenant()).await?;
        let work = async {
            let tx = lent.client.transaction().await?;
            tx.execute(IN_TURN, &[&workspace]).await?;
            let open: i64 = tx.query_one(OPEN, &[&organisation, &workspace]).await?.try_get(0)?;
            if open >= most {
                return Ok(Insertion::TooMany);
            }
            let sealed = match &secrets {
                None => None,
                Some(secrets) => match sealer.seal(&tx, &place, secrets).await {
                    Ok(sealed) => Some(sealed.to_vec()),
                    Err(SealError::Database(error)) => return Err(error),
                    Err(error) => {
                        static UNSEALED: LogLimit = LogLimit::new();
                        if let Some(skipped) = UNSEALED.pass() {
                            tracing::warn!(%error, skipped, "the options of a batch cannot be sealed");
                        }
                        return Ok(Insertion::NotSealed);
                    }
                },
            };
            let row = tx
                .query_one(
                    &insert,
                    &[
                        &new.id,
                        &organisation,
                        &workspace,
                        &new.api_key,
                        &mode,
                        &new.endpoint,
                        &new.input_file,
                        &new.model,
                        &gateway,
                        &sealed,
                        &provider,
                        &metadata,
                        &new.completion_url,
                        &new.token,
                    ],
                )
                .await?;
            tx.commit().await?;
            BatchRecord::from_row(&row).map(|made| Insertion::Made(Box::new(made)))
        };
        let made = bounded(work).await?;
        lent.give_back();
        Ok(made)
    }

    /// What a batch is run with, opened. None when it does not open any more.
    pub async fn options(&self, batch: &BatchRecord, sealer: &Sealer) -> Result<Option<RunOptions>, PostgresAway> {
        let Some(sealed) = &batch.sealed else {
            return Ok(Some(RunOptions::new(&batch.gateway_options, SealedOptions::default())));
        };
        let place = SealedOptions::place(batch.owner.organisation, batch.id);
        let lent = self.pool.lend(batch.owner.tenant()).await?;
        let opened = sealer.open(&lent.client, &place, &Sealed::from(sealed.as_slice())).await;
        let opened = match opened {
            Ok(opened) => opened,
            Err(SealError::Database(error)) => return Err(PostgresAway::because(shared::db::explain(&error))),
            Err(error) => {
                static UNOPENED: LogLimit = LogLimit::new();
                if let Some(skipped) = UNOPENED.pass() {
                    tracing::warn!(%error, skipped, "the options of a batch do not open");
                }
                lent.give_back();
                return Ok(None);
            }
        };
        lent.give_back();
        let sealed: Option<SealedOptions> = serde_json::from_slice(opened.expose()).ok();
        Ok(sealed.map(|sealed| RunOptions::new(&batch.gateway_options, sealed)))
    }

    pub async fn find(&self, owner: FileOwner, id: Uuid) -> Result<Option<BatchRecord>, PostgresAway> {
        let find = format!(
            "SELECT {} FROM batches WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3",
            BatchRecord::COLUMNS
        );
        let lent = self.pool.lend(owner.tenant()).await?;
        let row = bounded(lent.client.query_opt(&find, &[&owner.organisation, &owner.workspace, &id])).await?;
        lent.give_back();
        row.as_ref().map(BatchRecord::from_row).transpose().map_err(PostgresAway::because)
    }

    /// A page, newest first, and whether there is more after it.
    pub async fn list(
        &self,
        owner: FileOwner,
        limit: i64,
        after: Option<Uuid>,
    ) -> Result<(Vec<BatchRecord>, bool), PostgresAway> {
        let list = format!(
            "SELECT {} FROM batches WHERE organisation_id = $1 AND workspace_id = $2 AND ($3::uuid IS NULL OR id < $3)
             ORDER BY id DESC LIMIT $4",
            BatchRecord::COLUMNS
        );
        let lent = self.pool.lend(owner.tenant()).await?;
        let rows = bounded(
            lent.client.query(&list, &[&owner.organisation, &owner.workspace, &after, &limit.saturating_add(1)]),
        )
        .await?;
        lent.give_back();
        let found: Result<Vec<_>, _> = rows.iter().map(BatchRecord::from_row).collect();
        Ok(cut_page(found.map_err(PostgresAway::because)?, limit))
    }

    /// Which of these ids of providers' batches a batch is known to have. Nothing else is told of whose it is.
    pub async fn known_at_providers(&self, ids: &[&str]) -> Result<Vec<String>, PostgresAway> {
        const KNOWN: &str = "SELECT provider_batch_id FROM batches WHERE provider_batch_id = ANY($1)";
        let lent = self.pool.lend_own().await?;
        let rows = bounded(lent.client.query(KNOWN, &[&ids])).await?;
        lent.give_back();
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(PostgresAway::because)
    }

    /// Marks it to be cancelled, if it is not over; the runner does the rest, soon. None when there is no such batch.
    pub async fn cancel(&self, owner: FileOwner, id: Uuid) -> Result<Option<BatchRecord>, PostgresAway> {
        const CANCEL: &str = "UPDATE batches SET status = 'cancelling', cancelling_at = now(), next_step_at = now()
            WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3
            AND status IN ('validating', 'in_progress', 'finalizing')";
        let lent = self.pool.lend(owner.tenant()).await?;
        bounded(lent.client.execute(CANCEL, &[&owner.organisation, &owner.workspace, &id])).await?;
        lent.give_back();
        self.find(owner, id).await
    }

    /// The batch that a provider runs for this one, whoever has the lease: the first that is noted stays. Its id; none when the
    /// batch is over or gone.
    pub async fn note_started(&self, batch: &BatchRecord) -> Result<Option<String>, PostgresAway> {
        const NOTE: &str =
            "UPDATE batches SET provider_batch = CASE WHEN provider_batch_id IS NULL THEN $2 ELSE provider_batch END,
                provider_batch_id = coalesce(provider_batch_id, $3)
            WHERE id = $1 AND status IN ('in_progress', 'cancelling') RETURNING provider_batch_id";
        let lent = self.pool.lend(batch.owner.tenant()).await?;
        let BatchRecord { id, provider_batch, provider_batch_id, .. } = batch;
        let row = bounded(lent.client.query_opt(NOTE, &[id, provider_batch, provider_batch_id])).await?;
        lent.give_back();
        row.map_or(Ok(None), |row| row.try_get(0)).map_err(PostgresAway::because)
    }

    /// As `save_step`; of a batch that is to be cancelled what a provider has is saved all the same.
    pub async fn save(&self, batch: &BatchRecord, before: BatchStatus, lease: Uuid) -> Result<bool, PostgresAway> {
        // What was begun at a provider must be known to whoever cancels it there.
        const SAVE_PROVIDERS: &str = "UPDATE batches SET provider_batch = $3,
                provider_batch_id = coalesce(provider_batch_id, $4), provider_input_file_id = $5
            WHERE id = $1 AND lease_owner = $2 AND status = 'cancelling'";
        if self.save_step(batch, before, lease).await? {
            return Ok(true);
        }
        let BatchRecord { provider_batch, provider_batch_id, provider_input_file_id, .. } = batch;
        let theirs =
            [&batch.id as &(dyn ToSql + Sync), &lease, provider_batch, provider_batch_id, provider_input_file_id];
        let lent = self.pool.lend(batch.owner.tenant()).await?;
        bounded(lent.client.execute(SAVE_PROVIDERS, &theirs)).await?;
        lent.give_back();
        Ok(false)
    }

    /// What a step changed. False, and nothing is saved, when the batch is not leased by `lease` any more, or its status is
    /// no longer the one that it had `before` the step. Counts and cost are not saved here, but with the rows.
    pub async fn save_step(&self, batch: &BatchRecord, before: BatchStatus, lease: Uuid) -> Result<bool, PostgresAway> {
        const SAVE: &str = "UPDATE batches SET status = $4, model = $5, errors = $6, total = $7, output_file_id = $8,
                error_file_id = $9, provider_batch = $10, provider_batch_id = coalesce(provider_batch_id, $11),
                provider_input_file_id = $12,
                in_progress_at = $13, finalizing_at = $14, completed_at = $15, failed_at = $16, expired_at = $17,
                cancelling_at = $18, cancelled_at = $19, next_step_at = $20, completion_next_at = $21
            WHERE id = $1 AND lease_owner = $2 AND status = $3";
        let errors = (!batch.errors.is_empty()).then(|| serde_json::to_value(&batch.errors).unwrap_or_default());
        let (status, before) = (batch.status.as_str(), before.as_str());
        let lent = self.pool.lend(batch.owner.tenant()).await?;
        let saved = bounded(lent.client.execute(
            SAVE,
            &[
                &batch.id,
                &lease,
                &before,
                &status,
                &batch.model,
                &errors,
                &batch.total,
                &batch.output_file,
                &batch.error_file,
                &batch.provider_batch,
                &batch.provider_batch_id,
                &batch.provider_input_file_id,
                &batch.in_progress_at,
                &batch.finalizing_at,
                &batch.completed_at,
                &batch.failed_at,
                &batch.expired_at,
                &batch.cancelling_at,
                &batch.cancelled_at,
                &batch.next_step_at,
                &batch.completion_next_at,
            ],
        ))
        .await?;
        lent.give_back();
        Ok(saved == 1)
    }
}
