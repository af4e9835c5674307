//! When something ran, as results tell it: `2026-11-17T12:19:34.123Z`. It is written for every check of every request, so the
//! text of a second is made once for each thread.

use chrono::{DateTime, SecondsFormat};
use std::cell::RefCell;
use std::time::{Duration, SystemTime};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds since 1970, for the next five hundred years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(u64);

thread_local! {
    /// The last second that was written, and its text up to the point.
    static WRITTEN: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
}

impl Moment {
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(0).after(since)
    }

    #[cfg(test)]
    pub fn from_parts(seconds: u64, millis: u64) -> Self {
        Self(seconds * SECOND + millis * MILLISECOND)
    }

    #[must_use]
    pub fn after(self, passed: Duration) -> Self {
        let nanos = passed.as_secs().saturating_mul(SECOND).saturating_add(u64::from(passed.subsec_nanos()));
        Self(self.0.saturating_add(nanos))
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        i64::try_from(self.0 / SECOND).unwrap_or(i64::MAX)
    }

    /// At the end of a text.
    pub fn put(self, out: &mut String) {
        let (second, nanos) = (self.0 / SECOND, self.0 % SECOND);
        WRITTEN.with_borrow_mut(|(known, text)| {
            if *known != second {
                (*known, *text) = (second, beginning(self.seconds()));
            }
            out.push_str(text);
        });
        let digit = |number: u64| b'0' + (number % 10) as u8;
        let millis = nanos / MILLISECOND;
        let behind = [b'.', digit(millis / 100), digit(millis / 10), digit(millis), b'Z'];
        // Digits are always text.
        out.push_str(std::str::from_utf8(&behind).unwrap_or_default());
    }
}

/// Up to the point.
fn beginning(second: i64) -> String {
    let at = DateTime::from_timestamp(second, 0).unwrap_or_default();
    let mut text = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_everywhere_else() {
        for second in [0, 951_827_696, 1_709_251_199, 1_709_251_199, 1_795_000_000, 4_102_444_799] {
            for nanos in [0, 999_999, 1_000_000, 34_567_890, 999_999_999] {
                let at = DateTime::from_timestamp(second, nanos).unwrap();
                let moment = Moment(0).after(Duration::new(second.unsigned_abs(), nanos));
                let mut text = String::from("at ");
                moment.put(&mut text);
                assert_eq!(text, format!("at {}", at.to_rfc3339_opts(SecondsFormat::Millis, true)));
                assert_eq!(moment.seconds(), second);
            }
        }
        let late = Moment(u64::MAX - 1).after(Duration::from_secs(u64::MAX));
        assert_eq!(late, Moment(u64::MAX));
    }
}
