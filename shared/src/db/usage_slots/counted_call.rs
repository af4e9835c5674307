//! What of a log is counted, as a statement selects it and as it is read.

use super::figures::MONEY_SCALE;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

/// The select list of what `CountedCall::read` takes.
pub const COLUMNS: &str = "organisation_id, workspace_id, created_at, ai_org, ai_model, virtual_key, config, prompt_slug, \
    prompt_version_id, api_key_id, metadata ->> '_user', cache_status, response_status_code, is_success, response_time, \
    retry_success_count, attempt, req_units, res_units, cost, cache_saved_cost, \
    CASE WHEN hook_results IS NOT NULL THEN ARRAY(SELECT DISTINCT coalesce(hook ->> 'id', '') FROM jsonb_array_elements( \
    coalesce(hook_results -> 'before_request_hooks', '[]') || coalesce(hook_results -> 'after_request_hooks', '[]')) AS hook) END";

#[derive(Debug, Clone)]
pub struct CountedCall<'r> {
    pub organisation_id: Uuid,
    pub workspace_id: Uuid,
    pub created_at: DateTime<Utc>,
    pub ai_org: Option<&'r str>,
    pub ai_model: Option<&'r str>,
    pub provider: Option<&'r str>,
    pub config: Option<&'r str>,
    pub prompt_slug: Option<&'r str>,
    pub prompt_version_id: Option<Uuid>,
    pub api_key_id: Option<Uuid>,
    pub user: Option<&'r str>,
    pub cache_status: &'r str,
    pub status_code: i32,
    pub is_success: bool,
    pub response_time: i32,
    pub retries: i16,
    pub attempt: i16,
    pub req_units: u64,
    pub res_units: u64,
    /// 10⁻¹⁰ US cents; 0 where no price is known.
    pub cost: u128,
    pub saved: u128,
    /// Each once, whatever its hooks and checks.
    pub guardrails: Vec<&'r str>,
}

impl<'r> CountedCall<'r> {
    pub fn read(row: &'r Row) -> Result<Self, Error> {
        let units = |place: usize| row.try_get::<_, i64>(place).map(|units| units.max(0).unsigned_abs());
        let money = |place: usize| row.try_get::<_, Option<Decimal>>(place).map(|cents| cents.map_or(0, smallest));
        Ok(Self {
            organisation_id: row.try_get(0)?,
            workspace_id: row.try_get(1)?,
            created_at: row.try_get(2)?,
            ai_org: row.try_get(3)?,
            ai_model: row.try_get(4)?,
            provider: row.try_get(5)?,
            config: row.try_get(6)?,
            prompt_slug: row.try_get(7)?,
            prompt_version_id: row.try_get(8)?,
            api_key_id: row.try_get(9)?,
            user: row.try_get(10)?,
            cache_status: row.try_get(11)?,
            status_code: row.try_get(12)?,
            is_success: row.try_get(13)?,
            response_time: row.try_get(14)?,
            retries: row.try_get(15)?,
            attempt: row.try_get(16)?,
            req_units: units(17)?,
            res_units: units(18)?,
            cost: money(19)?,
            saved: money(20)?,
            guardrails: row.try_get::<_, Option<Vec<&str>>>(21)?.unwrap_or_default(),
        })
    }

    pub fn is_simple_hit(&self) -> bool {
        self.cache_status == "HIT"
    }

    pub fn is_hit(&self) -> bool {
        self.is_simple_hit() || self.cache_status == "SEMANTIC HIT"
    }
}

/// Cents as a whole number of their smallest part; the column has no smaller ones.
fn smallest(cents: Decimal) -> u128 {
    let (units, scale) = (cents.mantissa().max(0).unsigned_abs(), cents.scale());
    match scale <= MONEY_SCALE {
        true => units * 10_u128.pow(MONEY_SCALE - scale),
        false => units / 10_u128.pow(scale - MONEY_SCALE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_counted_exactly() {
        for (cents, units) in [("0", 0), ("1", 10_000_000_000), ("0.35", 3_500_000_000), ("0.0000000001", 1), ("-1", 0)]
        {
            assert_eq!(smallest(cents.parse().unwrap()), units, "{cents}");
        }
        assert_eq!(smallest("99999999999999.9999999999".parse().unwrap()), 999_999_999_999_999_999_999_999);
    }
}
