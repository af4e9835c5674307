//! The prices of one provider's models, and which of them a model's name means: the name itself, else the longest known
//! name of which it is a release, else the provider's default. What is another model has no price of its relatives.

use super::release::listed_release;
use crate::cost::Entry;
use crate::providers::AWS_REGION_GROUPS;
use chrono::NaiveDate;
use foldhash::fast::RandomState;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

#[derive(Debug, Default)]
pub struct PriceList {
    /// Each already completed by the default.
    models: HashMap<String, Entry, RandomState>,
    default: Option<Box<Entry>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListedPrice<'l> {
    pub entry: &'l Entry,
    /// The name under which it is listed.
    pub model: &'l str,
    pub by: Matched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matched {
    Name,
    /// It is a release of a listed model: `gpt-4-0613` of `gpt-4`, and never `gpt-4-turbo`.
    Prefix,
    /// The provider's default: a guess, which strict budgets do not accept.
    Default,
}

pub(super) const DEFAULT: &str = "default";

/// Publishers that Vertex puts before a model.
const VERTEX: [&str; 4] = ["google.", "anthropic.", "meta.", "mistralai."];

impl PriceList {
    /// An entry that is not understood is left out; the others must not suffer for it.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let written: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
        let mut models = HashMap::default();
        for (model, raw) in written {
            match Entry::deserialize(raw) {
                Ok(entry) => drop(models.insert(model, entry)),
                Err(error) => tracing::warn!(model, %error, "a price is not understood"),
            }
        }
        let default = models.remove(DEFAULT).map(Box::new);
        if let Some(default) = &default {
            models = models.into_iter().map(|(model, entry)| (model, entry.over(default))).collect();
        }
        Ok(Self { models, default })
    }

    /// By the first of these names that is listed itself, else by the one that comes closest.
    pub fn find_any<'n>(&self, provider: &str, names: impl IntoIterator<Item = &'n str>) -> Option<ListedPrice<'_>> {
        let mut closest: Option<ListedPrice<'_>> = None;
        for found in names.into_iter().filter_map(|name| self.find(provider, name)) {
            if found.by == Matched::Name {
                return Some(found);
            }
            closest = closest.filter(|closest| closest.by as u8 <= found.by as u8).or(Some(found));
        }
        closest
    }

    pub fn find(&self, provider: &str, model: &str) -> Option<ListedPrice<'_>> {
        if let Some(found) = self.get(model, Matched::Name) {
            return Some(found);
        }
        let spellings = spellings(provider, model);
        let exact = spellings[1..].iter().find_map(|name| self.get(name, Matched::Name));
        let prefix = || spellings.iter().find_map(|name| self.longest_prefix(name));
        let default = || Some(ListedPrice { entry: self.default.as_deref()?, model: DEFAULT, by: Matched::Default });
        exact.or_else(prefix).or_else(default)
    }

    /// The deprecation date of the model that a call asks for, where `priced` is what its price was found under. Another
    /// model that answered, or whose name is only continued, has a date of its own.
    pub fn deprecation_date(&self, provider: &str, asked: Option<&str>, priced: &ListedPrice<'_>) -> Option<NaiveDate> {
        let asked = asked.filter(|asked| *asked != priced.model);
        let own = asked.and_then(|asked| self.find(provider, asked)).filter(|own| own.by == Matched::Name);
        let dated = own.as_ref().unwrap_or(priced);
        (dated.by == Matched::Name).then(|| dated.entry.deprecation_date()).flatten()
    }

    /// Facts come from other files than prices.
    pub(super) fn note_deprecation_dates<'d>(&self, dates: impl Iterator<Item = (&'d str, NaiveDate)>) {
        for (model, date) in dates {
            if let Some(entry) = self.models.get(model) {
                entry.note_deprecation_date(date);
            }
        }
    }

    /// Every listed model with its price: the default, then all by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let default = self.default.iter().map(|entry| (DEFAULT, &**entry));
        let mut listed: Vec<_> = self.models.iter().map(|(model, entry)| (model.as_str(), entry)).collect();
        listed.sort_by_key(|(model, _)| *model);
        default.chain(listed)
    }

    /// How many models are listed by name.
    pub fn len(&self) -> usize {
        self.models.len()
    }

    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    fn get(&self, name: &str, by: Matched) -> Option<ListedPrice<'_>> {
        let (model, entry) = self.models.get_key_value(name)?;
        Some(ListedPrice { entry, model, by })
    }

    fn longest_prefix(&self, name: &str) -> Option<ListedPrice<'_>> {
        self.get(listed_release(name, |base| self.models.contains_key(base))?, Matched::Prefix)
    }
}

