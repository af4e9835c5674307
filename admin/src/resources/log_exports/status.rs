//! How far an export is.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportStatus {
    Draft,
    InProgress,
    Success,
    Failed,
    Stopped,
}

impl ExportStatus {
    /// In these nothing is under way and no file is there.
    pub const AT_REST: &[Self] = &[Self::Draft, Self::Failed, Self::Stopped];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::InProgress => "in_progress",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}
