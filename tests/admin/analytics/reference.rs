//! Calls made up at random, and what analytics should say of them, worked out slowly and by other means.

use crate::service::Service;
use chrono::{DateTime, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use shared::db::{request_logs, usage_slots};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Client;
use uuid::{NoContext, Timestamp, Uuid};

#[derive(Debug, Clone)]
pub struct LoggedCall {
    pub at: DateTime<Utc>,
    pub model: &'static str,
    pub service: &'static str,
    pub provider: Option<&'static str>,
    pub config: Option<&'static str>,
    pub status: i64,
    pub millis: i64,
    pub tokens: [i64; 2],
    /// In hundredths of a cent.
    pub cost: Option<i64>,
    pub cache: &'static str,
    pub saved: Option<i64>,
    pub retries: i64,
    pub attempt: i64,
    pub user: Option<&'static str>,
    pub plan: Option<&'static str>,
    pub trace: String,
    /// Number of its API key.
    pub key: Option<u128>,
    pub prompt: Option<&'static str>,
    /// Number of the prompt's version.
    pub version: Option<u128>,
    pub span: Option<String>,
    /// Those it passed before, and after; the first may be among the second.
    pub guardrails: [&'static [&'static str]; 2],
    /// In the workspace of this name, and not in the first.
    pub is_elsewhere: bool,
    /// The best that was said of its trace.
    pub best: Option<i64>,
}

/// The slug of the other workspace.
pub const ELSEWHERE: &str = "elsewhere";

#[derive(Debug, Clone)]
pub struct GivenFeedback {
    pub at: DateTime<Utc>,
    pub trace: String,
    pub value: i64,
}

pub struct World {
    pub calls: Vec<LoggedCall>,
    /// Those of somebody who was erased.
    erased: Vec<LoggedCall>,
    pub feedback: Vec<GivenFeedback>,
}

