//! What was thought of calls, by a name of their metadata: feedback is of traces and may come at any time, so figures of slots do
//! not hold it. It is found from the side of feedback, of which there is much less than of calls.

use super::LogView;
use super::counted::ValueOf;
use super::measure::{self, Measure};
use super::period::Period;
use super::traces::SoughtTraces;
use crate::http::ApiError;
use rust_decimal::Decimal;
use shared::db::table::Filter;
use std::collections::HashMap;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Of the calls of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedbackFigures {
    /// Those on whose trace there is feedback.
    pub calls: Decimal,
    /// The average of what was said of each.
    pub average: Decimal,
}

impl FeedbackFigures {
    /// 0 of what is not about feedback.
    pub fn measured(self, measure: &Measure) -> Decimal {
        match *measure {
            measure::FEEDBACK_COUNT => self.calls,
            measure::AVG_FEEDBACK => self.average,
            _ => Decimal::ZERO,
        }
    }
}

/// By the value of this name, with its workspace where `by` says so. `filter` is the condition on calls, which are all of this
/// period.
pub async fn by_metadata(
    db: &impl GenericClient,
    view: &LogView,
    period: Period,
    filter: &Filter,
    name: &str,
    by: ValueOf,
) -> Result<HashMap<String, FeedbackFigures>, ApiError> {
    let given = view.tenant_filter();
    let sought = SoughtTraces::find(db, &given, &given, period).await?;
    let mut values = given.values();
    values.extend(filter.values());
    values.push(&name);
    let n = values.len();
    let columns = format!("workspace_id, trace_id, coalesce(metadata ->> ${n}::text, '') AS value");
    let workspace = if by.is_in_workspace() { "workspace_id" } else { "NULL::uuid" };
    // Apart from each other (`OFFSET 0`): planning them together takes longer than finding them.
    let sql = format!(
        "SELECT {workspace} AS workspace, value, count(*)::numeric AS calls, round(avg(said), 10) AS average
         FROM (SELECT workspace_id AS given_in, trace_id AS given_on, avg(weighted) AS said FROM feedback
             WHERE {} GROUP BY 1, 2) AS thoughts
         JOIN (SELECT * FROM ({}) AS found OFFSET 0) AS calls ON workspace_id = given_in AND trace_id = given_on
         GROUP BY 1, 2",
        given.sql(),
        SoughtTraces::calls(sought.as_ref(), &given.sql(), &columns, &filter.sql_after(&given), n),
    );
    values.extend(sought.iter().flat_map(SoughtTraces::values));
    let rows = db.query(&sql, &values).await?;
    let read = rows.iter().map(|row| {
        let workspace: Option<Uuid> = row.try_get("workspace")?;
        let name = by.shown(row.try_get("value")?, &by.workspace(workspace.unwrap_or_default())).into_owned();
        Ok((name, FeedbackFigures { calls: row.try_get("calls")?, average: row.try_get("average")? }))
    });
    read.collect::<Result<_, tokio_postgres::Error>>().map_err(ApiError::from)
}
