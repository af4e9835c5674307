//! What a call used and cost, worked out apart from the threads that carry requests: the provider's words become one
//! form of usage, and that is multiplied by the prices that hold for the model now.

use crate::journal::record::Record;
use crate::snapshot::Snapshot;
use rust_decimal::Decimal;
use serde_json::Value;
use shared::catalogue::Sources;
use shared::catalogue::sources::Document;
use shared::cost::{Entry, Mode, OwnPrices, Unreadable, Usage, cost, unit_prices};
use shared::request_logs::is_storable;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

pub struct Pricer {
    sources: Arc<Sources>,
    snapshot: Arc<Snapshot>,
    /// By provider and the name in its price list; only listed names, so it stays small.
    versions: HashMap<(String, String), (Entry, String)>,
}

#[derive(Debug, Default)]
pub struct Priced<'r> {
    pub usage: Usage,
    pub is_estimated: bool,
    /// The provider's words as JSON, merged if there were two.
    pub reported: Option<Cow<'r, str>>,
    pub cost: Option<Decimal>,
    pub price_model: Option<String>,
    /// A JSON object.
    pub unit_prices: Option<String>,
    pub price_version: Option<String>,
}

impl Pricer {
    pub fn new(sources: impl Into<Arc<Sources>>, snapshot: Arc<Snapshot>) -> Self {
        Self { sources: sources.into(), snapshot, versions: HashMap::new() }
    }

    pub async fn price<'r>(&mut self, record: &Record<'r>) -> Priced<'r> {
        let mut priced = used(record);
        let Some(provider) = record.ai_org else { return priced };
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
        let names = [record.answered_model, record.requested_model, base_model.as_deref()];
        let found = names.into_iter().flatten().filter_map(|name| list?.find(provider, name));
        let listed = found.min_by_key(|found| found.by as u8).map(|found| (found.model, found.entry));
        let nothing = Entry::default();
        let (model, entry) = match listed {
            Some(listed) => listed,
            None if own.has_price() => (record.requested_model.unwrap_or_default(), &nothing),
            None => return priced,
        };
        let terms = own.terms(region.as_deref(), mode(record));
        priced.cost = cost(&priced.usage, entry, &terms).ok().map(|cost| cost.cents()).filter(is_storable);
        let prices = unit_prices(&priced.usage, entry, &terms).into_iter();
        let prices: BTreeMap<_, _> = prices.map(|(name, price)| (name, price.normalize().to_string())).collect();
        priced.unit_prices = serde_json::to_string(&prices).ok();
        priced.price_version = Some(self.version(provider, model, entry));
        priced.price_model = Some(model.to_owned());
        priced
    }

    /// Tells this price from the one that stands in the list after its next edition.
    fn version(&mut self, provider: &str, model: &str, entry: &Entry) -> String {
        let key = (provider.to_owned(), model.to_owned());
        match self.versions.get(&key) {
            Some((known, version)) if known == entry => version.clone(),
            _ => {
                let version = entry.edition();
                self.versions.insert(key, (entry.clone(), version.clone()));
                version
            }
        }
    }
}

/// The account behind the call: what it says of prices, what its custom model is made from, and where it is.
#[derive(Default)]
struct Account {
    own: OwnPrices,
    base_model: Option<String>,
    region: Option<String>,
}

fn account(record: &Record<'_>, snapshot: &Snapshot) -> Result<Account, Unreadable> {
    let found = record.integration_id.and_then(|id| Some((id, snapshot.integration(&id)?)));
    let Some((id, integration)) = found else { return Ok(Account::default()) };
    let model = record.requested_model.and_then(|model| snapshot.integration_model(id, model));
    Ok(Account {
        own: OwnPrices::of(&integration, model.as_deref())?,
        base_model: model.and_then(|model| model.base_model_slug.clone()),
        region: integration.region().map(str::to_owned),
    })
}

/// What the provider says, else what we guess.
fn used<'r>(record: &Record<'r>) -> Priced<'r> {
    let read = |text: &&'r str| Some((serde_json::from_str::<Value>(text).ok()?, Cow::Borrowed(*text)));
    let said = record.usage.iter().filter_map(read).reduce(|(earlier, _), (later, _)| {
        let both = merged(earlier, later);
        let written = both.to_string();
        (both, Cow::Owned(written))
    });
    let usage = said.as_ref().and_then(|(words, _)| Usage::read(words));
    let reported = said.map(|(_, written)| written);
    match (usage, record.estimate) {
        (Some(usage), None) => Priced { usage, reported, ..Priced::default() },
        // A stream that was cut has said what it read, and nothing final about what it wrote.
        (Some(usage), Some((_, completion))) => {
            let usage = Usage { output: usage.output.max(completion), ..usage };
            Priced { usage, reported, is_estimated: true, ..Priced::default() }
        }
        (None, Some((prompt, completion))) => {
            let usage = Usage { input: prompt, output: completion, ..Usage::default() };
            Priced { usage, reported, is_estimated: true, ..Priced::default() }
        }
        (None, None) => Priced { reported, ..Priced::default() },
    }
}

/// Later words win, key by key.
fn merged(earlier: Value, later: Value) -> Value {
    match (earlier, later) {
        (Value::Object(mut earlier), Value::Object(later)) => {
            earlier.extend(later.into_iter().filter(|(_, value)| !value.is_null()));
            Value::Object(earlier)
        }
        (_, later) => later,
    }
}

fn mode(record: &Record<'_>) -> Mode {
    record.service_tier.map_or(Mode::Standard, Mode::of_service_tier)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(usage: &[&'static str], estimate: Option<(u64, u64)>) -> Record<'static> {
        Record { usage: usage.to_vec(), estimate, ..Record::default() }
    }

    #[test]
    fn later_words_win_and_an_estimate_fills_what_nobody_said() {
        let start = r#"{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}"#;
        for (usage, estimate, expected) in [
            (&[start, r#"{"output_tokens":25,"input_tokens":null}"#][..], None, (14, 25, false)),
            (&[start], Some((99, 7)), (14, 7, true)),
            (&[start], Some((99, 0)), (14, 1, true)),
            (&[], Some((3, 4)), (3, 4, true)),
            (&[], None, (0, 0, false)),
            (&["not JSON"], Some((3, 4)), (3, 4, true)),
            (&[r#"{"prompt_tokens":5,"completion_tokens":6}"#], None, (5, 6, false)),
        ] {
            let priced = used(&record(usage, estimate));
            let found = (priced.usage.prompt_tokens(), priced.usage.completion_tokens(), priced.is_estimated);
            assert_eq!(found, expected, "{usage:?} {estimate:?}");
        }
    }
}
