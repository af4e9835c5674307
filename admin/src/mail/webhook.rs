//! Alerts posted to an address that the operator named, beside mail: signed, so that the receiver can tell them from
//! anybody's, and as facts or as a message that Slack shows. The operator chose the address, so no guard stands before
//! it. Kept and tried again by `jobs::outbox`, as letters are.

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;
use serde_json::{Value, json};
use shared::settings;
use shared::settings::alerts::AlertFormat;
use std::time::Duration;

/// Stands for the address in the outbox: no person has it, because it is no e-mail address.
pub const RECIPIENT: &str = "webhook";

const TIMEOUT: Duration = Duration::from_secs(10);
const SIGNATURE: &str = "x-gateway-signature";

pub struct AlertWebhook {
    url: reqwest::Url,
    secret: Option<String>,
    format: AlertFormat,
    http: reqwest::Client,
}

impl AlertWebhook {
    /// None when no address is set.
    pub fn new(settings: &settings::Alerts) -> anyhow::Result<Option<Self>> {
        let Some(url) = &settings.alert_webhook_url else { return Ok(None) };
        let url = reqwest::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.context("ALERT_WEBHOOK_URL must be an http or https URL")?;
        let http = reqwest::Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none()).build();
        let http = http.context("a client for ALERT_WEBHOOK_URL")?;
        let secret = settings.alert_webhook_secret.clone().filter(|secret| !secret.is_empty());
        Ok(Some(Self { url, secret, format: settings.alert_webhook_format, http }))
    }

    /// Posts the facts of an alert in the form that was chosen. Errors name no address: it may be a secret.
    pub async fn deliver(&self, facts: &str, now: DateTime<Utc>) -> anyhow::Result<()> {
        let facts: Value = serde_json::from_str(facts).context("a kept alert is no JSON")?;
        let body = written(&facts, self.format).to_string();
        let mut request = self.http.post(self.url.clone()).header("content-type", "application/json");
        if let Some(secret) = &self.secret {
            request = request.header(SIGNATURE, signature(secret, now.timestamp(), &body)?);
        }
        let answer = request.body(body).send().await.map_err(reqwest::Error::without_url)?;
        anyhow::ensure!(answer.status().is_success(), "ALERT_WEBHOOK_URL answered {}", answer.status().as_u16());
        Ok(())
    }
}

fn written(facts: &Value, format: AlertFormat) -> Value {
    let text = |name: &str| facts[name].as_str().unwrap_or_default();
    match format {
        AlertFormat::Json => facts.clone(),
        AlertFormat::Slack => json!({ "text": format!("*{}*\n{}", text("subject"), text("text")) }),
    }
}

/// The time is part of what is signed, so that an old alert cannot be sent again as a new one.
fn signature(secret: &str, time: i64, body: &str) -> anyhow::Result<String> {
    let key = PKey::hmac(secret.as_bytes())?;
    let mut signer = Signer::new(MessageDigest::sha256(), &key)?;
    let signature = signer.sign_oneshot_to_vec(format!("{time}.{body}").as_bytes())?;
    Ok(format!("t={time},v1={}", hex::encode(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_the_time_and_the_body() {
        let signed = signature("key", 1_700_000_000, "{}").unwrap();
        assert!(signed.starts_with("t=1700000000,v1=") && signed.len() == "t=1700000000,v1=".len() + 64, "{signed}");
        for other in
            [signature("other", 1_700_000_000, "{}"), signature("key", 1, "{}"), signature("key", 1_700_000_000, "[]")]
        {
            assert_ne!(other.unwrap().split_once("v1=").unwrap().1, signed.split_once("v1=").unwrap().1);
        }
    }

    #[test]
    fn slack_is_shown_a_text_and_others_the_facts() {
        let facts = json!({ "subject": "The budget is used up", "text": "It has used $5.", "event": "limit_reached" });
        assert_eq!(written(&facts, AlertFormat::Json), facts);
        assert_eq!(written(&facts, AlertFormat::Slack), json!({ "text": "*The budget is used up*\nIt has used $5." }));
    }

    #[test]
    fn only_an_http_address_is_one() {
        let settings = |url: Option<&str>| settings::Alerts {
            alert_webhook_url: url.map(str::to_owned),
            alert_webhook_secret: None,
            alert_webhook_format: AlertFormat::Json,
        };
        assert!(AlertWebhook::new(&settings(None)).unwrap().is_none());
        assert!(AlertWebhook::new(&settings(Some("https://hooks.test/x"))).unwrap().is_some());
        for url in ["hooks.test", "ftp://hooks.test", ""] {
            let error = AlertWebhook::new(&settings(Some(url))).err().unwrap().to_string();
            assert!(error.contains("ALERT_WEBHOOK_URL"), "{error}");
        }
    }
}
