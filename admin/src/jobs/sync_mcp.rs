//! Asks newly registered MCP servers what they offer, and those that answered again every hour, so that changes are
//! noticed. No row is held while a server is asked; a result whose integration leads elsewhere by then is dropped. A server
//! that never answered is asked again when somebody asks for it. Servers that know people by their tokens are not asked
//! here: what one person is shown is not everybody's, so a person has to ask.

use super::{Job, JobRun};
use crate::app::App;
use crate::resources::mcp_sync::{ServerAddress, Target, store};
use futures::FutureExt as _;
use futures::future::join_all;
use shared::seal::Sealed;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job = Job { name: "sync_mcp", every: Duration::from_secs(2), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: i64 = 8;

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const DUE: &str = "id, organisation_id, sealed FROM mcp_integrations
        WHERE sync_due_at <= clock_timestamp() AND status = 'active' AND auth_type NOT IN ('oauth_auto', 'oauth')
        ORDER BY sync_due_at LIMIT $1";
    const UNREADABLE: &str = "UPDATE mcp_integrations SET sync_status = 'failed', sync_due_at = NULL,
            sync_error = 'its credentials cannot be opened' WHERE id = $1";
    let mut targets: Vec<(Uuid, Target)> = Vec::new();
    let due = format!("SELECT {}, {DUE}", ServerAddress::COLUMNS);
    let rows = tx.query(&due, &[&AT_ONCE]).await?;
    for row in &rows {
        let (id, organisation): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organisation_id")?);
        let sealed = row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from);
        match Target::open(app, tx, (organisation, id), ServerAddress::from_row(row)?, sealed.as_ref()).await {
            Ok(target) => targets.push((organisation, target)),
            Err(_) => {
                tx.execute(UNREADABLE, &[&id]).await?;
            }
        }
    }
    let learnt = join_all(targets.iter().map(|(_, target)| target.learn(app))).await;
    for ((organisation, target), learnt) in targets.iter().zip(&learnt) {
        store(tx, *organisation, target, learnt).await?;
    }
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE as usize })
}
