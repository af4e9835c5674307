//! `GET /guardrails/checks`: every check that a guardrail may have, with its parameters.

use super::check_table;
use crate::crud::{self, Answer};

pub async fn list() -> Answer {
    let data = check_table::listed();
    Ok(crud::listed(i64::try_from(data.len()).unwrap_or(i64::MAX), data))
}
