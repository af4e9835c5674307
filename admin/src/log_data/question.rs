//! What can be asked: a search for logs, and a question about all that match.

use super::counted::SlotCondition;
use super::period::Period;
use super::slots::Slots;
use super::{LogView, filters};
use crate::http::{ApiError, Query};
use chrono::{DateTime, Utc};
use shared::db::table::Filter;

/// Logs that a list or an export has.
#[derive(Debug, Clone, Copy)]
pub struct LogSearch<'s> {
    pub view: &'s LogView,
    pub query: &'s Query,
    /// Only those of this moment and later, beside what the query says.
    pub since: Option<DateTime<Utc>>,
}

impl LogSearch<'_> {
    /// Refuses what cannot be asked, before anything is.
    pub fn check(&self) -> Result<(), ApiError> {
        self.filter().map(drop)
    }

    pub(super) fn filter(&self) -> Result<Filter, ApiError> {
        let filter = self.view.narrowed(self.query)?;
        Ok(match self.since {
            Some(since) => filter.and("created_at >= ?", since),
            None => filter,
        })
    }
}

/// Calls that figures are about: whose, of which time, with which filters.
#[derive(Debug, Clone)]
pub struct LogQuestion {
    pub view: LogView,
    pub query: Query,
    pub period: Period,
    pub calls: CallsAsked,
}

/// Which of the calls that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsAsked {
    All,
    Failed,
    /// Those that a retry saved.
    Retried,
    /// Those that name their user.
    OfUsers,
}

impl LogQuestion {
    /// The same of some of the calls.
    pub fn only(&self, calls: CallsAsked) -> Self {
        Self { calls, ..self.clone() }
    }

    /// The same of another time.
    pub fn of_time(&self, period: Period) -> Self {
        Self { period, ..self.clone() }
    }

    /// The condition on logs.
    pub(super) fn filter(&self) -> Result<Filter, ApiError> {
        let filter = within(self.view.filter(), self.period);
        let filter = filter.join(filters::attributes(&self.query)?).join(filters::with_feedback(&self.query)?);
        Ok(match self.calls.on_logs() {
            Some(condition) => filter.holds(condition),
            None => filter,
        })
    }

    /// What slots may know of it.
    pub(super) fn slots(&self) -> Option<Slots> {
        let slots = Slots::asked(&self.view, &self.query, self.period)?;
        Some(slots.holding(self.calls.on_slots()))
    }
}

impl CallsAsked {
    fn on_logs(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Failed => Some("NOT is_success"),
            Self::Retried => Some("is_success AND retry_success_count > 0"),
            Self::OfUsers => Some("metadata ->> '_user' IS NOT NULL"),
        }
    }

    /// Slots of retries have no others.
    fn on_slots(self) -> SlotCondition {
        match self {
            Self::All | Self::Retried => SlotCondition::All,
            Self::Failed => SlotCondition::Failed,
            Self::OfUsers => SlotCondition::Named,
        }
    }
}

/// A period as a condition on a time.
pub(super) fn within(filter: Filter, period: Period) -> Filter {
    filter.and("created_at >= ?", period.from).and("created_at < ?", period.until)
}
