//! What every operation on analytics is asked: whose logs, of which time, with which filters. Explicit values win over those of
//! a saved filter.

use super::saved_filters;
use crate::analytics::period::Period;
use crate::analytics::series::within;
use crate::analytics::slots::Slots;
use crate::app::App;
use crate::backpressure::db_queue::DbConnection;
use crate::backpressure::log_queries::LogQueryPermit;
use crate::http::{ApiError, Query};
use crate::identity::Call;
use crate::logs::{LogView, filters};
use shared::db::table::Filter;

pub struct Asked<'a> {
    pub db: DbConnection<'a>,
    pub query: Query,
    pub view: LogView,
    pub period: Period,
    _turn: LogQueryPermit,
}

impl<'a> Asked<'a> {
    pub async fn of(app: &'a App, call: &Call) -> Result<Self, ApiError> {
        // Before anything is waited for: a request without a time is refused at once.
        Period::asked(call.query())?;
        let turn = app.log_queries.enter(call.caller.organisation_id()).await?;
        let db = app.db.get().await?;
        let query = match call.query().uuid("saved_filter_id")? {
            Some(id) => call.query().clone().or(saved_filters::query(&*db, &call.caller, id).await?),
            None => call.query().clone(),
        };
        let view = LogView::counted(&*db, &call.caller, query.text("workspace_slug")).await?;
        view.checked(&query)?;
        let period = Period::asked(&query)?;
        Ok(Self { db, query, view, period, _turn: turn })
    }

    /// The logs that are counted.
    pub fn filter(&self) -> Result<Filter, ApiError> {
        self.filter_of(self.period)
    }

    /// The same of another time.
    pub fn filter_of(&self, period: Period) -> Result<Filter, ApiError> {
        let filter = within(self.view.filter(), period);
        Ok(filter.join(filters::attributes(&self.query)?).join(filters::with_feedback(&self.query)?))
    }

    /// What slots may know of it.
    pub fn slots(&self) -> Option<Slots> {
        self.slots_of(self.period)
    }

    /// The same of another time.
    pub fn slots_of(&self, period: Period) -> Option<Slots> {
        Slots::asked(&self.view, &self.query, period)
    }
}
