//! A page of logs, newest first. There may be very many, so the total is exact up to a bound and where it can be counted
//! soon, and says when it is not; whoever wants to go further than that goes on from the last log seen instead of by numbers.

use super::count::{COUNTED, count};
use super::filters;
use super::question::LogSearch;
use super::row::{self, FoundLog};
use crate::http::{ApiError, PageSizes, Query};
use shared::db::table::Filter;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

pub struct LogPage {
    size: i64,
    offset: i64,
    /// Only what is older than this log.
    after: Option<Uuid>,
}

pub struct FoundLogs {
    pub total: i64,
    pub is_capped: bool,
    pub rows: Vec<FoundLog>,
}

pub fn asked(query: &Query, sizes: PageSizes) -> Result<LogPage, ApiError> {
    let (size, offset) = query.page(sizes)?;
    let after = query.uuid("after")?;
    if after.is_some_and(|id| filters::time_in(id).is_none()) {
        return Err(ApiError::field("after", "must be the id of a log"));
    }
    if offset > COUNTED {
        let message = format!("must not lead beyond {COUNTED} logs; go on with `after`");
        return Err(ApiError::field("current_page", message));
    }
    Ok(LogPage { size, offset, after })
}

pub(super) async fn find(
    db: &impl GenericClient,
    which: &LogSearch<'_>,
    page: &LogPage,
) -> Result<FoundLogs, ApiError> {
    let filter = which.filter()?;
    let place = page.after.and_then(|id| Some((filters::time_in(id)?, id)));
    let mut values = filter.values();
    if let Some((time, id)) = &place {
        values.extend([time as &(dyn ToSql + Sync), id]);
    }
    values.extend([&page.size as &(dyn ToSql + Sync), &page.offset]);
    let rows = db.query(&sql(&filter, place.is_some()), &values).await?;
    let rows = rows.iter().map(|row| FoundLog::read(row, which.view)).collect::<Result<Vec<_>, _>>()?;
    let seen = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    // A page that is not full is the last one, and says how many there are.
    let is_last = place.is_none() && seen < page.size && (seen > 0 || page.offset == 0);
    let counted = match is_last {
        true => Some(page.offset + seen),
        false => count(db, &filter).await?,
    };
    Ok(match counted {
        Some(counted) => FoundLogs { total: counted.min(COUNTED), is_capped: counted > COUNTED, rows },
        None => FoundLogs { total: (page.offset + seen).min(COUNTED), is_capped: true, rows },
    })
}

impl FoundLogs {
    /// What to send as `after` for the page behind this one; none when this one is not full.
    pub fn next(&self, page: &LogPage) -> Option<Uuid> {
        let is_full = i64::try_from(self.rows.len()).is_ok_and(|count| count == page.size);
        self.rows.last().filter(|_| is_full).map(|log| log.id)
    }
}

/// The bound beside the comparison of pairs is for partitions, which Postgres leaves out by single columns only.
fn sql(filter: &Filter, is_placed: bool) -> String {
    let (columns, matching, n) = (row::columns(), filter.sql(), filter.values().len());
    let (place, n) = match is_placed {
        true => (format!("AND created_at <= ${0} AND (created_at, id) < (${0}, ${1})", n + 1, n + 2), n + 2),
        false => (String::new(), n),
    };
    format!(
        "SELECT {columns} FROM request_logs WHERE {matching} {place} ORDER BY created_at DESC, id DESC LIMIT ${} OFFSET ${}",
        n + 1,
        n + 2
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<(i64, i64, bool), String> {
        let page = asked(&Query::parse(Some(query)).unwrap(), PageSizes::USUAL).map_err(|error| error.to_string())?;
        Ok((page.size, page.offset, page.after.is_some()))
    }

    #[test]
    fn pages_go_by_number_up_to_the_bound_and_by_place_beyond() {
        assert_eq!(page(""), Ok((50, 0, false)));
        assert_eq!(page("page_size=100&current_page=100"), Ok((100, 10_000, false)));
        assert!(page("page_size=100&current_page=101").unwrap_err().starts_with("current_page"));
        assert_eq!(page("after=019a0000-0000-7000-8000-000000000000"), Ok((50, 0, true)));
        for wrong in ["after=1", "after=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11"] {
            assert!(page(wrong).unwrap_err().starts_with("after"), "{wrong}");
        }
    }

    #[test]
    fn a_place_stands_between_the_conditions_and_the_size() {
        let sql = sql(&Filter::default().equals("organisation_id", Uuid::nil()), true);
        assert!(sql.contains("WHERE organisation_id = $1 AND created_at <= $2"), "{sql}");
        assert!(sql.contains("(created_at, id) < ($2, $3)"), "{sql}");
        assert!(sql.contains("LIMIT $4 OFFSET $5"), "{sql}");
    }
}
