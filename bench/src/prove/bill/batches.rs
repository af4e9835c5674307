//! Batches of one mode, one after the other as long as calls are made and the proxy is killed, and one in the calm afterwards.
//! Whatever a kill interrupts on the way of their client is done again; a batch that was begun is looked for before another is.

use super::kinds::{Window, chat};
use super::progress::Progress;
use super::shop::{Counter, object};
use crate::prove::client::{Body, empty, whole};
use anyhow::{Context as _, ensure};
use http::{HeaderValue, Method, Request, StatusCode, header};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of each batch.
const ROWS: u32 = 60;
/// A batch goes on only between kills.
const PATIENCE: Duration = Duration::from_secs(420);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What became of all batches.
#[derive(Default)]
pub struct BatchTally {
    batches: u32,
    rows: u32,
    /// Rows without an answer.
    pub missing: u32,
    /// Tags of rows that say they were asked more than once.
    pub asked_again: BTreeSet<String>,
}

impl BatchTally {
    pub fn add(&mut self, other: Self) {
        self.batches += other.batches;
        self.rows += other.rows;
        self.missing += other.missing;
        self.asked_again.extend(other.asked_again);
    }
}

impl fmt::Display for BatchTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batches, rows, missing, asked_again } = self;
        write!(f, "{batches} with {rows} rows, {missing} without an answer, {} asked again", asked_again.len())
    }
}

struct Client {
    shop: Counter,
    progress: Arc<Progress>,
}

pub async fn run_all(shop: Counter, window: Window, progress: Arc<Progress>) -> anyhow::Result<BatchTally> {
    let client = Client { shop, progress };
    let mut tally = BatchTally::default();
    for number in 0.. {
        let is_last = client.progress.is_over();
        tally.add(client.run(window, number).await?);
        if is_last {
            break;
        }
    }
    Ok(tally)
}

impl Client {
    async fn run(&self, window: Window, number: u32) -> anyhow::Result<BatchTally> {
        let tag = format!("{}-{number}", window.name);
        let file = self.answer(|| self.upload(&tag)).await?;
        let batch = self.begin(window, &tag, &file).await?;
        let path = format!("/v1/batches/{batch}");
        let end = Instant::now() + PATIENCE;
        let over = loop {
            let now = self.answer(|| self.shop.bare.request(Method::GET, &path, empty())).await?;
            if now["status"] == "completed" {
                break now;
            }
            ensure!(Instant::now() < end && now["status"] != "failed", "the batch does not complete: {now}");
            tokio::time::sleep(LOOK_EVERY).await;
        };
        let output = self.text(&over["output_file_id"]).await?;
        let (mut tally, mut answered) = (BatchTally { batches: 1, rows: ROWS, ..BatchTally::default() }, 0);
        for line in output.lines() {
            let line: Value = serde_json::from_str(line)?;
            answered += u32::from(line["response"]["status_code"] == 200);
            if line["asked"].as_u64() > Some(1) {
                let row = line["custom_id"].as_str().context("a row has no id")?;
                tally.asked_again.insert(format!("{tag}-{row}"));
            }
        }
        tally.missing = ROWS.abs_diff(answered);
        Ok(tally)
    }

    fn upload(&self, tag: &str) -> Request<Body> {
        let lines: String = (1..=ROWS)
            .map(|number| {
                let body = chat(&format!("{tag}-{number}"), 20, &json!({ "words": 20, "latency_ms": 100 }), false);
                let row = json!({ "custom_id": number.to_string(), "method": "POST", "url": "/v1/chat/completions",
                    "body": body });
                format!("{row}\n")
            })
            .collect();
        let form = format!(
            "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xYz\r\nContent-Disposition: \
             form-data; name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n{lines}\r\n--xYz--\r\n"
        );
        let mut request = self.shop.bare.request(Method::POST, "/v1/files", whole(form));
        let form = HeaderValue::from_static("multipart/form-data; boundary=xYz");
        request.headers_mut().insert(header::CONTENT_TYPE, form);
        request
    }

    /// The id of a batch over that file. A kill may hide that it was made.
    async fn begin(&self, window: Window, tag: &str, file: &Value) -> anyhow::Result<String> {
        let options = json!({ "x-gateway-provider": "openai", "x-gateway-custom-host": self.shop.provider,
            "authorization": format!("Bearer sk-{}", window.name), "x-gateway-metadata": json!({ "bill": tag }).to_string() });
        let asked = json!({ "input_file_id": file["id"], "endpoint": "/v1/chat/completions",
            "completion_window": window.value, "gateway_options": options });
        loop {
            let begun = self.progress.until_running().await;
            let made = self.shop.bare.answer(self.shop.bare.post_json("/v1/batches", &asked)).await.and_then(object);
            let batch = match made {
                Err(_) if self.progress.was_killed_since(begun) => self.find(&file["id"]).await?,
                made => Some(made?),
            };
            if let Some(batch) = batch {
                return Ok(batch["id"].as_str().context("a batch has no id")?.to_owned());
            }
        }
    }

    async fn find(&self, file: &Value) -> anyhow::Result<Option<Value>> {
        let list = self.answer(|| self.shop.bare.request(Method::GET, "/v1/batches?limit=100", empty())).await?;
        let batches = list["data"].as_array().context("no list of batches")?;
        Ok(batches.iter().find(|batch| batch["input_file_id"] == *file).cloned())
    }

    async fn answer(&self, request: impl Fn() -> Request<Body>) -> anyhow::Result<Value> {
        object(self.raw(request).await?)
    }

    async fn text(&self, file: &Value) -> anyhow::Result<String> {
        let path = format!("/v1/files/{}/content", file.as_str().context("a batch has no output")?);
        let (status, text) = self.raw(|| self.shop.bare.request(Method::GET, &path, empty())).await?;
        ensure!(status.is_success(), "{path}: {status}");
        Ok(text)
    }

    /// Asked until no kill is in the way.
    async fn raw(&self, request: impl Fn() -> Request<Body>) -> anyhow::Result<(StatusCode, String)> {
        loop {
            let begun = self.progress.until_running().await;
            let answer = self.shop.bare.answer(request()).await;
            let is_good = answer.as_ref().is_ok_and(|(status, _)| status.is_success());
            if is_good || !self.progress.was_killed_since(begun) {
                return answer;
            }
        }
    }
}
