//! The notice of a batch's end: its object, posted to the address that the batch names and signed with the batch's secret, as
//! alerts are. The address is a tenant's, so it is reached under the dialer's rules. A notice that is not taken is sent again,
//! later and later; a receiver may therefore get it more than once, and knows it by its id.
//!
//! Those that are due are claimed only as there are turns to send them, and from each organisation in turn, of it from each
//! workspace: receivers that take their time delay the notices of their own tenant.

use super::turns::Turns;
use super::{BatchRunner, persist};
use crate::batches::record::{BatchRecord, PREFIX};
use crate::net::cloud_http::DialerTransport;
use crate::runtime::small_pool::{PostgresAway, SmallPool, bounded};
use chrono::{DateTime, Utc};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;
use serde_json::json;
use shared::secrets::cloud::{Http as _, Request};
use shared::telemetry::{Brief, LogLimit};
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Of one notice, over about a day.
const MAX_TRIES: i32 = 12;
/// Notices at once, in all and to receivers of one workspace; an organisation has half of all.
const MAX_AT_ONCE: usize = 16;
const MAX_OF_ONE: usize = 4;
/// After the first try that failed; each further one waits twice as long, up to the second.
const FIRST_WAIT_S: f64 = 10.0;
const MAX_WAIT_S: f64 = 10_800.0;

pub(super) fn turns() -> Arc<Turns> {
    Turns::new(MAX_AT_ONCE, MAX_OF_ONE)
}

impl BatchRunner {
    /// Those that are due, if any, and for which there is a turn.
    pub(super) async fn send_notices(self: &Arc<Self>) -> Result<(), PostgresAway> {
        if self.notices.left() == 0 {
            return Ok(());
        }
        for batch in claim(&self.records.pool, &self.notices).await? {
            // Nobody else takes turns, so there is one for each that was claimed.
            let turn = self.notices.take(batch.owner.tenant());
            let runner = self.clone();
            tokio::spawn(async move {
                runner.send_notice(&batch).await;
                drop(turn);
            });
        }
        Ok(())
    }

    async fn send_notice(&self, batch: &BatchRecord) {
        match self.post(batch).await {
            Ok(()) => {
                self.meters.notices_taken.inc();
                persist(|| note(&self.records.pool, batch.id)).await;
            }
            Err(error) => {
                self.meters.notices_failed.inc();
                static NOT_TAKEN: LogLimit = LogLimit::new();
                if let Some(skipped) = NOT_TAKEN.pass() {
                    let (error, tries) = (Brief(error), batch.completion_tries);
                    tracing::warn!(%error, batch = %batch.id, tries, skipped, "a batch's notice was not taken");
                }
            }
        }
    }

    /// Errors repeat nothing of the address or the answer.
    async fn post(&self, batch: &BatchRecord) -> Result<(), String> {
        let url = batch.completion_url.clone().ok_or("it has no address")?;
        let options = self.records.options(batch, &self.services.router.sealer).await;
        let options = options.map_err(|away| away.to_string())?.ok_or("its secret cannot be opened")?;
        let secret = options.completion_secret.ok_or("it has no secret")?;
        let body = body(batch);
        let signature = signature(&secret, Utc::now(), &body).map_err(|_| "it cannot be signed")?;
        let headers = vec![("content-type", "application/json".to_owned()), ("x-gateway-signature", signature)];
        let request = Request { method: "POST", url, headers, body: body.into_bytes(), is_own_identity: false };
        let answer = DialerTransport(self.services.calls.dialer.clone()).send(request).await?;
        match answer.status {
            200..300 => Ok(()),
            status => Err(format!("it was answered with {status}")),
        }
    }
}

fn body(batch: &BatchRecord) -> String {
    let event = format!("batch.{}", batch.status.as_str());
    let id = format!("{PREFIX}{}", batch.id);
    json!({ "id": format!("{id}.{}", batch.status.as_str()), "object": "event", "type": event, "data": batch.to_json(false) })
        .to_string()
}

/// The time is part of what is signed, so that an old notice cannot be sent again as a new one.
fn signature(secret: &str, now: DateTime<Utc>, body: &str) -> Result<String, ErrorStack> {
    let time = now.timestamp();
    let key = PKey::hmac(secret.as_bytes())?;
    let mut signer = Signer::new(MessageDigest::sha256(), &key)?;
    let signature = signer.sign_oneshot_to_vec(format!("{time}.{body}").as_bytes())?;
    Ok(format!("t={time},v1={}", hex::encode(signature)))
}

