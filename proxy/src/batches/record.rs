//! The row of a batch. Whoever asks for it asks within one workspace; whoever does its next step has leased it, and saves
//! only if nobody changed its status meanwhile, as a cancellation does.

use super::options::{RunOptions, SealedOptions};
use crate::files::FileOwner;
use crate::runtime::small_pool::{PostgresAway, SmallPool, bounded};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use shared::amount::Amount;
use shared::batches::{Batch, BatchError, BatchStatus, RequestCounts, StatusTimes};
use shared::seal::{SealError, Sealed, Sealer};
use shared::settings::Database;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

/// Ids of batches that the gateway keeps begin so; a provider's never do.
pub const PREFIX: &str = "gwb-";

/// Connections at once.
const CONNECTIONS: usize = 4;

/// Who runs the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The gateway, one by one.
    Immediate,
    /// A provider's own batch.
    Day,
}

impl Mode {
    /// As the completion window names it, and the column.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Immediate => "immediate",
            Self::Day => "24h",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Immediate, Self::Day].into_iter().find(|mode| mode.as_str() == text)
    }
}

#[derive(Debug, Clone)]
pub struct BatchRecord {
    pub id: Uuid,
    pub owner: FileOwner,
    /// Of the key that made it.
    pub api_key: Uuid,
    pub mode: Mode,
    pub endpoint: String,
    pub input_file: Uuid,
    /// Of all its rows, where the request named one or a provider takes one alone.
    pub model: Option<String>,
    /// Headers by which it is run. Of a secret one the mask; `sealed` has the rest.
    pub gateway_options: Map<String, Value>,
    /// See `options::SealedOptions`.
    pub sealed: Option<Vec<u8>>,
    pub provider_options: Map<String, Value>,
    pub metadata: Option<Map<String, Value>>,
    pub status: BatchStatus,
    pub errors: Vec<BatchError>,
    pub total: i32,
    /// Counted with the rows, and not saved from here.
    pub completed: i32,
    pub failed: i32,
    pub cost: Amount,
    pub output_file: Option<Uuid>,
    pub error_file: Option<Uuid>,
    pub provider_batch: Option<Value>,
    pub provider_batch_id: Option<String>,
    pub provider_input_file_id: Option<String>,
    pub created_at: DateTime<Utc>,
    pub in_progress_at: Option<DateTime<Utc>>,
    pub finalizing_at: Option<DateTime<Utc>>,
    pub completed_at: Option<DateTime<Utc>>,
    pub failed_at: Option<DateTime<Utc>>,
    pub expired_at: Option<DateTime<Utc>>,
    pub cancelling_at: Option<DateTime<Utc>>,
    pub cancelled_at: Option<DateTime<Utc>>,
    pub expires_at: DateTime<Utc>,
    pub next_step_at: DateTime<Utc>,
    pub completion_url: Option<String>,
    pub completion_tries: i32,
    pub completion_next_at: Option<DateTime<Utc>>,
    pub completed_hook_at: Option<DateTime<Utc>>,
}

/// What a batch begins with.
#[derive(Debug)]
pub struct NewBatch {
    pub id: Uuid,
    pub owner: FileOwner,
    pub api_key: Uuid,
    pub mode: Mode,
    pub endpoint: &'static str,
    pub input_file: Uuid,
    pub model: Option<String>,
    pub gateway_options: Map<String, Value>,
    pub secrets: SealedOptions,
    pub provider_options: Map<String, Value>,
    pub metadata: Option<Map<String, Value>>,
    pub completion_url: Option<String>,
    pub expires_at: DateTime<Utc>,
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

impl BatchRecord {
    pub const COLUMNS: &'static str =
        "id, organisation_id, workspace_id, api_key_id, mode, endpoint, input_file_id, model, gateway_options, sealed,
        provider_options, metadata, status, errors, total, completed, failed, cost, output_file_id, error_file_id,
        provider_batch, provider_batch_id, provider_input_file_id, created_at, in_progress_at, finalizing_at, completed_at,
        failed_at, expired_at, cancelling_at, cancelled_at, expires_at, next_step_at, completion_url, completion_tries,
        completion_next_at, completed_hook_at";

