//! How long a provider asks to wait, in its three spellings.

use chrono::{DateTime, Utc};
use http::HeaderMap;
use std::time::Duration;

/// The first that is there: `retry-after-ms`, `x-ms-retry-after-ms`, `retry-after` in seconds or as a date.
pub fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis = ["retry-after-ms", "x-ms-retry-after-ms"].into_iter().find_map(text);
    if let Some(wait) = millis.and_then(|text| seconds(text, 1000.0)) {
        return Some(wait);
    }
    let text = text("retry-after")?;
    seconds(text, 1.0).or_else(|| until(text, now))
}

fn seconds(text: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
    Duration::try_from_secs_f64(number / per_second).ok()
}

fn until(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.with_timezone(&Utc) - now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[test]
    fn every_spelling_is_read_and_milliseconds_come_first() {
        let now = DateTime::parse_from_rfc3339("2026-11-15T10:00:00Z").unwrap().to_utc();
        for (headers, millis) in [
            (vec![], None),
            (vec![("retry-after", "2")], Some(2000)),
            (vec![("retry-after", "0.5")], Some(500)),
            (vec![("retry-after", "2"), ("retry-after-ms", "30")], Some(30)),
            (vec![("x-ms-retry-after-ms", "40")], Some(40)),
            (vec![("retry-after-ms", "soon"), ("retry-after", "1")], Some(1000)),
            (vec![("retry-after", "Sun, 15 Nov 2026 10:00:07 GMT")], Some(7000)),
            (vec![("retry-after", "Sun, 15 Nov 2026 09:00:00 GMT")], Some(0)),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "1e999")], None),
            (vec![("retry-after", "later")], None),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in &headers {
                map.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(retry_after(&map, now), millis.map(Duration::from_millis), "{headers:?}");
        }
    }
}
