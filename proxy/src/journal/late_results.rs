//! Hooks of calls that nobody waited for, until their results join the log. As texts that wait to be counted they are in memory
//! only: if the process dies before, the log lacks them.
//!
//! What waits is bounded, and so is the time that a shipment gives them: what there was no room or no time for is told as
//! skipped, and counted.

use futures::StreamExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Calls that wait, and the bytes that they keep in memory.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 64 << 20;
/// Under way at a time. Those that compute take turns on one thread; those that wait for somebody wait together.
const AT_ONCE: usize = 64;
/// The longest that a shipment waits for them.
const LONGEST: Duration = Duration::from_secs(10);
/// Longer results are logged without what was found.
const LONGEST_RESULTS: usize = 64 << 10;

/// What is to be logged of hooks: what those said that the call waited for, as JSON, and the rest as work that is still to be done.
pub struct HookLog {
    pub results: String,
    pub late: Option<Box<dyn LateWork>>,
}

/// Hooks that are run when their call is over.
pub trait LateWork: Send + Sync {
    /// Bytes that it keeps in memory.
    fn weight(&self) -> usize;

    /// What is told where it is not done.
    fn skipped(&self) -> HookLists;

    fn run(self: Box<Self>) -> BoxFuture<'static, HookLists>;
}

/// Results of hooks, by their side.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct HookLists {
    pub before: Vec<Value>,
    pub after: Vec<Value>,
}

#[derive(Default)]
pub struct LateWorks {
    queue: Mutex<LateQueue>,
}

#[derive(Default)]
struct LateQueue {
    /// By the id of the record.
    waiting: BTreeMap<Uuid, Box<dyn LateWork>>,
    bytes: usize,
    done: BTreeMap<Uuid, HookLists>,
    skipped: u64,
}

impl LateWorks {
    /// To be called before the record can be shipped.
    pub fn put(&self, id: Uuid, work: Box<dyn LateWork>) {
        let weight = work.weight();
        let mut queue = self.queue.lock();
        if queue.waiting.len() < MOST && queue.bytes + weight <= MOST_BYTES {
            queue.bytes += weight;
            queue.waiting.insert(id, work);
            return;
        }
        queue.skipped += 1;
        queue.finish(id, work.skipped());
    }

    /// Does what waits now, in bounded time, and answers how many were skipped since it was last asked. Not to be called twice at a
    /// time.
    pub async fn run(&self) -> u64 {
        let until = Instant::now() + LONGEST;
        let ids: Vec<Uuid> = self.queue.lock().waiting.keys().copied().collect();
        let runs = ids.into_iter().map(|id| self.run_one(id, until));
        futures::stream::iter(runs).buffer_unordered(AT_ONCE).collect::<()>().await;
        std::mem::take(&mut self.queue.lock().skipped)
    }

    async fn run_one(&self, id: Uuid, until: Instant) {
        let Some(work) = self.queue.lock().waiting.remove(&id) else { return };
        let (weight, skipped) = (work.weight(), work.skipped());
        let done = match until <= Instant::now() {
            true => None,
            false => tokio::time::timeout_at(until, work.run()).await.ok(),
        };
        let mut queue = self.queue.lock();
        queue.bytes = queue.bytes.saturating_sub(weight);
        queue.skipped += u64::from(done.is_none());
        queue.finish(id, done.unwrap_or(skipped));
    }

    /// The results of a record with those that came later, where there are some.
    pub fn joined(&self, id: Uuid, results: Option<&str>) -> Option<String> {
        let queue = self.queue.lock();
        if queue.done.is_empty() {
            return None;
        }
        let late = queue.done.get(&id)?.clone();
        drop(queue);
        Some(join(results, late))
    }

    /// Its record is stored.
    pub fn forget(&self, id: Uuid) {
        self.queue.lock().done.remove(&id);
    }
}