/// Whoever claims one has it until it would be sent again. The first of each organisation come first, then the second, and of one
/// organisation so by workspace; those that are being sent count.
async fn claim(pool: &SmallPool, turns: &Turns) -> Result<Vec<BatchRecord>, PostgresAway> {
    let claim = format!(
        "WITH RECURSIVE waiting (workspace_id) AS (
             (SELECT workspace_id FROM batches WHERE completion_next_at IS NOT NULL ORDER BY workspace_id LIMIT 1)
             UNION ALL
             SELECT (SELECT b.workspace_id FROM batches b WHERE b.completion_next_at IS NOT NULL
                 AND b.workspace_id > w.workspace_id ORDER BY b.workspace_id LIMIT 1)
             FROM waiting w WHERE w.workspace_id IS NOT NULL),
         due AS (
             SELECT id FROM (
                 SELECT d.id, d.completion_next_at, coalesce(o.sent, 0) +
                     row_number() OVER (PARTITION BY d.organisation_id ORDER BY d.nth, d.completion_next_at) AS nth
                 FROM waiting w
                 LEFT JOIN unnest($6::uuid[], $7::bigint[]) AS h (workspace_id, sent) ON h.workspace_id = w.workspace_id
                 CROSS JOIN LATERAL (
                     SELECT b.id, b.organisation_id, b.completion_next_at,
                         coalesce(h.sent, 0) + row_number() OVER (ORDER BY b.completion_next_at) AS nth
                     FROM batches b WHERE b.workspace_id = w.workspace_id AND b.completion_next_at <= now()
                     ORDER BY b.completion_next_at LIMIT $5) d
                 LEFT JOIN unnest($9::uuid[], $10::bigint[]) AS o (organisation_id, sent)
                     ON o.organisation_id = d.organisation_id
                 WHERE d.nth <= $5) AS of_organisations
             WHERE nth <= $8 ORDER BY nth, completion_next_at LIMIT $1)
         UPDATE batches SET completion_tries = completion_tries + 1, completion_next_at = CASE
             WHEN completion_tries + 1 < $2::int THEN now() + least($3::float8 * 2 ^ completion_tries, $4::float8) * interval '1 second' END
         WHERE id IN (SELECT id FROM batches WHERE id IN (SELECT id FROM due) AND completion_next_at <= now()
             AND completed_hook_at IS NULL FOR UPDATE SKIP LOCKED)
         RETURNING {}",
        BatchRecord::COLUMNS
    );
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (left, of_workspace) = (count(turns.left()), count(turns.most_of_workspace()));
    let of_organisation = count(turns.most_of_organisation());
    let [organisations, workspaces] = turns.held();
    let lent = pool.lend_own().await?;
    let values: [&(dyn ToSql + Sync); 10] = [
        &left,
        &MAX_TRIES,
        &FIRST_WAIT_S,
        &MAX_WAIT_S,
        &of_workspace,
        &workspaces.ids,
        &workspaces.counts,
        &of_organisation,
        &organisations.ids,
        &organisations.counts,
    ];
    let rows = bounded(lent.client.query(&claim, &values)).await?;
    lent.give_back();
    rows.iter().map(BatchRecord::from_row).collect::<Result<_, _>>().map_err(PostgresAway::because)
}

async fn note(pool: &SmallPool, id: Uuid) -> Result<(), PostgresAway> {
    const NOTE: &str = "UPDATE batches SET completed_hook_at = now(), completion_next_at = NULL WHERE id = $1";
    let lent = pool.lend_own().await?;
    bounded(lent.client.execute(NOTE, &[&id])).await?;
    lent.give_back();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_the_time_and_the_body() {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let signed = signature("key", now, "{}").unwrap();
        assert!(signed.starts_with("t=1700000000,v1=") && signed.len() == "t=1700000000,v1=".len() + 64, "{signed}");
        let later = DateTime::from_timestamp(1_700_000_001, 0).unwrap();
        for other in [signature("other", now, "{}"), signature("key", later, "{}"), signature("key", now, "[]")] {
            assert_ne!(other.unwrap().split_once("v1=").unwrap().1, signed.split_once("v1=").unwrap().1);
        }
    }
}
