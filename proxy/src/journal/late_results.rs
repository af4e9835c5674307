//! Hooks of calls that nobody waited for, until their results join the log. As texts that wait to be counted they are in memory
//! only: if the process dies before, the log lacks them.
//!
//! They run beside the shipments, as a task of their own, and no shipment waits for them to run: a file that was closed while
//! some were under way is left where it is until they are done, and others are sent meanwhile.
//!
//! What waits is bounded, and so is the time of each: what there was no room or no time for is logged as skipped, and counted.
//! Room, places and time are shared out between organisations and their workspaces (`tenant_share`), so that a tenant whose
//! services hang costs itself its results, and not everybody their logs.

use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

/// Calls that wait, and the bytes that they keep in memory.
pub(crate) const MAX_WAITING: usize = 10_000;
const MAX_BYTES: usize = 64 << 20;
/// Of one workspace.
const MAX_WAITING_OF_WORKSPACE: usize = MAX_WAITING / 4;
/// Results that wait for their records to be stored. Those that were skipped need no room above.
const MAX_DONE: usize = 4 * MAX_WAITING;
/// Under way at a time. Those that compute take turns on one thread; those that wait for somebody wait together.
const AT_ONCE: usize = 64;
const AT_ONCE_EACH: usize = 16;
/// The longest from the end of a call to the end of its hooks.
const MAX_DURATION: Duration = Duration::from_secs(10);
/// A file waits for hooks no longer than this, should they never be heard of again.
pub(super) const MAX_FILE_WAIT: Duration = Duration::from_secs(12);
/// How long files wait for one workspace and for one organisation in each period; when that is used up, only briefly.
const PERIOD: Duration = Duration::from_secs(60);
const MAX_OF_WORKSPACE: Duration = Duration::from_secs(15);
const MAX_OF_ORGANISATION: Duration = Duration::from_secs(30);
const BRIEF: Duration = Duration::from_millis(250);
/// Longer results are logged without what was found.
const MAX_RESULTS_LENGTH: usize = 64 << 10;

/// What is to be logged of hooks: what those said that the call waited for, as JSON, and the rest as work that is still to be done.
pub struct HookLog {
    pub results: String,
    pub late: Option<Box<dyn LateWork>>,
}

/// Hooks that are run when their call is over.
pub trait LateWork: Send + Sync {
    /// Whose share it uses.
    fn tenant(&self) -> Tenant;

    /// Bytes that it keeps in memory.
    fn weight(&self) -> usize;

    /// What is told where it is not done.
    fn skipped(&self) -> HookLists;

    fn run(self: Box<Self>) -> BoxFuture<'static, HookLists>;
}

/// Results of hooks, each as JSON, by their side.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct HookLists {
    pub before: Vec<String>,
    pub after: Vec<String>,
}

pub struct LateWorks {
    queue: Mutex<LateQueue>,
    arrived: Notify,
    /// How many wait or run, their bytes, and the places of those that run.
    count: Arc<TenantShare>,
    bytes: Arc<TenantShare>,
    places: Arc<TenantShare>,
}

impl Default for LateWorks {
    fn default() -> Self {
        let count = ShareRule { least: 1, workspace: MAX_WAITING_OF_WORKSPACE, ..ShareRule::REFUSING };
        Self {
            queue: Mutex::default(),
            arrived: Notify::new(),
            count: TenantShare::new(MAX_WAITING, count),
            bytes: TenantShare::new(MAX_BYTES, ShareRule::REFUSING),
            places: TenantShare::new(AT_ONCE, ShareRule::WAITING),
        }
    }
}

/// One that waits, and the room that it takes.
struct WaitingWork {
    came: Instant,
    work: Box<dyn LateWork>,
    room: [Holding; 2],
}

#[derive(Default)]
struct LateQueue {
    /// By the id of the record.
    waiting: BTreeMap<Uuid, WaitingWork>,
    /// Those that wait or run, the oldest first.
    unfinished: BTreeSet<(Instant, Uuid)>,
    /// By workspace, and by organisation.
    waited: BTreeMap<Uuid, WaitedFor>,
    done: BTreeMap<Uuid, HookLists>,
    skipped: u64,
}

