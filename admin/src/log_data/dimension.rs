//! What calls can be grouped by, and where each value stands in a log.

use super::counted::ValueOf;
use crate::http::{ApiError, FieldFault};
use shared::db::usage_slots::SlotDimension;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// As it is asked for and shown.
    pub name: &'static str,
    /// A text; empty for calls that have no such value.
    pub(super) sql: &'static str,
    /// Where the calls are read from: calls that have several values are counted under each.
    pub(super) from: &'static str,
    /// What slots call it and which value it is.
    pub(super) slots: (SlotDimension, ValueOf),
}

impl Dimension {
    /// Whether a call has one value of it.
    pub(super) fn is_of_logs(&self) -> bool {
        self.from == LOGS
    }
}

pub(super) const LOGS: &str = "request_logs";
/// Each guardrail once for a call, whatever its hooks and checks.
const LOGS_BY_GUARDRAIL: &str = "request_logs CROSS JOIN LATERAL (
    SELECT DISTINCT hook ->> 'id' AS guardrail FROM jsonb_array_elements(
        coalesce(hook_results -> 'before_request_hooks', '[]') || coalesce(hook_results -> 'after_request_hooks', '[]')
    ) AS hook) AS hooks";

const fn dimension(name: &'static str, sql: &'static str, of_slots: SlotDimension) -> Dimension {
    Dimension { name, sql, from: LOGS, slots: (of_slots, ValueOf::Own) }
}

pub const MODEL: Dimension = dimension("model", "coalesce(ai_model, '')", SlotDimension::Model);
pub const WORKSPACE: Dimension = Dimension {
    slots: (SlotDimension::All, ValueOf::Workspace),
    ..dimension("workspace", "workspace_id::text", SlotDimension::All)
};
pub const USER: Dimension = Dimension {
    slots: (SlotDimension::User, ValueOf::User),
    ..dimension("user", "coalesce(metadata ->> '_user', '')", SlotDimension::User)
};
pub const API_KEY: Dimension = dimension("api_key", "coalesce(api_key_id::text, '')", SlotDimension::ApiKey);
pub const STATUS_CODE: Dimension = dimension("status_code", "response_status_code::text", SlotDimension::StatusCode);

/// Those that the interface names, and three of ours at the end.
static DIMENSIONS: &[Dimension] = &[
    dimension("ai_service", "coalesce(ai_org, '')", SlotDimension::AiService),
    MODEL,
    STATUS_CODE,
    API_KEY,
    dimension("config", "coalesce(config, '')", SlotDimension::Config),
    WORKSPACE,
    dimension("provider", "coalesce(virtual_key, '')", SlotDimension::Provider),
    dimension("prompt", "coalesce(prompt_slug, '')", SlotDimension::Prompt),
    dimension("prompt_version", "coalesce(prompt_version_id::text, '')", SlotDimension::PromptVersion),
    USER,
    Dimension {
        from: LOGS_BY_GUARDRAIL,
        ..dimension("guardrail", "coalesce(guardrail, '')", SlotDimension::Guardrail)
    },
];

pub fn names() -> Vec<&'static str> {
    DIMENSIONS.iter().map(|one| one.name).collect()
}

/// The one that is asked for; `field` is where.
pub fn named(field: &str, name: &str) -> Result<&'static Dimension, ApiError> {
    let found = DIMENSIONS.iter().find(|one| one.name == name);
    found.ok_or_else(|| ApiError::Faults(vec![FieldFault::not_among(field, name, &names())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dimension_is_known_by_its_name_alone() {
        assert_eq!(named("groupBy", "model").unwrap(), &MODEL);
        for name in ["models", "", "MODEL", "metadata"] {
            assert_eq!(named("groupBy", name).unwrap_err().status().as_u16(), 400, "{name}");
        }
    }
}
