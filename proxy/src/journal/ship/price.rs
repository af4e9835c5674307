//! What a call used and cost, worked out apart from the threads that carry requests: the provider's words become one
//! form of usage, and that is multiplied by the prices that hold for the model now.

use crate::journal::record::Record;
use crate::snapshot::Snapshot;
use rust_decimal::Decimal;
use shared::cost::prices::Sources;
use shared::cost::prices::sources::Document;
use shared::cost::{Entry, OwnPrices, PriceMode, ReportedUsage, UnreadablePrices, Usage, bill, unit_prices};
use shared::db::request_logs::is_storable;
use shared::mcp;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

pub struct Pricer {
    sources: Arc<Sources>,
    snapshot: Arc<Snapshot>,
}

#[derive(Debug, Default)]
pub struct Priced<'r> {
    pub usage: Usage,
    pub is_estimated: bool,
    /// The provider's words as JSON, merged if there were two.
    pub reported: Option<Cow<'r, str>>,
    pub cost: Option<Decimal>,
    /// What a provider would have taken for an answer that came from the cache.
    pub saved: Option<Decimal>,
    pub price_model: Option<String>,
    /// A JSON object.
    pub unit_prices: Option<String>,
    pub price_version: Option<String>,
    /// The model stands in the list of prices, under the name above.
    pub is_listed: bool,
}

impl Pricer {
    pub fn new(sources: impl Into<Arc<Sources>>, snapshot: Arc<Snapshot>) -> Self {
        Self { sources: sources.into(), snapshot }
    }

    pub async fn price<'r>(&self, record: &Record<'r>) -> Priced<'r> {
        let priced = self.billed(record).await;
        match record.cache_status.is_hit() {
            false => priced,
            true => Priced { saved: priced.cost, cost: Some(Decimal::ZERO), ..priced },
        }
    }

    /// What a provider takes for it.
    async fn billed<'r>(&self, record: &Record<'r>) -> Priced<'r> {
        let mut priced = used(record);
        let Some(provider) = record.ai_org else { return priced };
        if provider == mcp::SERVICE {
            priced.cost = Some(self.price_of_tool(record));
            return priced;
        }
        if priced.usage == Usage::default() {
            // Failed calls cost nothing unless the provider says what they used; what nobody could count is not known.
            priced.cost = (!priced.is_estimated).then_some(Decimal::ZERO);
            return priced;
        }
        // Prices that cannot be read are unknown ones, not those of the list.
        let Ok(account) = account(record, &self.snapshot) else { return priced };
        let Account { own, base_model, region } = &account;
        let document = self.sources.prices(provider, Instant::now()).await;
        let list = document.as_deref().and_then(Document::as_prices);
        // The name in the answer is the more exact one; a provider's alias may be known only as it was asked for.
        let names = [record.answered_model, record.requested_model, base_model.as_deref()].into_iter().flatten();
        let listed = list.and_then(|list| list.find_any(provider, names));
        let (model, entry) = match listed {
            Some(listed) => (listed.model, listed.entry),
            None if own.has_price() => (record.requested_model.unwrap_or_default(), Entry::unlisted()),
            None => return priced,
        };
        let terms = own.terms(region.as_deref(), mode(record));
        // What has a rate is charged even if something else has none; its price is `null` among those of the units.
        priced.cost = bill(&priced.usage, entry, &terms).cents.filter(is_storable);
        priced.unit_prices = Some(unit_prices(&priced.usage, entry, &terms));
        priced.price_version = Some(entry.edition().to_owned());
        priced.price_model = Some(model.to_owned());
        priced.is_listed = listed.is_some();
        priced
    }
}

impl Pricer {
    /// Nothing where nobody set a price, and for calls that failed. One that was sent and not answered is marked as a guess.
    fn price_of_tool(&self, record: &Record<'_>) -> Decimal {
        let is_due = (200..300).contains(&record.status) || record.estimate.is_some();
        let name = record.requested_model.filter(|_| is_due);
        let price = name.and_then(|name| self.snapshot.mcp_price(record.organisation_id, name));
        price.filter(is_storable).unwrap_or(Decimal::ZERO)
    }
}

/// The account behind the call: what it says of prices, what its custom model is made from, and where it is.
#[derive(Default)]
struct Account {
    own: OwnPrices,
    base_model: Option<String>,
    region: Option<String>,
}

fn account(record: &Record<'_>, snapshot: &Snapshot) -> Result<Account, UnreadablePrices> {
    let found = record.integration_id.and_then(|id| Some((id, snapshot.integration(&id)?)));
    let Some((id, integration)) = found else { return Ok(Account::default()) };
    let model = record.requested_model.and_then(|model| snapshot.integration_model(id, model));
    Ok(Account {
        own: OwnPrices::for_model(&integration, model.as_deref())?,
        base_model: model.and_then(|model| model.base_model_slug.clone()),
        region: integration.region().map(str::to_owned),
    })
}

/// What the provider says, else what we guess.
fn used<'r>(record: &Record<'r>) -> Priced<'r> {
    let found = ReportedUsage::from_pieces(record.usage.iter().copied());
    let (known, reported) = found.map_or((None, None), |found| (found.usage, Some(found.text)));
    let usage = Usage::known(known, record.estimate);
    Priced { usage, reported, is_estimated: record.estimate.is_some(), ..Priced::default() }
}

fn mode(record: &Record<'_>) -> PriceMode {
    record.service_tier.map_or(PriceMode::Standard, PriceMode::of_service_tier)
}
