//! Headers of an integration that an outside secret manager holds. They go to the integration's own host, and only if the
//! secret reference names it.

use crate::crud::Action;
use crate::http::ApiError;
use crate::resources::integrations::{Mapping, mapped_may_go_to, parse_mappings, resolved_mappings};
use serde_json::Value;
use shared::outbound::Origin;
use uuid::Uuid;

const TARGETS: [&str; 2] = ["configurations.custom_headers", "configurations.headers"];

/// What was sent as `secret_mappings`, with the ids of its references.
pub async fn checked(
    action: &Action<'_>,
    sent: Value,
    workspace: Option<Uuid>,
    url: &str,
) -> Result<Vec<Mapping>, ApiError> {
    let mappings = parse_mappings(sent, "configurations")?;
    for (n, mapping) in mappings.iter().enumerate() {
        let at = |field: &str| format!("secret_mappings[{n}].{field}");
        if !TARGETS.contains(&mapping.target_field.as_str()) {
            return Err(ApiError::field(at("target_field"), format!("must be one of {}", TARGETS.join(", "))));
        }
        if !mapping.is_json() {
            return Err(ApiError::field(at("value_format"), "must be json: an object of headers"));
        }
    }
    let mappings = resolved_mappings(action, mappings, workspace).await?;
    may_go_to(action, &mappings, url).await?;
    Ok(mappings)
}

pub async fn may_go_to(action: &Action<'_>, mappings: &[Mapping], url: &str) -> Result<(), ApiError> {
    let origins: Vec<Origin> = Origin::parse(url).into_iter().collect();
    mapped_may_go_to(action, mappings, &origins).await
}
