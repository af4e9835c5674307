//! How long a task that panicked waits for its next start.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// `panics`: in a row, this one included.
pub fn restart_delay(panics: u32) -> Duration {
    (FIRST * 2_u32.saturating_pow(panics.saturating_sub(1).min(16))).min(MAX_DELAY)
}
