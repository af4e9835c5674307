//! What an import would change: each row of a list against the row that the installation has, and the files that would hold the
//! result. Models that a public list does not name keep their price with its date; a list in our own format is the whole list.

use super::bounded_json::{self, RawRows, UnreadableList};
use super::listed::{ListedModel, ListedModels, Refusal};
use super::rate_changes::{self, RateChange};
use super::{ListFormat, SourceList, by_hand, convert, provider_names};
use crate::cost::Entry;
use crate::cost::prices::sanity;
use serde::Deserialize as _;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What would change in an installation.
#[derive(Debug, Default)]
pub struct ImportPlan {
    pub providers: Vec<ProviderPlan>,
    /// What is refused, of providers that we have and of others.
    pub refused: Vec<Refusal>,
}

/// What would change of one provider.
#[derive(Debug)]
pub struct ProviderPlan {
    pub provider: String,
    pub changes: Vec<RowChange>,
    pub unchanged: usize,
    rows: RawRows,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    New {
        model: String,
        rates: Vec<RateChange>,
    },
    Changed {
        model: String,
        rates: Vec<RateChange>,
    },
    /// The list does not have it; `kept_as_of` is the date of the price that stays, if it stays.
    Gone {
        model: String,
        stays_as_of: Option<String>,
    },
}

impl ImportPlan {
    /// `installed` has the text of each provider's file that is in use now, as far as there is one.
    pub fn new(list: &SourceList, installed: &BTreeMap<String, String>, as_of: &str) -> Result<Self, UnreadableList> {
        let before = |provider: &str| match installed.get(provider) {
            Some(text) => bounded_json::rows(text),
            None => Ok(RawRows::new()),
        };
        let mut plan = Self::default();
        match list {
            SourceList::Public { format, models } => plan.add_public(*format, models, &before, as_of)?,
            SourceList::Ours(providers) => {
                for (provider, rows) in providers {
                    let (rows, refused) = dated_rows(provider, rows, as_of);
                    // An empty file would take every price away.
                    if rows.is_empty() {
                        return Err(UnreadableList::Empty(ListFormat::Ours.name()));
                    }
                    plan.providers.push(ProviderPlan::new(
                        provider,
                        before(provider)?,
                        rows,
                        &refused,
                        Missing::Removed,
                    ));
                    plan.refused.extend(refused);
                }
            }
        }
        Ok(plan)
    }

    fn add_public(
        &mut self,
        format: ListFormat,
        models: &ListedModels,
        before: &dyn Fn(&str) -> Result<RawRows, UnreadableList>,
        as_of: &str,
    ) -> Result<(), UnreadableList> {
        let mut by_provider: BTreeMap<&str, Vec<&ListedModel>> = BTreeMap::new();
        for model in &models.listed {
            by_provider.entry(&model.provider).or_default().push(model);
        }
        let by_hand = by_hand::bundled();
        let table = provider_names::table(format);
        self.refused.extend(models.refused.iter().cloned());
        for (theirs, models) in &by_provider {
            if !table.iter().any(|(_, names)| names.contains(theirs)) {
                let refusal = |model: &&ListedModel| Refusal {
                    provider: (*theirs).to_owned(),
                    model: model.name.clone(),
                    reason: "not a provider of this gateway".into(),
                };
                self.refused.extend(models.iter().map(refusal));
            }
        }
        for (ours, names) in table {
            let listed = names.iter().filter_map(|name| by_provider.get(name)).flatten().copied();
            let mut listed = listed.peekable();
            if listed.peek().is_none() {
                continue;
            }
            let before = before(ours)?;
            let mut found = convert::convert(ours, listed, &by_hand, as_of);
            follow_spelling(&before, &mut found.entries);
            let rows =
                found.entries.iter().filter_map(|(model, entry)| Some((model.clone(), to_raw_value(entry).ok()?)));
            let missing = if format == ListFormat::ModelsDev { Missing::TokensOnly } else { Missing::Stays };
            self.providers.push(ProviderPlan::new(ours, before, rows.collect(), &found.refused, missing));
            self.refused.extend(found.refused);
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.providers.iter().all(|provider| !provider.is_changed())
    }
}

/// What becomes of rows that a list does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Removed,
    Stays,
    /// And of a model whose listed rates are the ones it has, all others stay: the list knows tokens alone.
    TokensOnly,
}

