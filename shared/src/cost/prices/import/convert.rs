//! Models of a public list → entries of our price lists, by provider. What a rule of sanity forbids is left out and reported:
//! a single rate where the rest makes sense without it, else the row.

use super::by_hand::{self, HandRow, matches_pattern};
use super::draft::PriceDraft;
use super::listed::{ListedModel, Refusal};
use super::model_name;
use crate::cost::prices::sanity;
use crate::cost::prices::sanity::{CACHED, MAX_TOKEN};
use crate::cost::{Entry, PriceMode};
use rust_decimal::Decimal;
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What costs nothing, as its vendor says; all else without a rate above 0 is refused.
const FREE: [(&str, &str); 5] = [
    ("openai", "omni-moderation-*"),
    ("openai", "text-moderation-*"),
    ("google", "gemma-*"),
    ("z-ai", "glm-*-flash"),
    ("zhipu", "glm-*-flash"),
];

/// Whose batches cost half of everything.
const HALF_BATCHES: [&str; 2] = ["anthropic", "claude-platform-aws"];

/// Parts of the names of models that are not about text. Such a name without its date means the newest of them; else it would have
/// no price.
const NOT_TEXT: [&str; 14] = [
    "rerank",
    "whisper",
    "tts",
    "transcribe",
    "speech",
    "audio",
    "realtime",
    "dall-e",
    "image",
    "imagen",
    "veo",
    "video",
    "ocr",
    "omni-mod",
];

/// What a list says of one provider of ours.
#[derive(Debug, Default)]
pub struct ConvertedPrices {
    pub entries: BTreeMap<String, Value>,
    pub refused: Vec<Refusal>,
}

/// `models` are those that the list has of this provider; later ones win.
pub fn convert<'m>(
    ours: &str,
    models: impl Iterator<Item = &'m ListedModel>,
    by_hand: &[HandRow],
    as_of: &str,
) -> ConvertedPrices {
    let mut refused = Vec::new();
    let mut report = |model: &str, reason: String| {
        refused.push(Refusal { provider: ours.to_owned(), model: model.to_owned(), reason });
    };
    let mut entries = BTreeMap::new();
    for (model, mut draft) in drafts(ours, models, &mut report) {
        if HALF_BATCHES.contains(&ours) {
            draft.halve_cache_writes_of_batches();
        }
        remove_slips(&model, &mut draft, &mut report);
        match check(ours, &model, &draft) {
            Ok(()) => drop(entries.insert(model, draft.entry(as_of))),
            Err(reason) => report(&model, reason),
        }
    }
    add_undated(&mut entries);
    by_hand::lay_over(by_hand, ours, &mut entries);
    entries.retain(|model, entry| {
        let slips = match Entry::deserialize(&*entry) {
            Ok(entry) => sanity::slips(ours, model, &entry),
            Err(error) => vec![error.to_string()],
        };
        slips.iter().for_each(|slip| report(model, slip.clone()));
        slips.is_empty()
    });
    ConvertedPrices { entries, refused }
}

fn drafts<'m>(
    ours: &str,
    models: impl Iterator<Item = &'m ListedModel>,
    report: &mut dyn FnMut(&str, String),
) -> BTreeMap<String, PriceDraft> {
    let mut drafts: BTreeMap<String, PriceDraft> = BTreeMap::new();
    for model in models {
        let name = match model_name::parse(ours, &model.name) {
            Ok(name) => name,
            Err(reason) => {
                report(&model.name, reason.to_owned());
                continue;
            }
        };
        let draft = drafts.entry(name.model.to_owned()).or_default();
        if name.quality.is_some() || name.size.is_some() {
            if let Err(reason) = draft.add_image(model, name.quality, name.size) {
                report(&model.name, reason);
            }
            continue;
        }
        for rate in &model.rates {
            if let Err(reason) = draft.add(model, rate) {
                report(&model.name, reason);
            }
        }
    }
    drafts
}

/// Leaves out single rates that cannot be right.
fn remove_slips(model: &str, draft: &mut PriceDraft, report: &mut dyn FnMut(&str, String)) {
    let usual = draft.rates(PriceMode::Standard, 0).clone();
    for (mode, by_bound) in &mut draft.modes {
        for (bound, rates) in by_bound {
            for (cached, fresh) in CACHED {
                let whole = rates.tokens.get(fresh).or_else(|| usual.tokens.get(fresh)).copied();
                let (Some(cents), Some(whole)) = (rates.tokens.get(cached), whole) else { continue };
                if *cents > whole {
                    report(model, format!("{cached} is dearer than {fresh}"));
                } else if cents.is_zero() && !whole.is_zero() {
                    report(model, format!("{cached} is 0"));
                } else {
                    continue;
                }
                rates.tokens.remove(cached);
            }
            let is_cheap = ["batch", "flex"].contains(mode) && *bound == 0;
            rates.tokens.retain(|name, cents| {
                let is_dearer = is_cheap && usual.tokens.get(name).is_some_and(|usual| *cents > *usual);
                if is_dearer {
                    report(model, format!("{mode} {name} is dearer than the usual one"));
                }
                !is_dearer
            });
        }
    }
    let usual = draft.rates(PriceMode::Standard, 0);
    let has_other_units = usual.units.values().any(|cents| !cents.is_zero()) || !usual.images.is_empty();
    if has_other_units && usual.tokens.values().all(Decimal::is_zero) {
        // Zeros beside what is paid by another unit.
        usual.tokens.clear();
    }
}

/// Whether what is left makes a price.
fn check(ours: &str, model: &str, draft: &PriceDraft) -> Result<(), String> {
    let mut tokens = draft.modes.values().flat_map(BTreeMap::values).flat_map(|rates| rates.tokens.values());
    if tokens.any(|cents| *cents > MAX_TOKEN) {
        return Err("more than a dollar for a thousand tokens".into());
    }
    let is_free = FREE.iter().any(|(provider, pattern)| *provider == ours && matches_pattern(pattern, model));
    if !draft.is_priced() && !is_free {
        return Err("no rate above 0, and not listed as free".into());
    }
    let usual = draft.modes.get(PriceMode::Standard.name()).and_then(|bounds| bounds.get(&0));
    if usual.is_none_or(|rates| rates.is_empty()) && draft.fixed.is_none() {
        return Err("no usual rate".into());
    }
    Ok(())
}

/// `gpt-4o-transcribe` from `gpt-4o-transcribe-2026-01-15`, where the list has only the latter.
fn add_undated(entries: &mut BTreeMap<String, Value>) {
    let listed: BTreeSet<String> = entries.keys().cloned().collect();
    for name in &listed {
        let Some(base) = without_date(name).filter(|base| !listed.contains(*base)) else { continue };
        let lower = base.to_lowercase();
        if NOT_TEXT.iter().any(|part| lower.contains(part))
            && let Some(entry) = entries.get(name).cloned()
        {
            entries.insert(base.to_owned(), entry);
        }
    }
}

/// Without `-2026-01-15` at its end.
fn without_date(name: &str) -> Option<&str> {
    let (base, date) = name.split_at_checked(name.len().checked_sub("-2026-01-15".len())?)?;
    let is_date = date.starts_with("-20")
        && date
            .char_indices()
            .all(|(at, char)| if [0, 5, 8].contains(&at) { char == '-' } else { char.is_ascii_digit() });
    (is_date && !base.is_empty()).then_some(base)
}
