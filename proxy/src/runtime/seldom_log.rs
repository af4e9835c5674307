//! Log lines that callers can cause with every request, written a few times a minute: the rest is told by its number. What callers
//! chose of such a line is cut, and control characters are left out.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Lines of one kind in one window.
const MOST: u32 = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Characters of a name in a line.
const LONGEST: usize = 120;

/// Lines of one kind; a `static` beside what is logged.
pub struct SeldomLog(Mutex<Counted>);

struct Counted {
    since: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl SeldomLog {
    pub const fn new() -> Self {
        Self(Mutex::new(Counted { since: None, said: 0, unsaid: 0 }))
    }

    /// Says it with the number of those that were left out since the last, if it is time for one.
    pub fn warn(&self, say: impl FnOnce(u64)) {
        let due = self.0.lock().due(Instant::now());
        if let Some(unsaid) = due {
            say(unsaid);
        }
    }
}

impl Default for SeldomLog {
    fn default() -> Self {
        Self::new()
    }
}

impl Counted {
    fn due(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            (self.since, self.said) = (Some(now), 0);
        }
        if self.said == MOST {
            self.unsaid += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.unsaid))
    }
}

/// What callers chose, as it may stand in a line.
pub fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_of_each_window_are_said_and_the_rest_is_counted() {
        let log = SeldomLog::new();
        let mut counted = log.0.lock();
        let now = Instant::now();
        let said = |counted: &mut Counted, after: Duration| counted.due(now + after);
        for _ in 0..MOST {
            assert_eq!(said(&mut counted, Duration::ZERO), Some(0));
        }
        for _ in 0..3 {
            assert_eq!(said(&mut counted, WINDOW / 2), None);
        }
        assert_eq!(said(&mut counted, WINDOW), Some(3));
        assert_eq!(said(&mut counted, WINDOW), Some(0));
        drop(counted);
        let fresh = SeldomLog::new();
        let mut lines = 0;
        (0..100).for_each(|_| fresh.warn(|_| lines += 1));
        assert_eq!(lines, MOST);
    }

    #[test]
    fn a_name_in_a_line_is_short_and_begins_no_other() {
        assert_eq!(plain("pg-1\r\n{\"level\":\"ERROR\"}\u{1b}[2J"), "pg-1{\"level\":\"ERROR\"}[2J");
        assert_eq!(plain(&"é".repeat(1000)).chars().count(), LONGEST);
    }
}