/// Of January 2026.
pub fn beginning() -> DateTime<Utc> {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

impl World {
    pub fn at_random(seed: u64, count: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut calls: Vec<LoggedCall> = (0..count).map(|n| call(&mut random, n)).collect();
        // All of it in the first workspace.
        let traces: BTreeSet<&String> =
            calls.iter().filter(|call| !call.is_elsewhere).map(|call| &call.trace).collect();
        let traces: Vec<&String> = traces.into_iter().collect();
        let feedback = (0..count / 8).map(|_| GivenFeedback {
            at: beginning() + TimeDelta::seconds(random.random_range(0..30 * 86_400)),
            trace: traces[random.random_range(0..traces.len())].clone(),
            value: random.random_range(-10..=10),
        });
        let feedback: Vec<GivenFeedback> = feedback.collect();
        let mut best: BTreeMap<&str, i64> = BTreeMap::new();
        for given in &feedback {
            let known = best.entry(&given.trace).or_insert(given.value);
            *known = given.value.max(*known);
        }
        calls.iter_mut().for_each(|call| call.best = best.get(call.trace.as_str()).copied());
        let erased = (0..count / 20).map(|n| LoggedCall {
            user: Some(ERASED),
            trace: format!("erased-{n}"),
            ..call(&mut random, n)
        });
        let erased = erased.collect();
        Self { calls, erased, feedback }
    }

    pub async fn store(&self, service: &Service) {
        let mut client = service.database.client().await;
        for day in 0..31 {
            let day = (beginning() + TimeDelta::days(day)).date_naive();
            client.execute("SELECT request_logs_day($1)", &[&day]).await.unwrap();
        }
        // Slots of all widths, of half hours and days alone, and from before there were any.
        let kept =
            "UPDATE usage_slots_kept SET begins_at = '2026-01-03T00:00:00Z', minutes_from = '2026-01-17T00:00:00Z'";
        client.batch_execute("DELETE FROM usage_stale").await.unwrap();
        client.batch_execute(kept).await.unwrap();
        let (organisation, workspace) = (service.home.organisation_id, service.home.workspace_id);
        let places = [workspace, service.workspace(ELSEWHERE).await];
        let rows: Vec<Value> = self.calls.iter().map(|call| call.row(organisation, places)).collect();
        // Most are there before slots are built; some come late for slots that are built again, and some for those that are not.
        let (most, late) = rows.split_at(rows.len() / 10 * 8);
        let (late, last) = late.split_at(late.len() * 9 / 10);
        add(&mut client, most).await;
        refresh(&mut client).await;
        add(&mut client, late).await;
        add(&mut client, &self.erased.iter().map(|call| call.row(organisation, places)).collect::<Vec<_>>()).await;
        add(&mut client, late).await;
        refresh(&mut client).await;
        add(&mut client, last).await;
        let erased = service.administrator().post("/logs/erase", &json!({ "user": ERASED, "mode": "delete" })).await;
        assert_eq!(erased.status, 200, "{}", erased.text());
        for given in &self.feedback {
            client
                .execute(
                    "INSERT INTO feedback (id, organisation_id, workspace_id, trace_id, value, created_at)
                     VALUES ($1, $2, $3, $4, $5, $6)",
                    &[&Uuid::new_v4(), &organisation, &workspace, &given.trace, &(given.value as i32), &given.at],
                )
                .await
                .unwrap();
        }
    }
}

const ERASED: &str = "zoe";

/// By the way that all logs come.
async fn add(client: &mut Client, rows: &[Value]) {
    for rows in rows.chunks(2000) {
        let names = rows[0].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(", ");
        let tx = client.transaction().await.unwrap();
        tx.batch_execute(&request_logs::stage(&names, "DROP")).await.unwrap();
        let fill = format!(
            "INSERT INTO staged ({names}) SELECT {names} FROM jsonb_populate_recordset(NULL::request_logs, $1)"
        );
        tx.execute(&fill, &[&Value::from(rows.to_vec())]).await.unwrap();
        request_logs::add_staged(&tx, &names, rows.len() as u64).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// Builds all slots that are stale.
pub async fn refresh(client: &mut Client) {
    loop {
        let tx = client.transaction().await.unwrap();
        let done = usage_slots::refresh(&tx, Utc::now()).await.unwrap();
        tx.commit().await.unwrap();
        if done.slots == 0 {
            break;
        }
    }
}

fn call(random: &mut StdRng, n: usize) -> LoggedCall {
    let mut one_of = |values: &[&'static str]| *values.choose(random).unwrap();
    let (service, model) = (one_of(&["openai", "groq"]), one_of(&["gpt-4o", "llama", "gpt-4o-mini"]));
    let provider = Some(one_of(&["main", "spare", ""])).filter(|name| !name.is_empty());
    let config = Some(one_of(&["pc-1", ""])).filter(|name| !name.is_empty());
    let cache = one_of(&["DISABLED", "MISS", "HIT", "SEMANTIC HIT", "SEMANTIC MISS", "REFRESH"]);
    let user = Some(one_of(&["ada", "bob", "", "eve"])).filter(|name| !name.is_empty());
    let plan = Some(one_of(&["pro", "free", ""])).filter(|name| !name.is_empty());
    let status = *[200, 200, 200, 246, 400, 429, 446, 500, 503].choose(random).unwrap();
    let is_hit = cache == "HIT" || cache == "SEMANTIC HIT";
    let is_elsewhere = random.random_bool(0.15);
    let guardrails: [[&'static [&'static str]; 2]; 4] =
        [[&[], &[]], [&["pg-1"], &[]], [&["pg-1"], &["pg-1", "pg-2"]], [&[], &["pg-2"]]];
    LoggedCall {
        at: beginning() + TimeDelta::milliseconds(random.random_range(0..30 * 86_400_000)),
        model,
        service,
        provider,
        config,
        status,
        millis: random.random_range(1..5000),
        tokens: [random.random_range(0..1000), random.random_range(0..300)],
        cost: random.random_bool(0.9).then(|| if is_hit { 0 } else { random.random_range(0..100_000) }),
        cache,
        saved: is_hit.then(|| random.random_range(0..100_000)),
        retries: random.random_range(-1..3),
        attempt: random.random_range(0..2),
        user,
        plan,
        trace: format!("{}{}", if is_elsewhere { "e" } else { "t" }, n % 400),
        key: Some(random.random_range(0..4)).filter(|key| *key > 0),
        prompt: random.random_bool(0.3).then_some("pp-1"),
        version: random.random_bool(0.3).then(|| random.random_range(1..4)),
        span: random.random_bool(0.5).then(|| format!("s{}", n % 20)),
        guardrails: *guardrails.choose(random).unwrap(),
        is_elsewhere,
        best: None,
    }
}

impl LoggedCall {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn is_hit(&self) -> bool {
        self.cache == "HIT" || self.cache == "SEMANTIC HIT"
    }

    pub fn is_of_one_of_two(&self) -> bool {
        [("openai", "gpt-4o"), ("groq", "llama")].contains(&(self.service, self.model))
    }

    /// Each once.
    pub fn passed(&self) -> BTreeSet<&'static str> {
        self.guardrails.iter().flat_map(|ids| ids.iter().copied()).collect()
    }

    fn row(&self, organisation: Uuid, places: [Uuid; 2]) -> Value {
        let hooks = |ids: &[&str]| ids.iter().map(|id| json!({ "id": id, "verdict": true })).collect::<Vec<_>>();
        let [before, after] = self.guardrails.map(hooks);
        let hook_results = (!self.passed().is_empty())
            .then(|| json!({ "before_request_hooks": before, "after_request_hooks": after }));
        let time = Timestamp::from_unix(NoContext, self.at.timestamp() as u64, self.at.timestamp_subsec_nanos());
        let metadata: BTreeMap<&str, &str> = [("_user", self.user), ("plan", self.plan)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        let mut row = json!({
            "id": Uuid::new_v7(time), "created_at": self.at, "organisation_id": organisation,
            "workspace_id": places[usize::from(self.is_elsewhere)], "mode": "single", "request_url": "/v1/chat/completions", "request_method": "POST",
            "response_status_code": self.status, "response_time": self.millis, "trace_id": self.trace,
            "internal_trace_id": Uuid::new_v4(), "api_key_id": self.key.map(Uuid::from_u128), "prompt_slug": self.prompt, "ai_org": self.service, "ai_model": self.model,
            "virtual_key": self.provider, "config": self.config, "req_units": self.tokens[0], "res_units": self.tokens[1],
            "cost": self.cost.map(cents), "cache_status": self.cache, "cache_saved_cost": self.saved.map(cents),
            "retry_success_count": self.retries, "attempt": self.attempt, "metadata": metadata, "usage_estimated": false,
            "cost_currency": "USD", "upstream_response_time": 0, "gateway_processing_time": 0, "cache_read_tokens": 0,
            "cache_write_tokens": 0, "reasoning_tokens": 0, "audio_input_tokens": 0, "audio_output_tokens": 0,
            "stream_mode": false, "is_proxy_call": false, "source": "proxy",
        });
        row["prompt_version_id"] = json!(self.version.map(Uuid::from_u128));
        row["span_id"] = json!(self.span);
        row["hook_results"] = json!(hook_results);
        row
    }
}

pub fn cents(hundredths: i64) -> f64 {
    hundredths as f64 / 100.0
}

pub fn cost(calls: &[&LoggedCall]) -> f64 {
    cents(calls.iter().filter_map(|call| call.cost).sum())
}

pub fn tokens(calls: &[&LoggedCall]) -> f64 {
    calls.iter().map(|call| call.tokens[0] + call.tokens[1]).sum::<i64>() as f64
}

pub fn average(values: impl ExactSizeIterator<Item = i64>) -> f64 {
    let count = values.len();
    if count == 0 { 0.0 } else { values.sum::<i64>() as f64 / count as f64 }
}

/// Between the two values that it stands between.
pub fn percentile(calls: &[&LoggedCall], share: f64) -> f64 {
    let mut times: Vec<i64> = calls.iter().map(|call| call.millis).collect();
    times.sort_unstable();
    if times.is_empty() {
        return 0.0;
    }
    let place = share * (times.len() - 1) as f64;
    let (below, above) = (times[place.floor() as usize] as f64, times[place.ceil() as usize] as f64);
    below + (above - below) * place.fract()
}

pub fn users<'c>(calls: &[&'c LoggedCall]) -> BTreeSet<&'c str> {
    calls.iter().filter_map(|call| call.user).collect()
}

pub fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
