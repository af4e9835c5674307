//! Which limits apply to a request: those of its key, its token and its workspace, and the policies whose conditions it
//! meets; for one attempt those of the provider and its integration, and the policies with conditions on provider or
//! model. Pure: `facts` says what a request is, `amounts` how much it may use. `limits` reserves; `admitted` holds what
//! was reserved until the request is over; `limit_refusal` answers when a limit refuses.

pub mod admitted;
pub mod amounts;
mod cache_lifetime;
mod cached_limits;
pub mod expected;
pub mod expected_units;
pub mod facts;
mod inline_text;
pub mod limit_refusal;
pub mod provider_choices;
pub mod service_tiers;

pub use admitted::Admission;
pub use amounts::{Amounts, Tariff};
pub use cached_limits::cached_limits_of_request;
pub use expected::{Expected, SentBody};
pub use expected_units::ExpectedUnits;
pub use facts::{Attempted, LimitedRequest, McpCall};
pub use limit_refusal::LimitOwner;
pub use provider_choices::ProviderChoices;

use crate::limits::{Counter, Limit, LimitAsk, LimitKind, Micros, Scope, ShareHandle, Unit, Window};
use crate::snapshot::{Policies, Snapshot};
use chrono::{DateTime, Datelike as _, Utc};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use shared::amount::Amount;
use shared::identity::jwt::limits::{Period, UsageKind, UsageLimit};
use shared::model::ObjectLimits;
use shared::model::id::OrganisationId;
use shared::model::limits::{Budget, ObjectRate};
use shared::model::policy::{BudgetKind, RateKind, RateUnit, Rule, UnknownPrice, push_id};
use uuid::Uuid;

/// A limit that applies to a request, and whose it is.
#[derive(Debug, Clone)]
pub struct ApplicableLimit {
    pub limit: Limit,
    pub whose: LimitOwner,
    /// Of the limit.
    pub found: ShareHandle,
    /// Calls without a known price are refused.
    pub refuses_unknown_price: bool,
}

impl ApplicableLimit {
    fn new(limit: Limit, whose: LimitOwner) -> Self {
        Self { limit, whose, found: ShareHandle::default(), refuses_unknown_price: false }
    }

    /// A budget of money that says what becomes of calls without a price. Strict ones refuse them by themselves.
    fn minding(mut self, unknown: UnknownPrice) -> Self {
        self.refuses_unknown_price = unknown == UnknownPrice::Refuse && self.limit.counter.unit() == Unit::Cost;
        self
    }
}

/// The first limit that refuses a call without a known price.
pub fn wary_of_price<'w>(wanted: &'w [ApplicableLimit], amounts: &Amounts) -> Option<&'w ApplicableLimit> {
    let is_wary = |one: &&ApplicableLimit| one.refuses_unknown_price && !one.limit.dry_run;
    wanted.iter().find(is_wary).filter(|_| amounts.nano_cents.is_none())
}

/// Which kinds of limits are switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// `USAGE_LIMITS_ENABLED`
    pub things: bool,
    /// `POLICY_ENABLED`
    pub policies: bool,
    /// `UNKNOWN_PRICE`, for budgets that do not say it themselves.
    pub unknown_price: UnknownPrice,
}

/// The limits that are checked before a target is chosen. The clock is read for the budgets of tokens alone.
pub fn limits_of_request(
    request: &LimitedRequest<'_>,
    snapshot: &Snapshot,
    switches: Switches,
    clock: impl Fn() -> DateTime<Utc>,
) -> Vec<ApplicableLimit> {
    let mut wanted = Vec::new();
    let (key, workspace) = (&request.caller.key, &request.caller.workspace);
    let organisation = (workspace.organisation_id, switches.unknown_price);
    if switches.things {
        if let Some(limits) = &key.limits {
            add_limits_of_object(
                &mut wanted,
                limits,
                organisation,
                Scope::ApiKey,
                &written(key.id.uuid()),
                &LimitOwner::ApiKey,
            );
        }
        if let Some(token) = &request.caller.token {
            let id = format!("{}/{}", workspace.id, token.id);
            let rates = token.rate_limits.iter();
            let rates = rates.map(|rate| ObjectRate { kind: rate.kind, unit: rate.unit, value: rate.value }).collect();
            add_limits_of_object(
                &mut wanted,
                &ObjectLimits { rates, budget: None },
                organisation,
                Scope::Token,
                &id,
                &LimitOwner::Token,
            );
            for budget in token.usage_limits.iter().filter(|limit| limit.status.as_deref() != Some("archived")) {
                let id = named(&id, budget);
                let limits = ObjectLimits { rates: Vec::new(), budget: Some(budget_of_token(budget, clock())) };
                add_limits_of_object(&mut wanted, &limits, organisation, Scope::Token, &id, &LimitOwner::Token);
            }
        }
        if let Some(limits) = &workspace.limits {
            let whose = LimitOwner::Workspace(workspace.clone());
            add_limits_of_object(
                &mut wanted,
                limits,
                organisation,
                Scope::Workspace,
                &written(workspace.id.uuid()),
                &whose,
            );
        }
    }
    if switches.policies
        && let Some(policies) = snapshot.policies(&workspace.id)
    {
        add_limits_of_policies(&mut wanted, &policies, request, snapshot, switches.unknown_price, false);
    }
    wanted
}

