//! Lengths of time before now, as `--last 30d`, and expressions over figures, as `cost>1c`.

use super::keys;
use chrono::{DateTime, Duration, SecondsFormat, Utc};

/// The beginning of the last so many days, hours or minutes, as the API reads it.
pub fn since(last: Duration) -> String {
    let begin = Utc::now().checked_sub_signed(last).unwrap_or(DateTime::UNIX_EPOCH);
    begin.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub fn parse(text: &str) -> Result<Duration, String> {
    let length = keys::duration(text)?;
    let begin = Utc::now().checked_sub_signed(length).filter(|begin| *begin >= DateTime::UNIX_EPOCH);
    begin.map(|_| length).ok_or_else(|| format!("`{text}` ago is before 1970"))
}

/// What `-q` can compare.
struct Figure {
    word: &'static str,
    /// The API's filter, without `_min` or `_max`.
    filter: &'static str,
    /// Units and what one of them is in the API's.
    units: &'static [(&'static str, f64)],
}

static FIGURES: &[Figure] = &[
    Figure { word: "cost", filter: "cost", units: &[("c", 1.0), ("$", 100.0), ("usd", 100.0)] },
    Figure { word: "latency", filter: "response_time", units: &[("ms", 1.0), ("s", 1000.0)] },
    Figure { word: "ttft", filter: "time_to_first_token", units: &[("ms", 1.0), ("s", 1000.0)] },
    Figure { word: "tokens", filter: "total_units", units: &[("", 1.0), ("k", 1000.0)] },
];

/// `cost>1c,latency<2s` as filters of logs. Both bounds are part of what is found.
pub fn figures(expression: &str) -> Result<Vec<(String, String)>, String> {
    expression.split([',', ' ']).filter(|part| !part.is_empty()).map(figure).collect()
}

fn figure(part: &str) -> Result<(String, String), String> {
    let wrong = || format!("`{part}` is none of cost>1c, latency>2s, ttft>500ms, tokens>1k, with > or <");
    let at = part.find(['>', '<']).ok_or_else(wrong)?;
    let (word, value) = (&part[..at], &part[at + 1..]);
    let bound = if part[at..].starts_with('>') { "min" } else { "max" };
    let Figure { filter, units, .. } = FIGURES.iter().find(|figure| figure.word == word).ok_or_else(wrong)?;
    let end = value.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(value.len());
    let number: f64 = value[..end].parse().map_err(|_| wrong())?;
    let (_, factor) = units.iter().find(|(unit, _)| *unit == &value[end..]).ok_or_else(wrong)?;
    Ok((format!("{filter}_{bound}"), (number * factor).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_become_filters_in_the_units_of_the_interface() {
        let found = figures("cost>1c,latency<2s tokens>2k").unwrap();
        let found: Vec<_> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(found, ["cost_min=1", "response_time_max=2000", "total_units_min=2000"]);
        assert!(parse("30d").is_ok() && parse("99999999d").is_err() && parse("30000d").is_err());
        since(Duration::MAX);
        for wrong in ["cost", "cost>1", "colour>1c", "latency>fasts", ">1c"] {
            assert!(figures(wrong).is_err(), "{wrong}");
        }
    }
}
