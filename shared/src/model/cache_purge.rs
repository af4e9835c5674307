//! A purge of kept answers: those that were stored before it and carry its mark count no more, wherever they are kept.
//! Nothing is deleted by it, so a purge costs one row and holds on every replica as soon as the row is there.

use super::id::{OrganisationId, WorkspaceId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;
use uuid::Uuid;

/// A digest of a name: of a namespace or a person, which nobody has to read here.
pub type PurgeTag = [u8; 16];

/// What a purge concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PurgeTarget {
    All,
    Namespace(PurgeTag),
    Config(Uuid),
    User(PurgeTag),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CachePurge {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    /// None for all workspaces of the organisation.
    pub workspace_id: Option<WorkspaceId>,
    pub target: PurgeTarget,
    pub purged_at: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum BadPurge {
    #[error("`{0}` is no kind of purge")]
    Kind(String),
    #[error("the tag of a purge must be 16 bytes")]
    Tag,
    #[error(transparent)]
    Row(#[from] tokio_postgres::Error),
}

/// The mark of a name.
pub fn purge_tag(name: &str) -> PurgeTag {
    let digest = Sha256::digest(name);
    let mut tag = [0; 16];
    tag.copy_from_slice(&digest[..16]);
    tag
}

impl PurgeTarget {
    /// As the table names it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Namespace(_) => "namespace",
            Self::Config(_) => "config",
            Self::User(_) => "user",
        }
    }

    /// As the table stores it.
    pub fn tag(&self) -> &[u8] {
        match self {
            Self::All => &[],
            Self::Namespace(tag) | Self::User(tag) => tag,
            Self::Config(id) => id.as_bytes(),
        }
    }

    fn from_parts(kind: &str, tag: &[u8]) -> Result<Self, BadPurge> {
        let bytes = || PurgeTag::try_from(tag).map_err(|_| BadPurge::Tag);
        match kind {
            "all" => Ok(Self::All),
            "namespace" => Ok(Self::Namespace(bytes()?)),
            "config" => Ok(Self::Config(Uuid::from_bytes(bytes()?))),
            "user" => Ok(Self::User(bytes()?)),
            other => Err(BadPurge::Kind(other.to_owned())),
        }
    }
}

impl CachePurge {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, kind, tag, purged_at";

    pub fn from_row(row: &Row) -> Result<Self, BadPurge> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            target: PurgeTarget::from_parts(row.try_get("kind")?, row.try_get("tag")?)?,
            purged_at: row.try_get("purged_at")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_back_from_its_kind_and_tag() {
        let tag = purge_tag("team-a");
        for target in [
            PurgeTarget::All,
            PurgeTarget::Namespace(tag),
            PurgeTarget::Config(Uuid::from_u128(7)),
            PurgeTarget::User(tag),
        ] {
            assert_eq!(PurgeTarget::from_parts(target.kind(), target.tag()).unwrap(), target);
            let text = serde_json::to_string(&target).unwrap();
            assert_eq!(serde_json::from_str::<PurgeTarget>(&text).unwrap(), target, "{text}");
        }
        assert!(PurgeTarget::from_parts("user", &[1; 15]).is_err());
        assert!(PurgeTarget::from_parts("everything", &[]).is_err());
    }

    /// What proxies store and what admin purges must be the same mark.
    #[test]
    fn the_mark_of_a_name_is_the_beginning_of_its_sha_256() {
        assert_eq!(hex::encode(purge_tag("ada")), "fdee430d40bd57deeac186cd9790033d");
        assert_ne!(purge_tag("ada"), purge_tag("Ada"));
    }
}
