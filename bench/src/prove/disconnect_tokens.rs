//! Streams cut by their clients at random bytes: what is counted is what the provider said until then.
//!
//! The provider says words that are one token each, and knows how many left it; the gateway counts with a vocabulary.

use super::client::Caller;
use super::report::Report;
use super::stack::Stack;
use crate::mock::words_of;
use anyhow::{Context as _, ensure};
use http_body_util::BodyExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const WORDS: u64 = 300;
const PAUSE_MS: u64 = 3;
const ABREAST: usize = 20;
/// Of the provider's figure, in percent.
const TOLERANCE: u64 = 2;
/// Logs that have not arrived after this long never will.
const PATIENCE: Duration = Duration::from_secs(60);
/// The engine lane in three dialects, and the relay lane. The last figure is how long an event is at least, about.
const PATHS: [(&str, &str, u64); 4] = [
    ("/v1/chat/completions", "openai", 240),
    ("/v1/completions", "openai", 150),
    ("/v1/messages", "anthropic", 110),
    ("/v1/relayed/chat/completions", "openai", 230),
];

/// Tokens of some streams, as each of the three knows them.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    streams: u64,
    received: u64,
    spoken: u64,
    counted: u64,
    farthest: u64,
}

pub async fn prove(count: usize, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let caller = stack.caller()?;
    let places = Arc::new(Semaphore::new(ABREAST));
    let mut streams = JoinSet::new();
    for number in 0..count {
        let (caller, places) = (caller.clone(), places.clone());
        streams.spawn(async move {
            let _place = places.acquire_owned().await?;
            cut(&caller, number).await
        });
    }
    let mut received = BTreeMap::new();
    while let Some(cut) = streams.join_next().await {
        let (tag, words) = cut??;
        received.insert(tag, words);
    }
    let left = stack.mock.until(|counts| counts.in_flight == 0);
    tokio::time::timeout(PATIENCE, left).await.context("the provider still talks to somebody")?;
    let (spoken, counted) = (stack.mock.spoken(), counted(&stack, count).await?);
    report.figure("streams that were cut", count);
    let mut all = Sums::default();
    for (number, (path, ..)) in PATHS.iter().enumerate() {
        let mut sums = Sums::default();
        for (tag, received) in received.iter().filter(|(tag, _)| tag.ends_with(&format!("-{number}"))) {
            let (spoken, counted) = (spoken.get(tag).copied().unwrap_or(0), counted.get(tag).copied().unwrap_or(0));
            for sums in [&mut sums, &mut all] {
                sums.streams += 1;
                sums.received += received;
                sums.spoken += spoken;
                sums.counted += counted;
                sums.farthest = sums.farthest.max(spoken.abs_diff(counted));
            }
        }
        report.figure(path, sums);
    }
    report.promise("every stream is in the logs, as an estimate", counted.len() == count && all.streams > 0);
    report.promise(&format!("counted tokens are within {TOLERANCE} % of what the provider said"), all.is_close());
    report.promise("nobody pays for less than was received", all.counted >= all.received);
    stack.stop(report)
}

impl Sums {
    fn is_close(&self) -> bool {
        self.spoken > 0 && self.spoken.abs_diff(self.counted) * 100 <= self.spoken * TOLERANCE
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { streams, received, spoken, counted, farthest } = self;
        write!(
            f,
            "{streams} streams, {received} tokens received, {spoken} said, {counted} counted, at most {farthest} off"
        )
    }
}

/// Reads some bytes of a stream and leaves. Answers its name and how many words came.
async fn cut(caller: &Caller, number: usize) -> anyhow::Result<(String, u64)> {
    let kind = number % PATHS.len();
    let (path, provider, event) = PATHS[kind];
    let tag = format!("cut-{number}-{kind}");
    let caller = caller.with("x-gateway-metadata", &json!({ "_user": tag }).to_string())?;
    let caller = caller.with("x-gateway-provider", provider)?;
    let fault = json!({ "words": WORDS, "chunk_delay_ms": PAUSE_MS, "tag": tag });
    let mut body = super::client::chat(&fault, true);
    body["max_tokens"] = json!(1000);
    if path == "/v1/completions" {
        // No message can tell the provider what to do there.
        body["model"] = json!(format!("fault/{fault}"));
        body["prompt"] = json!("Say something.");
    }
    // Between a fifth and nine tenths of it, anywhere inside an event.
    let whole = WORDS * event;
    let wanted = whole / 5 + scattered(number as u64) % (whole * 7 / 10);
    let mut connection = caller.connect().await?;
    let answer = connection.send(caller.post_json(path, &body)).await?;
    ensure!(answer.status() == 200, "{path}: status {}", answer.status());
    let (mut answer, mut read) = (answer.into_body(), Vec::new());
    while (read.len() as u64) < wanted {
        let piece = answer.frame().await.context("the stream ended before it was cut")??;
        read.extend_from_slice(&piece.into_data().unwrap_or_default());
    }
    connection.leave().await;
    Ok((tag, words_of(&read)))
}

/// Completion tokens in the logs by the name of the stream, once all are there.
async fn counted(stack: &Stack, count: usize) -> anyhow::Result<BTreeMap<String, u64>> {
    const COUNTED: &str = "SELECT metadata ->> '_user', res_units FROM request_logs
        WHERE usage_estimated AND metadata ->> '_user' LIKE 'cut-%'";
    let end = Instant::now() + PATIENCE;
    loop {
        let rows = stack.database().await?.query(COUNTED, &[]).await?;
        if rows.len() >= count || Instant::now() > end {
            let pair = |row: &tokio_postgres::Row| (row.get(0), u64::try_from(row.get::<_, i64>(1)).unwrap_or(0));
            return Ok(rows.iter().map(pair).collect());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The same for a number each time, and without order: a proof that fails must fail again.
fn scattered(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}
