//! What explains a difference between a counter and its logs without a mistake. A cause counts only if it is large enough for the
//! whole difference; what it explains is reported and not mended.

use super::counter::Counter;
use super::logged::Span;
use super::{logged_in, oldest_day};
use chrono::NaiveDate;
use rust_decimal::Decimal;
use std::fmt;
use tokio_postgres::Transaction;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Retention dropped logs of the period.
    Expired(NaiveDate),
    Erased,
    /// Calls that were under way when the period began.
    UnderWay,
    /// Rows of a provider's batches that began before the period, charged when their answers were read.
    Batches,
    /// Proxies that had not heard of the new period counted for the old one.
    Unheard,
    /// The rule is another than it was in a part of the period.
    PolicyChanged,
    NoPolicy,
    TrustedMetadata,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired(day) => write!(f, "logs from before {day} have expired"),
            Self::Erased => f.write_str("logs were erased since"),
            Self::UnderWay => f.write_str("calls that were under way when the period began"),
            Self::Batches => {
                f.write_str("rows of batches of 24h that began before the period, charged when they were read")
            }
            Self::Unheard => f.write_str("calls right after the reset, by proxies that had not heard of it"),
            Self::PolicyChanged => f.write_str("the policy was changed in this period"),
            Self::NoPolicy => f.write_str("its policy is gone, so nobody can say which logs are meant"),
            Self::TrustedMetadata => {
                f.write_str("logs do not tell trusted metadata from others, so it cannot be verified")
            }
        }
    }
}

/// `logged` with what is unconfirmed.
pub async fn find(tx: &Transaction<'_>, counter: &Counter, logged: Decimal) -> anyhow::Result<Option<Cause>> {
    if counter.is_day_total() {
        return Ok(match is_erased(tx, counter).await? && counter.value > logged {
            true => Some(Cause::Erased),
            false => None,
        });
    }
    if counter.scope == "policy" && is_changed(tx, counter).await? {
        return Ok(Some(Cause::PolicyChanged));
    }
    if counter.value < logged {
        let beginning = summed(tx, counter, Span::Beginning).await?;
        return Ok((logged - counter.value <= beginning).then_some(Cause::Unheard));
    }
    if let Some(day) = oldest_day(tx).await?.filter(|day| counter.starts_at.date_naive() < *day) {
        return Ok(Some(Cause::Expired(day)));
    }
    let excess = counter.value - logged;
    for (span, cause) in [(Span::Before, Cause::UnderWay), (Span::BatchesBefore, Cause::Batches)] {
        if excess <= summed(tx, counter, span).await? {
            return Ok(Some(cause));
        }
    }
    Ok(is_erased(tx, counter).await?.then_some(Cause::Erased))
}

async fn summed(tx: &Transaction<'_>, counter: &Counter, span: Span) -> anyhow::Result<Decimal> {
    let found = logged_in(tx, std::slice::from_ref(counter), span).await?;
    Ok(found.into_iter().next().and_then(Result::ok).unwrap_or_default())
}

async fn is_changed(tx: &Transaction<'_>, counter: &Counter) -> anyhow::Result<bool> {
    // A reset changes it too, and begins the period.
    const CHANGED: &str = "SELECT EXISTS (SELECT FROM audit_logs WHERE organisation_id = $1 AND resource_id = $2
        AND created_at > $3::timestamptz + interval '1 second' AND before IS NOT NULL
        AND (before -> 'conditions' IS DISTINCT FROM after -> 'conditions'
             OR before -> 'group_by' IS DISTINCT FROM after -> 'group_by'
             OR before -> 'type' IS DISTINCT FROM after -> 'type'))";
    let policy = counter.parts().0;
    Ok(tx.query_one(CHANGED, &[&counter.organisation_id, &policy, &counter.starts_at]).await?.try_get(0)?)
}

async fn is_erased(tx: &Transaction<'_>, counter: &Counter) -> anyhow::Result<bool> {
    const ERASED: &str = "SELECT EXISTS (SELECT FROM audit_logs WHERE organisation_id = $1 AND resource_type = 'logs'
        AND action = 'delete' AND created_at >= $2)";
    Ok(tx.query_one(ERASED, &[&counter.organisation_id, &counter.starts_at]).await?.try_get(0)?)
}
