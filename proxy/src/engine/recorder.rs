//! Opens the log of a request: from then on it is somebody's, and is noted however it ends.

use crate::context::Visit;
use crate::context::settle::Log;
use crate::identity::identify::Principal;
use crate::journal::logged_body::Rules;
use crate::journal::{Journal, UnloggedCall, UnloggedHooks};
use crate::limits::admission::Tariff;
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::snapshot::Snapshot;
use pingora_http::RequestHeader;
use std::sync::Arc;

pub struct Recorder {
    pub snapshot: Arc<Snapshot>,
    /// None when calls are not logged.
    pub journal: Option<Arc<Journal>>,
    /// Who runs hooks with `async` then.
    pub unlogged: Arc<UnloggedHooks>,
    /// How much of each body is kept beside a log; none when bodies are not kept.
    pub log_body: Option<usize>,
    /// What is known of models and their prices.
    pub tariff: Arc<Tariff>,
    /// Whether answers tell what they cost, where their tenant does not mind.
    pub tells_costs: bool,
}

impl Recorder {
    pub(crate) fn open_log(
        &self,
        caller: &Principal,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<(), Refusal> {
        let Some(journal) = &self.journal else {
            visit.observer.unlogged = Some(UnloggedCall::new(self.unlogged.clone()));
            return Ok(());
        };
        if journal.is_refusing() {
            return Err(Refusal::journal_full());
        }
        let rules = self.log_body.filter(|_| !self.is_metrics_only(caller));
        let rules = rules.map(|most| Rules { most, is_debug: headers.is_debug() });
        visit.observer.log = Some(Log::open(journal, caller, head, headers, rules));
        visit.observer.tariff = Some(self.tariff.clone());
        if self.tells_costs && self.may_tell_costs(caller) {
            visit.observer.tells_costs = true;
            visit.request.includes_cost = headers.includes_cost();
        }
        Ok(())
    }

    /// Whether its key, its workspace and its organisation let answers tell what they cost.
    fn may_tell_costs(&self, caller: &Principal) -> bool {
        !caller.key.defaults.as_ref().is_some_and(|defaults| defaults.hides_costs())
            && !caller.workspace.hides_costs
            && !self.snapshot.organisation_is(&caller.workspace.organisation_id, |whole| whole.hides_costs)
    }

    /// Whether its workspace or its organisation wants nothing kept of what is said.
    pub(super) fn is_metrics_only(&self, caller: &Principal) -> bool {
        caller.workspace.is_metrics_only
            || self.snapshot.organisation_is(&caller.workspace.organisation_id, |whole| whole.is_metrics_only)
    }
}
