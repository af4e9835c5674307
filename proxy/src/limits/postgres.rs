//! The store of leases. A grant is one transaction for all counters that are asked about: their rows are locked in the
//! order of their keys, what is open is added up, and the new leases are noted. Whoever settles a call locks the same
//! rows first, so what was used and what is promised never add up wrongly.
//!
//! Orders of locking, everywhere: windows of seconds by their hash, then counters by key, then leases by id.

use super::counter::{Counter, Micros};
use super::grant::{StoreStanding, grant};
use super::share::{LeaseAnswer, LeaseQuestion};
use chrono::{DateTime, Utc};
use shared::db::{self, limit_intents};
use shared::model::id::OrganisationId;
use shared::settings;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Transaction};
use uuid::Uuid;

/// A store that takes longer does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Postgres {
    database: settings::Database,
    /// Of this process; leases bear it.
    boot: Uuid,
    /// Who was not seen for this long holds no rates any more, in seconds.
    ttl: f64,
    client: Option<Client>,
}

/// What the store says of itself and of the replicas.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    pub clock: Micros,
    pub replicas: u64,
}

/// So much of a lease goes back.
#[derive(Debug, Clone, Copy)]
pub struct Shrink {
    pub lease: Uuid,
    pub amount: u64,
}

impl Postgres {
    pub fn new(database: settings::Database, boot: Uuid, ttl: Duration) -> Self {
        Self { database, boot, ttl: ttl.as_secs_f64(), client: None }
    }

    /// One answer for each question.
    pub async fn grant(
        &mut self,
        asked: &[(Counter, LeaseQuestion)],
        replicas: u64,
    ) -> Result<Vec<LeaseAnswer>, String> {
        let (boot, ttl) = (self.boot, self.ttl);
        self.within(async |client| granted(client, asked, boot, ttl, replicas).await).await
    }

    pub async fn give_back(&mut self, shrinks: &[Shrink], released: &[Uuid]) -> Result<(), String> {
        self.within(async |client| given_back(client, shrinks, released).await).await
    }

    /// Says that this process lives.
    pub async fn beat(&mut self) -> Result<Beat, String> {
        const BEAT: &str = "WITH mine AS (
                INSERT INTO limit_holders (boot) VALUES ($1)
                ON CONFLICT (boot) DO UPDATE SET seen_at = clock_timestamp() RETURNING boot)
            SELECT clock_timestamp(), (SELECT count(*) FROM limit_holders h
                WHERE h.boot <> mine.boot AND h.seen_at > now() - make_interval(secs => $2)) FROM mine";
        let (boot, ttl) = (self.boot, self.ttl);
        self.within(async |client| {
            let row = client.query_one(BEAT, &[&boot, &ttl]).await?;
            let (clock, others): (DateTime<Utc>, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok(Beat { clock: clock.timestamp_micros(), replicas: others.cast_unsigned() + 1 })
        })
        .await
    }

    /// Sweeps up what windows that are over and processes that are gone left behind.
    pub async fn tidy(&mut self) -> Result<(), String> {
        const LEASES: &str = "DELETE FROM limit_leases WHERE id = ANY (ARRAY(
            SELECT id FROM limit_leases WHERE ends_at < now() ORDER BY id LIMIT 10000 FOR UPDATE SKIP LOCKED))";
        const HOLDERS: &str = "DELETE FROM limit_holders h WHERE seen_at < now() - interval '1 day'
            AND NOT EXISTS (SELECT FROM limit_leases l WHERE l.boot = h.boot)";
        self.within(async |client| {
            client.execute(LEASES, &[]).await?;
            client.execute(HOLDERS, &[]).await.map(drop)
        })
        .await
    }

    /// Everything this process held goes back.
    pub async fn leave(&mut self) -> Result<(), String> {
        let boot = self.boot;
        self.within(async |client| release(client, boot).await).await
    }

    async fn within<T>(&mut self, work: impl AsyncFnOnce(&mut Client) -> Result<T, Error>) -> Result<T, String> {
        let Self { client, database, .. } = self;
        let answered = tokio::time::timeout(PATIENCE, async {
            let client = match client.take().filter(|client| !client.is_closed()) {
                Some(open) => client.insert(open),
                None => client.insert(db::connect(database).await.map_err(|error| error.to_string())?),
            };
            work(client).await.map_err(|error| db::explain(&error))
        });
        let answered = answered.await.unwrap_or_else(|_| Err("Postgres does not answer".into()));
        if answered.is_err() {
            // Whatever state it is in, the next attempt begins with a new one.
            self.client = None;
        }
        answered
    }
}