    pub fn from_row(row: &Row) -> Result<Self, Error> {
        let object = |name: &str| -> Result<Option<Map<String, Value>>, Error> {
            match row.try_get::<_, Option<Value>>(name)? {
                Some(Value::Object(object)) => Ok(Some(object)),
                _ => Ok(None),
            }
        };
        let errors: Option<Value> = row.try_get("errors")?;
        Ok(Self {
            id: row.try_get("id")?,
            owner: FileOwner { organisation: row.try_get("organisation_id")?, workspace: row.try_get("workspace_id")? },
            api_key: row.try_get("api_key_id")?,
            // The columns hold nothing else.
            mode: Mode::parse(row.try_get("mode")?).unwrap_or(Mode::Immediate),
            endpoint: row.try_get("endpoint")?,
            input_file: row.try_get("input_file_id")?,
            model: row.try_get("model")?,
            gateway_options: object("gateway_options")?.unwrap_or_default(),
            sealed: row.try_get("sealed")?,
            provider_options: object("provider_options")?.unwrap_or_default(),
            metadata: object("metadata")?,
            status: BatchStatus::parse(row.try_get("status")?).unwrap_or(BatchStatus::Failed),
            errors: errors.and_then(|errors| serde_json::from_value(errors).ok()).unwrap_or_default(),
            total: row.try_get("total")?,
            completed: row.try_get("completed")?,
            failed: row.try_get("failed")?,
            cost: row.try_get("cost")?,
            output_file: row.try_get("output_file_id")?,
            error_file: row.try_get("error_file_id")?,
            provider_batch: row.try_get("provider_batch")?,
            provider_batch_id: row.try_get("provider_batch_id")?,
            provider_input_file_id: row.try_get("provider_input_file_id")?,
            created_at: row.try_get("created_at")?,
            in_progress_at: row.try_get("in_progress_at")?,
            finalizing_at: row.try_get("finalizing_at")?,
            completed_at: row.try_get("completed_at")?,
            failed_at: row.try_get("failed_at")?,
            expired_at: row.try_get("expired_at")?,
            cancelling_at: row.try_get("cancelling_at")?,
            cancelled_at: row.try_get("cancelled_at")?,
            expires_at: row.try_get("expires_at")?,
            next_step_at: row.try_get("next_step_at")?,
            completion_url: row.try_get("completion_url")?,
            completion_tries: row.try_get("completion_tries")?,
            completion_next_at: row.try_get("completion_next_at")?,
            completed_hook_at: row.try_get("completed_hook_at")?,
        })
    }

    /// False, and nothing happens, when it cannot go there from where it is.
    pub fn become_status(&mut self, next: BatchStatus, now: DateTime<Utc>) -> bool {
        if !self.status.may_become(next) {
            return false;
        }
        self.status = next;
        match next {
            BatchStatus::Validating => {}
            BatchStatus::Failed => self.failed_at = Some(now),
            BatchStatus::InProgress => self.in_progress_at = Some(now),
            BatchStatus::Finalizing => self.finalizing_at = Some(now),
            BatchStatus::Completed => self.completed_at = Some(now),
            BatchStatus::Expired => self.expired_at = Some(now),
            BatchStatus::Cancelling => self.cancelling_at = Some(now),
            BatchStatus::Cancelled => self.cancelled_at = Some(now),
        }
        true
    }

