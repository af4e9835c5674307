//! What is looked up was paid when it was made: the usage that a stored response repeats is no new cost. One that was made in
//! the background is the exception, since nothing was reported when it was asked for.

use super::Log;
use super::attempt::Attempt;
use super::paid_route::PaidRoute;
use crate::request::path_spelling::canonical;

impl Log {
    /// Takes from an answer what was counted before.
    pub(super) fn forget_counted_usage(&self, attempt: &mut Attempt) {
        if !self.method.is_safe() || attempt.found.usage.is_empty() {
            return;
        }
        let path = canonical(self.uri.path());
        let Some(row) = &attempt.row else { return };
        if PaidRoute::find(&self.method, &path, row) != PaidRoute::Free {
            return;
        }
        // Providers stream again only what they make in the background.
        let is_late_report = attempt.is_stream || attempt.found.is_background;
        let (responses, tenant) = (self.journal.background_responses(), self.caller.tenant());
        if !is_late_report || !responses.is_first_report(tenant, &attempt.ai_org, &path) {
            attempt.found.usage.clear();
            attempt.is_counted_before = true;
        }
    }
}
