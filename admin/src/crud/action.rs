//! A change to the control plane: one transaction that ends with its audit record. A handler that works on an
//! `Action` cannot commit without leaving a trace, and what it did not commit did not happen.

use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::http::{ApiError, etag};
use crate::identity::Call;
use serde_json::Value;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

pub struct Action<'a> {
    pub tx: Transaction<'a>,
    pub app: &'a App,
    pub call: &'a Call,
    /// Where it happens; none at the level of the organisation.
    pub workspace_id: Option<Uuid>,
}

/// What was changed, for the audit trail. Secrets are masked by whoever shows the object.
#[derive(Debug, Default)]
pub struct Change {
    pub resource_id: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl<'a> Action<'a> {
    /// `db` is a connection from the pool: `let mut db = app.db.get().await?`.
    pub async fn begin(db: &'a mut Client, app: &'a App, call: &'a Call) -> Result<Self, ApiError> {
        let tx = db.transaction().await?;
        Ok(Self { tx, app, call, workspace_id: call.caller.workspace_id() })
    }

    pub fn organisation_id(&self) -> Uuid {
        self.call.caller.organisation_id()
    }

    /// Writes the audit record and makes all of it true; of a dry run nothing, once all of it is known to be possible.
    pub async fn commit(self, change: Change) -> Result<(), ApiError> {
        if self.call.origin.has_open_condition() {
            return Err(etag::not_here());
        }
        let mut record = AuditRecord::for_caller(&self.call.origin, &self.call.caller);
        record.workspace_id = self.workspace_id;
        record.resource_id = Some(change.resource_id);
        (record.before, record.after) = (change.before, change.after);
        audit::record(&self.tx, &record).await?;
        if self.call.origin.is_dry_run {
            // What would only be found by the commit.
            self.tx.batch_execute("SET CONSTRAINTS ALL IMMEDIATE").await?;
            return Ok(self.tx.rollback().await?);
        }
        self.tx.commit().await?;
        self.call.origin.mark_recorded();
        Ok(())
    }
}
