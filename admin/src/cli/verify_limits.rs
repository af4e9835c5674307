//! Whether counters are what the logs add up to: every budget in its running period, and the totals of the day. A row and what it
//! is charged are stored in one transaction, so a difference is a mistake, or has one of a few causes that the report names.
//!
//! - `counter`: which counters there are
//! - `logged`: what the logs of a key, a workspace, a provider or a token say
//! - `of_policies`: the same of the groups of a policy, by its rule
//! - `cause`: what explains a difference
//! - `mend`: setting a counter right
//!
//! Rates are left out: their windows end before anybody reads this. Counters come in pages and logs are added up in Postgres or
//! read through a portal, so memory is bounded however many there are.

mod cause;
mod counter;
mod logged;
mod mend;
mod of_policies;

pub use cause::Cause;
pub use counter::Counter;

use counter::CounterPages;
use rust_decimal::Decimal;
use std::fmt;
use tokio_postgres::{Client, GenericClient, IsolationLevel};
use uuid::Uuid;

/// What was found of one counter that is not what the logs say.
#[derive(Debug)]
pub struct Finding {
    pub counter: Counter,
    /// What the logs add up to, with what is charged until somebody confirms it.
    pub logged: Decimal,
    pub cause: Option<Cause>,
    pub is_mended: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    pub counters: u64,
    pub explained: u64,
    pub mended: u64,
    /// Differences that nothing explains and nobody mended.
    pub left: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { counter, logged, cause, is_mended } = self;
        let difference = (counter.value - logged).normalize();
        let (value, logged) = (counter.value.normalize(), logged.normalize());
        write!(f, "{counter}: counted {value}, logged {logged}, difference {difference}")?;
        if !counter.leased.is_zero() {
            write!(f, ", {} in leases of proxies", counter.leased.normalize())?;
        }
        match (cause, is_mended) {
            (Some(cause), _) => write!(f, "; {cause}"),
            (None, true) => write!(f, "; mended"),
            (None, false) => write!(f, "; unexplained"),
        }
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { counters, explained, mended, left } = self;
        write!(f, "{counters} counters verified: {explained} differences explained, {mended} mended, {left} left")
    }
}

/// Looks at all counters, of one organisation or of all, and tells each that differs.
pub async fn verify(
    db: &mut Client,
    organisation: Option<Uuid>,
    is_mending: bool,
    tell: &mut dyn FnMut(&Finding),
) -> anyhow::Result<Verified> {
    let mut verified = Verified::default();
    let mut pages = CounterPages::new(organisation);
    loop {
        // Counters and logs as they were at one moment.
        let tx = db.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
        let Some(page) = pages.next(&tx).await? else { break };
        verified.counters += page.len() as u64;
        let findings = differences(&tx, page).await?;
        tx.commit().await?;
        for mut finding in findings {
            if finding.cause.is_some() {
                verified.explained += 1;
            } else if is_mending && mend::mend(db, &mut finding).await? {
                verified.mended += 1;
            } else if !finding.is_gone() {
                verified.left += 1;
            }
            tell(&finding);
        }
    }
    Ok(verified)
}

impl Finding {
    /// It agrees meanwhile.
    fn is_gone(&self) -> bool {
        self.counter.value == self.logged
    }
}

async fn differences(tx: &tokio_postgres::Transaction<'_>, page: Vec<Counter>) -> anyhow::Result<Vec<Finding>> {
    let logged = logged_in(tx, &page, logged::Span::Period).await?;
    let mut findings = Vec::new();
    for (counter, logged) in page.into_iter().zip(logged) {
        let (logged, unverifiable) = match logged {
            Ok(logged) => (logged + counter.unconfirmed, None),
            Err(cause) => (counter.value, Some(cause)),
        };
        if counter.value == logged && unverifiable.is_none() {
            continue;
        }
        let cause = match unverifiable {
            Some(cause) => Some(cause),
            None => cause::find(tx, &counter, logged).await?,
        };
        findings.push(Finding { counter, logged, cause, is_mended: false });
    }
    Ok(findings)
}

/// What the logs of each counter say; a cause where they cannot.
async fn logged_in(
    tx: &tokio_postgres::Transaction<'_>,
    counters: &[Counter],
    span: logged::Span,
) -> anyhow::Result<Vec<Result<Decimal, Cause>>> {
    let mut found: Vec<Result<Decimal, Cause>> = counters.iter().map(|_| Ok(Decimal::ZERO)).collect();
    logged::add_up(tx, counters, span, &mut found).await?;
    of_policies::add_up(tx, counters, span, &mut found).await?;
    Ok(found)
}

/// The day of the oldest logs that are left.
async fn oldest_day(db: &impl GenericClient) -> Result<Option<chrono::NaiveDate>, tokio_postgres::Error> {
    Ok(shared::db::request_logs::days::days(db).await?.first().copied())
}
