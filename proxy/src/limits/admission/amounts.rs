//! How much a request may use of each unit, before it is made: a guess, and for strict budgets a bound (`expected`). Prices
//! are those that are known in memory; the journal works the exact ones out.

use super::expected::Expected;
use super::expected_units::ExpectedUnits;
use super::provider_choices::ProviderChoices;
use crate::limits::{Limit, LimitKind, Spent, Unit};
use crate::snapshot::Snapshot;
use chrono::{NaiveDate, Utc};
use shared::cost::prices::sources::Document;
use shared::cost::prices::{ListedPrice, Matched, Sources};
use shared::cost::{Entry, OwnPrices, PriceMode, PricingConfig, Terms, Usage, nano_cents};
use shared::model::id::IntegrationId;
use std::sync::Arc;
use std::time::Duration;

/// How much a request asks of its limits, by unit. None where the amount is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    pub tokens: Option<u64>,
    pub most_tokens: Option<u64>,
    /// Of these, what the answer may have at most.
    pub most_answer: u64,
    pub nano_cents: Option<u64>,
    pub most_nano_cents: Option<u64>,
}

impl Amounts {
    pub fn for_limit(&self, limit: &Limit) -> u64 {
        let is_strict = matches!(limit.kind, LimitKind::Budget { strict: true, .. });
        let known = match (limit.counter.unit(), is_strict) {
            (Unit::Requests, _) => Some(1),
            (Unit::Tokens, false) => self.tokens,
            (Unit::Tokens, true) => self.most_tokens,
            (Unit::Cost, false) => self.nano_cents,
            (Unit::Cost, true) => self.most_nano_cents,
        };
        known.unwrap_or(u64::MAX)
    }
}

/// Whose price a call has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Item<'i> {
    /// The provider, as price lists know it.
    pub service: &'i str,
    pub integration: Option<IntegrationId>,
    pub requested: Option<&'i str>,
    pub answered: Option<&'i str>,
    pub tier: Option<&'i str>,
}

/// What things cost, as far as this process knows.
pub struct Tariff {
    pub sources: Arc<Sources>,
    pub snapshot: Arc<Snapshot>,
}

impl Tariff {
    /// A provider's prices. Waits for those that are not in memory, shortly.
    pub async fn learn(&self, service: &str) -> Option<Arc<Document>> {
        const PATIENCE: Duration = Duration::from_millis(250);
        self.sources.learn(service, PATIENCE).await
    }

    /// What is known of a price; none when nothing is.
    pub fn nano_cents(&self, usage: &Usage, item: &Item<'_>, prices: Option<&Document>) -> Option<u64> {
        self.priced(usage, item, prices).map(|(nano_cents, _)| nano_cents)
    }

    /// The same, and whether everything that is used has a rate.
    pub fn priced(&self, usage: &Usage, item: &Item<'_>, prices: Option<&Document>) -> Option<(u64, bool)> {
        self.with_price(item, prices, |found, terms| nano_cents(usage, found.entry, terms))
    }

    /// The same, and the deprecation date of the model that was asked for, if it is past.
    pub fn priced_and_dated(
        &self,
        usage: &Usage,
        item: &Item<'_>,
        prices: Option<&Document>,
    ) -> (Option<(u64, bool)>, Option<NaiveDate>) {
        let mut past_date = None;
        let priced = self.with_price(item, prices, |found, terms| {
            let list = prices.and_then(Document::as_prices);
            past_date = list.and_then(|list| past(list.deprecation_date(item.service, item.requested, found)?));
            nano_cents(usage, found.entry, terms)
        });
        (priced, past_date)
    }

    /// That date alone, of a call that nobody prices before the head of its answer leaves.
    pub fn past_date(&self, item: &Item<'_>) -> Option<NaiveDate> {
        let prices = self.sources.known(item.service);
        let list = prices.as_deref().and_then(Document::as_prices)?;
        let named = |name: &str| list.find(item.service, name).filter(|found| found.by == Matched::Name);
        let of_base = || {
            let model = self.snapshot.integration_model(item.integration?, item.requested?)?;
            named(model.base_model_slug.as_deref()?)
        };
        let found = item.requested.and_then(named).or_else(|| item.answered.and_then(named)).or_else(of_base)?;
        past(found.entry.deprecation_date()?)
    }

