//! How much a request may use, before it is made, and how much it did use. What is reserved is a guess (the prompt, and
//! the most that was asked for), and for strict budgets a bound: a token is at least a byte, and an answer whose length
//! nobody limited has none. Prices are those that are known in memory; the journal works the exact ones out.

use crate::body::Fields;
use crate::limits::{Kind, Limit, Unit};
use crate::snapshot::Snapshot;
use shared::catalogue::Sources;
use shared::catalogue::sources::Document;
use shared::cost::{Entry, Mode, OwnPrices, Terms, Usage, nano_cents};
use shared::providers::Family;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What a request wants of limits, by their unit. None is what nobody can say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    pub tokens: Option<u64>,
    pub most_tokens: Option<u64>,
    pub nano_cents: Option<u64>,
    pub most_nano_cents: Option<u64>,
}

impl Amounts {
    pub fn of(&self, limit: &Limit) -> u64 {
        let is_strict = matches!(limit.kind, Kind::Budget { strict: true, .. });
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

/// Tokens of a request: in and out, guessed and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub input: u64,
    pub output: u64,
    pub most_input: u64,
    pub most_output: u64,
    /// Whether the bounds hold.
    pub is_bounded: bool,
}

impl Expected {
    pub fn of(family: Family, body: &[u8], fields: &Fields<'_>) -> Self {
        let number = |name: &str| fields.get(name).and_then(|text| text.parse::<u64>().ok());
        let most = ["max_completion_tokens", "max_tokens", "max_output_tokens"].into_iter().find_map(number);
        let times = number("n").unwrap_or(1).max(number("best_of").unwrap_or(1)).max(1);
        let output = most.map(|most| most.saturating_mul(times));
        let (output, is_bounded) = match family {
            Family::Embed | Family::Moderate | Family::Rerank | Family::CountTokens => (Some(0), true),
            Family::Chat | Family::Complete | Family::Messages | Family::Responses => (output, output.is_some()),
            // Priced by other things than tokens.
            _ => (output, false),
        };
        // Four bytes are about a token. Nobody waits for a closer guess: what is used is settled.
        let (input, output) = (body.len() as u64 / 4, output.unwrap_or(0));
        Self { input, output, most_input: body.len() as u64, most_output: output, is_bounded }
    }

    pub fn amounts(&self) -> Amounts {
        let most = self.most_input.saturating_add(self.most_output);
        Amounts {
            tokens: Some(self.input.saturating_add(self.output).max(1)),
            most_tokens: self.is_bounded.then_some(most),
            ..Amounts::default()
        }
    }
}

/// Whose price a call has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Item<'i> {
    /// The provider, as price lists know it.
    pub service: &'i str,
    pub integration: Option<Uuid>,
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
    /// A provider's prices. Waits for those that are not in memory, shortly and once an hour at most.
    pub async fn learn(&self, service: &str) -> Option<Arc<Document>> {
        const PATIENCE: Duration = Duration::from_millis(250);
        let known = self.sources.known(service);
        if known.is_some() {
            return known;
        }
        let _ = Box::pin(tokio::time::timeout(PATIENCE, self.sources.prices(service, Instant::now()))).await;
        self.sources.known(service)
    }

    /// None when the price is not known.
    pub fn nano_cents(&self, usage: &Usage, item: &Item<'_>, prices: Option<&Document>) -> Option<u64> {
        let listed = |base: Option<&str>| {
            let names = [item.answered, item.requested, base].into_iter().flatten();
            let found = prices.and_then(Document::as_prices)?.find_any(item.service, names)?;
            Some(found.entry)
        };
        let mode = item.tier.map_or(Mode::Standard, Mode::of_service_tier);
        let Some(id) = item.integration else {
            return nano_cents(usage, listed(None)?, &Terms { mode, ..Terms::default() });
        };
        let integration = self.snapshot.integration(&id);
        let model = item.requested.and_then(|model| self.snapshot.integration_model(id, model));
        let own = match &integration {
            Some(integration) => OwnPrices::of(integration, model.as_deref()).ok()?,
            None => OwnPrices::default(),
        };
        let entry = match listed(model.as_ref().and_then(|model| model.base_model_slug.as_deref())) {
            Some(entry) => entry,
            None if own.has_price() => Entry::unlisted(),
            None => return None,
        };
        let region = integration.as_ref().and_then(|integration| integration.region());
        nano_cents(usage, entry, &own.terms(region, mode))
    }

    /// What a request is expected to cost; for strict budgets also at most.
    pub async fn price(&self, amounts: &mut Amounts, expected: &Expected, item: &Item<'_>, is_strict: bool) {
        let prices = self.learn(item.service).await;
        let nano_cents = |usage: &Usage| self.nano_cents(usage, item, prices.as_deref());
        let plain = Usage { input: expected.input, output: expected.output, ..Usage::default() };
        amounts.nano_cents = nano_cents(&plain);
        if !is_strict {
            return;
        }
        let most = Usage { input: expected.most_input, output: expected.most_output, ..Usage::default() };
        // Reading for the first time may cost more when it is kept for the next.
        let kept = Usage { input: 0, cache_write: expected.most_input, ..most.clone() };
        let dearest = nano_cents(&most).max(nano_cents(&kept));
        amounts.most_nano_cents = dearest.filter(|_| expected.is_bounded);
    }
}

impl Amounts {
    /// Of a request that may go to either of two targets.
    pub fn or(self, other: Self) -> Self {
        Self {
            nano_cents: self.nano_cents.max(other.nano_cents),
            most_nano_cents: self.most_nano_cents.zip(other.most_nano_cents).map(|(one, other)| one.max(other)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(family: Family, body: &str) -> Expected {
        Expected::of(family, body.as_bytes(), &Fields::read(body.as_bytes()).unwrap())
    }

    #[test]
    fn a_request_is_bounded_when_it_says_how_long_the_answer_may_be() {
        for (family, body, tokens, is_bounded) in [
            (Family::Chat, r#"{"messages":[{"content":"12345678"}]}"#, 9, false),
            (Family::Chat, r#"{"messages":[{"content":"12345678"}],"max_tokens":10}"#, 23, true),
            (Family::Chat, r#"{"messages":[{"content":"12345678"}],"max_completion_tokens":10,"n":3}"#, 47, true),
            (Family::Responses, r#"{"input":"1234","max_output_tokens":5}"#, 14, true),
            (Family::Embed, r#"{"input":"12345678"}"#, 5, true),
            (Family::Image, r#"{"prompt":"1234","n":2}"#, 5, false),
            (Family::Chat, r#"{"max_tokens":18446744073709551615,"n":9}"#, u64::MAX, true),
        ] {
            let amounts = expected(family, body).amounts();
            assert_eq!((amounts.tokens, amounts.most_tokens.is_some()), (Some(tokens), is_bounded), "{body}");
            assert!(amounts.most_tokens.is_none_or(|most| most >= tokens), "{body}");
        }
    }
}
