//! Which config a request follows, and the metadata that the config and its policies may ask about.

use super::ignored_headers::tell_ignored;
use crate::catalog::choose_plan::{ChosenPlan, find};
use crate::context::Visit;
use crate::identity::agents;
use crate::identity::identify::Principal;
use crate::identity::metadata::{MetadataHeaders, add_user, metadata};
use crate::request::body::Fields;
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::routing::inline_configs::InlineConfigs;
use crate::routing::plan::Plan;
use crate::snapshot::Snapshot;
use http::HeaderMap;
use serde_json::{Map, Value};
use shared::providers::Family;
use std::sync::Arc;

pub struct Planner {
    pub snapshot: Arc<Snapshot>,
    pub inline: InlineConfigs,
    pub metadata_headers: MetadataHeaders,
}

impl Planner {
    pub(crate) fn metadata(
        &self,
        headers: &GatewayHeaders<'_>,
        head: &HeaderMap,
        caller: &Principal,
    ) -> Result<Map<String, Value>, Refusal> {
        metadata(headers.metadata, head, caller, &self.metadata_headers)
    }

    /// What a body of this family says of itself joins what nobody has said before.
    pub(crate) fn add_from_body(&self, metadata: &mut Map<String, Value>, family: Family, fields: &Fields<'_>) {
        add_user(metadata, fields);
        if self.metadata_headers.agents && matches!(family, Family::Messages | Family::CountTokens) {
            agents::add_from_message(metadata, fields);
        }
    }

    pub(crate) fn find(&self, headers: &GatewayHeaders<'_>, caller: &Principal) -> Result<ChosenPlan, Refusal> {
        find(headers, caller, &self.snapshot, &self.inline)
    }

    /// From here on the request follows it. What the request says in vain is known now.
    pub(crate) fn follow(
        &self,
        found: ChosenPlan,
        headers: &GatewayHeaders<'_>,
        metadata: &Map<String, Value>,
        visit: &mut Visit,
    ) -> Arc<Plan> {
        if let Some(log) = &mut visit.observer.log {
            log.planned(&found, metadata);
        }
        visit.routing.warnings = found.plan.warnings().map(|warnings| warnings.header.clone());
        tell_ignored(headers, &found, visit);
        visit.routing.config = found.saved;
        found.plan
    }
}