    /// Looks at the price of a call, if it has one.
    fn with_price<T>(
        &self,
        item: &Item<'_>,
        prices: Option<&Document>,
        look: impl FnOnce(&ListedPrice<'_>, &Terms<'_>) -> Option<T>,
    ) -> Option<T> {
        let listed = |base: Option<&str>| {
            let names = [item.answered, item.requested, base].into_iter().flatten();
            prices.and_then(Document::as_prices)?.find_any(item.service, names)
        };
        let mode = item.tier.map_or(PriceMode::Standard, PriceMode::of_service_tier);
        let Some(id) = item.integration else {
            return look(&listed(None)?, &Terms { mode, ..Terms::default() });
        };
        let integration = self.snapshot.integration(&id);
        let model = item.requested.and_then(|model| self.snapshot.integration_model(id, model));
        let own = match &integration {
            Some(integration) => OwnPrices::for_model(integration, model.as_deref()).ok()?,
            None => OwnPrices::default(),
        };
        let found = match listed(model.as_ref().and_then(|model| model.base_model_slug.as_deref())) {
            Some(found) => found,
            None if own.has_price() => ListedPrice { entry: Entry::unlisted(), model: "", by: Matched::Default },
            None => return None,
        };
        let region = integration.as_ref().and_then(|integration| integration.region());
        look(&found, &own.terms(region, mode))
    }

    /// What a call used, by the prices that are in memory.
    pub fn spent(&self, usage: &Usage, item: &Item<'_>) -> Spent {
        let prices = self.sources.known(item.service);
        Spent {
            requests: 1,
            tokens: usage.prompt_tokens().saturating_add(usage.completion_tokens()),
            nano_cents: self.nano_cents(usage, item, prices.as_deref()).unwrap_or(0),
        }
    }

    /// What a request is expected to cost; for strict budgets also at most.
    pub async fn price(
        &self,
        amounts: &mut Amounts,
        expected: &Expected,
        units: &ExpectedUnits,
        item: &Item<'_>,
        choices: &ProviderChoices,
        is_strict: bool,
    ) {
        let prices = self.learn(item.service).await;
        let complete = |usage: &Usage| {
            self.priced(usage, item, prices.as_deref()).filter(|(_, is_complete)| *is_complete).map(|(price, _)| price)
        };
        let plain = units.with_tokens(expected.input, expected.output);
        let by_token = || {
            // An answer has a price too, however long it may be.
            let answer = Usage { output: 1, ..Usage::default() };
            complete(&plain).filter(|_| expected.output > 0 || !units.has_answer || complete(&answer).is_some())
        };
        // What is paid by the piece may be paid by tokens of its own kind.
        let has_tokens = || {
            let Some(key) = units.token_rate() else { return !units.is_by_piece() };
            let lists = |config: &PricingConfig| {
                config.pay_as_you_go.as_ref().is_some_and(|rates| rates.tokens.contains_key(key))
            };
            let is_listed = |found: &ListedPrice<'_>, terms: &Terms<'_>| {
                lists(terms.own_price.unwrap_or(&found.entry.pricing_config)).then_some(())
            };
            self.with_price(item, prices.as_deref(), is_listed).is_some()
        };
        let by_piece = units.pieces().and_then(|pieces| complete(&pieces));
        amounts.nano_cents = by_piece.or_else(|| by_token().filter(|_| has_tokens()));
        if !is_strict {
            return;
        }
        let most =
            |found: &ListedPrice<'_>, terms: &Terms<'_>| choices.most_nano_cents(item.service, expected, found, terms);
        // How many pieces there will be is a guess.
        amounts.most_nano_cents = self.with_price(item, prices.as_deref(), most).filter(|_| by_piece.is_none());
    }
}

/// The clock is read for models that have a date. The day itself is not past, by the clock of UTC.
fn past(date: NaiveDate) -> Option<NaiveDate> {
    (date < Utc::now().date_naive()).then_some(date)
}

impl Amounts {
    /// Of a request that may go to either of two targets.
    pub fn or(self, other: Self) -> Self {
        let both = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one.max(other));
        Self {
            tokens: self.tokens.max(other.tokens),
            most_tokens: both(self.most_tokens, other.most_tokens),
            most_answer: self.most_answer.max(other.most_answer),
            nano_cents: self.nano_cents.max(other.nano_cents),
            most_nano_cents: both(self.most_nano_cents, other.most_nano_cents),
        }
    }
    /// Of a call whose price is that of another model than was asked for: what is called decides, and the name that was
    /// asked for may only make it dearer.
    pub fn or_asked(self, asked: Self) -> Self {
        let dearer = |own: Option<u64>, asked: Option<u64>| own.map(|own| own.max(asked.unwrap_or(own)));
        Self {
            nano_cents: dearer(self.nano_cents, asked.nano_cents),
            most_nano_cents: dearer(self.most_nano_cents, asked.most_nano_cents),
            ..self
        }
    }
}
