//! The snapshot as a directory of guardrails.

use super::{DefaultHooks, GuardrailDirectory, SavedContent, SavedGuardrail};
use crate::identity::identify::Principal;
use crate::snapshot::Snapshot;
use shared::model::Guardrail;
use shared::telemetry::{Brief, LogLimit};
use std::sync::Arc;
use uuid::Uuid;

impl GuardrailDirectory for Snapshot {
    fn find(&self, caller: &Principal, name: &str, version: Option<&str>) -> Option<SavedGuardrail> {
        let workspace = &caller.workspace;
        let guardrail = self.guardrail(workspace.organisation_id, workspace.id, name)?;
        let Some(wanted) = version else { return Some(current(guardrail)) };
        let pinned = wanted.parse::<Uuid>().ok().and_then(|wanted| self.guardrail_version(&guardrail, wanted));
        match pinned {
            Some(version) => Some(SavedGuardrail {
                slug: guardrail.slug.clone(),
                version: version.id,
                content: SavedContent::Pinned(version),
            }),
            // Its current one, rather than none.
            None => {
                static UNKNOWN: LogLimit = LogLimit::new();
                if let Some(skipped) = UNKNOWN.pass() {
                    let (workspace, guardrail, version) = (workspace.id.uuid(), Brief(name), Brief(wanted));
                    tracing::warn!(%workspace, %guardrail, %version, skipped, "a config pins a version that does not exist");
                }
                Some(current(guardrail))
            }
        }
    }

    fn defaults_at(&self, caller: &Principal) -> Option<u64> {
        self.has_default_guardrails(&caller.workspace).then(|| self.default_guardrail_changes())
    }

    fn defaults(&self, caller: &Principal) -> Option<DefaultHooks> {
        let found = self.default_guardrails(&caller.workspace)?;
        for name in &found.missing {
            static UNKNOWN: LogLimit = LogLimit::new();
            if let Some(skipped) = UNKNOWN.pass() {
                let (workspace, guardrail) = (caller.workspace.id.uuid(), Brief(name));
                tracing::warn!(%workspace, %guardrail, skipped, "a default names a guardrail that does not exist");
            }
        }
        let all = |list: Vec<Arc<Guardrail>>| list.into_iter().map(current).collect();
        Some(DefaultHooks { input: all(found.input), output: all(found.output) })
    }
}

fn current(guardrail: Arc<Guardrail>) -> SavedGuardrail {
    SavedGuardrail {
        slug: guardrail.slug.clone(),
        version: guardrail.version_id,
        content: SavedContent::Current(guardrail),
    }
}
