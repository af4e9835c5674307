//! What every operation on analytics is asked: whose logs, of which time, with which filters. Explicit values win over those of
//! a saved filter.

use super::saved_filters;
use crate::app::App;
use crate::backpressure::db_queue::DbConnection;
use crate::backpressure::log_queries::LogQueryPermit;
use crate::http::ApiError;
use crate::identity::Call;
use crate::log_data::period::Period;
use crate::log_data::{CallsAsked, LogQuestion, LogView};
use serde_json::Value;

pub struct Asked<'a> {
    pub db: DbConnection<'a>,
    pub question: LogQuestion,
    /// Which workspaces it is about, for the answer.
    pub workspaces: Value,
    _turn: LogQueryPermit,
}

impl<'a> Asked<'a> {
    pub async fn of(app: &'a App, call: &Call) -> Result<Self, ApiError> {
        let saved_filter = call.query().uuid("saved_filter_id")?;
        if saved_filter.is_none() {
            // Before anything is waited for: a request without a time is refused at once.
            Period::asked(call.query())?;
        }
        let turn = app.log_queries.enter(call.caller.organisation_id()).await?;
        let db = app.db.get().await?;
        let query = match saved_filter {
            Some(id) => call.query().clone().or(saved_filters::query(&*db, &call.caller, id).await?),
            None => call.query().clone(),
        };
        let view = LogView::counted(&*db, &call.caller, query.text("workspace_slug")).await?;
        view.checked(&query)?;
        let period = Period::asked(&query)?;
        let workspaces = view.shown_workspaces(&*db).await?;
        Ok(Self { db, question: LogQuestion { view, query, period, calls: CallsAsked::All }, workspaces, _turn: turn })
    }

    /// The same of the time before, where `compare=previous` asks for it.
    pub fn previous(&self) -> Result<Option<LogQuestion>, ApiError> {
        let compares = !self.question.query.choices("compare", &["previous"])?.is_empty();
        Ok(compares.then(|| self.question.of_time(self.question.period.previous())))
    }
}