/// How long the hooks of a workspace or organisation took since this period began.
struct WaitedFor {
    began: Instant,
    total: Duration,
}

impl LateWorks {
    /// To be called before the record can be shipped.
    pub fn put(&self, id: Uuid, work: Box<dyn LateWork>) {
        let (room, came) = (self.room(&*work), Instant::now());
        let mut queue = self.queue.lock();
        if let Some(room) = room {
            queue.unfinished.insert((came, id));
            queue.waiting.insert(id, WaitingWork { came, work, room });
            drop(queue);
            self.arrived.notify_one();
            return;
        }
        queue.skipped += 1;
        queue.finish(id, work.skipped());
    }

    fn room(&self, work: &dyn LateWork) -> Option<[Holding; 2]> {
        let tenant = work.tenant();
        Some([self.count.hold(tenant, 1).ok()?, self.bytes.hold(tenant, work.weight()).ok()?])
    }

    /// Runs what comes for as long as the process does, and tells `skipped` of how many had to be skipped. Those of one workspace
    /// run in rounds; each workspace has its own.
    pub async fn run(&self, skipped: impl Fn(u64)) {
        let (mut rounds, mut busy) = (FuturesUnordered::new(), BTreeSet::new());
        loop {
            for (tenant, ids, until) in self.queue.lock().by_tenant(Instant::now()) {
                if busy.insert(tenant) {
                    let round = self.run_tenant(tenant, ids, until);
                    rounds.push(async move {
                        round.await;
                        tenant
                    });
                }
            }
            tokio::select! {
                Some(tenant) = rounds.next() => drop(busy.remove(&tenant)),
                () = self.arrived.notified() => {}
            }
            let count = std::mem::take(&mut self.queue.lock().skipped);
            if count > 0 {
                skipped(count);
            }
        }
    }

    /// What waits of one workspace. So few of it are under way or in line for a place that others get theirs in turn.
    async fn run_tenant(&self, tenant: Tenant, ids: Vec<Uuid>, until: Instant) {
        let runs = ids.into_iter().map(|id| self.run_one(id, until));
        let took: Vec<Duration> = futures::stream::iter(runs).buffer_unordered(AT_ONCE_EACH).collect().await;
        let longest = took.iter().copied().max().unwrap_or_default();
        let together = took.iter().sum::<Duration>() / AT_ONCE_EACH as u32;
        self.queue.lock().note_waited(tenant, longest.max(together));
    }

    /// How long it took, once it had a place.
    async fn run_one(&self, id: Uuid, until: Instant) -> Duration {
        let Some(waiting) = self.queue.lock().waiting.remove(&id) else { return Duration::ZERO };
        let WaitingWork { came, work, room } = waiting;
        let mut running = RunningWork { works: self, id, came, skipped: Some(work.skipped()), _room: room };
        let until = until.min(came + MAX_DURATION);
        let place = tokio::time::timeout_at(until, self.places.acquire(work.tenant(), 1)).await;
        let began = Instant::now();
        if place.is_ok()
            && began < until
            && let Ok(done) = tokio::time::timeout_at(until, work.run()).await
        {
            running.finish(done);
        }
        drop(running);
        began.elapsed()
    }

    /// Whether all hooks are done of calls that were over by then.
    pub(super) fn is_done_until(&self, moment: Instant) -> bool {
        self.queue.lock().unfinished.first().is_none_or(|(came, _)| *came > moment)
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

    /// Nobody stores any of it.
    pub fn forget_all(&self) {
        self.queue.lock().done.clear();
    }

    /// Its record is stored.
    pub fn forget(&self, id: Uuid) {
        self.queue.lock().done.remove(&id);
    }
}

/// One that has left the queue. It is skipped unless it finishes, also when its run panics or is given up.
struct RunningWork<'w> {
    works: &'w LateWorks,
    id: Uuid,
    came: Instant,
    skipped: Option<HookLists>,
    _room: [Holding; 2],
}