/// All leases of a process that is gone and whose journal is in Postgres. What it had promised to calls that left no record
/// is charged first: the provider may have been paid for them.
pub async fn release(client: &mut Client, boot: Uuid) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    let unconfirmed = limit_intents::charge_lost(&transaction, boot).await?;
    if unconfirmed > 0 {
        tracing::warn!(%boot, unconfirmed, "calls of a process that is gone left no record: what they were promised is charged");
    }
    transaction.execute("SELECT FROM limit_leases WHERE boot = $1 ORDER BY id FOR UPDATE", &[&boot]).await?;
    transaction.execute("DELETE FROM limit_leases WHERE boot = $1", &[&boot]).await?;
    transaction.execute("DELETE FROM limit_holders WHERE boot = $1", &[&boot]).await?;
    transaction.commit().await
}

/// The keys of counters as columns.
struct CounterKeys<'k> {
    organisations: Vec<OrganisationId>,
    scopes: Vec<&'k str>,
    scope_ids: Vec<&'k str>,
    units: Vec<&'k str>,
    periods: Vec<&'k str>,
    starts: Vec<DateTime<Utc>>,
    leases: Vec<Uuid>,
    ends: Vec<Option<DateTime<Utc>>>,
}

impl<'k> CounterKeys<'k> {
    fn from_questions(asked: &'k [(Counter, LeaseQuestion)]) -> Self {
        Self {
            organisations: asked.iter().map(|(counter, _)| counter.organisation()).collect(),
            scopes: asked.iter().map(|(counter, _)| counter.sort().scope()).collect(),
            scope_ids: asked.iter().map(|(counter, _)| counter.scope_id()).collect(),
            units: asked.iter().map(|(counter, _)| counter.unit().name()).collect(),
            periods: asked.iter().map(|(counter, _)| counter.sort().period()).collect(),
            starts: asked.iter().map(|(_, question)| time(question.starts_at)).collect(),
            leases: asked.iter().map(|(_, question)| question.lease).collect(),
            ends: asked.iter().map(|(_, question)| question.ends_at.map(time)).collect(),
        }
    }
}

fn time(moment: Micros) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(moment).unwrap_or_default()
}

/// Windows of seconds have no counter whose row could be locked: there would be one more every second.
const SECONDS: &str = "
    SELECT pg_advisory_xact_lock(place) FROM (SELECT DISTINCT hashtextextended(
            concat_ws('/', organisation_id, scope, scope_id, unit, extract(epoch FROM starts_at)), 0) AS place
        FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
            AS k (organisation_id, scope, scope_id, unit, period, starts_at)
        WHERE period = 'second' ORDER BY place) AS places";

const MISSING: &str = "
    INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
    SELECT k.*, 0 FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
        AS k (organisation_id, scope, scope_id, unit, period, starts_at)
    WHERE k.period <> 'second' ORDER BY 1, 2, 3, 4, 5, 6 ON CONFLICT DO NOTHING";

/// Money is counted in nano-cents here and in cents there. What does not fit is more than any cap.
const LOCKED: &str = "
    SELECT k.at, least(ceil(c.value * CASE c.unit WHEN 'cost' THEN 1000000000 ELSE 1 END), 1000000000000000000)::bigint
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
        WITH ORDINALITY AS k (organisation_id, scope, scope_id, unit, period, starts_at, at)
    JOIN usage_counters c USING (organisation_id, scope, scope_id, unit, period, starts_at)
    ORDER BY organisation_id, scope, scope_id, unit, period, starts_at FOR NO KEY UPDATE OF c";

/// Looked at after the locks are held: a statement sees what was committed when it began.
const PROMISED: &str = "
    SELECT k.at, least(ceil(sum(l.amount) * CASE k.unit WHEN 'cost' THEN 1000000000 ELSE 1 END),
        1000000000000000000)::bigint, bool_or(l.id <> k.lease AND l.amount > 0)
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::uuid[])
        WITH ORDINALITY AS k (organisation_id, scope, scope_id, unit, period, starts_at, lease, at)
    JOIN limit_leases l USING (organisation_id, scope, scope_id, unit, period, starts_at)
    WHERE l.ends_at IS NULL
        OR EXISTS (SELECT FROM limit_holders h WHERE h.boot = l.boot AND h.seen_at > now() - make_interval(secs => $8))
    GROUP BY k.at, k.unit";

