//! The statements that build slots, from logs and from smaller slots. What calls are grouped by is a table: each call is counted
//! once under each name of it that it has a value for.

use chrono::TimeDelta;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotSize {
    Minute,
    HalfHour,
    Day,
}

impl SlotSize {
    pub const ALL: [Self; 3] = [Self::Minute, Self::HalfHour, Self::Day];

    pub fn minutes(self) -> i16 {
        match self {
            Self::Minute => 1,
            Self::HalfHour => 30,
            Self::Day => 1440,
        }
    }

    pub fn width(self) -> TimeDelta {
        TimeDelta::minutes(self.minutes().into())
    }

    pub(super) fn smaller(self) -> Self {
        match self {
            Self::Minute | Self::HalfHour => Self::Minute,
            Self::Day => Self::HalfHour,
        }
    }

    pub(super) fn wider(self) -> Option<Self> {
        match self {
            Self::Minute => Some(Self::HalfHour),
            Self::HalfHour => Some(Self::Day),
            Self::Day => None,
        }
    }
}

/// Names, and what they are of a log. A null is not counted under the name; users have a letter before theirs, so that an empty
/// name is not the same as none.
static DIMENSIONS: &[(&str, &str)] = &[
    ("", "''"),
    ("ai_service", "coalesce(ai_org, '')"),
    ("model", "coalesce(ai_model, '')"),
    ("service_model", "ai_org || '__' || ai_model"),
    ("status_code", "response_status_code::text"),
    ("api_key", "coalesce(api_key_id::text, '')"),
    ("config", "coalesce(config, '')"),
    ("provider", "coalesce(virtual_key, '')"),
    ("prompt", "coalesce(prompt_slug, '')"),
    ("prompt_version", "coalesce(prompt_version_id::text, '')"),
    ("cache_status", "cache_status"),
    ("retries", "CASE WHEN is_success AND retry_success_count > 0 THEN retry_success_count::text END"),
    ("user", "coalesce('u' || (metadata ->> '_user'), '')"),
];

/// Figures of slots that are added up.
const SUMS: &[&str] = &[
    "requests",
    "user_requests",
    "errors",
    "req_units",
    "res_units",
    "cost",
    "simple_hits",
    "semantic_hits",
    "simple_saved",
    "semantic_saved",
    "saved",
    "response_time",
    "hit_time",
    "retried",
    "fallen",
];

fn columns() -> String {
    format!(
        "organisation_id, workspace_id, size, slot, dimension, value, {}, first_seen, last_seen, buckets, counts",
        SUMS.join(", ")
    )
}

/// `$1` are the beginnings of slots, `$2` their width in minutes.
pub fn build_from_logs() -> String {
    let dimensions: Vec<String> =
        DIMENSIONS.iter().map(|(name, sql)| format!("('{name}', left({sql}, 500))")).collect();
    let by_bucket = format!(
        "SELECT organisation_id, workspace_id, piece.slot, by.dimension, by.value, latency_bucket(response_time) AS bucket,
             count(*) AS requests, count(metadata ->> '_user') AS user_requests,
             count(*) FILTER (WHERE NOT is_success) AS errors, sum(req_units) AS req_units, sum(res_units) AS res_units,
             coalesce(sum(cost), 0) AS cost, count(*) FILTER (WHERE cache_status = 'HIT') AS simple_hits,
             count(*) FILTER (WHERE cache_status = 'SEMANTIC HIT') AS semantic_hits,
             coalesce(sum(cache_saved_cost) FILTER (WHERE cache_status = 'HIT'), 0) AS simple_saved,
             coalesce(sum(cache_saved_cost) FILTER (WHERE cache_status = 'SEMANTIC HIT'), 0) AS semantic_saved,
             coalesce(sum(cache_saved_cost), 0) AS saved, sum(response_time) AS response_time,
             coalesce(sum(response_time) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT')), 0) AS hit_time,
             count(*) FILTER (WHERE is_success AND retry_success_count > 0) AS retried,
             count(*) FILTER (WHERE is_success AND attempt > 0) AS fallen,
             min(created_at) AS first_seen, max(created_at) AS last_seen
         FROM unnest($1::timestamptz[]) AS piece (slot)
         JOIN request_logs ON created_at >= piece.slot AND created_at < piece.slot + make_interval(mins => $2::smallint::int)
         CROSS JOIN LATERAL (VALUES {}) AS by (dimension, value)
         WHERE by.value IS NOT NULL
         GROUP BY 1, 2, 3, 4, 5, 6",
        dimensions.join(", ")
    );
    inserted(&format!("SELECT *, requests AS calls FROM ({by_bucket}) AS by_bucket"))
}

/// `$1` are the beginnings of slots, `$2` their width, `$3` that of the slots they are added up from. Sums stand with one of
/// the buckets, because each counts once.
pub fn build_from_smaller() -> String {
    let once: Vec<String> =
        SUMS.iter().map(|name| format!("CASE WHEN place = 1 THEN {name} ELSE 0 END AS {name}")).collect();
    inserted(&format!(
        "SELECT organisation_id, workspace_id, piece.slot, dimension, value, bucket, calls, {}, first_seen, last_seen
         FROM unnest($1::timestamptz[]) AS piece (slot)
         JOIN usage_slots s ON s.size = $3::smallint AND s.slot >= piece.slot
             AND s.slot < piece.slot + make_interval(mins => $2::smallint::int)
         CROSS JOIN LATERAL unnest(s.buckets, s.counts) WITH ORDINALITY AS sketch (bucket, calls, place)",
        once.join(", ")
    ))
}

/// Adds up by slot and value what `select` has by bucket.
fn inserted(select: &str) -> String {
    let sums = |name: &&str| format!("sum({name}) AS {name}");
    let (inner, outer): (Vec<_>, Vec<_>) =
        (SUMS.iter().map(sums).collect(), SUMS.iter().map(|name| format!("sum({name})")).collect());
    format!(
        "INSERT INTO usage_slots ({})
         SELECT organisation_id, workspace_id, $2::smallint, slot, dimension, value, {},
             min(first_seen), max(last_seen), array_agg(bucket ORDER BY bucket),
             array_agg(least(calls, 2147483647)::integer ORDER BY bucket)
         FROM (SELECT organisation_id, workspace_id, slot, dimension, value, bucket, sum(calls) AS calls, {},
                   min(first_seen) AS first_seen, max(last_seen) AS last_seen
               FROM ({select}) AS parts GROUP BY 1, 2, 3, 4, 5, 6) AS merged
         GROUP BY organisation_id, workspace_id, slot, dimension, value",
        columns(),
        outer.join(", "),
        inner.join(", "),
    )
}