impl RunningWork<'_> {
    fn finish(&mut self, done: HookLists) {
        self.skipped = None;
        self.works.queue.lock().finish(self.id, done);
    }
}

impl Drop for RunningWork<'_> {
    fn drop(&mut self) {
        let mut queue = self.works.queue.lock();
        queue.unfinished.remove(&(self.came, self.id));
        if let Some(skipped) = self.skipped.take() {
            queue.skipped += 1;
            queue.finish(self.id, skipped);
        }
    }
}

impl LateQueue {
    /// What waits by tenant, and until when each is waited for.
    fn by_tenant(&mut self, now: Instant) -> Vec<(Tenant, Vec<Uuid>, Instant)> {
        self.waited.retain(|_, waited| now.saturating_duration_since(waited.began) < PERIOD);
        let mut by_tenant: BTreeMap<Tenant, Vec<Uuid>> = BTreeMap::new();
        for (id, waiting) in &self.waiting {
            by_tenant.entry(waiting.work.tenant()).or_default().push(*id);
        }
        let left = |id: &Uuid, max: Duration| {
            max.saturating_sub(self.waited.get(id).map(|waited| waited.total).unwrap_or_default())
        };
        let until = |tenant: &Tenant| {
            let of_workspace = left(&tenant.workspace, MAX_OF_WORKSPACE);
            now + of_workspace.min(left(&tenant.organisation, MAX_OF_ORGANISATION)).clamp(BRIEF, MAX_DURATION)
        };
        by_tenant.into_iter().map(|(tenant, ids)| (tenant, ids, until(&tenant))).collect()
    }

    fn note_waited(&mut self, tenant: Tenant, took: Duration) {
        for id in [tenant.workspace, tenant.organisation] {
            let fresh = || WaitedFor { began: Instant::now(), total: Duration::ZERO };
            self.waited.entry(id).or_insert_with(fresh).total += took;
        }
    }

    fn finish(&mut self, id: Uuid, lists: HookLists) {
        self.done.insert(id, lists);
        if self.done.len() > MAX_DONE {
            self.done.pop_first();
        }
    }
}

fn join(results: Option<&str>, late: HookLists) -> String {
    let known = results.and_then(|results| serde_json::from_str(results).ok());
    let mut all = known.filter(Value::is_object).unwrap_or_else(|| serde_json::json!({}));
    for (side, more) in [("before_request_hooks", late.before), ("after_request_hooks", late.after)] {
        let more: Vec<Value> = more.iter().filter_map(|result| serde_json::from_str(result).ok()).collect();
        match &mut all[side] {
            Value::Array(list) => list.extend(more),
            other => *other = Value::Array(more),
        }
    }
    bounded_results(all.to_string())
}