const LEASED: &str = "
    INSERT INTO limit_leases AS l (id, boot, organisation_id, scope, scope_id, unit, period, starts_at, ends_at, amount)
    SELECT id, $9, organisation_id, scope, scope_id, unit, period, starts_at, ends_at,
        amount * CASE unit WHEN 'cost' THEN 0.000000001 ELSE 1 END
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::uuid[],
        $8::timestamptz[], $10::bigint[])
        AS k (organisation_id, scope, scope_id, unit, period, starts_at, id, ends_at, amount)
    WHERE amount > 0 ORDER BY id
    ON CONFLICT (id) DO UPDATE SET amount = l.amount + excluded.amount, granted_at = now()";

async fn granted(
    client: &mut Client,
    asked: &[(Counter, LeaseQuestion)],
    boot: Uuid,
    ttl: f64,
    replicas: u64,
) -> Result<Vec<LeaseAnswer>, Error> {
    let keys = CounterKeys::from_questions(asked);
    let CounterKeys { organisations, scopes, scope_ids, units, periods, starts, leases, ends } = &keys;
    let transaction = client.transaction().await?;
    if periods.contains(&"second") {
        transaction.execute(SECONDS, &[organisations, scopes, scope_ids, units, periods, starts]).await?;
    }
    transaction.execute(MISSING, &[organisations, scopes, scope_ids, units, periods, starts]).await?;
    let mut standings = vec![(StoreStanding { value: 0, promised: 0 }, false); asked.len()];
    for row in transaction.query(LOCKED, &[organisations, scopes, scope_ids, units, periods, starts]).await? {
        let (at, value): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if let Some((standing, _)) = standings.get_mut(place(at)) {
            standing.value = value.max(0).cast_unsigned();
        }
    }
    let open: [&(dyn ToSql + Sync); 8] = [organisations, scopes, scope_ids, units, periods, starts, leases, &ttl];
    for row in transaction.query(PROMISED, &open).await? {
        let (at, promised, others): (i64, i64, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if let Some((standing, has_others)) = standings.get_mut(place(at)) {
            (standing.promised, *has_others) = (promised.max(0).cast_unsigned(), others);
        }
    }
    let answers = asked.iter().zip(standings).map(|((_, question), (standing, others))| {
        let (granted, left) = grant(standing, question.wish, replicas);
        LeaseAnswer { granted, left, others }
    });
    let answers: Vec<LeaseAnswer> = answers.collect();
    let amounts: Vec<i64> =
        answers.iter().map(|answer| answer.granted.min(super::share::MAX_AMOUNT).cast_signed()).collect();
    transaction
        .execute(LEASED, &[organisations, scopes, scope_ids, units, periods, starts, leases, ends, &boot, &amounts])
        .await?;
    transaction.commit().await?;
    Ok(answers)
}

/// Places of questions are counted from 1.
fn place(at: i64) -> usize {
    usize::try_from(at - 1).unwrap_or(usize::MAX)
}

async fn given_back(client: &mut Client, shrinks: &[Shrink], released: &[Uuid]) -> Result<(), Error> {
    const SHRINK: &str = "UPDATE limit_leases l
        SET amount = greatest(0, l.amount - k.amount * CASE l.unit WHEN 'cost' THEN 0.000000001 ELSE 1 END)
        FROM unnest($1::uuid[], $2::bigint[]) AS k (id, amount) WHERE l.id = k.id";
    let transaction = client.transaction().await?;
    let leases: Vec<Uuid> = shrinks.iter().map(|shrink| shrink.lease).collect();
    let amounts: Vec<i64> =
        shrinks.iter().map(|shrink| shrink.amount.min(super::share::MAX_AMOUNT).cast_signed()).collect();
    lock(&transaction, leases.iter().chain(released).copied().collect()).await?;
    transaction.execute(SHRINK, &[&leases, &amounts]).await?;
    transaction.execute("DELETE FROM limit_leases WHERE id = ANY ($1)", &[&released]).await?;
    transaction.commit().await
}

async fn lock(transaction: &Transaction<'_>, leases: Vec<Uuid>) -> Result<(), Error> {
    const LOCK: &str = "SELECT FROM limit_leases WHERE id = ANY ($1) ORDER BY id FOR UPDATE";
    transaction.execute(LOCK, &[&leases]).await.map(drop)
}
