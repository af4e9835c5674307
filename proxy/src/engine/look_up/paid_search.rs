//! A search for questions in other words asks an embedder, which is paid: the budgets of whoever asks are asked first, and have
//! what it cost afterwards. Rates are not asked, and nothing here fails a request: without a budget there is no search.

use crate::cache::Semantic;
use crate::cache::semantic::{EmbeddingCall, Question};
use crate::cache::store::now_ms;
use crate::context::Visit;
use crate::context::settle::OwnCallRecord;
use crate::engine::{Engine, EngineRequest};
use crate::limits::admission::amounts::Item;
use crate::limits::admission::{ApplicableLimit, Expected};
use crate::limits::{LimitKind, Reservation, Unit};
use crate::request::request_id;
use shared::cost::{ReportedUsage, Usage};
use shared::providers::Family;
use std::time::SystemTime;
use uuid::Uuid;

/// About how many bytes a token has.
const BYTES_PER_TOKEN: u64 = 4;

/// What budgets gave for one search. Dropped, it is given back.
pub(super) struct SearchPromise {
    id: Uuid,
    reserved: Option<Reservation>,
}

impl Engine {
    /// None where a budget is used up, or a strict one cannot be sure of the price.
    pub(super) async fn admit_search(
        &self,
        visit: &mut Visit,
        request: &EngineRequest,
        semantic: &Semantic,
        question: &Question,
    ) -> Option<SearchPromise> {
        let id = request_id::new(SystemTime::now());
        let free = Some(SearchPromise { id, reserved: None });
        let Some((service, model)) = semantic.billed_as() else { return free };
        if semantic.is_paid_by_operator() || semantic.is_resting(now_ms()) {
            return free;
        }
        // Policies about endpoints see what the log says of it.
        let wanted = self.admitter.wanted(visit, &request.caller, &request.metadata, Some(Family::Embed));
        let budgets: Vec<ApplicableLimit> = wanted.iter().filter(|one| is_budget_of_usage(one)).cloned().collect();
        if budgets.is_empty() {
            return free;
        }
        let item = Item { service, requested: Some(model), ..Item::default() };
        let reserved = self.admitter.reserve_own_call(&budgets, &expected(&question.text), &item).await.ok()?;
        visit.promises_own_call(id, &reserved).then_some(SearchPromise { id, reserved: Some(reserved) })
    }

    /// Notes the call that a search made, if it made one.
    pub(super) fn settle_search(
        &self,
        visit: &mut Visit,
        semantic: &Semantic,
        question: &Question,
        promise: SearchPromise,
        call: Option<EmbeddingCall>,
    ) {
        let SearchPromise { id, reserved } = promise;
        // What was promised is taken back by a record, also where nobody was asked.
        let is_promised = reserved.as_ref().is_some_and(|reserved| reserved.promises().next().is_some());
        let unanswered = || EmbeddingCall { status: 503, usage: None, millis: 0 };
        let call = call.or_else(|| is_promised.then(unanswered));
        let (Some(call), Some((provider, model))) = (call, semantic.billed_as()) else { return };
        let text = question.text.as_str();
        let estimate = call.needs_estimate().then(|| (expected(text).input, text));
        visit.notes_own_call(&OwnCallRecord {
            id,
            purpose: "semantic_cache",
            provider,
            model,
            status: call.status,
            usage: call.usage.as_deref(),
            estimate,
            millis: call.millis,
            is_paid_by_operator: semantic.is_paid_by_operator(),
            reserved: reserved.as_ref(),
        });
        if let Some(reserved) = reserved {
            let reported = ReportedUsage::from_pieces(call.usage.as_deref()).and_then(|report| report.usage);
            let usage = Usage::known(reported, estimate.map(|(tokens, _)| (tokens, 0)));
            let item = Item { service: provider, requested: Some(model), ..Item::default() };
            reserved.settle(self.admitter.tariff.spent(&usage, &item));
        }
    }
}

fn is_budget_of_usage(one: &ApplicableLimit) -> bool {
    matches!(one.limit.kind, LimitKind::Budget { .. }) && one.limit.counter.unit() != Unit::Requests
}

/// A token is at least a byte, and a vector is no text.
fn expected(text: &str) -> Expected {
    /// What a model adds at both ends.
    const ENDS: u64 = 8;
    let bytes = text.len() as u64;
    let input = bytes.div_ceil(BYTES_PER_TOKEN);
    Expected { input, output: 0, most_input: bytes + ENDS, most_output: 0, is_bounded: true }
}
