//! From `slug@label` to a version that can be rendered, with the partials that it names.

use crate::identity::identify::Principal;
use crate::refusal::Refusal;
use crate::snapshot::{NotFetched, ReadyPartial, ReadyVersion, Snapshot, VersionKey};
use http::HeaderValue;
use shared::model::Prompt;
use shared::prompt::{PartialSet, VersionName, split_reference};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// Partials inside partials; rendering refuses more as well.
const DEEPEST: usize = 10;
/// As many as one prompt may name, those inside others included.
const MOST_PARTIALS: usize = 100;

/// A version of a prompt that is run.
#[derive(Debug)]
pub struct PromptRun {
    pub prompt: Arc<Prompt>,
    pub version: Arc<ReadyVersion>,
    /// The provider that the version names, for a request that names none.
    pub provider: HeaderValue,
}

/// By what a caller stays with one of several versions: its user, else its trace.
#[derive(Debug, Clone, Copy)]
pub struct StickyKey<'k> {
    pub user: Option<&'k str>,
    pub trace: &'k str,
}

/// What is unknown, archived or another workspace's is not found.
pub async fn find(
    snapshot: &Snapshot,
    caller: &Principal,
    reference: &str,
    sticky: StickyKey<'_>,
) -> Result<PromptRun, Refusal> {
    let unknown = || Refusal::unknown_prompt(reference);
    let (name, version) = split_reference(reference);
    let workspace = &caller.workspace;
    let prompt = snapshot.prompt(workspace.organisation_id, workspace.id, name).ok_or_else(unknown)?;
    let key = match version.unwrap_or(VersionName::Default) {
        VersionName::Default => VersionKey::Id(prompt.version_id),
        VersionName::Latest => VersionKey::Id(prompt.latest_version_id),
        VersionName::Id(id) => VersionKey::Id(id),
        VersionName::Number(number) => numbered(prompt.id, number, prompt.latest_version).ok_or_else(unknown)?,
        VersionName::Label(label) => {
            let label = snapshot.prompt_label(&prompt, label).ok_or_else(unknown)?;
            VersionKey::Id(label.version_for(sticky.user.unwrap_or(sticky.trace)))
        }
    };
    let version = match snapshot.prompt_version(&prompt, key) {
        Some(version) => version,
        None => match snapshot.fetch_prompt_version(&prompt, key).await {
            Ok(version) => version,
            Err(NotFetched::Missing) => return Err(unknown()),
            Err(NotFetched::Away) => return Err(Refusal::control_plane_unavailable()),
        },
    };
    let provider = HeaderValue::from_str(&version.row.virtual_key).map_err(|_| Refusal::internal())?;
    Ok(PromptRun { prompt, version, provider })
}

/// No number between the first and the latest is left out, so that nobody is asked about one that does not exist.
fn numbered(owner: Uuid, number: i32, latest: i32) -> Option<VersionKey> {
    (1..=latest).contains(&number).then_some(VersionKey::Number(owner, number))
}

/// The partials of a version, level by level. What does not exist stays out, and rendering says so.
pub(super) async fn partials(snapshot: &Snapshot, run: &PromptRun) -> Result<PartialSet, Refusal> {
    let asked = run.version.body.asks();
    let (mut partials, mut known) = (PartialSet::default(), BTreeSet::new());
    if asked.partials.is_empty() {
        return Ok(partials);
    }
    for _ in 0..=DEEPEST {
        let missing = partials.missing(asked);
        let new: Vec<String> = missing.difference(&known).cloned().collect();
        if new.is_empty() {
            break;
        }
        if missing.len() > MOST_PARTIALS {
            return Err(Refusal::invalid_prompt(shared::prompt::RenderError::TooManyPartials));
        }
        known.extend(missing);
        for name in new {
            if let Some(partial) = partial(snapshot, &run.prompt, &name).await? {
                partials.add(name, partial.parsed.clone()).map_err(Refusal::invalid_prompt)?;
            }
        }
    }
    Ok(partials)
}

async fn partial(snapshot: &Snapshot, prompt: &Prompt, name: &str) -> Result<Option<Arc<ReadyPartial>>, Refusal> {
    let (slug, version) = split_reference(name);
    let Some(partial) = snapshot.partial(prompt.workspace_id, slug) else { return Ok(None) };
    let key = match version.unwrap_or(VersionName::Default) {
        VersionName::Default => Some(VersionKey::Id(partial.version_id)),
        VersionName::Latest => Some(VersionKey::Id(partial.latest_version_id)),
        VersionName::Number(number) => numbered(partial.id, number, partial.latest_version),
        VersionName::Id(_) | VersionName::Label(_) => None,
    };
    let Some(key) = key else { return Ok(None) };
    if let Some(held) = snapshot.partial_version(&partial, key) {
        return Ok(Some(held));
    }
    match snapshot.fetch_partial_version(&partial, key).await {
        Ok(version) => Ok(Some(version)),
        Err(NotFetched::Missing) => Ok(None),
        Err(NotFetched::Away) => Err(Refusal::control_plane_unavailable()),
    }
}