/// The limits that are checked before a target is called: its provider's, what the workspace may use of the integration,
/// and the policies about either or the model.
pub fn limits_of_attempt(
    request: &LimitedRequest<'_>,
    attempted: &Attempted<'_>,
    snapshot: &Snapshot,
    switches: Switches,
) -> Vec<ApplicableLimit> {
    let mut wanted = Vec::new();
    let workspace = &request.caller.workspace;
    let organisation = (workspace.organisation_id, switches.unknown_price);
    if let (true, Some(provider)) = (switches.things, attempted.provider) {
        if let Some(limits) = &provider.limits {
            let id = format!("{}/{}", workspace.id, provider.slug);
            let whose = LimitOwner::Provider(provider.clone());
            add_limits_of_object(&mut wanted, limits, organisation, Scope::Provider, &id, &whose);
        }
        if let Some(grant) = snapshot.integration_workspace(provider.integration_id, workspace.id)
            && let Some(limits) = &grant.limits
        {
            let id = format!("{}/{}", grant.integration_id, workspace.id);
            let slug = snapshot.integration(&grant.integration_id).map(|integration| integration.slug.clone());
            let whose = LimitOwner::Integration(slug.unwrap_or_default().into());
            add_limits_of_object(&mut wanted, limits, organisation, Scope::Integration, &id, &whose);
        }
    }
    if switches.policies
        && let Some(policies) = snapshot.policies(&workspace.id).filter(|policies| policies.has_per_attempt)
    {
        let request = LimitedRequest { attempted: Some(*attempted), ..*request };
        add_limits_of_policies(&mut wanted, &policies, &request, snapshot, switches.unknown_price, true);
    }
    wanted
}

/// What is asked of each limit.
pub fn asks<'w>(wanted: &'w [ApplicableLimit], amounts: &Amounts) -> Vec<LimitAsk<'w>> {
    wanted
        .iter()
        .map(|one| LimitAsk { limit: &one.limit, amount: amounts.for_limit(&one.limit), found: Some(&one.found) })
        .collect()
}

/// What must be estimated about a request before its limits can be checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    pub tokens: bool,
    pub cost: bool,
    /// What it may use at most: a budget must never be overspent.
    pub most: bool,
    /// Whether all of it has a price.
    pub rates: bool,
}

impl Needs {
    pub fn for_limits(wanted: &[ApplicableLimit]) -> Self {
        let mut needs = Self::default();
        for ApplicableLimit { limit, refuses_unknown_price, .. } in wanted {
            let unit = limit.counter.unit();
            needs.tokens |= unit != Unit::Requests;
            needs.cost |= unit == Unit::Cost;
            needs.rates |= refuses_unknown_price;
            needs.most |= unit != Unit::Requests && matches!(limit.kind, LimitKind::Budget { strict: true, .. });
        }
        needs
    }
}

fn add_limits_of_object(
    wanted: &mut Vec<ApplicableLimit>,
    limits: &ObjectLimits,
    (organisation, unknown_price): (OrganisationId, UnknownPrice),
    scope: Scope,
    id: &str,
    whose: &LimitOwner,
) {
    for rate in &limits.rates {
        let kind = LimitKind::Rate(window(rate.unit));
        let unit = match rate.kind {
            RateKind::Requests => Unit::Requests,
            RateKind::Tokens => Unit::Tokens,
        };
        let counter = Counter::new(organisation, scope, id, unit, kind);
        wanted.push(ApplicableLimit::new(Limit { counter, cap: rate.value, kind, dry_run: false }, whose.clone()));
    }
    let Some(Budget { kind, credit_limit: Some(most), strict, unknown_price: own, last_reset_at }) = limits.budget
    else {
        return;
    };
    let (unit, cap) = budget(kind, most);
    let kind = LimitKind::Budget { strict, since: last_reset_at.timestamp_micros() };
    let counter = Counter::new(organisation, scope, id, unit, kind);
    let limit = Limit { counter, cap, kind, dry_run: false };
    wanted.push(ApplicableLimit::new(limit, whose.clone()).minding(own.unwrap_or(unknown_price)));
}

