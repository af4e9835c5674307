//! The one door to logs of calls and to figures about them: rows, groups and series (`LogData`). Whoever lists, shows, exports,
//! explains or counts calls asks here, in words of the interface; how they are stored only this room knows, and what brings rows
//! in and takes them out (`shared::db::request_logs`). Today that is Postgres (`PostgresLogs`).
//!
//! Whose logs are asked about says a `LogView`, without which nothing can be asked: whoever may not see a log does not see it
//! counted either. Which of them says a query (`filters`). What can be measured is a table (`measure`), what calls can be grouped by
//! another (`dimension`). Where slots of time have the answer it is read from them (`slots`, `cover`), otherwise from the logs.

pub mod analytics;
pub mod arrivals;
pub mod charged;
mod count;
mod counted;
mod cover;
pub mod daily_costs;
pub mod dimension;
mod explained;
mod exported;
mod feedback;
mod feedback_figures;
pub mod filters;
mod groups;
pub mod measure;
pub mod page;
pub mod period;
mod postgres;
mod question;
mod rolled;
pub mod row;
mod series;
mod slots;
pub mod tail;
mod traces;
pub mod view;

pub use count::COUNTED;
pub use exported::{ExportedLog, ExportedPart};
pub use feedback::ModelFeedback;
pub use groups::{Group, GroupBy, GroupQuestion, Groups, MAX_GROUPS, Order, OrderBy};
pub use page::{FoundLogs, LogPage};
pub use postgres::{PostgresLogs, snapshot};
pub use question::{CallsAsked, LogQuestion, LogSearch};
pub use row::{COST_UNIT, FoundLog};
pub use series::{ERROR_CODES, Occurrences, Occurring, RETRIES, Series, running_sums};
pub use view::LogView;

use crate::http::ApiError;
use dimension::Dimension;
use measure::Measure;
use serde_json::Value;
use uuid::Uuid;

/// Reads logs, and figures about them, in the order and the shape that the interface has.
pub trait LogData: Sync {
    /// A page of logs, newest first.
    fn page(&self, which: &LogSearch<'_>, page: &LogPage) -> impl Future<Output = Result<FoundLogs, ApiError>> + Send;

    /// How many there are, up to one beyond `COUNTED`; none when finding out would take long.
    fn count(&self, which: &LogSearch<'_>) -> impl Future<Output = Result<Option<i64>, ApiError>> + Send;

    /// One log by its id.
    fn log(&self, view: &LogView, id: Uuid) -> impl Future<Output = Result<Option<FoundLog>, ApiError>> + Send;

    /// The logs of one request by the id of any of them, or of all requests of a trace; some hundreds at most, in no order.
    fn request(&self, view: &LogView, name: &str) -> impl Future<Output = Result<Vec<FoundLog>, ApiError>> + Send;

    /// The next logs of an export, newest first.
    fn exported(
        &self,
        which: &LogSearch<'_>,
        part: &ExportedPart<'_>,
    ) -> impl Future<Output = Result<Vec<ExportedLog>, ApiError>> + Send;

    /// Measures of calls over time.
    fn series(
        &self,
        asked: &LogQuestion,
        measures: &[Measure],
    ) -> impl Future<Output = Result<Series, ApiError>> + Send;

    /// The series of each of the commonest values, commonest first, and of all the others together (`None`).
    fn divided(
        &self,
        asked: &LogQuestion,
        measures: &[Measure],
        by: &Dimension,
    ) -> impl Future<Output = Result<Vec<(Option<String>, Series)>, ApiError>> + Send;

    /// How often each of some numbers occurs, in each slot.
    fn occurrences(
        &self,
        asked: &LogQuestion,
        occurring: Occurring,
    ) -> impl Future<Output = Result<Occurrences, ApiError>> + Send;

    /// Measures of calls by what they have in common, a page of them.
    fn groups(
        &self,
        asked: &LogQuestion,
        groups: &GroupQuestion<'_>,
    ) -> impl Future<Output = Result<Groups, ApiError>> + Send;

    /// Measures of all calls together.
    fn totals(
        &self,
        asked: &LogQuestion,
        measures: &[Measure],
    ) -> impl Future<Output = Result<Vec<Value>, ApiError>> + Send;

    /// Measures of feedback over time.
    fn feedback(
        &self,
        asked: &LogQuestion,
        measures: &[Measure],
    ) -> impl Future<Output = Result<Series, ApiError>> + Send;

    /// How often each score was given, from the lowest.
    fn scores(&self, asked: &LogQuestion) -> impl Future<Output = Result<Vec<(i32, i64)>, ApiError>> + Send;

    /// Feedback by the models of its trace's calls.
    fn models_spoken_of(
        &self,
        asked: &LogQuestion,
    ) -> impl Future<Output = Result<Vec<ModelFeedback>, ApiError>> + Send;
}
