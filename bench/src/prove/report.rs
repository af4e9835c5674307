//! What a proof prints: figures, and whether each promise held.

use std::fmt::Display;
use std::time::Duration;

#[derive(Debug)]
pub struct Report {
    name: &'static str,
    broken: usize,
}

impl Report {
    pub fn new(name: &'static str) -> Self {
        say(&format!("prove {name}"));
        Self { name, broken: 0 }
    }

    /// A number worth knowing.
    pub fn figure(&mut self, what: &str, value: impl Display) {
        say(&format!("        {what}: {value}"));
    }

    /// A promise, and whether it held.
    pub fn promise(&mut self, what: &str, held: bool) {
        self.broken += usize::from(!held);
        say(&format!("  {}  {what}", if held { "ok  " } else { "FAIL" }));
    }

    pub fn is_broken(&self) -> bool {
        self.broken > 0
    }

    /// The verdict; true when nothing was broken.
    pub fn finish(self) -> bool {
        match self.broken {
            0 => say(&format!("PASS {}", self.name)),
            count => say(&format!("FAIL {}: {count} promises did not hold", self.name)),
        }
        self.broken == 0
    }
}

/// Median, 99th percentile and maximum of some times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: Duration,
    pub p99: Duration,
    pub max: Duration,
}

impl Spread {
    /// None of nothing.
    pub fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let max = *times.last()?;
        // The nearest rank: the smallest time that at least this share does not exceed.
        let rank = |share: usize| times[(times.len() * share).div_ceil(100).max(1) - 1];
        Some(Self { median: rank(50), p99: rank(99), max })
    }
}

impl Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(f, "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", ms(self.median), ms(self.p99), ms(self.max))
    }
}

pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / (1 << 20) as f64)
}

/// How far a long proof is.
pub fn progress(text: &str) {
    say(&format!("        … {text}"));
}

#[expect(clippy::print_stdout, reason = "the figures are what this program prints")]
fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let ms = Duration::from_millis;
        let hundred = Spread::of((1..=100).rev().map(ms).collect());
        assert_eq!(hundred, Some(Spread { median: ms(50), p99: ms(99), max: ms(100) }));
        assert_eq!(Spread::of(vec![ms(7)]), Some(Spread { median: ms(7), p99: ms(7), max: ms(7) }));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn one_broken_promise_fails_the_proof() {
        let mut report = Report::new("test");
        report.promise("held", true);
        assert!(report.broken == 0);
        report.promise("broken", false);
        report.promise("held again", true);
        assert!(!report.finish());
    }
}
