//! Prompts, partials and labels: how runs find them. What belongs to another workspace is not found, as if it did not exist.
//!
//! Versions that can be asked for without naming one are followed like any row; the others are fetched when somebody names
//! them (`unheld_versions`).

use super::Snapshot;
use super::collection::Tracked;
use super::ready_version::{ReadyPartial, ReadyVersion, VersionKey};
use super::unheld_versions::{NotFetched, VersionPlace};
use shared::model::id::{OrganisationId, WorkspaceId};
use shared::model::{Label, Partial, Prompt, PromptLabel, Status};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PromptKey {
    Id(Uuid),
    Slug(OrganisationId, String),
}

impl Tracked for Prompt {
    type Key = PromptKey;
    const TABLE: &'static str = "prompts";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> PromptKey {
        PromptKey::Id(self.id)
    }

    fn other_keys(&self) -> Vec<PromptKey> {
        vec![PromptKey::Slug(self.organisation_id, self.slug.clone())]
    }
}

/// A prompt and a label on one of its versions.
impl Tracked for PromptLabel {
    type Key = (Uuid, Uuid);
    const TABLE: &'static str = "prompt_version_labels";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.prompt_id, self.label_id)
    }
}

/// A label by its name, in a workspace or for a whole organisation. An archived one has given its name free.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LabelKey {
    Named(OrganisationId, Option<WorkspaceId>, String),
    Archived(Uuid),
}

impl Tracked for Label {
    type Key = LabelKey;
    const TABLE: &'static str = "labels";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> LabelKey {
        match self.status {
            Status::Active => LabelKey::Named(self.organisation_id, self.workspace_id, self.name.clone()),
            Status::Archived => LabelKey::Archived(self.id),
        }
    }
}

/// Templates name partials of their own workspace by slug.
impl Tracked for Partial {
    type Key = (WorkspaceId, String);
    const TABLE: &'static str = "prompt_partials";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.workspace_id, self.slug.clone())
    }
}

impl Snapshot {
    /// An active prompt of this workspace, by id or slug.
    pub fn prompt(&self, organisation: OrganisationId, workspace: WorkspaceId, name: &str) -> Option<Arc<Prompt>> {
        let by_id = Uuid::try_parse(name).ok().and_then(|id| self.prompts.find(&PromptKey::Id(id)));
        let by_slug = || self.prompts.find(&PromptKey::Slug(organisation, name.to_owned()));
        let is_own = |prompt: &Arc<Prompt>| {
            prompt.is_active() && prompt.workspace_id == workspace && prompt.organisation_id == organisation
        };
        by_id.or_else(by_slug).filter(is_own)
    }

    /// Where a label of this name points to at a prompt. One of the workspace wins over one of the organisation.
    pub fn prompt_label(&self, prompt: &Prompt, name: &str) -> Option<Arc<PromptLabel>> {
        [Some(prompt.workspace_id), None].into_iter().find_map(|workspace| {
            let key = LabelKey::Named(prompt.organisation_id, workspace, name.to_owned());
            self.prompt_labels.find(&(prompt.id, self.labels.find(&key)?.id))
        })
    }

    /// A version of this prompt and of no other, if it is in memory.
    pub fn prompt_version(&self, prompt: &Prompt, key: VersionKey) -> Option<Arc<ReadyVersion>> {
        let held = self.prompt_versions.find(&key).filter(|version| version.row.prompt_id == prompt.id);
        held.or_else(|| self.unheld.prompts.find(&place_of(prompt, key)))
    }

    /// The same from Postgres, by the follower.
    pub async fn fetch_prompt_version(
        &self,
        prompt: &Prompt,
        key: VersionKey,
    ) -> Result<Arc<ReadyVersion>, NotFetched> {
        self.check_connected()?;
        self.unheld.prompts.fetch(place_of(prompt, key)).await
    }

    /// An active partial of this workspace.
    pub fn partial(&self, workspace: WorkspaceId, slug: &str) -> Option<Arc<Partial>> {
        self.partials.find(&(workspace, slug.to_owned())).filter(|partial| partial.is_active())
    }

    pub fn partial_version(&self, partial: &Partial, key: VersionKey) -> Option<Arc<ReadyPartial>> {
        let held = self.partial_versions.find(&key).filter(|version| version.row.partial_id == partial.id);
        held.or_else(|| self.unheld.partials.find(&place_of_partial(partial, key)))
    }

    pub async fn fetch_partial_version(
        &self,
        partial: &Partial,
        key: VersionKey,
    ) -> Result<Arc<ReadyPartial>, NotFetched> {
        self.check_connected()?;
        self.unheld.partials.fetch(place_of_partial(partial, key)).await
    }

    fn check_connected(&self) -> Result<(), NotFetched> {
        if self.connected.load(Ordering::Relaxed) { Ok(()) } else { Err(NotFetched::Away) }
    }
}

fn place_of(prompt: &Prompt, key: VersionKey) -> VersionPlace {
    VersionPlace {
        organisation: prompt.organisation_id,
        workspace: prompt.workspace_id,
        owner: prompt.id,
        key,
        revision: prompt.revision.clone(),
    }
}

/// A version of a partial never changes.
fn place_of_partial(partial: &Partial, key: VersionKey) -> VersionPlace {
    VersionPlace {
        organisation: partial.organisation_id,
        workspace: partial.workspace_id,
        owner: partial.id,
        key,
        revision: String::new(),
    }
}

#[cfg(test)]
mod tests;
