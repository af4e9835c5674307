//! When something ran, as results tell it: `2026-11-17T12:19:34.123Z`. It is written for every hook of every request, so
//! each thread keeps what it wrote last.

use chrono::{DateTime, SecondsFormat};
use std::cell::RefCell;
use std::time::{Duration, SystemTime};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds since 1970, for the next five hundred years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(u64);

/// What was written last, for what is written next.
struct WrittenMoment {
    millis: u64,
    text: String,
}

/// As long as `2026-11-17T12:19:34`.
const TO_SECONDS: usize = 19;

thread_local! {
    static WRITTEN: RefCell<WrittenMoment> = const { RefCell::new(WrittenMoment { millis: u64::MAX, text: String::new() }) };
}

impl WrittenMoment {
    fn write(&mut self, millis: u64) {
        const PER_SECOND: u64 = 1000;
        if millis / PER_SECOND != self.millis / PER_SECOND {
            self.text = beginning(millis / PER_SECOND);
        }
        self.text.truncate(TO_SECONDS);
        let digit = |number: u64| char::from(b'0' + (number % 10) as u8);
        for letter in ['.', digit(millis / 100), digit(millis / 10), digit(millis), 'Z'] {
            self.text.push(letter);
        }
        self.millis = millis;
    }
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

    /// Milliseconds since 1970, which is all that is written.
    pub fn millis(self) -> u64 {
        self.0 / MILLISECOND
    }

    /// At the end of a text.
    pub fn put(self, out: &mut String) {
        WRITTEN.with_borrow_mut(|written| {
            if written.millis != self.millis() {
                written.write(self.millis());
            }
            out.push_str(&written.text);
        });
    }
}

/// Up to the seconds.
fn beginning(second: u64) -> String {
    let at = i64::try_from(second).ok().and_then(|second| DateTime::from_timestamp(second, 0));
    at.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true)
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
