//! How long to wait before the next attempt to reach Postgres. Doubles up to a cap; the random half keeps a fleet of
//! proxies from coming back all at the same instant.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// `failures` in a row so far, at least one; `random` from 0 to 1.
pub fn delay(failures: u32, random: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let whole = FIRST.saturating_mul(1 << doublings).min(MAX_PAUSE);
    whole / 2 + (whole / 2).mul_f64(random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_ten_seconds_and_never_vanish() {
        for (failures, random, milliseconds) in
            [(1, 1.0, 250), (1, 0.0, 125), (2, 1.0, 500), (3, 0.5, 750), (7, 1.0, 10_000), (u32::MAX, 0.0, 5_000)]
        {
            let waited = delay(failures, random);
            assert_eq!(waited, Duration::from_millis(milliseconds), "after {failures} failures, random {random}");
        }
    }
}
