//! Rate limits and budgets: which of them apply to a request or to a target, and what they are asked to reserve. A request
//! to which no limit applies costs the lookups alone. When the engine asks is in `admit`.

use crate::catalog::target::{Credential, Target};
use crate::context::Visit;
use crate::identity::identify::Principal;
use crate::limits::admission::amounts::Item;
use crate::limits::admission::limit_refusal::{price_unknown, refusal};
use crate::limits::admission::{
    Admission, Amounts, ApplicableLimit, Attempted, Expected, ExpectedUnits, LimitedRequest, Needs, ProviderChoices,
    SentBody, Switches, Tariff, asks, cached_limits_of_request, limits_of_attempt, wary_of_price,
};
use crate::limits::{LimitKind, Limits, Micros, Reservation, Unit};
use crate::request::refusal::Refusal;
use crate::snapshot::Snapshot;
use chrono::Utc;
use serde_json::{Map, Value};
use shared::cost::PriceMode;
use shared::cost::prices::ModelCapabilities;
use shared::model::policy::PolicyTarget;
use shared::providers::Family;
use std::sync::Arc;

pub struct Admitter {
    pub snapshot: Arc<Snapshot>,
    /// Counters, as this replica shares them with others.
    pub limits: Arc<Limits>,
    /// Which limits hold at all.
    pub switches: Switches,
    pub tariff: Arc<Tariff>,
}

impl Admitter {
    pub(crate) fn wanted(
        &self,
        visit: &Visit,
        caller: &Principal,
        metadata: &Map<String, Value>,
        family: Option<Family>,
    ) -> Arc<[ApplicableLimit]> {
        self.wanted_by_target(visit, caller, metadata, family, PolicyTarget::Llm)
    }

    pub(crate) fn wanted_by_target(
        &self,
        visit: &Visit,
        caller: &Principal,
        metadata: &Map<String, Value>,
        family: Option<Family>,
        target: PolicyTarget,
    ) -> Arc<[ApplicableLimit]> {
        let request = LimitedRequest {
            caller,
            metadata,
            config: visit.routing.config.as_deref(),
            family,
            target,
            attempted: None,
            is_trusted_only: false,
        };
        cached_limits_of_request(&request, &self.snapshot, self.switches, Utc::now)
    }

    pub(crate) fn wanted_of(
        &self,
        visit: &Visit,
        caller: &Principal,
        metadata: &Map<String, Value>,
        family: Option<Family>,
        target: &Target,
        model: Option<&str>,
    ) -> Vec<ApplicableLimit> {
        if visit.observer.is_attempt_admitted() {
            return Vec::new();
        }
        let request = LimitedRequest {
            caller,
            metadata,
            config: visit.routing.config.as_deref(),
            family,
            target: PolicyTarget::Llm,
            attempted: None,
            is_trusted_only: false,
        };
        let provider = match &target.credential {
            Credential::Stored(stored) => Some(&stored.provider),
            Credential::Given(_) => None,
        };
        let attempted = Attempted { provider, service: &target.provider.name, model, mcp: None };
        limits_of_attempt(&request, &attempted, &self.snapshot, self.switches)
    }

    pub(crate) async fn reserve(
        &self,
        visit: &mut Visit,
        wanted: &[ApplicableLimit],
        amounts: Amounts,
        of_attempt: bool,
    ) -> Result<(), Refusal> {
        self.mind_price(wanted, &amounts)?;
        let now = self.limits.now();
        let reservation = self.reserved(now, wanted, &amounts).await?;
        let admission = visit.observer.admission.get_or_insert_with(|| Box::new(Admission::new(self.tariff.clone())));
        admission.shown.add(reservation.standings(), now);
        admission.expects(&amounts);
        match of_attempt {
            true => admission.admit_attempt(reservation, visit.routing.option.clone()),
            false => admission.admit(reservation, amounts),
        }
        Ok(())
    }

    async fn reserved(
        &self,
        now: Micros,
        wanted: &[ApplicableLimit],
        amounts: &Amounts,
    ) -> Result<Reservation, Refusal> {
        let reserved = self.limits.reserve(now, &asks(wanted, amounts)).await;
        reserved.map_err(|refused| match wanted.get(refused.index) {
            Some(wanted) => refusal(wanted, &refused, amounts, self.limits.now()),
            None => Refusal::internal(),
        })
    }

