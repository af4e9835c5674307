//! Measures over parts: sums of figures, and percentiles out of the sketches of response times.

use super::measure::{self, Measure};

/// The columns that figures are found for, and the sets they are grouped by.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    pub columns: &'static [&'static str],
    pub sets: &'static str,
    /// The same with the buckets of sketches.
    pub sets_of_buckets: &'static str,
}

pub const BY_SLOT: Keys = Keys {
    columns: &["slot"],
    sets: "GROUPING SETS ((slot), ())",
    sets_of_buckets: "GROUPING SETS ((slot, bucket), (bucket))",
};
pub const BY_VALUE: Keys = Keys { columns: &["value"], sets: "value", sets_of_buckets: "value, bucket" };
pub const BY_BOTH: Keys = Keys {
    columns: &["slot", "value"],
    sets: "GROUPING SETS ((slot, value), (value))",
    sets_of_buckets: "GROUPING SETS ((slot, value, bucket), (value, bucket))",
};
pub const WHOLE: Keys = Keys { columns: &[], sets: "()", sets_of_buckets: "bucket" };

/// What follows `WITH parts AS (…)`: a select of the keys and of the measures as `m0`, `m1`, …
pub fn select(keys: Keys, measures: &[Measure]) -> String {
    let figures: Vec<String> = measures
        .iter()
        .enumerate()
        .filter(|(_, measure)| measure.percent.is_none())
        .map(|(n, measure)| format!("{} AS m{n}", measure::rounded(measure.rolled)))
        .collect();
    let list =
        |more: Vec<String>| keys.columns.iter().map(|key| (*key).to_owned()).chain(more).collect::<Vec<_>>().join(", ");
    let percentiles: Vec<String> = measures
        .iter()
        .enumerate()
        .filter_map(|(n, measure)| Some(format!("{} AS m{n}", measure::rounded(&quantile(measure.percent?)))))
        .collect();
    let summed =
        format!("SELECT {} FROM parts GROUP BY {}", list([figures, vec!["1 AS one".to_owned()]].concat()), keys.sets);
    if percentiles.is_empty() {
        return summed;
    }
    let divided = match keys.columns {
        [] => String::new(),
        columns => format!("PARTITION BY {}", columns.join(", ")),
    };
    let grouped = match keys.columns {
        [] => "()".to_owned(),
        columns => columns.join(", "),
    };
    // A null is a key too: of all slots, and of what is left.
    let same = keys.columns.iter().map(|key| {
        let nothing = if *key == "slot" { "'-infinity'" } else { "''" };
        format!(
            "AND (q.{key} IS NULL) = (f.{key} IS NULL) AND coalesce(q.{key}, {nothing}) = coalesce(f.{key}, {nothing})"
        )
    });
    let measured = (0..measures.len()).map(|n| match measures[n].percent {
        Some(_) => format!("coalesce(q.m{n}, 0) AS m{n}"),
        None => format!("f.m{n}"),
    });
    let shown: Vec<String> = keys.columns.iter().map(|key| format!("f.{key}")).chain(measured).collect();
    format!(
        ", sketches AS (
             SELECT {}, sum(calls) AS calls FROM parts CROSS JOIN LATERAL unnest(buckets, counts) AS sketch (bucket, calls)
             GROUP BY {}),
         ranks AS (SELECT *, sum(calls) OVER ({divided} ORDER BY bucket) AS upto, sum(calls) OVER ({divided}) AS total FROM sketches),
         quantiles AS (SELECT {} FROM ranks GROUP BY {grouped})
         SELECT {} FROM ({summed}) AS f LEFT JOIN quantiles AS q ON true {}",
        list(vec!["bucket".to_owned()]),
        keys.sets_of_buckets,
        list(percentiles),
        shown.join(", "),
        same.collect::<String>(),
    )
}

/// Between the two calls that it stands between, as `percentile_cont` has it.
fn quantile(percent: u8) -> String {
    let place = format!("{:.2} * (total - 1)", f64::from(percent) / 100.0);
    let bucket = |end: &str| format!("bucket_latency(min(bucket) FILTER (WHERE upto > {end}({place})))");
    let (below, above) = (bucket("floor"), bucket("ceil"));
    format!("{below} + ({above} - {below}) * (max({place}) - floor(max({place})))::double precision")
}