/// The model's name, then without what the provider lets callers put before it.
fn spellings<'m>(provider: &str, model: &'m str) -> Vec<&'m str> {
    let mut spellings = vec![model];
    let before: &[&str] = match provider {
        "bedrock" => &AWS_REGION_GROUPS,
        "vertex-ai" => &VERTEX,
        _ => return spellings,
    };
    // `arn:…/us.model`, `publishers/google/models/model`.
    let tail = model.rsplit('/').next().unwrap_or(model);
    let bare = before.iter().find_map(|prefix| tail.strip_prefix(prefix));
    for name in [Some(tail), bare].into_iter().flatten() {
        if !spellings.contains(&name) {
            spellings.push(name);
        }
    }
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{
        "default": {"pricing_config": {"pay_as_you_go": {"request_token": {"price": "0"}, "response_token": {"price": "9"}}}},
        "gpt-4": {"pricing_config": {"pay_as_you_go": {"request_token": {"price": "4"}}}},
        "gpt-4-mini": {"pricing_config": {"pay_as_you_go": {"request_token": {"price": "1"}}}},
        "anthropic.claude": {"pricing_config": {"pay_as_you_go": {"request_token": {"price": "3"}}}},
        "odd": {"pricing_config": {"pay_as_you_go": {"request_token": {"price": "free"}}}}
    }"#;

    #[test]
    fn a_model_is_found_by_its_name_then_as_a_release_of_another_then_by_default() {
        let list = PriceList::parse(LIST).unwrap();
        for (provider, model, expected, by) in [
            ("openai", "gpt-4", "gpt-4", Matched::Name),
            ("openai", "gpt-4-0613", "gpt-4", Matched::Prefix),
            ("openai", "gpt-4-mini-2030-01-31", "gpt-4-mini", Matched::Prefix),
            ("openai", "gpt-4-minimal", "default", Matched::Default),
            ("openai", "gpt-4-turbo", "default", Matched::Default),
            ("openai", "gpt-4-turbo-0613", "default", Matched::Default),
            ("openai", "gpt-4-0613-preview", "default", Matched::Default),
            ("openai", "gpt-4.1", "default", Matched::Default),
            ("openai", "gpt-40", "default", Matched::Default),
            ("openai", "gpt", "default", Matched::Default),
            ("openai", "", "default", Matched::Default),
            ("openai", "odd", "default", Matched::Default),
            ("bedrock", "us.anthropic.claude-20250929-v1:0", "anthropic.claude", Matched::Prefix),
            (
                "bedrock",
                "arn:aws:bedrock:eu:1:inference-profile/eu.anthropic.claude",
                "anthropic.claude",
                Matched::Name,
            ),
            ("bedrock", "us.anthropic.claude-v2:1", "default", Matched::Default),
            ("openai", "us.anthropic.claude", "default", Matched::Default),
            ("vertex-ai", "google.gpt-4", "gpt-4", Matched::Name),
            ("openai", "é-東京-🌍", "default", Matched::Default),
        ] {
            let found = list.find(provider, model).unwrap();
            assert_eq!((found.model, found.by), (expected, by), "{provider} {model}");
        }
        assert_eq!(PriceList::parse("{}").unwrap().find("openai", "gpt-4"), None);
    }

    #[test]
    fn of_several_names_a_listed_one_comes_before_a_release_of_another() {
        let list = PriceList::parse(LIST).unwrap();
        for (names, expected) in [
            (&["gpt-4-0613", "gpt-4-mini"][..], Some("gpt-4-mini")),
            (&["gpt-4", "gpt-4-mini"], Some("gpt-4")),
            (&["unknown", "gpt-4-mini-001", "gpt-4-0613"], Some("gpt-4-mini")),
            (&["unknown", "other"], Some("default")),
            (&[], None),
        ] {
            let found = list.find_any("openai", names.iter().copied());
            assert_eq!(found.map(|found| found.model), expected, "{names:?}");
        }
    }

    #[test]
    fn a_deprecation_date_is_that_of_the_model_that_was_asked_for() {
        let list = PriceList::parse(LIST).unwrap();
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        list.note_deprecation_dates(
            [("gpt-4", day("2026-01-31")), ("anthropic.claude", day("2027-02-01")), ("unlisted", day("2026-01-01"))]
                .into_iter(),
        );
        for (provider, asked, answered, date) in [
            ("openai", "gpt-4", None, Some("2026-01-31")),
            ("openai", "gpt-4", Some("gpt-4"), Some("2026-01-31")),
            // Served by a newer one: the one that was asked for counts.
            ("openai", "gpt-4", Some("gpt-4-mini"), Some("2026-01-31")),
            ("openai", "gpt-4-mini", Some("gpt-4"), None),
            ("openai", "gpt-4-0613", None, None),
            ("openai", "gpt-4-mini", None, None),
            ("openai", "unlisted", None, None),
            // A model of one's own, priced as its base is.
            ("openai", "mine", Some("gpt-4"), Some("2026-01-31")),
            ("bedrock", "us.anthropic.claude", None, Some("2027-02-01")),
        ] {
            let priced = list.find_any(provider, answered.into_iter().chain([asked])).unwrap();
            let found = list.deprecation_date(provider, Some(asked), &priced).map(|date| date.to_string());
            assert_eq!(found.as_deref(), date, "{provider} {asked} {answered:?}");
        }
    }

    #[test]
    fn another_model_has_no_price_of_a_bundled_relative() {
        for (provider, model, expected) in [
            ("openai", "gpt-4o-2030-01-31", Some("gpt-4o")),
            ("openai", "o1-2030-01-31", Some("o1")),
            ("openai", "ft:gpt-4o-mini-2024-07-18:acme::AbC1", Some("ft:gpt-4o-mini-2024-07-18")),
            ("openai", "gpt-4o-mini-foo", None),
            ("openai", "gpt-4o-video-preview", None),
            ("openai", "gpt-4o-mini-audio-preview-2", None),
            ("openai", "o1-ultra", None),
            ("openai", "gpt-5-quick", None),
            ("anthropic", "claude-opus-4-9", None),
            ("anthropic", "claude-sonnet-4-5-fast", None),
            ("google", "gemini-2.5-flash-001", Some("gemini-2.5-flash")),
            ("google", "gemini-2.5-flash-live", None),
            ("vertex-ai", "gemini-2.5-pro@default", Some("gemini-2.5-pro")),
            ("openrouter", "anthropic/claude-sonnet-4.5:online", None),
        ] {
            let list = crate::cost::prices::bundled_prices(provider).unwrap();
            let found = list.find(provider, model).filter(|found| found.by != Matched::Default);
            assert_eq!(found.map(|found| found.model), expected, "{provider} {model}");
        }
        let list = crate::cost::prices::bundled_prices("openai").unwrap();
        for model in ["gpt-4o-audio-preview", "o1-pro"] {
            assert_eq!(list.find("openai", model).map(|found| found.by), Some(Matched::Name), "{model}");
        }
    }

    #[test]
    fn a_model_takes_what_it_leaves_open_from_the_default() {
        let list = PriceList::parse(LIST).unwrap();
        let rates = list.find("openai", "gpt-4").unwrap().entry.pricing_config.pay_as_you_go.clone().unwrap();
        assert_eq!(rates.tokens["request_token"].price.0.to_string(), "4");
        assert_eq!(rates.tokens["response_token"].price.0.to_string(), "9");
    }
}
