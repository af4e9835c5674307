//! The fields that an export can have, in the words of the interface, and where each comes from.

use crate::http::ApiError;

pub struct ExportField {
    pub name: &'static str,
    pub source: FieldSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldSource {
    /// The log itself has it.
    Row,
    /// The part of this name in the stored body.
    Body,
}

const fn row(name: &'static str) -> ExportField {
    ExportField { name, source: FieldSource::Row }
}

pub static FIELDS: &[ExportField] = &[
    row("id"),
    row("trace_id"),
    row("created_at"),
    ExportField { name: "request", source: FieldSource::Body },
    ExportField { name: "response", source: FieldSource::Body },
    row("is_success"),
    row("ai_org"),
    row("ai_model"),
    row("req_units"),
    row("res_units"),
    row("total_units"),
    row("request_url"),
    row("cost"),
    row("cost_unit"),
    row("cost_currency"),
    row("response_time"),
    row("response_status_code"),
    row("mode"),
    row("config"),
    row("prompt_slug"),
    row("metadata"),
    row("workspace_id"),
    row("workspace_slug"),
];

/// Names that clients use as well.
static ALIASES: &[(&str, &str)] = &[
    ("ai_provider", "ai_org"),
    ("request_tokens", "req_units"),
    ("response_tokens", "res_units"),
    ("total_tokens", "total_units"),
    ("status_code", "response_status_code"),
];

pub fn names() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|field| field.name)
}

/// Every name that may be asked for.
pub fn accepted() -> Vec<&'static str> {
    names().chain(ALIASES.iter().map(|(alias, _)| *alias)).collect()
}

pub fn field(name: &str) -> Option<&'static ExportField> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| *name);
    FIELDS.iter().find(|field| field.name == name)
}

/// The fields that were asked for, each once and by its own name. `denied` is what the organisation keeps back.
pub fn chosen(asked: &[String], denied: &[String]) -> Result<Vec<String>, ApiError> {
    let mut chosen: Vec<String> = Vec::new();
    for (n, name) in asked.iter().enumerate() {
        let wrong = |what: &str| ApiError::field(format!("requested_data[{n}]"), what);
        let found = field(name).ok_or_else(|| wrong("is not a field of logs"))?;
        if is_denied(found.name, denied) {
            return Err(wrong("may not be exported from this organisation"));
        }
        if !chosen.iter().any(|one| one == found.name) {
            chosen.push(found.name.to_owned());
        }
    }
    match chosen.is_empty() {
        true => Err(ApiError::field("requested_data", "must name at least one field")),
        false => Ok(chosen),
    }
}

/// A cost never leaves without its unit.
pub fn with_units(mut chosen: Vec<String>) -> Vec<String> {
    let has = |chosen: &[String], name: &str| chosen.iter().any(|one| one == name);
    if let Some(at) = chosen.iter().position(|one| one == "cost").filter(|_| !has(&chosen, "cost_unit")) {
        chosen.insert(at + 1, "cost_unit".to_owned());
    }
    chosen
}

/// Whether a field is among those that the organisation keeps back, whichever of its names it used.
pub fn is_denied(name: &str, denied: &[String]) -> bool {
    denied.iter().any(|one| field(one).is_some_and(|field| field.name == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn fields_are_chosen_once_by_any_of_their_names_and_keep_their_order() {
        let asked = texts(&["total_tokens", "id", "status_code", "total_units", "id"]);
        assert_eq!(chosen(&asked, &[]).unwrap(), ["total_units", "id", "response_status_code"]);
        for (asked, field) in [
            (vec![], "requested_data:"),
            (vec!["id", "Id"], "requested_data[1]:"),
            (vec!["body_key"], "requested_data[0]:"),
        ] {
            let refused = chosen(&texts(&asked), &[]).unwrap_err().to_string();
            assert!(refused.starts_with(field), "{asked:?}: {refused}");
        }
    }

    #[test]
    fn a_cost_is_followed_by_its_unit() {
        assert_eq!(with_units(texts(&["id", "cost", "mode"])), ["id", "cost", "cost_unit", "mode"]);
        assert_eq!(with_units(texts(&["cost_unit", "cost"])), ["cost_unit", "cost"]);
        assert_eq!(with_units(texts(&["id"])), ["id"]);
    }

    #[test]
    fn what_the_organisation_keeps_back_is_refused_by_every_name() {
        for denied in ["total_units", "total_tokens"] {
            for asked in ["total_units", "total_tokens"] {
                let refused = chosen(&texts(&["id", asked]), &texts(&[denied])).unwrap_err().to_string();
                assert!(refused.starts_with("requested_data[1]"), "{refused}");
            }
        }
        assert!(chosen(&texts(&["id"]), &texts(&["request", "nonsense"])).is_ok());
    }
}
