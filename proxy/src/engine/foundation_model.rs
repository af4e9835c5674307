//! Asks a provider for the model behind a profile that an account made, before its wire is chosen and its price. Nobody is
//! refused for it: a model that cannot be told stays unknown, as it was before there was such a question.

use super::prepare::{ProviderHeaders, upstream_head};
use super::{BodyLimits, ProviderCalls, Router, Services};
use crate::catalog::inference_profiles::ProfileKey;
use crate::catalog::models::upstream;
use crate::catalog::target::Target;
use crate::request::headers::Aliases;
use crate::request::receive::MemoryShare;
use crate::request::refusal::Refusal;
use crate::runtime::tenant_share::Tenant;
use crate::runtime::timeout::{with_deadline, with_timeout};
use bytes::Bytes;
use http::{Method, header};
use pingora_http::RequestHeader;
use serde::Deserialize;
use shared::providers::foundation_model;
use shared::telemetry::{Brief, LogLimit};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For a whole fetch, and so for whoever waits for it.
const LIMIT: Duration = Duration::from_secs(3);
const MAX_ANSWER: usize = 64 << 10;
const MAX_NAME: usize = 256;

/// What is read of a profile.
#[derive(Deserialize)]
struct Profile {
    models: Vec<ProfileMember>,
}

#[derive(Deserialize)]
struct ProfileMember {
    #[serde(rename = "modelArn")]
    arn: String,
}

/// Learns which model stands behind a profile.
pub struct FoundationModels {
    aliases: Arc<Aliases>,
    body_limits: Arc<BodyLimits>,
    router: Arc<Router>,
    calls: Arc<ProviderCalls>,
}

impl FoundationModels {
    pub fn new(services: &Services) -> Self {
        let Services { aliases, body_limits, router, calls, .. } = services.clone();
        Self { aliases, body_limits, router, calls }
    }

    /// The target with the model that its profile stands for; none where there is nothing to learn. Waits only where nobody
    /// asked within the last hour.
    pub async fn learn(
        &self,
        target: &Target,
        model: Option<&str>,
        tenant: Tenant,
        deadline: Option<Instant>,
    ) -> Option<Box<Target>> {
        let key = ProfileKey::new(tenant.workspace, target, model)?;
        let (name, latest) = (key.name.clone(), Instant::now() + LIMIT);
        let cell = self.router.profiles.model(key, Instant::now());
        // A request that leaves early leaves the question to the next one.
        let asking = cell.get_or_init(|| Box::pin(self.fetch_foundation_model(target, &name, tenant)));
        let limit = deadline.map_or(latest, |deadline| deadline.min(latest));
        let answer = with_deadline(limit, pin!(asking)).await.ok()?;
        let called = answer.as_deref()?.to_owned();
        // In a box, as all that is rare: every request would carry it.
        Some(Box::new(Target { called: Some(called), ..target.clone() }))
    }

    async fn fetch_foundation_model(&self, target: &Target, name: &str, tenant: Tenant) -> Option<Box<str>> {
        let asked = with_timeout(LIMIT, pin!(self.ask_profile(target, name, tenant))).await;
        let answer = asked.unwrap_or_else(|_| Err(Refusal::timeout(LIMIT.as_millis())));
        match answer {
            Ok((200, body)) => model_of_profile(&body),
            Ok((status, _)) => {
                static REFUSED: LogLimit = LogLimit::new();
                if let Some(skipped) = REFUSED.pass() {
                    tracing::warn!(
                        provider = target.provider.name,
                        status,
                        skipped,
                        "the model of a profile is not told"
                    );
                }
                None
            }
            Err(refusal) => {
                static AWAY: LogLimit = LogLimit::new();
                if let Some(skipped) = AWAY.pass() {
                    let (provider, why) = (&target.provider.name, Brief(&refusal.message));
                    tracing::warn!(provider, %why, skipped, "the model of a profile cannot be had");
                }
                None
            }
        }
    }

    async fn ask_profile(&self, target: &Target, name: &str, tenant: Tenant) -> Result<(u16, Bytes), Refusal> {
        let lookup = target.provider.row.inference_profiles.as_ref().ok_or_else(Refusal::internal)?;
        let target = self.router.at_base(target.clone(), Some(&lookup.base))?;
        self.calls.secrets.gather(&target).await?;
        let place = lookup.path.fill(|place| if place == "model" { Some(name) } else { target.placed(place) });
        let place = place.map_err(|_| Refusal::internal())?;
        // Nothing of the caller's belongs to a question of ours.
        let nothing = RequestHeader::build("GET", b"/", None).map_err(|_| Refusal::internal())?;
        let (mut asked, unsigned) =
            upstream_head(&target, &place, &nothing, &ProviderHeaders::default(), None, &self.aliases)?;
        asked.method = Method::GET;
        asked.remove(&header::CONTENT_TYPE);
        if let Some(credential) = unsigned {
            self.calls.authorise(&target, &credential, &mut asked, b"").await?;
        }
        let mut share = MemoryShare::none(&self.body_limits.memory, tenant);
        let answer = upstream::ask(&self.calls.dialer, &target, asked, Bytes::new(), MAX_ANSWER, &mut share).await?;
        Ok((answer.status, answer.body))
    }
}

/// A profile names its model once for each region; it is the same in all.
fn model_of_profile(body: &[u8]) -> Option<Box<str>> {
    let profile: Profile = serde_json::from_slice(body).ok()?;
    let arn = profile.models.first().map(|model| model.arn.as_str()).filter(|arn| arn.starts_with("arn:"))?;
    foundation_model(arn).filter(|model| model.len() <= MAX_NAME).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_a_profile_is_its_first_one_or_unknown() {
        let arn = "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-v2:1";
        for (body, model) in [
            (format!(r#"{{"models":[{{"modelArn":"{arn}"}},{{"modelArn":"arn:x"}}]}}"#), Some("anthropic.claude-v2:1")),
            (r#"{"models":[]}"#.to_owned(), None),
            (r#"{"models":[{"modelArn":"anthropic.claude"}]}"#.to_owned(), None),
            (r#"{"models":[{"modelArn":"arn:aws:bedrock:r:1:custom-model/x"}]}"#.to_owned(), None),
            (r#"{"message":"no"}"#.to_owned(), None),
            ("<html>".to_owned(), None),
            (format!(r#"{{"models":[{{"modelArn":"{arn}{}"}}]}}"#, "x".repeat(300)), None),
        ] {
            assert_eq!(model_of_profile(body.as_bytes()).as_deref(), model, "{body}");
        }
    }
}
