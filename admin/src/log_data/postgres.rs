//! Logs and figures as Postgres has them: rows in `request_logs`, figures of slots in `usage_slots`.

use super::count;
use super::dimension::Dimension;
use super::feedback::{self, ModelFeedback};
use super::groups::{self, GroupQuestion, Groups};
use super::measure::Measure;
use super::page::{self, FoundLogs, LogPage};
use super::question::{LogQuestion, LogSearch};
use super::row::{self, FoundLog};
use super::series::{self, CountedRows, Occurrences, Occurring, Series};
use super::{ExportedLog, ExportedPart, LogData, LogView, explained, exported};
use crate::http::ApiError;
use serde_json::Value;
use tokio_postgres::{Client, GenericClient, IsolationLevel, Transaction};
use uuid::Uuid;

/// Through a connection, or a transaction where several questions are about one moment.
pub struct PostgresLogs<'c, C>(pub &'c C);

/// Whatever is asked in it is asked of the logs as they are at one moment.
pub async fn snapshot(db: &mut Client) -> Result<Transaction<'_>, ApiError> {
    let snapshot =
        db.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
    // Compiling a statement over every day of logs takes longer than running it.
    snapshot.batch_execute("SET LOCAL jit = off").await?;
    Ok(snapshot)
}

impl<C: GenericClient + Sync> LogData for PostgresLogs<'_, C> {
    async fn page(&self, which: &LogSearch<'_>, page: &LogPage) -> Result<FoundLogs, ApiError> {
        page::find(self.0, which, page).await
    }

    async fn count(&self, which: &LogSearch<'_>) -> Result<Option<i64>, ApiError> {
        count::count(self.0, &which.filter()?).await
    }

    async fn log(&self, view: &LogView, id: Uuid) -> Result<Option<FoundLog>, ApiError> {
        row::find(self.0, view, id).await
    }

    async fn request(&self, view: &LogView, name: &str) -> Result<Vec<FoundLog>, ApiError> {
        explained::find(self.0, view, name).await
    }

    async fn exported(&self, which: &LogSearch<'_>, part: &ExportedPart<'_>) -> Result<Vec<ExportedLog>, ApiError> {
        exported::find(self.0, which, part).await
    }

    async fn series(&self, asked: &LogQuestion, measures: &[Measure]) -> Result<Series, ApiError> {
        let (filter, slots) = (asked.filter()?, asked.slots());
        series::series(self.0, &CountedRows::logs(&filter, slots.as_ref()), asked.period.step(), measures).await
    }

    async fn divided(
        &self,
        asked: &LogQuestion,
        measures: &[Measure],
        by: &Dimension,
    ) -> Result<Vec<(Option<String>, Series)>, ApiError> {
        let (filter, slots) = (asked.filter()?, asked.slots());
        series::divided(self.0, &CountedRows::logs(&filter, slots.as_ref()), asked.period.step(), measures, by).await
    }

    async fn occurrences(&self, asked: &LogQuestion, occurring: Occurring) -> Result<Occurrences, ApiError> {
        let asked = asked.only(occurring.calls);
        let (filter, slots) = (asked.filter()?, asked.slots());
        let rows = CountedRows::logs(&filter, slots.as_ref());
        series::occurrences(self.0, &rows, asked.period.step(), occurring).await
    }

    async fn groups(&self, asked: &LogQuestion, groups: &GroupQuestion<'_>) -> Result<Groups, ApiError> {
        let (filter, slots) = (asked.filter()?, asked.slots());
        groups::groups(self.0, &asked.view, &filter, slots.as_ref(), groups).await
    }

    async fn totals(&self, asked: &LogQuestion, measures: &[Measure]) -> Result<Vec<Value>, ApiError> {
        let (filter, slots) = (asked.filter()?, asked.slots());
        groups::totals(self.0, &CountedRows::logs(&filter, slots.as_ref()), measures).await
    }

    async fn feedback(&self, asked: &LogQuestion, measures: &[Measure]) -> Result<Series, ApiError> {
        let filter = feedback::filter(asked)?;
        series::series(self.0, &feedback::rows(&filter), asked.period.step(), measures).await
    }

    async fn scores(&self, asked: &LogQuestion) -> Result<Vec<(i32, i64)>, ApiError> {
        feedback::scores(self.0, &feedback::filter(asked)?).await
    }

    async fn models_spoken_of(&self, asked: &LogQuestion) -> Result<Vec<ModelFeedback>, ApiError> {
        feedback::models(self.0, asked).await
    }
}
