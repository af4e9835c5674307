//! Whether a call that is given up before its end will be paid for all the same: all of it was sent, and no answer said
//! otherwise. Its future is dropped then, and can tell nothing itself.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[derive(Debug, Default)]
pub(crate) struct SentMark(AtomicBool);

impl SentMark {
    /// All of it was sent.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// It has come to an end for which nobody is paid.
    pub fn clear(&self) {
        self.0.store(false, Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests;
