//! Idle connections, kept by the thread that used them last: no lock, no wake-up of another core, no task per idle
//! connection. A connection is tried when it is taken, expired ones go when their origin or, at most once a second, any
//! origin of the thread is touched.
//!
//! HTTP/1 connections leave the pool while they carry a request; HTTP/2 connections stay in it and are shared.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use pingora_core::connectors::http::v2::ConnectionRef;

use super::cork::Cork;
use crate::runtime::stripes::Stripes;

const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The process-wide part: limits and counts. The connections are in `SHELVES`.
pub struct ConnectionPool {
    /// Tells pools of several dialers apart: they may trust different authorities.
    id: u64,
    max_idle: usize,
    max_age: Duration,
    counts: Stripes,
}

/// What is counted, by its place in the stripes.
#[derive(Clone, Copy)]
enum Count {
    Opened,
    Reused,
    Dead,
    Idle,
}

/// Held while a connection is opened that others can share.
pub type Gate = Arc<tokio::sync::Mutex<()>>;

/// For metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolCounts {
    /// Connections opened so far.
    pub opened: u64,
    /// Requests that found an open connection.
    pub reused: u64,
    /// Pooled connections found closed by the other side when they were wanted.
    pub dead: u64,
    /// HTTP/1 connections idle now, on all threads.
    pub idle: i64,
}

/// One thread's connections of one pool.
#[derive(Default)]
struct Shelves {
    by_origin: HashMap<Box<str>, Shelf, RandomState>,
    swept: Option<Instant>,
}

#[derive(Default)]
struct Shelf {
    /// Oldest first; taken from the back, so that the surplus of a rush grows old and goes.
    h1: VecDeque<IdleConnection>,
    h2: Vec<Multiplexed>,
    /// This origin spoke HTTP/2 not long ago: whoever needs a new connection waits for its turn, and most find one.
    gate: Option<(Gate, Instant)>,
}

struct IdleConnection {
    cork: Box<Cork>,
    expires: Instant,
}

struct Multiplexed {
    connection: ConnectionRef,
    opened: Instant,
    expires: Instant,
}

thread_local! {
    static SHELVES: RefCell<Vec<(u64, Shelves)>> = const { RefCell::new(Vec::new()) };
}

impl ConnectionPool {
    pub fn new(max_idle: usize, max_age: Duration) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT.fetch_add(1, Relaxed), max_idle, max_age, counts: Stripes::new(Count::Idle as usize + 1) }
    }

    pub fn counts(&self) -> PoolCounts {
        let total = |count: Count| self.counts.total(count as usize);
        PoolCounts {
            opened: total(Count::Opened),
            reused: total(Count::Reused),
            dead: total(Count::Dead),
            idle: total(Count::Idle) as i64,
        }
    }

    pub fn count_opened(&self) {
        self.count(Count::Opened);
    }

    fn count(&self, count: Count) {
        self.counts.own()[count as usize].fetch_add(1, Relaxed);
    }

    fn count_gone(&self, idle: usize) {
        self.counts.own()[Count::Idle as usize].fetch_sub(idle as u64, Relaxed);
    }

    /// The connection used last that still lives.
    pub fn take(&self, origin: &str, now: Instant) -> Option<Box<Cork>> {
        self.with_shelves(|shelves| {
            self.sweep(shelves, now);
            let shelf = shelves.by_origin.get_mut(origin)?;
            while let Some(mut idle) = shelf.h1.pop_back() {
                self.count_gone(1);
                if now >= idle.expires {
                    continue;
                }
                if idle.cork.is_alive() {
                    self.count(Count::Reused);
                    return Some(idle.cork);
                }
                self.count(Count::Dead);
            }
            None
        })
    }

    /// `keep_alive` is what the server promised, if it promised anything.
    pub fn put(&self, origin: &str, cork: Box<Cork>, keep_alive: Option<Duration>, now: Instant) {
        let age = keep_alive.map_or(self.max_age, |promised| promised.min(self.max_age));
        if self.max_idle == 0 || age.is_zero() {
            return;
        }
        self.with_shelves(|shelves| {
            self.sweep(shelves, now);
            let shelf = shelves.shelf(origin);
            if shelf.h1.len() >= self.max_idle {
                shelf.h1.pop_front();
                self.count_gone(1);
            }
            shelf.h1.push_back(IdleConnection { cork, expires: now + age });
            self.count(Count::Idle);
        });
    }

    /// An HTTP/2 connection that has room for one more stream, and was not opened before `since`.
    pub fn share(&self, origin: &str, since: Option<Instant>, now: Instant) -> Option<ConnectionRef> {
        self.with_shelves(|shelves| {
            self.sweep(shelves, now);
            let shelf = shelves.by_origin.get_mut(origin)?;
            let is_fit = |shared: &&mut Multiplexed| {
                since.is_none_or(|since| shared.opened >= since) && shared.connection.can_accept_streams(1)
            };
            let found = shelf.h2.iter_mut().find(is_fit)?;
            found.expires = now + self.max_age;
            self.count(Count::Reused);
            Some(found.connection.clone())
        })
    }

    pub fn put_shared(&self, origin: &str, connection: ConnectionRef, now: Instant) {
        let expires = now + self.max_age;
        self.with_shelves(|shelves| {
            let shelf = shelves.shelf(origin);
            shelf.h2.push(Multiplexed { connection, opened: now, expires });
            let gate = shelf.gate.take().map_or_else(Gate::default, |(gate, _)| gate);
            shelf.gate = Some((gate, expires));
        });
    }

    /// Where to wait before opening another connection, if this origin is known to speak HTTP/2.
    pub fn gate(&self, origin: &str) -> Option<Gate> {
        self.with_shelves(|shelves| {
            let (gate, _) = shelves.by_origin.get(origin)?.gate.as_ref()?;
            Some(gate.clone())
        })
    }

    fn sweep(&self, shelves: &mut Shelves, now: Instant) {
        if shelves.swept.is_some_and(|swept| now < swept + SWEEP_EVERY) {
            return;
        }
        shelves.swept = Some(now);
        shelves.by_origin.retain(|_, shelf| {
            shelf.expire(self, now);
            !shelf.h1.is_empty() || !shelf.h2.is_empty() || shelf.gate.is_some()
        });
    }

    fn with_shelves<T>(&self, use_them: impl FnOnce(&mut Shelves) -> T) -> T {
        SHELVES.with_borrow_mut(|all| {
            let index = all.iter().position(|(id, _)| *id == self.id).unwrap_or_else(|| {
                all.push((self.id, Shelves::default()));
                all.len() - 1
            });
            use_them(&mut all[index].1)
        })
    }
}

impl Shelves {
    fn shelf(&mut self, origin: &str) -> &mut Shelf {
        // Looked up twice only when it is new; `entry` would copy the key each time.
        if !self.by_origin.contains_key(origin) {
            self.by_origin.insert(origin.into(), Shelf::default());
        }
        self.by_origin.get_mut(origin).expect("inserted above")
    }
}

impl Shelf {
    fn expire(&mut self, pool: &ConnectionPool, now: Instant) {
        let before = self.h1.len();
        self.h1.retain(|idle| now < idle.expires);
        pool.count_gone(before - self.h1.len());
        self.gate.take_if(|(_, until)| now >= *until);
        self.h2.retain_mut(|shared| {
            if !shared.connection.is_idle() {
                shared.expires = now + pool.max_age;
            }
            now < shared.expires && !shared.connection.is_closed() && !shared.connection.is_shutting_down()
        });
    }
}

#[cfg(test)]
mod tests;
