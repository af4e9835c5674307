//! The rule over everything that is shared out between tenants: however many workspaces an organisation has and in whatever
//! order they ask, it takes no more than its share, and another organisation always gets a place.

use super::{Holding, ShareRule, Tenant, TenantShare, heaviest_of};
use crate::batches::runner;
use crate::cache::CacheKey;
use crate::cache::entry::tests::entry;
use crate::cache::memory::Memory;
use crate::cache::remote::writes::{PendingWrite, WriteQueue};
use crate::cache::semantic::index::pgvector::turns::Turns;
use crate::cache::semantic::index::{AskedVector, MemoryIndex, Nearness, Partition, VectorIndex as _};
use crate::cache::semantic::lexical::{Guard, LexicalMarks};
use crate::guardrails::CallPlaces;
use crate::guardrails::remote::places::MAX_CALLS;
use crate::guardrails::remote::room;
use crate::journal::late_results::{HookLists, LateWork, LateWorks, MAX_WAITING};
use crate::mcp::bridge_memory::{self, BridgeMemory};
use crate::mcp::bridges::MAX_SESSIONS;
use crate::mcp::{Bridges, CircuitKey, ListCache, McpCircuits, McpEndpoint};
use crate::net::answer_budget::AnswerBudget;
use crate::net::dial::lab;
use crate::routing::inline_configs::InlineConfigs;
use crate::runtime::heavy::places;
use crate::runtime::memory::{OwnedShare, body_memory};
use crate::runtime::small_pool;
use crate::snapshot::unheld_versions::VersionCache;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use proptest::prelude::*;
use shared::mcp::Kind;
use shared::settings::config_limits::ConfigLimits;
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const MIB: usize = 1 << 20;
const HOSTILE: u128 = 1;

/// Takes one unit for a tenant; none when there is no room. What is returned holds the unit.
type Take = Box<dyn Fn(Tenant) -> Option<Box<dyn Any>>>;

/// A user that refuses or lets callers wait: its name, how many units it has, and how one is taken.
type Bounded = (&'static str, usize, Take);

fn held<T: 'static>(guard: T) -> Option<Box<dyn Any>> {
    Some(Box::new(guard))
}

fn bounded() -> Vec<Bounded> {
    let memory = body_memory(64 * MIB);
    let bodies: Take = Box::new(move |tenant| {
        let mut share = OwnedShare::none(memory.clone(), tenant);
        share.grow(MIB).ok().and_then(|()| held(share))
    });
    let threads = places(8);
    let heavy: Take = Box::new(move |tenant| threads.acquire(tenant, 1).now_or_never().and_then(held));
    let questions = room::new_room();
    let rooms: Take =
        Box::new(move |tenant| questions.acquire(tenant, room::pieces(4 * MIB)).now_or_never().and_then(held));
    let guards = CallPlaces::default();
    let calls: Take = Box::new(move |tenant| guards.of(tenant).all.acquire(tenant, 1).now_or_never().and_then(held));
    let receivers = runner::turns::Turns::new(16, 4);
    let notices: Take = Box::new(move |tenant| receivers.take(tenant).and_then(held));
    let bridges = Bridges::default();
    let endpoint = McpEndpoint::parse(&lab::dialer(), "http://127.0.0.1:1/post").unwrap();
    let sessions: Take = Box::new(move |tenant| bridges.open(tenant, endpoint.clone()).and_then(held));
    let unread = BridgeMemory::default();
    let messages: Take = Box::new(move |tenant| unread.session(tenant).hold(MIB).and_then(held));
    let works = LateWorks::default();
    let late: Take = Box::new(move |tenant| {
        let id = Uuid::new_v4();
        works.put(id, Box::new(Late(tenant)));
        works.joined(id, None).is_none().then(|| Box::new(()) as Box<dyn Any>)
    });
    let queue = WriteQueue::new();
    let writes: Take = Box::new(move |tenant| {
        let key = CacheKey { tenant, digest: [0; 32] };
        let (encoded, ttl) = (vec![0; MIB / 4], Duration::from_secs(60));
        queue
            .push(PendingWrite { organisation: tenant.organisation, key, encoded, ttl })
            .then(|| Box::new(()) as Box<dyn Any>)
    });
    let turns = Arc::new(Turns::default());
    let searches: Take = Box::new(move |tenant| turns.begin(tenant, 5).and_then(held));
    let connections = small_pool::turns(4);
    let lent: Take = Box::new(move |tenant| connections.acquire(tenant, 1).now_or_never().and_then(held));
    let answers = AnswerBudget::new(64 * MIB);
    let growing: Take = Box::new(move |tenant| {
        let share = answers.share(tenant);
        share.take(MIB).then(|| Box::new(share) as Box<dyn Any>)
    });
    vec![
        ("connections for files and batches", 4, lent),
        ("answers of batches", 64, growing),
        ("the memory of bodies", 64, bodies),
        ("threads for heavy work", 8, heavy),
        ("room for questions to services", room::MAX_PIECES / room::pieces(4 * MIB), rooms),
        ("calls of checks to services", MAX_CALLS, calls),
        ("notices of batches", 16, notices),
        ("sessions with MCP servers", MAX_SESSIONS, sessions),
        ("unread messages of MCP servers", bridge_memory::MAX_BYTES / MIB, messages),
        ("late results", MAX_WAITING, late),
        ("writes to Redis", 128, writes),
        ("searches in Postgres", 64, searches),
    ]
}

