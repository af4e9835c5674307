//! Asks newly registered MCP servers what they offer, and those that answered again every hour, so that changes are
//! noticed. Which are asked is claimed by moving their time, and no transaction is open while a server is asked; a result whose
//! integration leads elsewhere by then is dropped. A server that never answered is asked again when somebody asks for it.
//! Servers that know people by their tokens are not asked here: what one person is shown is not everybody's, so a person has
//! to ask.

use super::{Job, JobRun};
use crate::app::App;
use crate::resources::mcp_sync::{ServerAddress, Target, store};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use shared::secrets::seal::Sealed;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job = Job { name: "sync_mcp", every: Duration::from_secs(2), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: i64 = 8;

/// Whether there is more than is asked at once.
async fn work(_: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const DUE: &str = "SELECT count(*) FROM (SELECT FROM mcp_integrations
        WHERE sync_due_at <= clock_timestamp() AND status = 'active' AND auth_type NOT IN ('oauth_auto', 'oauth')
        LIMIT $1) AS due";
    let due: i64 = tx.query_one(DUE, &[&(AT_ONCE + 1)]).await?.try_get(0)?;
    Ok(JobRun { items: 0, is_all: due <= AT_ONCE })
}

/// Claims some, asks them, and writes what they said.
pub fn ask(app: &App) -> BoxFuture<'_, anyhow::Result<u64>> {
    async move {
        let targets = claim(app).await?;
        let learnt = join_all(targets.iter().map(|(_, target)| target.learn(app))).await;
        for ((organisation, target), learnt) in targets.iter().zip(&learnt) {
            let mut db = app.db.get().await?;
            let tx = db.transaction().await?;
            store(&tx, *organisation, target, learnt).await?;
            tx.commit().await?;
        }
        Ok(targets.len() as u64)
    }
    .boxed()
}

async fn claim(app: &App) -> anyhow::Result<Vec<(Uuid, Target)>> {
    // Longer than a server has time to answer: should this admin die, another asks again.
    const CLAIM: &str = "UPDATE mcp_integrations SET sync_due_at = clock_timestamp() + interval '2 minutes'
        WHERE id IN (SELECT id FROM mcp_integrations
            WHERE sync_due_at <= clock_timestamp() AND status = 'active' AND auth_type NOT IN ('oauth_auto', 'oauth')
            ORDER BY sync_due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
        RETURNING id, organisation_id, sealed";
    const UNREADABLE: &str = "UPDATE mcp_integrations SET sync_status = 'failed', sync_due_at = NULL,
            sync_error = 'its credentials cannot be opened' WHERE id = $1";
    let claim = format!("{CLAIM}, {}", ServerAddress::COLUMNS);
    let db = app.db.get().await?;
    let mut targets = Vec::new();
    for row in &db.query(&claim, &[&AT_ONCE]).await? {
        let (id, organisation): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organisation_id")?);
        let sealed = row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from);
        match Target::open(app, &*db, (organisation, id), ServerAddress::from_row(row)?, sealed.as_ref()).await {
            Ok(target) => targets.push((organisation, target)),
            Err(_) => {
                db.execute(UNREADABLE, &[&id]).await?;
            }
        }
    }
    Ok(targets)
}
