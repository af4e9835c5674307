//! Admission by rate limits and budgets, on both lanes: what speaks of a request is reserved, or the request refused with
//! whose limit it was. A request of which no limit speaks costs the lookups alone.

use super::{Ask, Engine, Errand, Passage};
use crate::body::Fields;
use crate::body::edit::Edits;
use crate::headers::GatewayHeaders;
use crate::limits::Unit;
use crate::plan::Leaf;
use crate::refusal::Refusal;
use crate::stages::admit::amounts::Item;
use crate::stages::admit::told::{price_unknown, refusal};
use crate::stages::admit::{
    Admission, Amounts, Attempted, Expected, Needs, Request, Sent, Wanted, asks, known_of_request, of_attempt,
    wary_of_price,
};
use crate::target::{Credential, Target};
use crate::visit::Visit;
use chrono::Utc;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::providers::Family;
use std::sync::Arc;

/// A request whose body was read.
#[derive(Clone, Copy)]
pub(super) struct Read<'r> {
    pub text: &'r [u8],
    pub fields: &'r Fields<'r>,
}

/// A target that a request may be sent to, and the model's name there.
struct Possible<'e> {
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
        errand: &Errand,
        read: Read<'_>,
    ) -> Result<(), Refusal> {
        let family = errand.endpoint.family();
        let wanted = self.wanted(visit, &errand.caller, &errand.metadata, Some(family));
        if wanted.is_empty() {
            return Ok(());
        }
        let needs = Needs::of(&wanted);
        let mut amounts = Amounts::default();
        if needs.tokens {
            amounts = self.amounts_of_all(head, errand, read, needs).await?;
        }
        self.reserve(visit, &wanted, amounts, false).await
    }

    /// On the relay lane: nobody knows what its body says.
    pub(super) async fn admit_head(&self, head: &RequestHeader, visit: &mut Visit, ask: &Ask) -> Result<(), Refusal> {
        let family = Family::of(&head.method, &ask.path).map(|(family, _)| family);
        let wanted = self.wanted(visit, &ask.caller, &ask.metadata, family);
        match wanted.is_empty() {
            true => Ok(()),
            false => self.reserve(visit, &wanted, unread(head), false).await,
        }
    }

    /// Before a target is asked. Its refusal is that target's answer.
    pub(super) async fn admit_target(
        &self,
        visit: &mut Visit,
        errand: &Errand,
        target: &Target,
        model: Option<&str>,
        read: Read<'_>,
        edits: Option<&Edits>,
    ) -> Result<(), Refusal> {
        let family = errand.endpoint.family();
        let wanted = self.wanted_of(visit, &errand.caller, &errand.metadata, Some(family), target, model);
        if wanted.is_empty() {
            return Ok(());
        }
        let needs = Needs::of(&wanted);
        let mut amounts = Amounts::default();
        if needs.tokens {
            let sent = Sent::new(read.text, read.fields, edits);
            amounts = self.amounts(family, &sent, needs, Some((target, model))).await;
        }
        self.reserve(visit, &wanted, amounts, true).await
    }

    /// The same on the relay lane. A question which models there are is no call.
    pub async fn admit_passage(
        &self,
        passage: &mut Passage,
        head: &RequestHeader,
        visit: &mut Visit,
    ) -> Result<(), Refusal> {
        if passage.is_listing {
            return Ok(());
        }
        let (path, caller, metadata) = passage.asked();
        let family = Family::of(&head.method, path).map(|(family, _)| family);
        let model = passage.model.as_deref();
        let wanted = self.wanted_of(visit, caller, metadata, family, &passage.target, model);
        let is_admitted = visit.observer.is_attempt_admitted();
        if !wanted.is_empty() {
            self.reserve(visit, &wanted, unread(head), true).await?;
        }
        let turn = match self.turn_of_passage(passage, visit).await {
            Ok(()) => visit.leaves(),
            refused => refused,
        };
        turn.inspect_err(|_| {
            if !is_admitted {
                visit.observer.give_attempt_back()
            }
        })
    }

    pub(super) fn wanted(
        &self,
        visit: &Visit,
        caller: &crate::stages::identify::Principal,
        metadata: &Map<String, Value>,
        family: Option<Family>,
    ) -> Arc<[Wanted]> {
        let request = Request {
            caller,
            metadata,
            config: visit.routing.config.as_deref(),
            family,
            attempted: None,
            is_trusted_only: false,
        };
        known_of_request(&request, &self.snapshot, self.switches, Utc::now)
    }

    pub(super) fn wanted_of(
        &self,
        visit: &Visit,
        caller: &crate::stages::identify::Principal,
        metadata: &Map<String, Value>,
        family: Option<Family>,
        target: &Target,
        model: Option<&str>,
    ) -> Vec<Wanted> {
        if visit.observer.is_attempt_admitted() {
            return Vec::new();
        }
        let request = Request {
            caller,
            metadata,
            config: visit.routing.config.as_deref(),
            family,
            attempted: None,
            is_trusted_only: false,
        };
        let provider = match &target.credential {
            Credential::Stored(stored) => Some(&stored.provider),
            Credential::Given(_) => None,
        };
        let attempted = Attempted { provider, service: &target.provider.name, model };
        of_attempt(&request, &attempted, &self.snapshot, self.switches)
    }

    pub(super) async fn reserve(
        &self,
        visit: &mut Visit,
        wanted: &[Wanted],
        amounts: Amounts,
        of_attempt: bool,
    ) -> Result<(), Refusal> {
        self.mind_price(wanted, &amounts)?;
        let now = self.limits.now();
        let reserved = self.limits.reserve(now, &asks(wanted, &amounts)).await;
        let reservation = reserved.map_err(|refused| match wanted.get(refused.index) {
            Some(wanted) => refusal(wanted, &refused, self.limits.now()),
            None => Refusal::internal(),
        })?;
        let admission = visit.observer.admission.get_or_insert_with(|| Box::new(Admission::new(self.tariff.clone())));
        admission.shown.add(reservation.standings(), now);
        match of_attempt {
            true => admission.admit_attempt(reservation, visit.routing.option.clone()),
            false => admission.admit(reservation, amounts),
        }
        Ok(())
    }

    /// Counts a call whose price is not known under a budget of money, and refuses it where one minds.
    fn mind_price(&self, wanted: &[Wanted], amounts: &Amounts) -> Result<(), Refusal> {
        let is_money = |one: &Wanted| one.limit.counter.unit() == Unit::Cost;
        if amounts.nano_cents.is_some() || !wanted.iter().any(is_money) {
            return Ok(());
        }
        let wary = wary_of_price(wanted, amounts);
        self.limits.meters().unpriced(wary.is_some());
        wary.map_or(Ok(()), |wary| Err(price_unknown(wary)))
    }

    /// What the dearest of the targets may use that the request can be sent to.
    async fn amounts_of_all(
        &self,
        head: &RequestHeader,
        errand: &Errand,
        read: Read<'_>,
        needs: Needs,
    ) -> Result<Amounts, Refusal> {
        let family = errand.endpoint.family();
        if let Some(target) = &errand.first {
            let (sent, model) = (Sent::new(read.text, read.fields, None), read.fields.text("model"));
            return Ok(self.amounts(family, &sent, needs, Some((target, model.as_deref()))).await);
        }
        let mut dearest: Option<Amounts> = None;
        let mut add = |one: Amounts| dearest = Some(dearest.map_or(one, |dearest| dearest.or(one)));
        match needs.cost {
            true => {
                for Possible { leaf, target, model } in self.possible(head, errand, read.fields)? {
                    let sent = Sent::new(read.text, read.fields, Some(&leaf.edits));
                    add(self.amounts(family, &sent, needs, Some((&target, model.as_deref()))).await);
                }
            }
            false => {
                for leaf in errand.plan.leaves() {
                    add(self.amounts(family, &Sent::new(read.text, read.fields, Some(&leaf.edits)), needs, None).await);
                }
            }
        }
        Ok(dearest.unwrap_or_default())
    }

    /// What a request may use of a target that is sent this; it is priced where the target is known.
    pub(crate) async fn amounts(
        &self,
        family: Family,
        sent: &Sent<'_>,
        needs: Needs,
        priced: Option<(&Target, Option<&str>)>,
    ) -> Amounts {
        let expected = Expected::of(family, sent, needs.most);
        let mut amounts = expected.amounts();
        if let Some((target, requested)) = priced.filter(|_| needs.cost) {
            let tier = sent.service_tier();
            let integration = match &target.credential {
                Credential::Stored(stored) => Some(stored.integration.id),
                Credential::Given(_) => None,
            };
            let service = &target.provider.name;
            let item = Item { service, integration, requested, answered: None, tier: tier.as_deref() };
            self.tariff.price(&mut amounts, &expected, &item, needs.most).await;
        }
        amounts
    }

    /// Everything that the request may be sent to, as far as it can be told now, with the model's name there.
    fn possible<'e>(
        &self,
        head: &RequestHeader,
        errand: &'e Errand,
        fields: &Fields<'_>,
    ) -> Result<Vec<Possible<'e>>, Refusal> {
        let asked = fields.text("model");
        let headers = GatewayHeaders::of(&head.headers, &self.aliases)?;
        let resolver = self.resolver(Utc::now());
        let targets = errand.plan.leaves().filter_map(|leaf| {
            let own = leaf.edits.model().and_then(|json| serde_json::from_str::<String>(json).ok());
            let model = own.or_else(|| asked.as_deref().map(str::to_owned));
            let resolved = resolver.resolve(leaf, &headers, &errand.caller, model.as_deref()).ok()?;
            Some(Possible { leaf, target: resolved.target, model: resolved.model.or(model) })
        });
        Ok(targets.collect())
    }
}

/// What a relayed call may use. Nobody reads its body; what only looks something up has no price.
fn unread(head: &RequestHeader) -> Amounts {
    let is_lookup = head.method.is_safe() && !head.headers.contains_key(http::header::UPGRADE);
    Amounts { nano_cents: is_lookup.then_some(1), ..Amounts::default() }
}