struct Late(Tenant);

impl LateWork for Late {
    fn tenant(&self) -> Tenant {
        self.0
    }

    fn weight(&self) -> usize {
        1
    }

    fn skipped(&self) -> HookLists {
        HookLists::default()
    }

    fn run(self: Box<Self>) -> BoxFuture<'static, HookLists> {
        Box::pin(std::future::pending())
    }
}

/// Puts entries of a tenant by their numbers, and says which are there.
trait Evicting {
    fn put(&self, tenant: Tenant, number: u32);
    fn has(&self, tenant: Tenant, number: u32) -> bool;
}

struct Lists(ListCache, Instant);

impl Evicting for Lists {
    fn put(&self, tenant: Tenant, number: u32) {
        let tool = serde_json::json!({ "name": "a", "description": "x".repeat(MIB / 2) });
        let entries = Arc::new(vec![tool.as_object().unwrap().clone()]);
        self.0.keep(ListCache::key(tenant, server(number), server(0), Kind::Tool), 1, &entries, self.1);
    }

    fn has(&self, tenant: Tenant, number: u32) -> bool {
        self.0.find(&ListCache::key(tenant, server(number), server(0), Kind::Tool), 1, self.1).is_some()
    }
}

fn server(number: u32) -> Uuid {
    Uuid::from_u128(number.into())
}

struct Circuits(McpCircuits, Instant);

impl Evicting for Circuits {
    fn put(&self, tenant: Tenant, number: u32) {
        for integration in 0..64 {
            let integration = Uuid::from_u128(u128::from(number) * 64 + integration);
            (0..5).for_each(|_| self.0.record(CircuitKey { tenant, integration }, 503, self.1));
        }
    }

    fn has(&self, tenant: Tenant, number: u32) -> bool {
        self.0.is_open(CircuitKey { tenant, integration: Uuid::from_u128(u128::from(number) * 64) }, self.1)
    }
}

struct Answers(Memory);

fn key(tenant: Tenant, number: u32) -> CacheKey {
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&number.to_le_bytes());
    CacheKey { tenant, digest }
}

impl Evicting for Answers {
    fn put(&self, tenant: Tenant, number: u32) {
        let answer = crate::cache::Entry { body: Bytes::from(vec![b'x'; 200 << 10]), ..entry(b"") };
        self.0.store(key(tenant, number), Arc::new(answer), 2_000);
    }

