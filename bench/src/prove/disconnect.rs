//! Clients that leave: the provider must hear of it at once, or it goes on working, and charging, for nobody.

use super::client::{Body, Caller, Connection, chat, empty};
use super::report::{Report, Spread};
use super::stack::Stack;
use anyhow::{Context as _, bail, ensure};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::error::Elapsed;

const LIMIT: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(10);

/// When the client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// While the provider still thinks.
    BeforeTheAnswer,
    /// Between two events that come quickly.
    MidStream,
    /// While the provider says nothing for a long time.
    InSilence,
}

/// Chats take the engine lane, bytes the relay lane.
const CHAT: &str = "/v1/chat/completions";

const SITUATIONS: [(&str, &str, Moment); 5] = [
    ("engine lane, before the answer", CHAT, Moment::BeforeTheAnswer),
    ("engine lane, in the middle of a stream", CHAT, Moment::MidStream),
    ("engine lane, while a stream is silent", CHAT, Moment::InSilence),
    ("relay lane, before the answer", "/v1/bytes/1?mock=latency_ms%3D3600000", Moment::BeforeTheAnswer),
    ("relay lane, in the middle of a download", "/v1/bytes/1000000000", Moment::MidStream),
];

pub async fn prove(count: usize, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let caller = stack.caller()?;
    for (name, path, moment) in SITUATIONS {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            times.push(leave(&stack, &caller, path, moment).await.with_context(|| name.to_owned())?);
        }
        let spread = Spread::of(times).context("nobody left")?;
        report.figure(name, spread);
        report.promise(&format!("{name}: the provider knows within {} ms", LIMIT.as_millis()), spread.max < LIMIT);
    }
    report.promise("no request is left behind at the provider", stack.mock.counts().in_flight == 0);
    stack.stop(report)
}

/// From the moment the socket is closed to the moment the provider notices.
async fn leave(stack: &Stack, caller: &Caller, path: &str, moment: Moment) -> anyhow::Result<Duration> {
    let before = stack.mock.counts();
    let mut connection = caller.connect().await?;
    let request = match path {
        CHAT => caller.post_json(path, &ask(moment)),
        _ => caller.request(Method::GET, path, empty()),
    };
    // Held until we have left: hyper closes the connection when half an answer is dropped.
    let mut body = None;
    let left = if moment == Moment::BeforeTheAnswer {
        let begun = async {
            tokio::time::timeout(PATIENCE, stack.mock.until(|counts| counts.in_flight > before.in_flight)).await?;
            // Noted before the request is given up, which already closes the connection.
            Ok::<_, Elapsed>(now())
        };
        tokio::select! {
            answer = connection.send(request) => bail!("an answer came too early: {answer:?}"),
            left = begun => left.context("the request never reached the provider")?,
        }
    } else {
        let begun = tokio::time::timeout(PATIENCE, begin(&mut connection, request)).await;
        body = Some(begun.context("the stream never began")??);
        now()
    };
    connection.leave().await;
    drop(body);
    let noticed = stack.mock.until(|counts| counts.cancelled > before.cancelled);
    let counts = tokio::time::timeout(PATIENCE, noticed).await.context("the provider was never told")?;
    Ok(Duration::from_micros(counts.last_cancelled_us).saturating_sub(left))
}

/// Reads the first piece of a stream: there may be no second one before a silence.
async fn begin(connection: &mut Connection, request: Request<Body>) -> anyhow::Result<Incoming> {
    let answer = connection.send(request).await?;
    ensure!(answer.status() == 200, "status {}", answer.status());
    let mut body = answer.into_body();
    body.frame().await.context("the stream ended early")??;
    Ok(body)
}

fn ask(moment: Moment) -> Value {
    let fault = match moment {
        Moment::BeforeTheAnswer => json!({ "latency_ms": 3_600_000 }),
        Moment::MidStream => json!({ "chunks": 10_000, "chunk_delay_ms": 10 }),
        Moment::InSilence => json!({ "chunks": 50, "chunk_bytes": 700, "stall_after_bytes": 2100 }),
    };
    let mut body = chat(&fault, moment != Moment::BeforeTheAnswer);
    body["max_tokens"] = json!(100);
    body
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
