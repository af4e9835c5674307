//! A batch as its row has it, and the object that is shown of it.

use super::files::FileOwner;
use super::options::SealedOptions;
use crate::request::batch_creation::IMMEDIATE;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use shared::amount::Amount;
use shared::batches::{Batch, BatchError, BatchStatus, RequestCounts, StatusTimes};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

/// Ids of batches that the gateway keeps begin so; a provider's never do.
pub const PREFIX: &str = "gwb-";

/// Under this name the metadata of logs has the batch whose row it was.
pub const IN_METADATA: &str = "_batch_id";

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
            Self::Immediate => IMMEDIATE,
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
    /// Of the key that made it, or of what a token stands for.
    pub api_key: Uuid,
    /// What the token said that made it.
    pub token: Option<Value>,
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

/// What a batch begins with. Whoever runs it, it expires after 24 hours.
#[derive(Debug)]
pub struct NewBatch {
    pub id: Uuid,
    pub owner: FileOwner,
    pub api_key: Uuid,
    pub token: Option<Value>,
    pub mode: Mode,
    pub endpoint: &'static str,
    pub input_file: Uuid,
    pub model: Option<String>,
    pub gateway_options: Map<String, Value>,
    pub secrets: SealedOptions,
    pub provider_options: Map<String, Value>,
    pub metadata: Option<Map<String, Value>>,
    pub completion_url: Option<String>,
}

impl BatchRecord {
    pub const COLUMNS: &'static str =
        "id, organisation_id, workspace_id, api_key_id, token, mode, endpoint, input_file_id, model, gateway_options, sealed,
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
            token: row.try_get("token")?,
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
        let file = |id: Uuid| format!("{}{id}", super::files::PREFIX);
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
