//! What logs add up to for limits: which rows a budget is charged with, and how much each adds. The proxy charges them when it
//! stores them; here the same is said of rows that are there, for whoever verifies counters.

/// Nothing of these is paid for.
const IS_HIT: &str = "l.cache_status IN ('HIT', 'SEMANTIC HIT')";
/// Vectors of the semantic cache that no tenant pays for.
const IS_OPERATORS: &str = "coalesce(l.metadata ->> '_paid_by' = 'operator', false)";
/// Calls for vectors are no requests of anybody.
const IS_VECTOR: &str = "coalesce(l.metadata ->> '_internal' = 'semantic_cache', false)";
/// A limit refused it.
const IS_REFUSED: &str = "coalesce(l.error_code IN ('rate_limit_exceeded', 'budget_exhausted', 'price_unknown',
    'limits_unavailable'), false)";
/// The last row of a request, with which the request is counted; each response of a session is one.
const IS_LAST: &str = "(l.id = l.internal_trace_id OR l.request_url LIKE '%/realtime')";

/// How rows are found by what a counter's id is made of.
pub const SCOPES: [(&str, &str); 6] = [
    ("organisation", "true"),
    ("workspace", "l.workspace_id = k.first"),
    ("api_key", "l.api_key_id = k.first"),
    ("token", "l.workspace_id = k.first AND l.api_key_id = k.second"),
    ("provider", "l.workspace_id = k.first AND l.virtual_key = k.rest"),
    ("integration", "l.integration_id = k.first AND l.workspace_id = k.second"),
];

/// The sums of counters of one scope, which come as columns: `k`.
pub fn sums_of_scope(is_its: &str, is_of_target: bool, is_day_total: bool, more: &str) -> String {
    let amount = if is_day_total { day_total(is_of_target) } else { budget(is_of_target) };
    let source = if is_day_total { "" } else { "AND l.source = 'proxy'" };
    format!(
        "SELECT k.place, sum({amount}) AS amount
         FROM unnest($1::int[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::timestamptz[],
             $8::timestamptz[]) AS k (place, organisation_id, first, second, rest, unit, since, until)
         JOIN request_logs l ON l.organisation_id = k.organisation_id AND {is_its}
             AND l.created_at >= k.since AND l.created_at < k.until
         WHERE l.ai_org IS NOT NULL AND l.created_at >= $9 AND l.created_at < $10 {source} {more} GROUP BY 1"
    )
}

/// All rows of a workspace in a time, with what rules of policies ask about and what each may add.
pub fn rows_of_workspace(more: &str) -> String {
    format!(
        "SELECT l.created_at, l.api_key_id, l.metadata, l.config, l.config_id, l.request_method, l.request_url, l.virtual_key,
             l.ai_org, coalesce(l.requested_model, l.ai_model) AS model, {IS_HIT} AS is_hit, {IS_OPERATORS} AS is_operators,
             {IS_VECTOR} AS is_vector, {IS_REFUSED} AS is_refused, {IS_LAST} AS is_last,
             (l.req_units + l.res_units)::numeric AS tokens, coalesce(l.cost, 0) AS cost,
             (SELECT p.id FROM providers p WHERE p.workspace_id = l.workspace_id AND p.slug = l.virtual_key
              ORDER BY p.created_at DESC LIMIT 1) AS provider_id
         FROM request_logs l
         WHERE l.organisation_id = $1 AND l.workspace_id = $2 AND l.created_at >= $3 AND l.created_at < $4
           AND l.source = 'proxy' AND l.ai_org IS NOT NULL {more}"
    )
}

/// What a row adds to a budget.
fn budget(is_of_target: bool) -> String {
    let is_counted = match is_of_target {
        true => format!("NOT {IS_HIT}"),
        false => IS_LAST.to_owned(),
    };
    format!(
        "CASE WHEN k.unit = 'requests' THEN CASE WHEN {is_counted} AND NOT {IS_REFUSED} AND NOT {IS_VECTOR} THEN 1 ELSE 0 END
         WHEN {IS_HIT} OR {IS_OPERATORS} THEN 0
         WHEN k.unit = 'tokens' THEN l.req_units + l.res_units ELSE coalesce(l.cost, 0) END::numeric"
    )
}

/// What it adds to the totals of its day (`shared::db::request_logs`).
fn day_total(is_of_target: bool) -> String {
    let is_hit = if is_of_target { IS_HIT } else { "false" };
    format!(
        "CASE WHEN {is_hit} THEN 0 WHEN k.unit = 'requests' THEN 1
         WHEN k.unit = 'tokens' THEN CASE WHEN {IS_HIT} THEN 0 ELSE l.req_units + l.res_units END
         ELSE coalesce(l.cost, 0) END::numeric"
    )
}
