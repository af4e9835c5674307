//! A model that names no provider: which of the workspace's own offers it. Coding agents send the names that they know and
//! cannot be taught `@slug/model`. Only what the request could have named itself is found: providers and models that are
//! switched off, expired or not granted are as if they were not there.

use super::models::bundled_names;
use super::workspace_provider::{self, WorkspaceProvider};
use crate::snapshot::Snapshot;
use chrono::{DateTime, Utc};
use shared::cost::prices::listed_release;
use shared::model::{Provider, Workspace};
use shared::nearest::nearest;
use std::sync::Arc;

/// No model has a longer name.
const MAX_NAME: usize = 256;

/// Names that begin like the one that was sent, and so many of them, are compared with it.
const SAME_BEGINNING: usize = 3;
const MAX_COMPARED: usize = 512;

/// How well a provider's catalogue knows a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offer {
    Listed,
    /// As a release of a listed model.
    Release,
}

/// The first provider in the workspace's order that lists the model, else the first that lists a model of which it is a
/// release. Costs a look-up or two for each provider of the workspace.
pub fn provider_of(
    snapshot: &Snapshot,
    workspace: &Workspace,
    model: &str,
    now: DateTime<Utc>,
) -> Option<Arc<Provider>> {
    if model.is_empty() || model.len() > MAX_NAME {
        return None;
    }
    let mut of_release = None;
    for provider in snapshot.providers_in_order(workspace.id)?.iter() {
        let Ok(entry) = workspace_provider::find(snapshot, workspace, &provider.slug, now) else { continue };
        match offer(snapshot, &entry, model) {
            Some(Offer::Listed) => return Some(entry.provider),
            Some(Offer::Release) => of_release = of_release.or(Some(entry.provider)),
            None => {}
        }
    }
    of_release
}

fn offer(snapshot: &Snapshot, entry: &WorkspaceProvider, model: &str) -> Option<Offer> {
    let integration = &entry.integration;
    if let Some(own) = snapshot.integration_model(integration.id, model) {
        return own.enabled.then_some(Offer::Listed);
    }
    let names = bundled_names(&integration.ai_provider_id);
    let is_listed = |name: &str| names.binary_search_by(|listed| listed.as_str().cmp(name)).is_ok();
    let (base, offer) = match is_listed(model) {
        true => (model, Offer::Listed),
        false => (listed_release(model, is_listed)?, Offer::Release),
    };
    let is_allowed = |name: &str| entry.model(snapshot, name).is_ok();
    (is_allowed(model) && (base == model || is_allowed(base))).then_some(offer)
}

/// The provider and the model that were probably meant, for a refusal.
pub fn nearest_offered(
    snapshot: &Snapshot,
    workspace: &Workspace,
    model: &str,
    now: DateTime<Utc>,
) -> Option<(Arc<Provider>, String)> {
    let beginning = model.get(..SAME_BEGINNING)?;
    let is_alike = |name: &&str| name.get(..SAME_BEGINNING).is_some_and(|own| own.eq_ignore_ascii_case(beginning));
    let mut offered: Vec<(Arc<Provider>, String)> = Vec::new();
    for provider in snapshot.providers_in_order(workspace.id)?.iter() {
        let Ok(entry) = workspace_provider::find(snapshot, workspace, &provider.slug, now) else { continue };
        let own = snapshot.models_of(&entry.integration.id);
        let own = own.iter().flat_map(|list| list.iter()).filter(|one| one.enabled).map(|one| one.slug.as_str());
        let bundled = bundled_names(&entry.integration.ai_provider_id).iter().map(String::as_str);
        let alike = own.chain(bundled).filter(is_alike).filter(|name| entry.model(snapshot, name).is_ok());
        let room = MAX_COMPARED - offered.len();
        offered.extend(alike.take(room).map(|name| (entry.provider.clone(), name.to_owned())));
        if offered.len() >= MAX_COMPARED {
            break;
        }
    }
    let meant = nearest(model, offered.iter().map(|(_, name)| name.as_str()))?.to_owned();
    offered.into_iter().find(|(_, name)| *name == meant)
}