impl LateQueue {
    fn finish(&mut self, id: Uuid, lists: HookLists) {
        self.done.insert(id, lists);
        if self.done.len() > MOST {
            self.done.pop_first();
        }
    }
}

fn join(results: Option<&str>, late: HookLists) -> String {
    let known = results.and_then(|results| serde_json::from_str(results).ok());
    let mut all = known.filter(Value::is_object).unwrap_or_else(|| serde_json::json!({}));
    for (side, more) in [("before_request_hooks", late.before), ("after_request_hooks", late.after)] {
        match &mut all[side] {
            Value::Array(list) => list.extend(more),
            other => *other = Value::Array(more),
        }
    }
    bounded_results(all.to_string())
}

/// Verdicts without what was found, rather than nothing, where checks found too much.
pub fn bounded_results(results: String) -> String {
    if results.len() <= LONGEST_RESULTS {
        return results;
    }
    let mut results: Value = serde_json::from_str(&results).unwrap_or_default();
    for side in ["before_request_hooks", "after_request_hooks"] {
        let hooks = results.get_mut(side).and_then(Value::as_array_mut);
        for check in hooks.into_iter().flatten().filter_map(|hook| hook["checks"].as_array_mut()).flatten() {
            check["data"] = Value::Null;
        }
    }
    results.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Hooks that say one word, at once or never.
    struct Word {
        weight: usize,
        is_stuck: bool,
    }

    impl LateWork for Word {
        fn weight(&self) -> usize {
            self.weight
        }

        fn skipped(&self) -> HookLists {
            HookLists { before: vec![json!("skipped")], after: Vec::new() }
        }

        fn run(self: Box<Self>) -> BoxFuture<'static, HookLists> {
            Box::pin(async move {
                if self.is_stuck {
                    std::future::pending::<()>().await;
                }
                HookLists { before: vec![json!("said")], after: Vec::new() }
            })
        }
    }

    fn put(works: &LateWorks, id: u128, weight: usize, is_stuck: bool) -> Uuid {
        let id = Uuid::from_u128(id);
        works.put(id, Box::new(Word { weight, is_stuck }));
        id
    }

    #[tokio::test(start_paused = true)]
    async fn results_join_those_of_the_record_and_what_hangs_is_skipped() {
        let works = LateWorks::default();
        let (quick, stuck) = (put(&works, 1, 10, false), put(&works, 2, 10, true));
        assert_eq!(works.joined(quick, None), None, "not yet");
        assert_eq!(works.run().await, 1);
        let known = r#"{"before_request_hooks":["sync"],"after_request_hooks":[]}"#;
        let joined: Value = serde_json::from_str(&works.joined(quick, Some(known)).unwrap()).unwrap();
        assert_eq!(joined["before_request_hooks"], json!(["sync", "said"]));
        assert!(works.joined(stuck, None).unwrap().contains("skipped"));
        works.forget(quick);
        assert_eq!((works.joined(quick, None), works.queue.lock().bytes), (None, 0));
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_what_has_no_room_is_told_so() {
        let works = LateWorks::default();
        for id in 0..5 {
            put(&works, id, MOST_BYTES / 4, false);
        }
        assert_eq!(works.queue.lock().waiting.len(), 4);
        assert!(works.joined(Uuid::from_u128(4), None).unwrap().contains("skipped"));
        assert_eq!(works.run().await, 1);
        assert!(works.joined(Uuid::from_u128(3), None).unwrap().contains("said"));
    }

    #[test]
    fn results_that_are_too_long_keep_their_verdicts() {
        let check = json!({ "verdict": false, "data": "x".repeat(LONGEST_RESULTS) });
        let long = json!({ "before_request_hooks": [{ "verdict": false, "checks": [check] }] }).to_string();
        let kept: Value = serde_json::from_str(&bounded_results(long)).unwrap();
        assert_eq!(kept.pointer("/before_request_hooks/0/checks/0"), Some(&json!({ "verdict": false, "data": null })));
    }
}
