//! How much work a message made: nodes read, prefixes looked up, bytes written. Anybody may send one before anything is
//! known of them, so tests hold this against the length of what was sent. Counted for the thread that works, because a
//! clock would measure the machine.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

pub fn note(steps: usize) {
    STEPS.with(|all| all.set(all.get().wrapping_add(steps as u64)));
}

/// What came of it, and the steps that it took on this thread.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = STEPS.with(Cell::get);
    let done = work();
    (done, STEPS.with(Cell::get).wrapping_sub(before))
}
