//! What a row of a provider's batch cost: a line in the log like any call's, priced as a batch, and charged to the budgets that
//! apply. Rates do not: nobody was asked row by row. A row has the same id in the log however often its step is done.
//!
//! Budgets are asked before anything is uploaded; one that is used up holds the batch back, and a strict one refuses it: nobody
//! can say before what the rows of a provider's batch will cost together. What is spent beyond a budget that runs out meanwhile
//! is charged to it all the same.

use super::DayBatches;
use super::trouble::Trouble;
use super::{family, public_id};
use crate::batches::provider_jobs::JobTarget;
use crate::batches::record::{BatchRecord, IN_METADATA};
use crate::catalog::target::Credential;
use crate::journal::ship::Pricer;
use crate::journal::{Charge, Charges, Record};
use crate::limits::admission::limit_refusal::refusal;
use crate::limits::admission::{
    Amounts, ApplicableLimit, Attempted, LimitedRequest, asks, limits_of_attempt, limits_of_request,
};
use crate::limits::{Limit, LimitKind, Reservation, Spent, Unit};
use crate::request::refusal::{Refusal, RefusalCode};
use crate::request::text_bounds::{self, cut, cut_bytes};
use chrono::Utc;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use shared::amount::Amount;
use shared::model::policy::PolicyTarget;
use uuid::{Builder, Uuid};

/// What prices call it.
const TIER: &str = "batch";

impl DayBatches {
    /// Whether its budgets have anything left, and none of them must be sure of what it will cost.
    pub(super) async fn admit_day_batch(&self, job: &JobTarget, batch: &BatchRecord) -> Result<(), Trouble> {
        let wanted = self.day_budgets(job, batch, &metadata(job, batch));
        if wanted.iter().any(|one| is_strict(&one.limit)) {
            let message = "a strict budget applies, and what a batch of 24h will cost is not known before it is over: \
                           use completion_window immediate, whose rows are admitted one by one";
            return Err(Trouble::lasting(RefusalCode::BudgetExhausted.as_str(), message));
        }
        self.reserve_day(&wanted, Amounts { tokens: Some(1), nano_cents: Some(1), ..Amounts::default() }).await?;
        Ok(())
    }

    /// Notes what became of a row, and tells what it cost; `guess` is of one that does not say what it used.
    pub(super) async fn note_day_row(
        &self,
        job: &JobTarget,
        batch: &BatchRecord,
        custom_id: &str,
        status: u16,
        body: &Value,
        guess: Option<(u64, u64)>,
    ) -> Option<Amount> {
        let metadata = metadata(job, batch);
        let usage = body.get("usage").filter(|usage| usage.is_object()).map(Value::to_string);
        let (virtual_key, integration_id) = match &job.target.credential {
            Credential::Stored(stored) => (Some(stored.provider.slug.as_str()), Some(stored.integration.id)),
            Credential::Given(_) => (None, None),
        };
        let config = job.config.as_ref().map(|config| &config.row);
        let id = log_id(batch, custom_id);
        let (trace_id, metadata_text) = (public_id(batch), Value::Object(metadata.clone()).to_string());
        let mut record = Record {
            id,
            internal_trace_id: id,
            organisation_id: job.caller.workspace.organisation_id,
            workspace_id: job.caller.workspace.id,
            api_key_id: job.caller.key.id,
            user_id: job.caller.key.user_id,
            virtual_key: virtual_key.map(|slug| cut_bytes(slug, text_bounds::SLUG)),
            integration_id,
            ai_org: Some(cut_bytes(&job.target.provider.name, text_bounds::SLUG)),
            requested_model: Some(cut(&job.model, text_bounds::MODEL)),
            answered_model: body["model"].as_str().map(|model| cut(model, text_bounds::MODEL)),
            config: config.map(|row| cut_bytes(&row.slug, text_bounds::SLUG)),
            config_id: config.map(|row| row.id),
            config_version_id: config.map(|row| row.version_id),
            method: "POST",
            url: &batch.endpoint,
            status: if status == 0 { 500 } else { status },
            usage: usage.as_deref().into_iter().collect(),
            estimate: guess.filter(|_| usage.is_none()),
            service_tier: Some(TIER),
            trace_id: cut(&trace_id, text_bounds::NAME),
            metadata: (metadata_text.len() <= text_bounds::METADATA).then_some(&*metadata_text),
            ..Record::default()
        };
        let tariff = &self.admitter.tariff;
        let priced = Pricer::new(tariff.sources.clone(), tariff.snapshot.clone()).price(&record).await;
        let spent = Spent {
            requests: 1,
            tokens: priced.usage.prompt_tokens().saturating_add(priced.usage.completion_tokens()),
            nano_cents: priced.cost.and_then(nano_cents).unwrap_or(0),
        };
        let amounts = Amounts {
            tokens: Some(spent.tokens),
            most_tokens: Some(spent.tokens),
            most_answer: 0,
            nano_cents: Some(spent.nano_cents),
            most_nano_cents: Some(spent.nano_cents),
        };
        let wanted = self.day_budgets(job, batch, &metadata);
        let reserved = self.reserve_day(&wanted, amounts).await;
        // It is spent, whatever was left.
        let limits = &self.admitter.limits;
        let reserved = reserved.unwrap_or_else(|_| limits.charge_unasked(limits.now(), &asks(&wanted, &amounts)));
        record.charges = reserved.charges().map(Charge::from).collect::<Charges<'_>>();
        if let Some(journal) = &self.recorder.journal {
            journal.append(&record);
        }
        reserved.settle(spent);
        priced.cost.map(Amount)
    }

