//! A file as the API shows it: OpenAI's object. And what of a path names one.

use super::managed::{ManagedPath, SentId, page};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

/// Ids of files that the gateway keeps begin so; a provider's never do.
pub const PREFIX: &str = crate::request::batch_creation::MANAGED_FILE;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedFile {
    pub id: Uuid,
    pub filename: String,
    pub purpose: String,
    pub bytes: u64,
    pub part_bytes: u64,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
}

impl ManagedFile {
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "object": "file", "id": format!("{PREFIX}{}", self.id), "purpose": self.purpose, "filename": self.filename,
            "bytes": self.bytes, "created_at": self.created_at.timestamp(), "status": "processed", "status_details": null,
        });
        if let Some(expires_at) = self.expires_at {
            object["expires_at"] = expires_at.timestamp().into();
        }
        object
    }
}

pub fn list(files: &[ManagedFile], has_more: bool) -> Value {
    page(files.iter().map(ManagedFile::to_json).collect(), has_more)
}

pub fn deleted(id: Uuid) -> Value {
    json!({ "object": "file", "id": format!("{PREFIX}{id}"), "deleted": true })
}

/// What stands after `/files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePath {
    All,
    /// The id is a file's, or nobody's.
    One(SentId),
    Content(SentId),
    Other,
}

impl FilePath {
    pub fn parse(rest: &str) -> Self {
        match ManagedPath::parse(PREFIX, rest) {
            ManagedPath::All => Self::All,
            ManagedPath::One(id) => Self::One(id),
            ManagedPath::Below(id, "content") => Self::Content(id),
            ManagedPath::Below(..) | ManagedPath::Other => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_all_files_or_one_or_its_content() {
        let file = Uuid::nil();
        for (rest, expected) in [
            (String::new(), FilePath::All),
            (format!("/gwf-{file}"), FilePath::One(Ok(file))),
            (format!("/gwf-{file}/content"), FilePath::Content(Ok(file))),
            ("/file-1".into(), FilePath::One(Err("file-1".into()))),
            (format!("/gwf-{file}/other"), FilePath::Other),
            (format!("/gwf-{file}/content/x"), FilePath::Other),
        ] {
            assert_eq!(FilePath::parse(&rest), expected, "{rest}");
        }
    }
}
