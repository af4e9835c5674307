//! What an explained request says in vain.

use super::Explainer;
use crate::catalog::choose_plan::ChosenPlan;
use crate::engine::ignored_headers::ignored;
use crate::identity::identify::Principal;
use crate::request::headers::GatewayHeaders;
use crate::routing::plan::ProviderSource;
use serde_json::{Value, json};

impl Explainer {
    /// What was ignored or changed in the config and the headers, and what the config names that is not there.
    pub(super) fn warnings(&self, found: &ChosenPlan, headers: &GatewayHeaders<'_>, caller: &Principal) -> Vec<Value> {
        let warnings = found.plan.warnings().map(|warnings| &*warnings.faults).unwrap_or_default();
        let mut warnings: Vec<Value> = warnings.iter().map(|fault| json!(fault)).collect();
        for (path, leaf) in found.plan.leaves_by_path() {
            if let ProviderSource::Stored(slug) = &leaf.source
                && self.snapshot.provider(caller.workspace.id, slug).is_none()
            {
                let message = format!("there is no provider `@{slug}` in this workspace");
                let path = path.strip_prefix("config.").unwrap_or("");
                warnings.push(json!({ "code": "AB01_UNKNOWN_PROVIDER", "path": path, "message": message }));
            }
        }
        let ignored = ignored(headers, found).into_iter();
        warnings
            .extend(ignored.map(|(name, why)| json!({ "code": "AB01_IGNORED_HEADER", "path": name, "message": why })));
        warnings
    }
}
