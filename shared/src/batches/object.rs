//! The batch object as clients see it (spec 2.2): statuses, the time of each, counts and errors. Times are seconds since
//! 1970.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchStatus {
    Validating,
    Failed,
    InProgress,
    Finalizing,
    Completed,
    Expired,
    Cancelling,
    Cancelled,
}

impl BatchStatus {
    pub const ALL: [Self; 8] = [
        Self::Validating,
        Self::Failed,
        Self::InProgress,
        Self::Finalizing,
        Self::Completed,
        Self::Expired,
        Self::Cancelling,
        Self::Cancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Failed => "failed",
            Self::InProgress => "in_progress",
            Self::Finalizing => "finalizing",
            Self::Completed => "completed",
            Self::Expired => "expired",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Nothing comes after it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Failed | Self::Completed | Self::Expired | Self::Cancelled)
    }

    /// Whether a batch may go from here to there. A batch whose time is over still writes what it has.
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Validating => matches!(next, Self::Failed | Self::InProgress | Self::Cancelling | Self::Expired),
            Self::InProgress => matches!(next, Self::Failed | Self::Finalizing | Self::Cancelling | Self::Expired),
            Self::Finalizing => matches!(next, Self::Failed | Self::Completed | Self::Cancelling | Self::Expired),
            Self::Cancelling => matches!(next, Self::Cancelled | Self::Failed),
            Self::Failed | Self::Completed | Self::Expired | Self::Cancelled => false,
        }
    }
}

/// One thing that is wrong with a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchError {
    pub code: String,
    pub message: String,
    pub param: Option<String>,
    pub line: Option<u64>,
}

impl BatchError {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), param: None, line: None }
    }

    #[must_use]
    pub fn about(mut self, param: &str) -> Self {
        self.param = Some(param.into());
        self
    }

    #[must_use]
    pub fn at(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    pub total: u64,
    pub completed: u64,
    pub failed: u64,
}

/// When a batch came to each of its statuses; `expires_at` is when its window ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusTimes {
    pub in_progress_at: Option<i64>,
    pub expires_at: Option<i64>,
    pub finalizing_at: Option<i64>,
    pub completed_at: Option<i64>,
    pub failed_at: Option<i64>,
    pub expired_at: Option<i64>,
    pub cancelling_at: Option<i64>,
    pub cancelled_at: Option<i64>,
}

impl StatusTimes {
    const fn of(&mut self, status: BatchStatus) -> Option<&mut Option<i64>> {
        Some(match status {
            BatchStatus::Validating => return None,
            BatchStatus::Failed => &mut self.failed_at,
            BatchStatus::InProgress => &mut self.in_progress_at,
            BatchStatus::Finalizing => &mut self.finalizing_at,
            BatchStatus::Completed => &mut self.completed_at,
            BatchStatus::Expired => &mut self.expired_at,
            BatchStatus::Cancelling => &mut self.cancelling_at,
            BatchStatus::Cancelled => &mut self.cancelled_at,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    pub id: String,
    pub endpoint: String,
    pub input_file_id: String,
    pub completion_window: String,
    pub status: BatchStatus,
    pub created_at: i64,
    pub errors: Vec<BatchError>,
    pub output_file_id: Option<String>,
    pub error_file_id: Option<String>,
    #[serde(flatten)]
    pub times: StatusTimes,
    pub request_counts: RequestCounts,
    pub metadata: Option<Map<String, Value>>,
}

impl Batch {
    /// False, and nothing happens, when a batch cannot go there from where it is.
    pub fn become_status(&mut self, next: BatchStatus, now: i64) -> bool {
        if !self.status.may_become(next) {
            return false;
        }
        self.status = next;
        if let Some(time) = self.times.of(next) {
            *time = Some(now);
        }
        true
    }

    pub fn to_json(&self) -> Value {
        let mut object = serde_json::to_value(self).unwrap_or_default();
        object["object"] = "batch".into();
        if self.errors.is_empty() {
            object["errors"] = Value::Null;
        } else {
            object["errors"] = serde_json::json!({ "object": "list", "data": self.errors });
        }
        object
    }
}
