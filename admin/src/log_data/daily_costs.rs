//! What the logs say that a provider's models cost, by day and model.

use anyhow::bail;
use chrono::{Days, NaiveDate, NaiveTime};
use rust_decimal::Decimal;
use tokio_postgres::Client;
use uuid::Uuid;

/// The most days that are added up.
pub const MAX_DAYS: usize = 400;
/// Names of models come from callers, so there may be any number of them.
const MAX_GROUPS: usize = 200_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCost {
    pub day: NaiveDate,
    pub model: String,
    pub dollars: Decimal,
    /// Calls whose price is not known, which a bill has all the same.
    pub unpriced: i64,
}

/// `first` and `last` are days of the sum. Without a workspace, of the whole installation: a bill is of an account, which any of
/// them may use.
pub async fn by_day_and_model(
    db: &Client,
    provider: &str,
    first: NaiveDate,
    last: NaiveDate,
    workspace: Option<Uuid>,
) -> anyhow::Result<Vec<LoggedCost>> {
    // By the day, so that each statement reads one partition. A product is exact, a quotient is rounded.
    const SUMS: &str =
        "SELECT coalesce(ai_model, requested_model, '') AS model, coalesce(sum(cost), 0) * 0.01 AS dollars,
             count(*) FILTER (WHERE cost IS NULL) AS unpriced
         FROM request_logs
         WHERE ai_org = $1 AND created_at >= $2 AND created_at < $3 AND ($4::uuid IS NULL OR workspace_id = $4)
         GROUP BY 1 HAVING sum(cost) <> 0 OR count(*) FILTER (WHERE cost IS NULL) > 0 ORDER BY 1 LIMIT 200001";
    let mut found = Vec::new();
    for day in first.iter_days().take(MAX_DAYS).take_while(|day| *day <= last) {
        let start = day.and_time(NaiveTime::MIN).and_utc();
        let rows = db.query(SUMS, &[&provider, &start, &(start + Days::new(1)), &workspace]).await?;
        for row in &rows {
            let (model, dollars, unpriced) = (row.try_get("model")?, row.try_get("dollars")?, row.try_get("unpriced")?);
            found.push(LoggedCost { day, model, dollars, unpriced });
        }
        if found.len() > MAX_GROUPS {
            bail!("the logs of these days name more than {MAX_GROUPS} models: compare fewer days");
        }
    }
    Ok(found)
}
