//! A file as the API shows it: OpenAI's object. And what of a path names one.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

/// Ids of files that the gateway keeps begin so; a provider's never do.
pub const PREFIX: &str = "gwf-";

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
    let data: Vec<Value> = files.iter().map(ManagedFile::to_json).collect();
    let id = |file: Option<&ManagedFile>| file.map(|file| format!("{PREFIX}{}", file.id));
    json!({ "object": "list", "first_id": id(files.first()), "last_id": id(files.last()), "data": data,
        "has_more": has_more })
}

pub fn deleted(id: Uuid) -> Value {
    json!({ "object": "file", "id": format!("{PREFIX}{id}"), "deleted": true })
}

/// What stands after `/files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePath {
    All,
    /// The id is a file's, or nobody's.
    One(Result<Uuid, String>),
    Content(Result<Uuid, String>),
    Other,
}

impl FilePath {
    pub fn parse(rest: &str) -> Self {
        let Some(rest) = rest.strip_prefix('/') else {
            return if rest.is_empty() { Self::All } else { Self::Other };
        };
        match rest.split_once('/') {
            None => Self::One(id(rest)),
            Some((file, "content")) => Self::Content(id(file)),
            Some(_) => Self::Other,
        }
    }

    /// Whether it names a file of ours, whatever else the request says.
    pub fn is_ours(rest: &str) -> bool {
        rest.strip_prefix('/').is_some_and(|rest| rest.starts_with(PREFIX))
    }
}

/// What is no id is told of as it was sent, up to a length.
fn id(text: &str) -> Result<Uuid, String> {
    let found = text.strip_prefix(PREFIX).filter(|id| id.len() == 36).and_then(|id| Uuid::try_parse(id).ok());
    found.ok_or_else(|| text.chars().take(64).collect())
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
            (format!("/gwf-{}", file.simple()), FilePath::One(Err(format!("gwf-{}", file.simple())))),
            ("/file-1".into(), FilePath::One(Err("file-1".into()))),
            (format!("/gwf-{file}/other"), FilePath::Other),
            (format!("/gwf-{file}/content/x"), FilePath::Other),
        ] {
            assert_eq!(FilePath::parse(&rest), expected, "{rest}");
        }
        assert!(FilePath::is_ours("/gwf-x/content") && !FilePath::is_ours("/file-1") && !FilePath::is_ours(""));
    }
}
