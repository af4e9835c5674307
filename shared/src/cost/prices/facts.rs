//! Facts of a model beside its price: how much it reads and writes, of which kinds, and the day after which its provider no
//! longer promises it. Data of the catalog as capabilities are: `facts` of a model's entry, in files that an operator may
//! replace. Unlike capabilities they are those of one model: no default fills in what nobody says.

use super::sources::Document;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

/// Read by the names of the files, written by those of the list of models.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelFacts {
    /// Tokens of a prompt with its answer.
    #[serde(rename(deserialize = "context_tokens"), skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// `text`, `image`, `audio`, …
    #[serde(rename(deserialize = "input"), skip_serializing_if = "Vec::is_empty")]
    pub input_modalities: Vec<String>,
    #[serde(rename(deserialize = "output"), skip_serializing_if = "Vec::is_empty")]
    pub output_modalities: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation_date: Option<NaiveDate>,
}

impl Document {
    /// None where nobody says anything, or what nobody understands.
    pub fn facts(&self, model: &str) -> Option<ModelFacts> {
        let Self::Capabilities(all) = self else { return None };
        ModelFacts::deserialize(all.get(model)?.get("facts")?).ok()
    }

    /// Every model that has a deprecation date.
    pub(super) fn deprecation_dates(&self) -> impl Iterator<Item = (&str, NaiveDate)> {
        let all = match self {
            Self::Capabilities(all) => all.as_object(),
            Self::Prices(_) => None,
        };
        all.into_iter().flatten().filter_map(|(model, entry)| {
            let date = entry.get("facts")?.get("deprecation_date")?.as_str()?;
            Some((model.as_str(), date.parse().ok()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::prices::sources::Kind;
    use crate::cost::prices::{bundled, bundled_providers};
    use serde_json::json;

    #[test]
    fn a_model_has_the_facts_of_its_own_entry_alone() {
        let document = Document::Capabilities(json!({
            "default": { "facts": { "context_tokens": 1 } },
            "whole": { "facts": { "context_tokens": 8, "max_output_tokens": 2, "input": ["text", "image"], "output": ["text"],
                "deprecation_date": "2026-01-31", "new": true } },
            "some": { "facts": { "max_output_tokens": 5 } },
            "odd": { "facts": { "context_tokens": "many" } },
            "no-day": { "facts": { "deprecation_date": "2026-02-30" } },
            "none": {},
            "name": "not a model",
        }));
        let whole = json!({ "context_window": 8, "max_output_tokens": 2, "input_modalities": ["text", "image"],
            "output_modalities": ["text"], "deprecation_date": "2026-01-31" });
        for (model, told) in [
            ("whole", Some(whole)),
            ("some", Some(json!({ "max_output_tokens": 5 }))),
            ("odd", None),
            ("no-day", None),
            ("none", None),
            ("name", None),
            ("unlisted", None),
        ] {
            let found = document.facts(model).map(|facts| serde_json::to_value(facts).unwrap());
            assert_eq!(found, told, "{model}");
        }
        let dates: Vec<_> = document.deprecation_dates().map(|(model, date)| format!("{model} {date}")).collect();
        assert_eq!(dates, ["whole 2026-01-31"]);
    }

    #[test]
    fn every_bundled_fact_is_understood() {
        let (mut facts, mut dates) = (0, 0);
        for provider in bundled_providers() {
            let document = Document::parse(Kind::General, bundled::text(Kind::General, provider).unwrap()).unwrap();
            let Document::Capabilities(all) = &document else { panic!("{provider}") };
            for (model, entry) in all.as_object().unwrap().iter().filter(|(_, entry)| entry.get("facts").is_some()) {
                let read = document.facts(model).unwrap_or_else(|| panic!("{provider} {model}"));
                let told = serde_json::to_value(&read).unwrap();
                assert_eq!(told.as_object().unwrap().len(), entry["facts"].as_object().unwrap().len(), "{model}");
                facts += 1;
            }
            dates += document.deprecation_dates().count();
        }
        assert!(facts > 2400 && dates > 600, "{facts} {dates}");
    }
}
