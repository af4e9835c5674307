//! When the engine asks the limits: once the body is read, and again for each target. What cannot be reserved is refused with
//! whose limit it was. `relay::admit_head` asks for calls whose body nobody reads.

use super::{Engine, EngineRequest};
use crate::catalog::target::Target;
use crate::context::Visit;
use crate::limits::admission::{Amounts, Needs, SentBody};
use crate::request::body::Fields;
use crate::request::body::edit::Edits;
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::routing::plan::Leaf;
use chrono::Utc;
use http::HeaderValue;
use pingora_http::RequestHeader;
use std::time::{Duration, Instant};

/// How long a request waits for the models behind its targets, where it is only about their prices.
const LEARNING: Duration = Duration::from_secs(3);

/// A request whose body was read.
#[derive(Clone, Copy)]
pub(super) struct ReadBody<'r> {
    pub text: &'r [u8],
    pub fields: &'r Fields<'r>,
}

/// A target that a request may be sent to, and the model's name there.
struct PossibleTarget<'e> {
    leaf: &'e Leaf,
    target: Target,
    model: Option<String>,
}

impl Engine {
    /// On the engine lane, before a target is chosen.
    pub(super) async fn admit(
        &self,
        head: &RequestHeader,
        visit: &mut Visit,
        request: &EngineRequest,
        read: ReadBody<'_>,
    ) -> Result<(), Refusal> {
        let family = request.endpoint.family();
        let wanted = self.admitter.wanted(visit, &request.caller, &request.metadata, Some(family));
        if wanted.is_empty() {
            return Ok(());
        }
        let needs = Needs::for_limits(&wanted);
        let mut amounts = Amounts::default();
        if needs.tokens {
            let provider = visit.routing.prompt_provider().cloned();
            amounts = self.amounts_of_all(head, provider.as_ref(), request, read, needs).await?;
        }
        self.admitter.reserve(visit, &wanted, amounts, false).await
    }

    /// Before another call of a request whose last one was paid: strict budgets must have as much again.
    pub(super) async fn admit_again(&self, visit: &mut Visit, request: &EngineRequest) -> Result<(), Refusal> {
        let Some(amounts) = visit.observer.admission.as_ref().and_then(|admission| admission.owed()) else {
            return Ok(());
        };
        let family = Some(request.endpoint.family());
        let wanted = self.admitter.wanted(visit, &request.caller, &request.metadata, family);
        self.admitter.reserve_again(visit, &wanted, amounts).await
    }

    /// Before a target is asked. Its refusal is that target's answer.
    pub(super) async fn admit_target(
        &self,
        head: &RequestHeader,
        visit: &mut Visit,
        request: &EngineRequest,
        (target, model): (&Target, Option<&str>),
        read: ReadBody<'_>,
        edits: Option<&Edits>,
    ) -> Result<(), Refusal> {
        let family = request.endpoint.family();
        let wanted = self.admitter.wanted_of(visit, &request.caller, &request.metadata, Some(family), target, model);
        if wanted.is_empty() {
            return Ok(());
        }
        let needs = Needs::for_limits(&wanted);
        let mut amounts = Amounts::default();
        if needs.tokens {
            let sent = SentBody::new(read.text, read.fields, edits).at(request.endpoint).with_headers(&head.headers);
            amounts = self.admitter.amounts(family, &sent, needs, Some((target, model))).await;
        }
        self.admitter.reserve(visit, &wanted, amounts, true).await
    }

    /// What the dearest of the targets may use that the request can be sent to.
    async fn amounts_of_all(
        &self,
        head: &RequestHeader,
        prompt_provider: Option<&HeaderValue>,
        request: &EngineRequest,
        read: ReadBody<'_>,
        needs: Needs,
    ) -> Result<Amounts, Refusal> {
        let family = request.endpoint.family();
        let tenant = request.caller.tenant();
        if let Some(target) = &request.first {
            let sent = SentBody::new(read.text, read.fields, None).at(request.endpoint).with_headers(&head.headers);
            let model = read.fields.text("model");
            let learnt = match target.provider.row.inference_profiles {
                None => None,
                Some(_) => Box::pin(self.foundation.learn(target, model.as_deref(), tenant, None)).await,
            };
            let priced = (learnt.as_deref().unwrap_or(target), model.as_deref());
            return Ok(self.admitter.amounts(family, &sent, needs, Some(priced)).await);
        }
        let mut dearest: Option<Amounts> = None;
        let mut add = |one: Amounts| dearest = Some(dearest.map_or(one, |dearest| dearest.or(one)));
        match needs.cost {
            true => {
                // For the models of all targets together.
                let latest = Instant::now() + LEARNING;
                for PossibleTarget { leaf, target, model } in
                    self.possible(head, prompt_provider, request, read.fields)?
                {
                    let sent = SentBody::new(read.text, read.fields, Some(&leaf.edits)).at(request.endpoint);
                    let sent = sent.with_headers(&head.headers);
                    let learnt = Box::pin(self.foundation.learn(&target, model.as_deref(), tenant, Some(latest))).await;
                    let priced = (learnt.as_deref().unwrap_or(&target), model.as_deref());
                    add(self.admitter.amounts(family, &sent, needs, Some(priced)).await);
                }
            }
            false => {
                for leaf in request.plan.leaves() {
                    let sent = SentBody::new(read.text, read.fields, Some(&leaf.edits)).at(request.endpoint);
                    add(self.admitter.amounts(family, &sent, needs, None).await);
                }
            }
        }
        Ok(dearest.unwrap_or_default())
    }

    /// Everything that the request may be sent to, as far as it can be told now, with the model's name there.
    fn possible<'e>(
        &self,
        head: &RequestHeader,
        prompt_provider: Option<&HeaderValue>,
        request: &'e EngineRequest,
        fields: &Fields<'_>,
    ) -> Result<Vec<PossibleTarget<'e>>, Refusal> {
        let asked = fields.text("model");
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases)?;
        let headers = headers.or_provider(prompt_provider);
        let resolver = self.router.resolver(Utc::now());
        let targets = request.plan.leaves().filter_map(|leaf| {
            let own = leaf.edits.model().and_then(|json| serde_json::from_str::<String>(json).ok());
            let model = own.or_else(|| asked.as_deref().map(str::to_owned));
            let resolved = resolver.resolve(leaf, &headers, &request.caller, model.as_deref()).ok()?;
            Some(PossibleTarget { leaf, target: resolved.target, model: resolved.model.or(model) })
        });
        Ok(targets.collect())
    }
}
