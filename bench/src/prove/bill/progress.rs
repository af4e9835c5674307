//! How far the calls are, and when the proxy was killed: by that a call knows whether a kill may have touched it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub struct Progress {
    pub calls: u32,
    next: AtomicU32,
    is_away: AtomicBool,
    is_calm: AtomicBool,
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    kills: Vec<Instant>,
    /// Calls whose client is done, and when their records are surely written. Those of the time before the last kill are left out.
    ended: Vec<(String, Instant)>,
    /// Of those, what a kill came in between.
    touched: Vec<String>,
}

impl Progress {
    pub fn new(calls: u32) -> Self {
        let (next, is_away, is_calm) = (AtomicU32::new(0), AtomicBool::new(false), AtomicBool::new(false));
        Self { calls, next, is_away, is_calm, times: Mutex::default() }
    }

    /// The number of a call to make; none when all are made.
    pub fn next(&self) -> Option<u32> {
        let number = self.next.fetch_add(1, SeqCst);
        (number < self.calls).then_some(number)
    }

    pub fn begun(&self) -> u64 {
        u64::from(self.next.load(SeqCst))
    }

    /// Whether all calls are begun, and no kill comes any more.
    pub fn is_over(&self) -> bool {
        self.is_calm.load(SeqCst) && self.begun() >= u64::from(self.calls)
    }

    pub fn no_more_kills(&self) {
        self.is_calm.store(true, SeqCst);
    }

    /// Just before it is killed.
    pub fn note_kill(&self) {
        self.is_away.store(true, SeqCst);
        let (mut times, now) = (self.lock(), Instant::now());
        times.kills.push(now);
        let ended = std::mem::take(&mut times.ended);
        times.touched.extend(ended.into_iter().filter(|(_, recorded)| now <= *recorded).map(|(tag, _)| tag));
    }

    /// It runs again.
    pub fn note_restart(&self) {
        self.is_away.store(false, SeqCst);
    }

    /// Waits until the proxy runs, and tells since when the caller may count on it.
    pub async fn until_running(&self) -> Instant {
        loop {
            let now = Instant::now();
            if !self.is_away.load(SeqCst) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub fn was_killed_since(&self, begun: Instant) -> bool {
        self.lock().kills.last().is_some_and(|kill| *kill >= begun)
    }

    /// A client is done with a call; its records are written by then.
    pub fn note_end(&self, tag: String, recorded: Instant) {
        self.lock().ended.push((tag, recorded));
    }

    /// Calls that had ended when a kill came, and whose records were perhaps not written.
    pub fn ended_at_kills(&self) -> Vec<String> {
        self.lock().touched.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begun, kills) = (self.begun().min(u64::from(self.calls)), self.lock().kills.len());
        write!(f, "{begun} of {} calls, {kills} kills", self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kill_touches_what_is_under_way_and_what_is_not_yet_recorded() {
        let progress = Progress::new(1);
        assert_eq!((progress.next(), progress.next()), (Some(0), None));
        let begun = progress.until_running().await;
        progress.note_end("late".into(), Instant::now() + Duration::from_secs(60));
        progress.note_end("recorded".into(), begun);
        assert!(!progress.was_killed_since(begun));
        progress.note_kill();
        assert!(progress.was_killed_since(begun));
        assert_eq!(progress.ended_at_kills(), ["late"]);
        progress.note_restart();
        assert!(!progress.was_killed_since(Instant::now()) && !progress.is_over());
        progress.no_more_kills();
        assert!(progress.is_over());
    }
}
