//! The call for a vector, from its start on. It is paid for also when nobody waits for its answer any more: because the wait is
//! over, or because the client has left and the search is dropped. So what is known of it stands outside of the search.

use super::embedder::EmbeddingCall;
use parking_lot::Mutex;
use std::time::Instant;

#[derive(Debug, Default)]
pub struct PaidCall(Mutex<CallState>);

#[derive(Debug, Default)]
enum CallState {
    #[default]
    NotMade,
    UnderWay(Instant),
    Over(EmbeddingCall),
}

impl PaidCall {
    pub(super) fn begin(&self) {
        *self.0.lock() = CallState::UnderWay(Instant::now());
    }

    /// With what was answered, if anything was.
    pub(super) fn end(&self, call: Option<EmbeddingCall>) {
        *self.0.lock() = call.map_or(CallState::NotMade, CallState::Over);
    }

    /// The call that was made, if one was. One that is still under way is cut.
    pub fn into_call(self) -> Option<EmbeddingCall> {
        match self.0.into_inner() {
            CallState::NotMade => None,
            CallState::UnderWay(began) => Some(EmbeddingCall::cut_after(began.elapsed())),
            CallState::Over(call) => Some(call),
        }
    }
}