    /// The budgets that a row of the batch is charged to.
    fn day_budgets(&self, job: &JobTarget, batch: &BatchRecord, metadata: &Map<String, Value>) -> Vec<ApplicableLimit> {
        let request = LimitedRequest {
            caller: &job.caller,
            metadata,
            config: job.config.as_deref(),
            family: Some(family(batch)),
            target: PolicyTarget::Llm,
            attempted: None,
            is_trusted_only: false,
        };
        let provider = match &job.target.credential {
            Credential::Stored(stored) => Some(&stored.provider),
            Credential::Given(_) => None,
        };
        let attempted = Attempted { provider, service: &job.target.provider.name, model: Some(&job.model), mcp: None };
        let (snapshot, switches) = (&self.admitter.snapshot, self.admitter.switches);
        let mut wanted = limits_of_request(&request, snapshot, switches, Utc::now);
        wanted.extend(limits_of_attempt(&request, &attempted, snapshot, switches));
        wanted.retain(|one| matches!(one.limit.kind, LimitKind::Budget { .. }));
        wanted
    }

    async fn reserve_day(&self, wanted: &[ApplicableLimit], amounts: Amounts) -> Result<Reservation, Refusal> {
        let limits = &self.admitter.limits;
        let reserved = limits.reserve(limits.now(), &asks(wanted, &amounts)).await;
        reserved.map_err(|refused| match wanted.get(refused.index) {
            Some(wanted) => refusal(wanted, &refused, &amounts, limits.now()),
            None => Refusal::internal(),
        })
    }
}

fn is_strict(limit: &Limit) -> bool {
    let is_strict = matches!(limit.kind, LimitKind::Budget { strict: true, .. });
    is_strict && !limit.dry_run && limit.counter.unit() != Unit::Requests
}

/// As an immediate batch's rows have it.
fn metadata(job: &JobTarget, batch: &BatchRecord) -> Map<String, Value> {
    let mut metadata = job.metadata.clone();
    metadata.insert(IN_METADATA.into(), public_id(batch).into());
    metadata
}

/// The same for a row whenever it is asked, in the day on which the batch began.
fn log_id(batch: &BatchRecord, custom_id: &str) -> Uuid {
    let at = batch.in_progress_at.unwrap_or(batch.created_at).timestamp_millis();
    let digest = Sha256::new_with_prefix(batch.id.as_bytes()).chain_update(custom_id).finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    Builder::from_unix_timestamp_millis(at.unsigned_abs(), &random).into_uuid()
}

/// Rounded up.
fn nano_cents(cents: Decimal) -> Option<u64> {
    cents.checked_mul(Decimal::from(1_000_000_000_u64))?.ceil().to_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_are_counted_in_billionths_and_never_too_few() {
        for (cents, expected) in [("0", 0), ("1", 1_000_000_000), ("0.0000000001", 1), ("2.5", 2_500_000_000)] {
            assert_eq!(nano_cents(cents.parse().unwrap()), Some(expected), "{cents}");
        }
    }
}
