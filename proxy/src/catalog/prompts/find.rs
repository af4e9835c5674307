//! From `slug@label` to a version that can be rendered, with the partials that it names.

use crate::identity::identify::Principal;
use crate::request::refusal::Refusal;
use crate::snapshot::{NotFetched, ReadyPartial, ReadyVersion, Snapshot, VersionKey};
use shared::model::{Prompt, PromptLabel};
use shared::prompt::{PartialSet, VersionName, split, split_reference};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// Partials inside partials; rendering refuses more as well.
const MAX_DEPTH: usize = 10;
/// As many as one prompt may name, those inside others included.
const MAX_PARTIALS: usize = 100;

/// A version of a prompt that is run.
#[derive(Debug)]
pub struct PromptRun {
    pub prompt: Arc<Prompt>,
    pub version: Arc<ReadyVersion>,
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
            let points = snapshot.prompt_label(&prompt, label).ok_or_else(unknown)?;
            VersionKey::Id(choose_version(&points, label, sticky))
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
    Ok(PromptRun { prompt, version })
}

/// Which version a label of this name means for a call: of several, the one that its user or its trace always meets.
fn choose_version(label: &PromptLabel, name: &str, sticky: StickyKey<'_>) -> Uuid {
    let Some(split) = &label.split else { return label.version_id };
    let who = sticky.user.filter(|user| !user.is_empty()).unwrap_or(sticky.trace);
    let weights: Vec<(i32, u32)> = split.iter().map(|one| (one.version, one.weight)).collect();
    let chosen = split::choose(&weights, &split::sticky_key(label.prompt_id, name, who));
    split.iter().find(|one| Some(one.version) == chosen).map_or(label.version_id, |one| one.version_id)
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
    for _ in 0..=MAX_DEPTH {
        let missing = partials.missing(asked);
        let new: Vec<String> = missing.difference(&known).cloned().collect();
        if new.is_empty() {
            break;
        }
        if missing.len() > MAX_PARTIALS {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::HashMap;

    fn label(split: Value) -> PromptLabel {
        let id = |n: u128| Uuid::from_u128(n);
        let row = json!({
            "id": id(1), "organisation_id": id(2), "prompt_id": id(3), "label_id": id(4), "version_id": id(90), "split": split,
        });
        serde_json::from_value(row).unwrap()
    }

    fn key<'k>(user: Option<&'k str>, trace: &'k str) -> StickyKey<'k> {
        StickyKey { user, trace }
    }

    #[test]
    fn a_label_means_one_version_and_of_several_the_one_that_its_user_always_meets() {
        assert_eq!(choose_version(&label(Value::Null), "staging", key(None, "t")), Uuid::from_u128(90));
        let version =
            |n: u128, weight: u32| json!({ "version_id": Uuid::from_u128(n), "version": n, "weight": weight });
        let split = label(json!([version(90, 3), version(10, 1)]));
        let mut met: HashMap<Uuid, u32> = HashMap::new();
        for user in 0..1000 {
            let user = format!("user-{user}");
            let chosen = choose_version(&split, "staging", key(Some(&user), "t"));
            assert_eq!(chosen, choose_version(&split, "staging", key(Some(&user), "other")), "the trace is not asked");
            assert_eq!(chosen, choose_version(&split, "staging", key(Some(""), &user)), "nobody is no user");
            *met.entry(chosen).or_default() += 1;
        }
        let most = met[&Uuid::from_u128(90)];
        assert!((650..850).contains(&most) && met.len() == 2, "{met:?}");
    }
}
