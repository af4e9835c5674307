//! Why a file that the gateway would keep itself is not taken, or not given.

use super::{Refusal, RefusalCode as Code, RefusalKind as Kind};

impl Refusal {
    /// Also the answer for files of other workspaces.
    pub fn file_not_found(id: &str) -> Self {
        let message = format!("there is no file `{id}` in this workspace");
        Self::new(404, Kind::NotFound, Code::NotFound, message).about("id")
    }

    /// Postgres, or the store of the files, does not answer.
    pub fn files_unavailable() -> Self {
        let message = "the gateway's store of files is not available";
        Self::new(503, Kind::Server, Code::ControlPlaneUnavailable, message).retry_in(1)
    }

    pub fn file_too_large(limit: u64) -> Self {
        let message = format!("the file is larger than {limit} bytes, the most that one may have (FILES_MAX_BYTES)");
        Self::new(413, Kind::InvalidRequest, Code::BodyTooLarge, message).about("file")
    }

    pub fn file_quota() -> Self {
        let message = "the workspace has no room left for this file (FILES_WORKSPACE_BYTES): delete some first, or wait \
             for uploads that run";
        Self::invalid(Code::InvalidParameter, message).about("file")
    }

    pub fn upload_not_a_form() -> Self {
        let message = "an upload is a form: send content-type: multipart/form-data with the fields file and purpose";
        Self::invalid(Code::InvalidContentType, message).about("content-type")
    }

    pub fn upload_is_encoded() -> Self {
        let message = "an upload is read as it comes: send it without content-encoding";
        Self::new(415, Kind::InvalidRequest, Code::UnsupportedContentEncoding, message).about("content-encoding")
    }

    pub fn range_not_satisfiable() -> Self {
        Self::new(416, Kind::InvalidRequest, Code::InvalidHeader, "the file has no such bytes").about("range")
    }
}
