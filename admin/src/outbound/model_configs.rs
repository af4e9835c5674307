//! How admin fetches model configurations from the service that the operator named (`MODEL_CONFIGS_PROXY_URL`). The
//! operator chose the address, so no guard stands before it; what comes back is bounded all the same.

use anyhow::Context as _;
use reqwest::StatusCode;
use shared::cost::prices::{FetchedPrices, PriceFetch};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 16 << 20;

pub struct ModelConfigFetcher(reqwest::Client);

impl ModelConfigFetcher {
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(reqwest::Client::builder().timeout(TIMEOUT).build().context("a client for MODEL_CONFIGS_PROXY_URL")?))
    }

    async fn text(&self, url: &str) -> anyhow::Result<Option<String>> {
        let mut answer = self.0.get(url).send().await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        anyhow::ensure!(answer.status().is_success(), "it answered {}", answer.status());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            anyhow::ensure!(body.len() + piece.len() <= MAX_ANSWER, "it sent more than {MAX_ANSWER} bytes");
            body.extend_from_slice(&piece);
        }
        Ok(Some(String::from_utf8(body)?))
    }
}

impl PriceFetch for ModelConfigFetcher {
    fn get<'a>(&'a self, url: &'a str) -> FetchedPrices<'a> {
        Box::pin(self.text(url))
    }
}
