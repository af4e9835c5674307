//! Policies: limits for the requests that match their conditions, counted apart for each group. Those on rates refuse
//! until the window ends, those on usage until their budget is reset or raised. What was used stands in counters that
//! the proxies settle; nothing of it is stored here.

mod docs;
mod entities;
mod matched;
mod rates;
mod reset;
mod rule;
mod usage;

pub use usage::schedule_of;

use crate::crud::{self, Routes};
use crate::http::ApiError;
use crate::identity::{Call, tenancy};
use shared::db::table::Filter;
use shared::routes::Method;

const STATUSES: [&str; 2] = ["active", "archived"];

pub fn routes() -> Routes {
    use rates::RatePolicy;
    use usage::UsagePolicy;
    Routes::default()
        .get("/policies/rate-limits", crud::list::<RatePolicy>)
        .post("/policies/rate-limits", crud::create::<RatePolicy>)
        .get("/policies/rate-limits/{id}", rates::read_policy)
        .put("/policies/rate-limits/{id}", crud::update::<RatePolicy>)
        .delete("/policies/rate-limits/{id}", crud::delete::<RatePolicy>)
        .get("/policies/rate-limits/{id}/entities", rates::entities)
        .get("/policies/usage-limits", crud::list::<UsagePolicy>)
        .post("/policies/usage-limits", crud::create::<UsagePolicy>)
        .get("/policies/usage-limits/{id}", usage::read_policy)
        .put("/policies/usage-limits/{id}", crud::update::<UsagePolicy>)
        .delete("/policies/usage-limits/{id}", crud::delete::<UsagePolicy>)
        .get("/policies/usage-limits/{id}/entities", usage::entities)
        .put("/policies/usage-limits/{id}/entities/{entityId}/reset", reset::by_path)
        .post("/policies/usage-limits/{id}/entities/reset", reset::by_body)
        .describe(docs::rates())
        .describe(docs::usage())
}

/// Which statuses a query asks for: the active ones, unless it says otherwise.
fn statuses(call: &Call) -> Result<Vec<String>, ApiError> {
    let asked = call.query().choices("status", &STATUSES)?;
    Ok(if asked.is_empty() { vec!["active".into()] } else { asked })
}

/// A policy is read by its status and changed whatever its status is, so that it can be brought back.
fn named(call: &Call, name: &str) -> Result<Filter, ApiError> {
    if tenancy::id(name).is_none() {
        return Err(ApiError::field("id", "must be a UUID"));
    }
    let operation = call.origin.operation;
    let is_policy = operation.path.ends_with('}');
    Ok(match operation.method {
        Method::Get if is_policy => Filter::default().one_of("status", statuses(call)?),
        Method::Put if is_policy => Filter::default().one_of("status", STATUSES.map(str::to_owned).to_vec()),
        _ => Filter::default(),
    })
}

/// Nobody makes policies for others.
fn own_organisation(call: &Call, sent: Option<uuid::Uuid>) -> Result<(), ApiError> {
    if sent.is_some_and(|id| id != call.caller.organisation_id()) {
        return Err(ApiError::field("organisation_id", "must be the caller's organisation"));
    }
    Ok(())
}
