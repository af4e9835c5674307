//! Some rows of a batch in progress are leased and begun. What holds for all of them is found out first, as it is now: whether
//! the key that made the batch may still ask, what the batch is run with, and where its input is.

use super::under_way::RowUnderWay;
use super::verdict::PAUSE;
use super::{BatchRunner, persist};
use crate::batches::files::ManagedFile;
use crate::batches::options::RunOptions;
use crate::batches::record::BatchRecord;
use crate::batches::rows::{self, Group, GroupSize, LeasedRow, PutBack};
use crate::identity::identify::Principal;
use crate::request::refusal::Refusal;
use crate::runtime::small_pool::PostgresAway;
use chrono::Utc;
use shared::batches::BatchError;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Before what could not be found out is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What all rows of a group share.
pub(super) struct GroupContext {
    pub batch: BatchRecord,
    pub caller: Principal,
    pub options: RunOptions,
    /// None when it was deleted.
    pub input: Option<ManagedFile>,
}

/// Why nothing of a group can be asked now.
enum HeldGroup {
    /// Something of ours is away.
    ForNow,
    Because(BatchError),
}

impl BatchRunner {
    pub(super) async fn begin_group(self: &Arc<Self>, id: Uuid) -> Result<(), PostgresAway> {
        let Some((room_rows, room_bytes)) = self.under_way.room(self.settings.batch_concurrency) else {
            return Ok(());
        };
        let size = GroupSize {
            rows: self.settings.batch_rows,
            every: Duration::from_secs(self.settings.batch_every_seconds.into()),
            room_rows,
            room_bytes,
            held_up: PAUSE,
            takes_over: self.takes_over(),
        };
        let Group::Begun(batch, leased) = rows::begin_group(&self.records.pool, id, self.owner, size).await? else {
            return Ok(());
        };
        // They count before anything is waited for.
        let (all, tenant, metrics) = (&self.under_way, batch.owner.tenant(), &self.services.metrics);
        let begun = |row: LeasedRow| (all.begin_row(id, tenant, row.bytes, metrics), row);
        let begun: Vec<(RowUnderWay, LeasedRow)> = leased.into_iter().map(begun).collect();
        self.meters.taken_over.inc_by(begun.iter().filter(|(_, row)| row.is_taken_over).count() as u64);
        let runner = self.clone();
        tokio::spawn(async move { runner.run_group(*batch, begun).await });
        Ok(())
    }

    async fn run_group(self: Arc<Self>, batch: BatchRecord, begun: Vec<(RowUnderWay, LeasedRow)>) {
        let id = batch.id;
        let context = match self.context(batch).await {
            Ok(context) => Arc::new(context),
            Err(held) => return self.put_group_back(id, begun, held).await,
        };
        for (held, row) in begun {
            let (runner, context) = (self.clone(), context.clone());
            tokio::spawn(async move { runner.run_row(&context, row, held).await });
        }
    }

    async fn context(&self, batch: BatchRecord) -> Result<GroupContext, HeldGroup> {
        let caller = self.services.authenticator.holder(&batch, Utc::now()).map_err(|refusal| why(&refusal))?;
        let options = self.records.options(&batch, &self.services.router.sealer).await;
        let options = options.map_err(|PostgresAway| HeldGroup::ForNow)?.ok_or_else(|| {
            HeldGroup::Because(BatchError::new("options_unreadable", "the secrets among its options cannot be opened"))
        })?;
        let input = self.files.rows.find(batch.owner, batch.input_file).await.map_err(|_| HeldGroup::ForNow)?;
        Ok(GroupContext { batch, caller, options, input })
    }

    async fn put_group_back(&self, batch: Uuid, begun: Vec<(RowUnderWay, LeasedRow)>, held: HeldGroup) {
        let pool = &self.records.pool;
        let wait = match &held {
            HeldGroup::ForNow => LOOK_AGAIN,
            HeldGroup::Because(error) => {
                persist(|| rows::hold_up(pool, batch, PAUSE, error)).await;
                Duration::ZERO
            }
        };
        let back = PutBack { wait, is_asked: false, is_failure: false };
        for (_held, row) in begun {
            persist(|| rows::put_back(pool, batch, row.number, self.owner, back)).await;
        }
    }
}

fn why(refusal: &Refusal) -> HeldGroup {
    match refusal.status {
        503 => HeldGroup::ForNow,
        _ => HeldGroup::Because(BatchError::new(refusal.code.as_str(), refusal.message.to_string())),
    }
}