    /// The batch object (spec 2.2), and what the gateway knows beyond it.
    pub fn to_json(&self, with_provider_details: bool) -> Value {
        let file = |id: Uuid| format!("{}{id}", crate::files::PREFIX);
        let seconds = |time: Option<DateTime<Utc>>| time.map(|time| time.timestamp());
        let count = |number: i32| u64::from(number.unsigned_abs());
        let batch = Batch {
            id: format!("{PREFIX}{}", self.id),
            endpoint: self.endpoint.clone(),
            input_file_id: file(self.input_file),
            completion_window: self.mode.as_str().to_owned(),
            status: self.status,
            created_at: self.created_at.timestamp(),
            errors: self.errors.clone(),
            output_file_id: self.output_file.map(file),
            error_file_id: self.error_file.map(file),
            times: StatusTimes {
                in_progress_at: seconds(self.in_progress_at),
                expires_at: Some(self.expires_at.timestamp()),
                finalizing_at: seconds(self.finalizing_at),
                completed_at: seconds(self.completed_at),
                failed_at: seconds(self.failed_at),
                expired_at: seconds(self.expired_at),
                cancelling_at: seconds(self.cancelling_at),
                cancelled_at: seconds(self.cancelled_at),
            },
            request_counts: RequestCounts {
                total: count(self.total),
                completed: count(self.completed),
                failed: count(self.failed),
            },
            metadata: self.metadata.clone(),
        };
        let mut object = batch.to_json();
        object["model"] = self.model.clone().into();
        object["gateway_options"] = self.gateway_options.clone().into();
        object["cost"] = serde_json::to_value(self.cost).unwrap_or_default();
        if with_provider_details {
            object["provider_details"] = self.provider_batch.clone().unwrap_or_default();
        }
        object
    }
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
                input_file_id, model, gateway_options, sealed, provider_options, metadata, completion_url, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $5, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING {}",
            BatchRecord::COLUMNS
        );
        let FileOwner { organisation, workspace } = new.owner;
        let (mode, metadata) = (new.mode.as_str(), new.metadata.clone().map(Value::Object));
        let (gateway, provider) =
            (Value::Object(new.gateway_options.clone()), Value::Object(new.provider_options.clone()));
        let secrets = (!new.secrets.is_empty()).then(|| serde_json::to_vec(&new.secrets).unwrap_or_default());
        let place = SealedOptions::place(organisation, new.id);
        let mut lent = self.pool.lend().await?;
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
                        tracing::warn!(%error, "the options of a batch cannot be sealed");
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
                        &new.expires_at,
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
        let lent = self.pool.lend().await?;
        let opened = sealer.open(&lent.client, &place, &Sealed::from(sealed.as_slice())).await;
        let opened = match opened {
            Ok(opened) => opened,
            Err(SealError::Database(error)) => return Err(PostgresAway::because(shared::db::explain(&error))),
            Err(error) => {
                tracing::warn!(%error, "the options of a batch do not open");
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
        let lent = self.pool.lend().await?;
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
        let lent = self.pool.lend().await?;
        let rows = bounded(
            lent.client.query(&list, &[&owner.organisation, &owner.workspace, &after, &limit.saturating_add(1)]),
        )
        .await?;
        lent.give_back();
        let found: Result<Vec<_>, _> = rows.iter().map(BatchRecord::from_row).collect();
        let mut found = found.map_err(PostgresAway::because)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok((found, has_more))
    }

    /// Marks it to be cancelled, if it is not over; the runner does the rest, soon. None when there is no such batch.
    pub async fn cancel(&self, owner: FileOwner, id: Uuid) -> Result<Option<BatchRecord>, PostgresAway> {
        const CANCEL: &str = "UPDATE batches SET status = 'cancelling', cancelling_at = now(), next_step_at = now()
            WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3
            AND status IN ('validating', 'in_progress', 'finalizing')";
        let lent = self.pool.lend().await?;
        bounded(lent.client.execute(CANCEL, &[&owner.organisation, &owner.workspace, &id])).await?;
        lent.give_back();
        self.find(owner, id).await
    }

    /// What a step changed. False, and nothing is saved, when the batch is not leased by `lease` any more, or its status is
    /// no longer the one that it had `before` the step. Counts and cost are not saved here, but with the rows.
    pub async fn save(&self, batch: &BatchRecord, before: BatchStatus, lease: Uuid) -> Result<bool, PostgresAway> {
        const SAVE: &str = "UPDATE batches SET status = $4, model = $5, errors = $6, total = $7, output_file_id = $8,
                error_file_id = $9, provider_batch = $10, provider_batch_id = $11, provider_input_file_id = $12,
                in_progress_at = $13, finalizing_at = $14, completed_at = $15, failed_at = $16, expired_at = $17,
                cancelling_at = $18, cancelled_at = $19, next_step_at = $20, completion_next_at = $21
            WHERE id = $1 AND lease_owner = $2 AND status = $3";
        let errors = (!batch.errors.is_empty()).then(|| serde_json::to_value(&batch.errors).unwrap_or_default());
        let (status, before) = (batch.status.as_str(), before.as_str());
        let lent = self.pool.lend().await?;
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
