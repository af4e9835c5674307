//! Versions of prompts and partials, compiled when their rows arrive: a run finds templates, never texts to parse.

use super::collection::Tracked;
use http::HeaderValue;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shared::model::{PartialVersion, PromptVersion};
use shared::prompt::{ParsedPartial, PromptBody, PromptParts, RequestSkeleton};
use std::fmt;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

/// What finds a version: its id, or its number among those of a prompt or partial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VersionKey {
    Id(Uuid),
    Number(Uuid, i32),
}

pub struct ReadyVersion {
    pub row: PromptVersion,
    pub body: PromptBody,
    /// For versions that only name variables.
    pub skeleton: Option<RequestSkeleton>,
    /// The provider that it names, for requests that name none.
    pub provider: HeaderValue,
}

impl ReadyVersion {
    pub(super) fn new(row: PromptVersion) -> anyhow::Result<Self> {
        let provider = HeaderValue::from_str(&row.virtual_key)?;
        let mut version = Self { body: PromptBody::parse(&row.template, row.is_raw)?, row, skeleton: None, provider };
        version.skeleton = RequestSkeleton::new(&version.parts());
        Ok(version)
    }

    pub fn parts(&self) -> PromptParts<'_> {
        PromptParts {
            body: &self.body,
            parameters: &self.row.parameters,
            model: self.row.model.as_deref(),
            functions: self.row.functions.as_ref(),
            tools: self.row.tools.as_ref(),
            tool_choice: self.row.tool_choice.as_ref(),
            declared: self.row.declared_variables.as_deref().unwrap_or_default(),
        }
    }
}

/// As its row: not what the template says.
impl fmt::Debug for ReadyVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row.fmt(f)
    }
}

impl Tracked for ReadyVersion {
    type Key = VersionKey;
    const TABLE: &'static str = "served_prompt_versions";
    const COLUMNS: &'static str = PromptVersion::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Self::new(PromptVersion::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.row.id
    }

    fn key(&self) -> VersionKey {
        VersionKey::Id(self.row.id)
    }

    fn other_keys(&self) -> Vec<VersionKey> {
        vec![VersionKey::Number(self.row.prompt_id, self.row.number)]
    }
}

impl Serialize for ReadyVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.row.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReadyVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(PromptVersion::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

pub struct ReadyPartial {
    pub row: PartialVersion,
    pub parsed: Arc<ParsedPartial>,
}

impl ReadyPartial {
    pub(super) fn new(row: PartialVersion) -> anyhow::Result<Self> {
        Ok(Self { parsed: Arc::new(ParsedPartial::parse(&row.template)?), row })
    }
}

impl fmt::Debug for ReadyPartial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row.fmt(f)
    }
}

impl Tracked for ReadyPartial {
    type Key = VersionKey;
    const TABLE: &'static str = "served_partial_versions";
    const COLUMNS: &'static str = PartialVersion::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Self::new(PartialVersion::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.row.id
    }

    fn key(&self) -> VersionKey {
        VersionKey::Id(self.row.id)
    }

    fn other_keys(&self) -> Vec<VersionKey> {
        vec![VersionKey::Number(self.row.partial_id, self.row.number)]
    }
}

impl Serialize for ReadyPartial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.row.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReadyPartial {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(PartialVersion::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
