//! Large bodies are read once and not copied: what a request allocates on its way through the stages does not grow with
//! its body, but for the body itself and, where a config changes it, the changed one. Counted by an allocator of its
//! own, in a program of its own.

use bytes::Bytes;
use pingora_http::{RequestHeader, ResponseHeader};
use proxy::net::downstream::{ClientGone, Downstream};
use proxy::request::body::Fields;
use proxy::request::body::edit::Edits;
use proxy::request::receive::{BodyPace, Bounds, body_memory, receive};
use proxy::routing::clock::Machine;
use proxy::routing::course::RoutingInputs;
use proxy::routing::plan::{Plan, compile};
use proxy::routing::{Course, RequestFacts};
use proxy::runtime::tenant_share::Tenant;
use serde_json::{Map, Value, json};
use shared::config::{ParamPath, Strictness, parse_config};
use shared::settings::config_limits::ConfigLimits;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::time::Duration;

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SMALL: usize = 40_000;
const LARGE: usize = 400_000;
/// What may differ between the two for other reasons than their size.
const SLACK: usize = 4096;

/// A chat with this much text in it.
fn body(bytes: usize) -> Bytes {
    let text = "x".repeat(bytes);
    let messages = json!([{ "role": "system", "content": "s" }, { "role": "user", "content": text }]);
    Bytes::from(json!({ "model": "gpt-4o", "messages": messages, "temperature": 1, "stream": true }).to_string())
}

fn allocated<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let region = Region::new(COUNTING);
    let done = work();
    let change = region.change();
    (change.bytes_allocated + change.bytes_reallocated.max(0) as usize, done)
}

/// How much more the large body costs than the small one.
fn growth(work: impl Fn(&Bytes) -> usize) -> usize {
    let (small, large) = (body(SMALL), body(LARGE));
    work(&large).saturating_sub(work(&small))
}

fn plan(config: &Value) -> Plan {
    compile(
        &parse_config(config, Strictness::Inline, &ConfigLimits::default())
            .unwrap_or_else(|faults| panic!("{faults:?}")),
    )
}

/// One test, so that nothing else allocates meanwhile.
#[test]
fn what_a_request_allocates_does_not_grow_with_its_body() {
    let reading = growth(|body| allocated(|| Fields::parse_object(body).unwrap()).0);
    assert!(reading <= SLACK, "reading the fields: {reading} bytes more");

    let unchanged = growth(|body| {
        let fields = Fields::parse_object(body).unwrap();
        allocated(|| Edits::default().apply(body, &fields, None)).0
    });
    assert!(unchanged <= SLACK, "a body without changes: {unchanged} bytes more");

    let overrides = json!({ "model": "other", "temperature": 0 });
    let edits = Edits::new(overrides.as_object(), None, vec![ParamPath::parse("seed").unwrap()]);
    let changed = growth(|body| {
        let fields = Fields::parse_object(body).unwrap();
        allocated(|| edits.apply(body, &fields, None)).0
    });
    assert!(
        changed <= LARGE - SMALL + SLACK,
        "a changed body: {changed} bytes more, one copy would be {}",
        LARGE - SMALL
    );

    let sticky = json!({ "enabled": true, "hash_fields": ["prompt_prefix"] });
    let plan = plan(&json!({ "strategy": { "mode": "loadbalance", "sticky": sticky }, "targets": [
        { "strategy": { "mode": "conditional", "conditions": [{ "query": { "params.model": "gpt-4o", "params.temperature": { "$gt": 0 } }, "then": "a" }], "default": "a" },
          "targets": [{ "name": "a", "provider": "@a" }] },
        { "provider": "@b" },
    ] }));
    let routing = growth(|body| {
        let (metadata, fields) = (Map::new(), Fields::parse_object(body).unwrap());
        let mut chance = || 0.5;
        let facts = RequestFacts { metadata: &metadata, params: &fields, pathname: "/" };
        let mut moment = RoutingInputs { facts, scope: b"w", clock: &Machine, chance: &mut chance };
        allocated(|| drop(Course::begin(&plan, &mut moment).unwrap())).0
    });
    assert!(routing <= SLACK, "routing by conditions and prompt prefix: {routing} bytes more");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let receiving = growth(|body| {
        let mut client = Client::sending(body);
        let memory = body_memory(usize::MAX);
        let timeout = Duration::from_secs(9);
        let pace = BodyPace { period: timeout, bytes: 0 };
        let bounds = Bounds { max_bytes: usize::MAX, timeout, pace, memory: &memory, tenant: Tenant::GATEWAY };
        allocated(|| drop(runtime.block_on(receive(&mut client, &bounds)).unwrap())).0
    });
    assert!(receiving <= LARGE - SMALL + SLACK, "receiving: {receiving} bytes more");
}

/// A client that announces its length and sends its body in pieces.
struct Client {
    head: RequestHeader,
    pieces: Vec<Bytes>,
}

impl Client {
    fn sending(body: &Bytes) -> Self {
        let mut head = RequestHeader::build("POST", b"/v1/chat/completions", None).expect("a plain head");
        head.insert_header("content-length", body.len().to_string()).expect("a number is a header");
        let mut pieces: Vec<Bytes> =
            (0..body.len()).step_by(16_384).map(|at| body.slice(at..body.len().min(at + 16_384))).collect();
        pieces.reverse();
        Self { head, pieces }
    }
}

impl Downstream for Client {
    fn head(&self) -> &RequestHeader {
        &self.head
    }

    async fn read_body(&mut self) -> Result<Option<Bytes>, ClientGone> {
        Ok(self.pieces.pop())
    }

    async fn write_continue(&mut self) -> Result<(), ClientGone> {
        Ok(())
    }

    async fn write_head(&mut self, _: ResponseHeader) -> Result<(), ClientGone> {
        Ok(())
    }

    async fn write_body(&mut self, _: Bytes, _: bool) -> Result<(), ClientGone> {
        Ok(())
    }

    async fn gone(&mut self) {
        std::future::pending().await
    }
}
