//! Log lines that a request can cause. A tenant or a stranger may repeat a request as often as they like, and may choose
//! the text that its line quotes: `LogLimit` bounds how many lines one place in the code writes, `Brief` how long the
//! text in each is. A line says how many were left out before it, so that a flood is seen and does not fill a disk.
//!
//! ```
//! use shared::telemetry::{Brief, LogLimit};
//!
//! static UNKNOWN_NAME: LogLimit = LogLimit::new();
//! let name = "chosen by somebody";
//! if let Some(skipped) = UNKNOWN_NAME.pass() {
//!     tracing::warn!(name = %Brief(name), skipped, "there is nothing of this name");
//! }
//! ```

use parking_lot::Mutex;
use std::fmt::{self, Display, Write};
use std::time::{Duration, Instant};

/// Lines that one place may write at once.
const BURST: u32 = 20;
/// One more for each of these.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes that a line quotes of a foreign text.
const MAX_QUOTED: usize = 512;

/// How many lines one place in the code may write; a `static` beside it.
pub struct LogLimit(Mutex<State>);

struct State {
    left: u32,
    /// When `left` was last added to; none before the first line.
    filled: Option<Instant>,
    skipped: u64,
}

impl LogLimit {
    #[expect(clippy::new_without_default, reason = "it is only of use as a static")]
    pub const fn new() -> Self {
        Self(Mutex::new(State { left: BURST, filled: None, skipped: 0 }))
    }

    /// Whether a line may be written now, and then how many were not since the last one.
    pub fn pass(&self) -> Option<u64> {
        self.pass_at(Instant::now())
    }

    fn pass_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        let filled = *state.filled.get_or_insert(now);
        let more = now.saturating_duration_since(filled).as_secs() / EVERY.as_secs();
        if more > 0 {
            state.left = state.left.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)).min(BURST);
            state.filled = Some(now);
        }
        if state.left == 0 {
            state.skipped += 1;
            return None;
        }
        state.left -= 1;
        Some(std::mem::take(&mut state.skipped))
    }
}

/// A text of somebody else's, as a log line may quote it: its beginning, without control characters, so that it begins no line of
/// its own where lines are plain text.
pub struct Brief<T>(pub T);

impl<T: Display> Display for Brief<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut start = Start { out, room: MAX_QUOTED };
        match write!(start, "{}", self.0) {
            // The only fault that `Start` makes by itself is that there is no more room.
            Err(_) if start.room == 0 => out.write_str("…"),
            written => written,
        }
    }
}

/// Passes on what there is room for, so that a long text is not even made.
struct Start<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    room: usize,
}

impl Write for Start<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.split(char::is_control) {
            let end = piece.floor_char_boundary(self.room);
            self.out.write_str(&piece[..end])?;
            if end < piece.len() {
                self.room = 0;
                return Err(fmt::Error);
            }
            self.room -= end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_to_its_burst_and_the_next_line_says_how_much_was_left_out() {
        let (limit, now) = (LogLimit::new(), Instant::now());
        let written: Vec<u64> = (0..10_000).filter_map(|_| limit.pass_at(now)).collect();
        assert_eq!(written, vec![0; BURST as usize]);
        assert_eq!(limit.pass_at(now + EVERY / 2), None);
        assert_eq!(limit.pass_at(now + EVERY), Some(10_000 - u64::from(BURST) + 1));
        assert_eq!(limit.pass_at(now + EVERY), None);
        assert_eq!(limit.pass_at(now + EVERY * 2), Some(1));
    }

    #[test]
    fn a_quiet_place_has_its_whole_burst_again_and_no_more() {
        let (limit, now) = (LogLimit::new(), Instant::now());
        while limit.pass_at(now).is_some() {}
        let later = now + EVERY * 100 * BURST;
        assert_eq!((0..1000).filter_map(|_| limit.pass_at(later)).count(), BURST as usize);
    }

    #[test]
    fn a_steady_trickle_above_the_rate_is_cut_to_the_rate() {
        let (limit, start) = (LogLimit::new(), Instant::now());
        let lines = (0..1000).filter_map(|n| limit.pass_at(start + EVERY / 10 * n)).count();
        assert!((100..=100 + BURST as usize).contains(&lines), "{lines}");
    }

    #[test]
    fn a_long_text_is_cut_where_a_character_ends() {
        for (text, shown) in [
            (String::new(), String::new()),
            ("short".into(), "short".into()),
            ("a".repeat(MAX_QUOTED), "a".repeat(MAX_QUOTED)),
            ("a".repeat(MAX_QUOTED + 1), format!("{}…", "a".repeat(MAX_QUOTED))),
            ("é".repeat(1_000_000), format!("{}…", "é".repeat(MAX_QUOTED / 2))),
            (format!("a{}", "é".repeat(MAX_QUOTED)), format!("a{}…", "é".repeat(MAX_QUOTED / 2 - 1))),
        ] {
            assert_eq!(Brief(&text).to_string(), shown);
        }
        assert_eq!(Brief("pg-1\r\n{\"level\":\"ERROR\"}\u{1b}[2J").to_string(), "pg-1{\"level\":\"ERROR\"}[2J");
        assert_eq!(Brief(format_args!("{}{}", "x".repeat(MAX_QUOTED), "")).to_string(), "x".repeat(MAX_QUOTED));
        assert_eq!(Brief(format_args!("{}{}", "x".repeat(MAX_QUOTED), 'y')).to_string(), "x".repeat(MAX_QUOTED) + "…");
    }
}
