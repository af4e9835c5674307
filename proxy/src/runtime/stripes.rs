//! Numbers that every request adds to, kept once per thread. Two threads that add to one number pass its memory back and
//! forth between their cores, a dozen times for each request; here each adds to its own, and whoever reads sums up.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Threads beyond these share.
const STRIPES: usize = 16;
/// Two cache lines of nothing between the numbers of two threads.
const APART: usize = 16;

#[derive(Debug)]
pub struct Stripes(Vec<Box<[AtomicU64]>>);

thread_local! {
    static OWN: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Relaxed) % STRIPES
    };
}

impl Stripes {
    /// So many numbers, all zero.
    pub fn new(length: usize) -> Self {
        let stripe = || (0..length + APART).map(|_| AtomicU64::new(0)).collect();
        Self((0..STRIPES).map(|_| stripe()).collect())
    }

    /// Those of the present thread.
    pub fn own(&self) -> &[AtomicU64] {
        &self.0[OWN.with(|own| *own)]
    }

    /// One number in all its stripes. What one thread took away another may have added: apart they may be below zero.
    pub fn each(&self, at: usize) -> impl Iterator<Item = u64> {
        self.0.iter().map(move |stripe| stripe[at].load(Relaxed))
    }

    pub fn total(&self, at: usize) -> u64 {
        self.each(at).fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_add_and_take_away_is_one_number() {
        let stripes = Stripes::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        stripes.own()[1].fetch_add(1, Relaxed);
                    }
                });
            }
        });
        // Added elsewhere, taken away here.
        stripes.own()[1].fetch_sub(31_000, Relaxed);
        assert_eq!((stripes.total(0), stripes.total(1)), (0, 1000));
    }
}
