//! The logs of one request: one for each target that it tried.

use super::{FoundLog, LogView, filters, row};
use crate::http::ApiError;
use crate::identity::tenancy;
use chrono::TimeDelta;
use shared::db::table::Filter;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// One request has fewer targets than this.
const MAX_ROWS: i64 = 256;

/// By the id of any of its logs, or else by the name of a trace.
pub(super) async fn find(db: &impl GenericClient, view: &LogView, name: &str) -> Result<Vec<FoundLog>, ApiError> {
    const NAME: &str = "SELECT trace_id, internal_trace_id FROM request_logs WHERE";
    let named = match tenancy::id(name).and_then(filters::by_id) {
        Some(by_id) => {
            let filter = view.filter().join(by_id);
            db.query_opt(&format!("{NAME} {}", filter.sql()), &filter.values()).await?
        }
        None => None,
    };
    let filter = match named {
        Some(row) => of_request(view, row.try_get("trace_id")?, row.try_get("internal_trace_id")?),
        None => view.filter().equals("trace_id", name.to_owned()),
    };
    let found = format!("SELECT {} FROM request_logs WHERE {} LIMIT {MAX_ROWS}", row::columns(), filter.sql());
    let rows = db.query(&found, &filter.values()).await?;
    Ok(rows.iter().map(|row| FoundLog::read(row, view)).collect::<Result<_, _>>()?)
}

/// All rows of one request: they begin with it, and a request does not take a day.
fn of_request(view: &LogView, trace: String, request: Uuid) -> Filter {
    let filter = view.filter().equals("trace_id", trace).equals("internal_trace_id", request);
    match filters::time_in(request) {
        Some(began) => {
            filter.and("created_at >= ?", began).and("created_at < ?", began + TimeDelta::days(1) + TimeDelta::hours(1))
        }
        None => filter,
    }
}