fn add_limits_of_policies(
    wanted: &mut Vec<ApplicableLimit>,
    policies: &Policies,
    request: &LimitedRequest<'_>,
    snapshot: &Snapshot,
    unknown_price: UnknownPrice,
    per_attempt: bool,
) {
    let organisation = request.caller.workspace.organisation_id;
    // The name of the counter: what the policy's names begin with, then the group's.
    let named = |rule: &Rule, prefix: &dyn Fn() -> String| {
        let request = LimitedRequest { is_trusted_only: rule.trusted_metadata, ..*request };
        let speaks = rule.is_per_attempt() == per_attempt && rule.matches(&request);
        let mut id = if speaks { prefix() } else { return None };
        let group = id.len();
        rule.push_value_key(&mut id, &request).then_some((id, group))
    };
    for policy in &policies.rates {
        let Some((id, _)) = named(&policy.rule, &|| policy.scope_prefix()) else { continue };
        let kind = LimitKind::Rate(window(policy.unit));
        let unit = match policy.kind {
            RateKind::Requests => Unit::Requests,
            RateKind::Tokens => Unit::Tokens,
        };
        let counter = Counter::new(organisation, Scope::Policy, id, unit, kind);
        let limit = Limit { counter, cap: whole(policy.value.0), kind, dry_run: policy.dry_run };
        wanted.push(ApplicableLimit::new(limit, LimitOwner::RatePolicy(policy.clone())));
    }
    for policy in &policies.budgets {
        let Some((id, group)) = named(&policy.rule, &|| policy.scope_prefix()) else { continue };
        let entity = snapshot.policy_entity(policy.id, &id[group..]);
        let since: Micros = policy.starts_at(entity.as_deref()).timestamp_micros();
        let (unit, cap) = budget(policy.kind, policy.credit_limit);
        let kind = LimitKind::Budget { strict: policy.strict, since };
        let counter = Counter::new(organisation, Scope::Policy, id, unit, kind);
        let limit = Limit { counter, cap, kind, dry_run: policy.dry_run };
        let unknown_price = policy.unknown_price.unwrap_or(unknown_price);
        wanted.push(ApplicableLimit::new(limit, LimitOwner::UsagePolicy(policy.clone())).minding(unknown_price));
    }
}

fn written(id: Uuid) -> String {
    let mut written = String::with_capacity(36);
    push_id(&mut written, id);
    written
}

fn window(unit: RateUnit) -> Window {
    match unit {
        RateUnit::Rps => Window::Second,
        RateUnit::Rpm => Window::Minute,
        RateUnit::Rph => Window::Hour,
        RateUnit::Rpd => Window::Day,
        RateUnit::Rpw => Window::Week,
    }
}

/// The unit of a budget's counter, and how far it may go: money in nano-cents, rounded down.
fn budget(kind: BudgetKind, Amount(most): Amount) -> (Unit, u64) {
    const NANO_CENTS: u64 = 100 * 1_000_000_000;
    match kind {
        BudgetKind::Cost => (Unit::Cost, whole(most.checked_mul(NANO_CENTS.into()).unwrap_or(Decimal::MAX))),
        BudgetKind::Tokens => (Unit::Tokens, whole(most)),
        BudgetKind::Requests => (Unit::Requests, whole(most)),
    }
}

/// Rounded down, and cut off at the largest number there is.
fn whole(number: Decimal) -> u64 {
    if number.is_sign_negative() { 0 } else { number.trunc().to_u64().unwrap_or(u64::MAX) }
}

/// Each budget of a token has a counter of its own: by the name it has, else by its period.
fn named(id: &str, limit: &UsageLimit) -> String {
    match (&limit.id, limit.periodic_reset, limit.periodic_reset_days) {
        (Some(own), _, _) => format!("{id}/{own}"),
        (None, Some(Period::Weekly), _) => format!("{id}:weekly"),
        (None, Some(Period::Monthly), _) => format!("{id}:monthly"),
        (None, None, Some(days)) => format!("{id}:{days}"),
        (None, None, None) => id.to_owned(),
    }
}

/// A token's budget begins with the calendar's period: nobody remembers when it was first seen.
fn budget_of_token(limit: &UsageLimit, now: DateTime<Utc>) -> Budget {
    let day = now.date_naive();
    let begins = match (limit.periodic_reset, limit.periodic_reset_days) {
        (Some(Period::Weekly), _) => Some(day - chrono::Days::new(u64::from(day.weekday().num_days_from_sunday()))),
        (Some(Period::Monthly), _) => day.with_day(1),
        (None, Some(days)) => {
            let past = day.num_days_from_ce() % i32::from(days.max(1));
            Some(day - chrono::Days::new(past.unsigned_abs().into()))
        }
        (None, None) => None,
    };
    Budget {
        kind: match limit.kind {
            UsageKind::Cost => BudgetKind::Cost,
            UsageKind::Tokens => BudgetKind::Tokens,
        },
        credit_limit: limit.credit_limit,
        strict: limit.strict,
        unknown_price: limit.unknown_price,
        last_reset_at: begins.and_then(|day| day.and_hms_opt(0, 0, 0)).unwrap_or_default().and_utc(),
    }
}

#[cfg(test)]
mod tests;
