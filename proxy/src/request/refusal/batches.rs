//! Why a batch that the gateway would run itself is not taken, or not given.

use super::{Refusal, RefusalCode as Code, RefusalKind as Kind};

impl Refusal {
    /// Also the answer for batches of other workspaces.
    pub fn batch_not_found(id: &str) -> Self {
        let message = format!("there is no batch `{id}` in this workspace");
        Self::new(404, Kind::NotFound, Code::NotFound, message).about("id")
    }

    /// Also the answer for files of other workspaces.
    pub fn input_file_not_found(id: &str) -> Self {
        let message = format!("there is no file `{id}` in this workspace");
        Self::new(404, Kind::NotFound, Code::NotFound, message).about("input_file_id")
    }

    /// Postgres does not answer.
    pub fn batches_unavailable() -> Self {
        let message = "the gateway's store of batches is not available";
        Self::new(503, Kind::Server, Code::ControlPlaneUnavailable, message).retry_in(1)
    }

    pub fn too_many_batches(most: i64) -> Self {
        let message = format!("the workspace has {most} batches that are not over yet: wait for one, or cancel one");
        Self::invalid(Code::InvalidParameter, message)
    }

    /// What a token says is stored with its batch.
    pub fn token_too_long_for_batch() -> Self {
        let message =
            "the limits and defaults of the token are too long to be stored with a batch: make it with an API key";
        Self::invalid(Code::InvalidParameter, message)
    }

    /// There is no master key to seal its options with.
    pub fn batch_not_sealed() -> Self {
        let message = "gateway_options hold a credential, and this gateway has no master key to keep one: use a saved \
             config or provider";
        Self::invalid(Code::InvalidParameter, message).about("gateway_options")
    }

    pub fn only_managed_is_immediate() -> Self {
        let message = "completion_window: immediate is for files that the gateway keeps (gwf-…): upload the file without a \
             provider";
        Self::invalid(Code::InvalidParameter, message).about("completion_window")
    }

    /// Of a row that was not asked yet.
    pub fn batch_cancelled() -> Self {
        Self::new(503, Kind::Server, Code::NotReady, "the batch of this row was cancelled").retry_in(1)
    }

    /// It is over.
    pub fn batch_without_output() -> Self {
        let message = "no row of the batch was answered: what became of them is in its errors and its error_file_id";
        Self::invalid(Code::InvalidParameter, message).about("id")
    }

    pub fn no_batch_output() -> Self {
        Self::invalid(Code::InvalidParameter, "the batch has no output yet").about("id")
    }
}
