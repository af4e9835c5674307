//! What every operation on analytics is asked: whose logs, of which time, with which filters. Explicit values win over those of
//! a saved filter. What it wants to know of them is a `Question`, which knows no request: it is answered alone, or with others
//! in one snapshot (`several`).

use super::saved_filters;
use crate::app::App;
use crate::http::backpressure::db_queue::DbConnection;
use crate::http::backpressure::log_queries::LogQueryPermit;
use crate::http::{ApiError, Query};
use crate::identity::Call;
use crate::log_data::analytics::csv;
use crate::log_data::period::Period;
use crate::log_data::{CallsAsked, LogQuestion, LogView, snapshot};
use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio_postgres::Transaction;

/// Something to know of logs, read and checked as far as that needs no logs.
pub trait Question: Send + Sync {
    /// Refuses who may not know it.
    fn check(&self, view: &LogView) -> Result<(), ApiError>;

    /// As the interface shows it.
    fn answer(&self, tx: &Transaction<'_>, asked: &Asked) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// An answer as rows, for who asks for CSV.
    fn sheet(&self, answer: &Value) -> Vec<Value>;
}

/// Which logs questions are about.
pub struct Asked {
    pub question: LogQuestion,
    /// The same of the time before, where `compare=previous` asks for it.
    pub previous: Option<LogQuestion>,
    /// Which workspaces it is about, for the answer.
    pub workspaces: Value,
}

/// Those, with a connection and the turn to look at them.
pub struct Admitted<'a> {
    pub db: DbConnection<'a>,
    pub asked: Asked,
    _turn: LogQueryPermit,
}

impl<'a> Admitted<'a> {
    pub async fn wait(app: &'a App, call: &Call, sent: &Query) -> Result<Self, ApiError> {
        let saved_filter = sent.uuid("saved_filter_id")?;
        if saved_filter.is_none() {
            // Before anything is waited for: a request without a time is refused at once.
            Period::asked(sent)?;
        }
        let turn = app.log_queries.enter(call.caller.organisation_id()).await?;
        let db = app.db.get().await?;
        let query = match saved_filter {
            Some(id) => sent.clone().or(saved_filters::query(&*db, &call.caller, id).await?),
            None => sent.clone(),
        };
        let view = LogView::counted(&*db, &call.caller, query.text("workspace_slug")).await?;
        view.checked(&query)?;
        let period = Period::asked(&query)?;
        let compares = !query.choices("compare", &["previous"])?.is_empty();
        let workspaces = view.shown_workspaces(&*db).await?;
        let question = LogQuestion { view, query, period, calls: CallsAsked::All };
        let previous = compares.then(|| question.of_time(period.previous()));
        Ok(Self { db, asked: Asked { question, previous, workspaces }, _turn: turn })
    }
}

/// The whole of an operation that is one question.
pub async fn answered_alone(app: &App, call: &Call, question: &impl Question) -> Result<Response, ApiError> {
    let mut admitted = Admitted::wait(app, call, call.query()).await?;
    question.check(&admitted.asked.question.view)?;
    // All that is found is of one moment, whatever is stored meanwhile.
    let tx = snapshot(&mut admitted.db).await?;
    let answer = question.answer(&tx, &admitted.asked).await?;
    tx.commit().await?;
    Ok(match csv::is_wanted(&call.origin.headers) {
        true => csv::response(&question.sheet(&answer)),
        false => Json(answer).into_response(),
    })
}
