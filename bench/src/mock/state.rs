//! What the connections of one mock share: counters, remembered requests and queued faults.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::batches::Shelf;
use super::bill::Bill;
use super::buckets::Buckets;
use super::counts::{Counters, Counts, Outcome};
use super::fault::Fault;
use super::record::Recorded;
use super::route::Endpoint;

pub struct State {
    pub counters: Counters,
    /// The answer of `POST /fixed`.
    pub fixed: Bytes,
    /// What calls cost, where somebody wants to know.
    pub bill: Option<Bill>,
    /// Files and batches.
    pub shelf: Shelf,
    /// The same where they are kept in buckets.
    pub buckets: Buckets,
    remember: usize,
    requests: Mutex<VecDeque<Recorded>>,
    queue: Mutex<VecDeque<Fault>>,
    /// Words that left, by the tag of their request.
    spoken: Mutex<BTreeMap<String, u64>>,
    /// Lets the common case, an empty queue, pass without the lock.
    queued: AtomicU64,
    sequence: AtomicU64,
    changed: Notify,
}

impl State {
    pub fn new(remember: usize, bills: bool) -> Self {
        Self {
            bill: bills.then(Bill::default),
            counters: Counters::default(),
            fixed: super::openai::fixed(),
            shelf: Shelf::default(),
            buckets: Buckets::default(),
            remember,
            requests: Mutex::default(),
            queue: Mutex::default(),
            spoken: Mutex::default(),
            queued: AtomicU64::new(0),
            sequence: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    pub fn begin(self: &Arc<Self>, endpoint: Endpoint) -> Serving {
        self.counters.began();
        self.announce();
        let id = self.sequence.fetch_add(1, Relaxed) + 1;
        Serving { id, state: self.clone(), endpoint, outcome: Outcome::Cancelled }
    }

    pub fn remembers(&self) -> bool {
        self.remember > 0
    }

    pub fn remember(&self, request: Recorded) {
        let mut requests = lock(&self.requests);
        if requests.len() == self.remember {
            requests.pop_front();
        }
        requests.push_back(request);
    }

    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.requests).iter().cloned().collect()
    }

    pub fn script(&self, faults: Vec<Fault>) {
        let mut queue = lock(&self.queue);
        queue.extend(faults);
        self.queued.store(queue.len() as u64, Relaxed);
    }

    pub fn queued(&self) -> Vec<Fault> {
        lock(&self.queue).iter().cloned().collect()
    }

    /// For whatever comes next.
    pub fn next_fault(&self) -> Option<Fault> {
        self.taken(|fault| fault.contains.is_empty())
    }

    /// For this body.
    pub fn fault_for(&self, body: &[u8]) -> Option<Fault> {
        self.taken(|fault| fault.is_for(body))
    }

    fn taken(&self, fits: impl Fn(&Fault) -> bool) -> Option<Fault> {
        if self.queued.load(Relaxed) == 0 {
            return None;
        }
        let mut queue = lock(&self.queue);
        let at = queue.iter().position(fits)?;
        let fault = match queue.get_mut(at) {
            Some(fault) if fault.times.is_some_and(|times| times > 1) => {
                fault.times = fault.times.map(|times| times - 1);
                Some(fault.clone())
            }
            _ => queue.remove(at),
        };
        self.queued.store(queue.len() as u64, Relaxed);
        fault
    }

    pub fn note_spoken(&self, tag: &str, words: u64) {
        *lock(&self.spoken).entry(tag.to_owned()).or_default() += words;
    }

    pub fn spoken(&self) -> BTreeMap<String, u64> {
        lock(&self.spoken).clone()
    }

    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    pub fn reset(&self) {
        self.counters.reset();
        lock(&self.requests).clear();
        lock(&self.queue).clear();
        lock(&self.spoken).clear();
        self.shelf.clear();
        self.bill.iter().for_each(Bill::clear);
        self.buckets.clear();
        self.queued.store(0, Relaxed);
        self.announce();
    }

    pub fn announce(&self) {
        self.changed.notify_waiters();
    }

    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

/// One request being served. What ends without having said how was left by its client.
pub struct Serving {
    pub id: u64,
    state: Arc<State>,
    endpoint: Endpoint,
    outcome: Outcome,
}

impl Serving {
    pub fn ends(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.state.counters.ended(self.endpoint, self.outcome);
        self.state.announce();
    }
}

pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// No code panics while holding these locks, and what they guard is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