impl ProviderPlan {
    fn new(provider: &str, before: RawRows, listed: RawRows, refused: &[Refusal], missing: Missing) -> Self {
        let mut plan = Self { provider: provider.to_owned(), changes: Vec::new(), unchanged: 0, rows: RawRows::new() };
        let refused: BTreeSet<&str> = refused.iter().map(|refusal| refusal.model.as_str()).collect();
        for (model, row) in &before {
            if !listed.contains_key(model) {
                let stays = missing != Missing::Removed || refused.contains(model.as_str());
                if stays {
                    plan.rows.insert(model.clone(), row.clone());
                }
                if !refused.contains(model.as_str()) {
                    let as_of = || entry(row).and_then(|entry| entry.as_of).unwrap_or_else(|| "no date".into());
                    plan.changes.push(RowChange::Gone { model: model.clone(), stays_as_of: stays.then(as_of) });
                }
            }
        }
        for (model, row) in listed {
            let Some(earlier) = before.get(&model) else {
                let rates = rate_changes::between(None, entry(&row).as_ref());
                plan.changes.push(RowChange::New { model: model.clone(), rates });
                plan.rows.insert(model, row);
                continue;
            };
            let (was, is) = (entry(earlier), entry(&row));
            let rates = rate_changes::between(was.as_ref(), is.as_ref());
            let is_same = was.zip(is).is_some_and(|(was, is)| {
                was.pricing_config == is.pricing_config && was.custom_pricing == is.custom_pricing
            });
            let is_confirmed = missing == Missing::TokensOnly && rates.iter().all(|change| change.after.is_none());
            if is_same || is_confirmed {
                plan.unchanged += 1;
                plan.rows.insert(model, earlier.clone());
            } else {
                plan.changes.push(RowChange::Changed { model: model.clone(), rates });
                plan.rows.insert(model, row);
            }
        }
        plan
    }

    /// Whether its file would be another one.
    pub fn is_changed(&self) -> bool {
        self.changes.iter().any(|change| !matches!(change, RowChange::Gone { stays_as_of: Some(_), .. }))
    }

    /// The file that would hold it, one row a line.
    pub fn text(&self) -> String {
        let rows = self.rows.iter().map(|(model, row)| {
            let row = row.get().replace(['\n', '\r'], " ");
            format!("  {}: {row}", Value::String(model.clone()))
        });
        format!("{{\n{}\n}}\n", rows.collect::<Vec<_>>().join(",\n"))
    }
}

fn entry(row: &RawValue) -> Option<Entry> {
    Entry::deserialize(row).ok()
}

/// Rows in our own format that are understood and sane, each with a date.
fn dated_rows(provider: &str, rows: &RawRows, as_of: &str) -> (RawRows, Vec<Refusal>) {
    let (mut dated, mut refused) = (RawRows::new(), Vec::new());
    for (model, row) in rows {
        match dated_row(provider, model, row, as_of) {
            Ok(row) => drop(dated.insert(model.clone(), row)),
            Err(reason) => {
                refused.push(Refusal { provider: provider.to_owned(), model: model.clone(), reason });
            }
        }
    }
    (dated, refused)
}

fn dated_row(provider: &str, model: &str, row: &RawValue, as_of: &str) -> Result<Box<RawValue>, String> {
    if !bounded_json::is_name(model) {
        return Err("the name is empty, longer than 256 bytes or has control characters".into());
    }
    let mut entry = Entry::deserialize(row).map_err(|error| error.to_string())?;
    let is_dated = entry.as_of.is_some();
    entry.as_of.get_or_insert_with(|| as_of.to_owned());
    let slips = sanity::slips(provider, model, &entry);
    if !slips.is_empty() {
        return Err(slips.join("; "));
    }
    if is_dated {
        return Ok(row.to_owned());
    }
    let mut fields = bounded_json::fields(row).unwrap_or_default();
    let date = to_raw_value(as_of).map_err(|error| error.to_string())?;
    fields.insert("as_of".into(), &date);
    to_raw_value(&fields).map_err(|error| error.to_string())
}

/// A model that is installed in another spelling (`Llama-3` for `llama-3`) costs what the listed one does.
fn follow_spelling(before: &RawRows, entries: &mut BTreeMap<String, Value>) {
    let by_lower: BTreeMap<String, String> =
        entries.keys().map(|model| (model.to_lowercase(), model.clone())).collect();
    for model in before.keys().filter(|model| !entries.contains_key(*model)).cloned().collect::<Vec<_>>() {
        let listed = by_lower.get(&model.to_lowercase()).and_then(|listed| entries.get(listed)).cloned();
        entries.extend(listed.map(|entry| (model, entry)));
    }
}

impl fmt::Display for RowChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, model, rates) = match self {
            Self::New { model, rates } => ("new", model, rates),
            Self::Changed { model, rates } => ("changed", model, rates),
            Self::Gone { model, stays_as_of: Some(date) } => {
                return write!(f, "gone {model}: stays with its price of {date}");
            }
            Self::Gone { model, stays_as_of: None } => return write!(f, "gone {model}"),
        };
        let rates: Vec<String> = rates.iter().map(ToString::to_string).collect();
        match rates.is_empty() {
            true => write!(f, "{word} {model}"),
            false => write!(f, "{word} {model}: {}", rates.join(", ")),
        }
    }
}