    fn has(&self, tenant: Tenant, number: u32) -> bool {
        self.0.find(&key(tenant, number), 2_000, 0, |_| true).is_some()
    }
}

struct Vectors(MemoryIndex);

impl Vectors {
    fn question(tenant: Tenant, number: u32) -> AskedVector {
        let partition = Partition { tenant, digest: key(tenant, number).digest };
        AskedVector { partition, values: vec![1.0; 4096], marks: LexicalMarks::read("text") }
    }
}

impl Evicting for Vectors {
    fn put(&self, tenant: Tenant, number: u32) {
        self.0.put(Self::question(tenant, number), key(tenant, number), 100);
    }

    fn has(&self, tenant: Tenant, number: u32) -> bool {
        let nearness = Nearness { threshold: 0.0, guard: Guard::Marks, now_ms: 0, most: 1 };
        let question = Self::question(tenant, number);
        self.0.near(&question, nearness).now_or_never().unwrap().unwrap().len() == 1
    }
}

struct Plans(InlineConfigs);

impl Evicting for Plans {
    fn put(&self, tenant: Tenant, number: u32) {
        for more in 0..4 {
            self.0.plan(tenant, &format!(r#"{{"request_timeout":{}}}"#, 4 * number + more + 1)).unwrap();
        }
    }

    fn has(&self, tenant: Tenant, _: u32) -> bool {
        let mut found = 0;
        self.0.each(|workspace, _| found += usize::from(workspace == tenant.workspace));
        found == 4
    }
}

struct Versions(parking_lot::Mutex<VersionCache<()>>);

impl Evicting for Versions {
    fn put(&self, tenant: Tenant, number: u32) {
        self.0.lock().keep_for_test(tenant, number, 2 * MIB);
    }

    fn has(&self, tenant: Tenant, number: u32) -> bool {
        self.0.lock().has_for_test(tenant, number)
    }
}

fn evicting() -> Vec<(&'static str, Box<dyn Evicting>)> {
    let now = Instant::now();
    vec![
        ("lists of MCP servers", Box::new(Lists(ListCache::default(), now))),
        ("circuits of MCP servers", Box::new(Circuits(McpCircuits::default(), now))),
        ("answers", Box::new(Answers(Memory::new(8 * MIB)))),
        ("vectors", Box::new(Vectors(MemoryIndex::new(MIB)))),
        ("inline configs", Box::new(Plans(InlineConfigs::new(ConfigLimits::default())))),
        ("versions of prompts", Box::new(Versions(parking_lot::Mutex::default()))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn an_organisation_takes_its_share_and_another_gets_a_place(
        workspaces in 1_u128..100,
        order in any::<u64>(),
    ) {
        for (name, units, take) in bounded() {
            let mut guards = Vec::new();
            // Every workspace asks for more than there is, in any order.
            for turn in 0..(2 * units as u128).max(4 * workspaces) {
                let workspace = (turn.wrapping_mul(u128::from(order | 1)) >> 3) % workspaces;
                guards.extend(take(Tenant::test(HOSTILE, 1000 + workspace)));
            }
            prop_assert!(!guards.is_empty(), "{name}: it gets some");
            prop_assert!(guards.len() <= units.div_ceil(2), "{name}: {} of {units}", guards.len());
            for other in 2..6 {
                prop_assert!(take(Tenant::test(other, other)).is_some(), "{name}: organisation {other}");
            }
        }
    }

    #[test]
    fn an_organisation_evicts_its_own_and_another_keeps_its_entry(workspaces in 1_u128..40, order in any::<u64>()) {
        for (name, user) in evicting() {
            user.put(Tenant::test(2, 2), 0);
            for turn in 0..400_u32 {
                let workspace = (u128::from(turn).wrapping_mul(u128::from(order | 1)) >> 3) % workspaces;
                user.put(Tenant::test(HOSTILE, 1000 + workspace), turn);
            }
            prop_assert!(user.has(Tenant::test(2, 2), 0), "{name}: what was there stays");
            user.put(Tenant::test(3, 3), 0);
            prop_assert!(user.has(Tenant::test(3, 3), 0), "{name}: what comes stays");
            prop_assert!(user.has(Tenant::test(2, 2), 0), "{name}: and so does what was there");
        }
    }

    /// In any order of taking and giving back nothing is lost, and nobody holds more than may be held.
    #[test]
    fn a_share_is_counted_exactly(
        steps in prop::collection::vec((0_u128..3, 0_u128..4, 0_usize..40, any::<bool>()), 1..200),
    ) {
        let share = TenantShare::new(100, ShareRule::REFUSING);
        let mut held: Vec<Holding> = Vec::new();
        for (organisation, workspace, amount, is_taken) in steps {
            match is_taken {
                true => held.extend(share.hold(Tenant::test(organisation + 1, workspace + 10), amount)),
                false if !held.is_empty() => drop(held.swap_remove(amount % held.len())),
                false => {}
            }
            let total: usize = held.iter().map(Holding::amount).sum();
            prop_assert_eq!(share.used(), total);
            prop_assert!(total <= 100);
            let heaviest = heaviest_of(held.iter().map(|held| (held.tenant(), held.amount())));
            prop_assert_eq!(share.heaviest().is_some(), heaviest.is_some_and(|_| total > 0));
        }
        drop(held);
        prop_assert_eq!(share.used(), 0);
        prop_assert!(share.organisations.lock().is_empty());
    }
}

#[tokio::test]
async fn who_holds_least_is_served_first_and_who_leaves_is_passed_over() {
    let share = TenantShare::new(4, ShareRule::WAITING);
    let ask = |organisation, workspace| Box::pin(share.acquire(Tenant::test(organisation, workspace), 1));
    let mut first = vec![ask(1, 1).await, ask(1, 1).await];
    let others = [ask(2, 1).await, ask(3, 1).await];
    let (mut busy, mut sibling, mut gone, mut new) = (ask(1, 1), ask(1, 2), ask(4, 1), ask(5, 1));
    for waiting in [&mut busy, &mut sibling, &mut gone, &mut new] {
        assert!(waiting.as_mut().now_or_never().is_none(), "all places are taken");
    }
    drop(gone);
    first.pop();
    assert!(busy.as_mut().now_or_never().is_none() && sibling.as_mut().now_or_never().is_none());
    let served = new.as_mut().now_or_never().expect("the organisation that holds nothing is next");
    drop(others);
    let sibling = sibling.as_mut().now_or_never().expect("the workspace that holds nothing");
    assert!(busy.as_mut().now_or_never().is_none(), "its organisation has half");
    drop((served, sibling));
    assert!(busy.now_or_never().is_some());
    drop(first);
    assert_eq!((share.used(), share.queue.has_waiters()), (0, false));
}

#[tokio::test]
async fn everybody_who_waits_is_served_in_the_end() {
    let share = TenantShare::new(3, ShareRule::WAITING);
    let works = (0..300_u128).map(|number| {
        let share = share.clone();
        tokio::spawn(async move {
            let tenant = if number % 10 == 0 { Tenant::GATEWAY } else { Tenant::test(number % 7, number) };
            let acquiring = share.acquire(tenant, 1 + (number % 2) as usize);
            // Some give up.
            if number % 5 == 0 {
                let _ = tokio::time::timeout(Duration::from_micros(1), acquiring).await;
                return;
            }
            let _held = acquiring.await;
            tokio::task::yield_now().await;
        })
    });
    for work in works.collect::<Vec<_>>() {
        work.await.unwrap();
    }
    assert_eq!((share.used(), share.queue.has_waiters()), (0, false));
}
