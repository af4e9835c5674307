//! 300 MB up and down the relay lane: the same bytes, and the proxy holds almost nothing of them.

use super::client::{Body, Caller, empty, pieces};
use super::report::{Report, megabytes};
use super::stack::Stack;
use crate::mock::pattern;
use anyhow::{Context as _, ensure};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, header};
use http_body_util::BodyExt as _;
use openssl::sha::Sha256;
use serde_json::Value;
use std::time::{Duration, Instant};

const MAX_MEMORY: u64 = 60 << 20;
const PIECE: u64 = 64 << 10;

/// How a transfer is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// The length is announced.
    Announced,
    /// Chunked: nobody knows the length before the end.
    Open,
}

pub async fn prove(bytes: u64, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let caller = stack.caller()?;
    let expected = pattern::sha256(bytes);
    report.figure("size of each transfer", megabytes(bytes));
    report.figure("proxy memory before", megabytes(stack.proxy.peak_memory()?));
    for (name, manner) in [("announced", Manner::Announced), ("chunked", Manner::Open)] {
        let start = Instant::now();
        let (length, hash) = upload(&caller, bytes, manner).await?;
        report.figure(&format!("{name} upload"), rate(bytes, start.elapsed()));
        report.promise(&format!("the {name} upload arrives byte for byte"), length == bytes && hash == expected);
    }
    let start = Instant::now();
    let (length, hash) = download(&caller, bytes, Duration::ZERO).await?;
    report.figure("download", rate(bytes, start.elapsed()));
    report.promise("the download arrives byte for byte", length == bytes && hash == expected);
    // A provider faster than the client is where a proxy that does not push back fills up.
    let start = Instant::now();
    let (length, hash) = download(&caller, bytes, Duration::from_millis(5)).await?;
    report.figure("download by a slow reader", rate(bytes, start.elapsed()));
    report.promise("the slow download arrives byte for byte", length == bytes && hash == expected);
    let both = tokio::try_join!(upload(&caller, bytes, Manner::Open), download(&caller, bytes, Duration::ZERO))?;
    report.promise("both at once arrive byte for byte", both.0.1 == expected && both.1.1 == expected);
    let peak = stack.proxy.peak_memory()?;
    report.figure("proxy memory at most", megabytes(peak));
    report.promise(&format!("the proxy stays under {}", megabytes(MAX_MEMORY)), peak < MAX_MEMORY);
    stack.stop(report)
}

/// What the provider received: length and hash.
async fn upload(caller: &Caller, bytes: u64, manner: Manner) -> anyhow::Result<(u64, String)> {
    let mut request = caller.request(Method::PUT, "/v1/files/anything", made_up(bytes));
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if manner == Manner::Announced {
        request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    }
    let answer = caller.connect().await?.send(request).await.context("the upload broke off")?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status == 200, "the upload got {status}: {}", String::from_utf8_lossy(&body));
    let seen: Value = serde_json::from_slice(&body)?;
    let hash = seen["body_sha256"].as_str().context("the mock tells no hash")?;
    Ok((seen["body_bytes"].as_u64().unwrap_or(0), hash.to_owned()))
}

/// What the client received: length and hash. `pause` is taken after each megabyte.
async fn download(caller: &Caller, bytes: u64, pause: Duration) -> anyhow::Result<(u64, String)> {
    let mut connection = caller.connect().await?;
    let answer = connection.send(caller.request(Method::GET, &format!("/v1/bytes/{bytes}"), empty())).await?;
    ensure!(answer.status() == 200, "the download got {}", answer.status());
    let mut body = answer.into_body();
    let (mut hash, mut length, mut rested) = (Sha256::new(), 0, 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.context("the download broke off")?.into_data() else { continue };
        hash.update(&data);
        length += data.len() as u64;
        if !pause.is_zero() && length - rested > 1 << 20 {
            rested = length;
            tokio::time::sleep(pause).await;
        }
    }
    Ok((length, pattern::hex(&hash.finish())))
}

fn made_up(bytes: u64) -> Body {
    let offsets = (0..bytes).step_by(PIECE as usize);
    pieces(futures::stream::iter(offsets.map(move |offset| {
        let mut piece = BytesMut::zeroed(PIECE.min(bytes - offset) as usize);
        pattern::fill(offset, &mut piece);
        Bytes::from(piece)
    })))
}

fn rate(bytes: u64, took: Duration) -> String {
    format!("{:.1} s, {}/s", took.as_secs_f64(), megabytes((bytes as f64 / took.as_secs_f64()) as u64))
}