/// Verdicts without what was found, rather than nothing, where checks found too much.
pub fn bounded_results(results: String) -> String {
    if results.len() <= MAX_RESULTS_LENGTH {
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
        organisation: u128,
        weight: usize,
        is_stuck: bool,
    }

    impl LateWork for Word {
        fn tenant(&self) -> Tenant {
            Tenant::test(self.organisation, 1000 + self.organisation)
        }

        fn weight(&self) -> usize {
            self.weight
        }

        fn skipped(&self) -> HookLists {
            HookLists { before: vec![json!("skipped").to_string()], after: Vec::new() }
        }

        fn run(self: Box<Self>) -> BoxFuture<'static, HookLists> {
            Box::pin(async move {
                if self.is_stuck {
                    std::future::pending::<()>().await;
                }
                HookLists { before: vec![json!("said").to_string()], after: Vec::new() }
            })
        }
    }

    fn put(works: &LateWorks, id: u128, weight: usize, is_stuck: bool) -> Uuid {
        let id = Uuid::from_u128(id);
        works.put(id, Box::new(Word { organisation: 1, weight, is_stuck }));
        id
    }

    /// Runs them until all are done, and answers how many were skipped.
    async fn run_all(works: &LateWorks) -> u64 {
        let skipped = std::cell::Cell::new(0);
        let all_done = async {
            while !works.is_done_until(Instant::now()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // The count is told after the last of them.
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        tokio::select! {
            () = works.run(|count| skipped.set(skipped.get() + count)) => {}
            () = all_done => {}
        }
        skipped.get()
    }

    #[tokio::test(start_paused = true)]
    async fn a_workspace_whose_services_hang_costs_others_neither_results_nor_much_time() {
        let works = LateWorks::default();
        let mut waits = Vec::new();
        for round in 0..4_u128 {
            for id in 0..200 {
                put(&works, 1000 * round + id, 10, true);
            }
            let other = Uuid::from_u128(1000 * round + 999);
            works.put(other, Box::new(Word { organisation: 2, weight: 10, is_stuck: false }));
            let began = Instant::now();
            assert_eq!(run_all(&works).await, 200);
            waits.push(began.elapsed().as_secs());
            assert!(works.joined(other, None).unwrap().contains("said"));
        }
        assert_eq!(waits[2..], [0, 0], "{waits:?}");
        assert_eq!((works.count.used(), works.bytes.used()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn others_begin_and_end_while_those_of_one_workspace_hang() {
        let works = LateWorks::default();
        put(&works, 1, 10, true);
        let later = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let other = Uuid::from_u128(2);
            works.put(other, Box::new(Word { organisation: 2, weight: 10, is_stuck: false }));
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(works.joined(other, None).unwrap().contains("said"));
            assert!(works.joined(Uuid::from_u128(1), None).is_none(), "it still hangs");
        };
        tokio::select! {
            () = works.run(|_| {}) => {}
            () = later => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_under_way_when_the_task_ended_is_skipped() {
        let works = LateWorks::default();
        let stuck = put(&works, 1, 10, true);
        assert!(tokio::time::timeout(Duration::from_secs(1), works.run(|_| {})).await.is_err());
        assert!(works.joined(stuck, None).unwrap().contains("skipped"));
        assert!(works.is_done_until(Instant::now()) && works.count.used() == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn results_join_those_of_the_record_and_what_hangs_is_skipped() {
        let works = LateWorks::default();
        let (quick, stuck) = (put(&works, 1, 10, false), put(&works, 2, 10, true));
        assert_eq!(works.joined(quick, None), None, "not yet");
        assert_eq!(run_all(&works).await, 1);
        let known = r#"{"before_request_hooks":["sync"],"after_request_hooks":[]}"#;
        let joined: Value = serde_json::from_str(&works.joined(quick, Some(known)).unwrap()).unwrap();
        assert_eq!(joined["before_request_hooks"], json!(["sync", "said"]));
        assert!(works.joined(stuck, None).unwrap().contains("skipped"));
        works.forget(quick);
        assert_eq!((works.joined(quick, None), works.bytes.used()), (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded_and_what_has_no_room_is_told_so() {
        let works = LateWorks::default();
        for id in 0..5 {
            put(&works, id, MAX_BYTES / 8, false);
        }
        assert_eq!(works.queue.lock().waiting.len(), 3);
        assert!(works.joined(Uuid::from_u128(4), None).unwrap().contains("skipped"));
        assert_eq!(run_all(&works).await, 2);
        assert!(works.joined(Uuid::from_u128(2), None).unwrap().contains("said"));
    }

    #[test]
    fn results_that_are_too_long_keep_their_verdicts() {
        let check = json!({ "verdict": false, "data": "x".repeat(MAX_RESULTS_LENGTH) });
        let long = json!({ "before_request_hooks": [{ "verdict": false, "checks": [check] }] }).to_string();
        let kept: Value = serde_json::from_str(&bounded_results(long)).unwrap();
        assert_eq!(kept.pointer("/before_request_hooks/0/checks/0"), Some(&json!({ "verdict": false, "data": null })));
    }
}