    /// Asks these budgets for a call that the gateway makes for itself while it serves a request.
    pub(super) async fn reserve_own_call(
        &self,
        budgets: &[ApplicableLimit],
        expected: &Expected,
        item: &Item<'_>,
    ) -> Result<Reservation, Refusal> {
        let needs = Needs::for_limits(budgets);
        let mut amounts = expected.amounts();
        if needs.cost {
            let (units, choices) = (ExpectedUnits::default(), ProviderChoices::default());
            self.tariff.price(&mut amounts, expected, &units, item, &choices, needs.most).await;
        }
        self.mind_price(budgets, &amounts)?;
        self.reserved(self.limits.now(), budgets, &amounts).await
    }

    /// Asks strict budgets for as much as they gave before, of a request whose call was paid and is followed by another.
    pub(super) async fn reserve_again(
        &self,
        visit: &mut Visit,
        wanted: &[ApplicableLimit],
        amounts: Amounts,
    ) -> Result<(), Refusal> {
        let is_strict = |one: &&ApplicableLimit| {
            let is_strict = matches!(one.limit.kind, LimitKind::Budget { strict: true, .. });
            is_strict && !one.limit.dry_run && one.limit.counter.unit() != Unit::Requests
        };
        let strict: Vec<ApplicableLimit> = wanted.iter().filter(is_strict).cloned().collect();
        let reservation = self.reserved(self.limits.now(), &strict, &amounts).await?;
        if let Some(admission) = &mut visit.observer.admission {
            admission.admit_again(reservation);
        }
        Ok(())
    }

    /// Counts a call whose price is not known under a budget of money, and refuses it where one minds.
    fn mind_price(&self, wanted: &[ApplicableLimit], amounts: &Amounts) -> Result<(), Refusal> {
        let is_money = |one: &ApplicableLimit| one.limit.counter.unit() == Unit::Cost;
        if amounts.nano_cents.is_some() || !wanted.iter().any(is_money) {
            return Ok(());
        }
        let wary = wary_of_price(wanted, amounts);
        self.limits.meters().unpriced(wary.is_some());
        wary.map_or(Ok(()), |wary| Err(price_unknown(wary)))
    }

    /// What the catalogue says of a model: of the one that a model of one's own is made from, if it is one.
    pub(crate) fn capabilities(&self, target: &Target, model: Option<&str>) -> ModelCapabilities {
        let Some(model) = target.called.as_deref().or(model) else { return ModelCapabilities::default() };
        let own = match &target.credential {
            Credential::Stored(stored) => self.snapshot.integration_model(stored.integration.id, model),
            Credential::Given(_) => None,
        };
        let base = own.as_ref().and_then(|own| own.base_model_slug.as_deref());
        self.tariff.sources.capabilities(&target.provider.name, base.unwrap_or(model))
    }

    /// What a request may use of a target that is sent this; it is priced where the target is known.
    pub(crate) async fn amounts(
        &self,
        family: Family,
        sent: &SentBody<'_>,
        needs: Needs,
        priced: Option<(&Target, Option<&str>)>,
    ) -> Amounts {
        let expected = Expected::estimate(family, sent, needs.most);
        let mut amounts = expected.amounts();
        if let Some((target, requested)) = priced.filter(|_| needs.cost) {
            let choices = ProviderChoices::of_request(sent, &target.headers, needs.most);
            let integration = match &target.credential {
                Credential::Stored(stored) => Some(stored.integration.id),
                Credential::Given(_) => None,
            };
            let service = &target.provider.name;
            let item = Item {
                service,
                integration,
                requested,
                answered: None,
                tier: choices.named_tier().map(PriceMode::name),
            };
            let units = ExpectedUnits::of_request(family, sent, needs.most || needs.rates);
            self.tariff.price(&mut amounts, &expected, &units, &item, &choices, needs.most).await;
            if let Some(called) = target.called.as_deref() {
                let item = Item { requested: Some(called), ..item };
                let mut own = expected.amounts();
                self.tariff.price(&mut own, &expected, &units, &item, &choices, needs.most).await;
                amounts = own.or_asked(amounts);
            }
        }
        amounts
    }
}
