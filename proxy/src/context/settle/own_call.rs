//! The record of a call that the gateway made for itself while it served a request, such as for the vector of a question: a
//! row of its own with its cost, in the same trace, marked by `_internal` in its metadata. It is charged to the budgets that
//! were asked for it; where the operator pays, to none, and `_paid_by` says so.

use super::{Log, LoggedConfig};
use crate::journal::{Charge, Charges, Intent, Record};
use crate::limits::Reservation;
use crate::limits::usage::{AnsweredText, UncountedCall};
use crate::request::text_bounds::{self, cut, cut_bytes};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub struct OwnCallRecord<'c> {
    /// Of its row, and of what strict budgets promised it.
    pub id: Uuid,
    /// What it was for.
    pub purpose: &'static str,
    pub provider: &'c str,
    pub model: &'c str,
    pub status: u16,
    /// In OpenAI's words.
    pub usage: Option<&'c str>,
    /// What it is supposed to have read, where it does not say so, and the text itself.
    pub estimate: Option<(u64, &'c str)>,
    pub millis: u32,
    pub is_paid_by_operator: bool,
    /// What budgets gave for it.
    pub reserved: Option<&'c Reservation>,
}

impl Log {
    /// Notes what strict budgets promised to a call of the gateway's own. False when it could not be written: then the call must
    /// not leave.
    pub fn promise_own_call(&self, id: Uuid, reserved: &Reservation) -> bool {
        let (charges, amounts): (Vec<_>, Vec<_>) = reserved.promises().unzip();
        if charges.is_empty() {
            return true;
        }
        self.journal.promise(&Intent {
            boot: self.journal.boot(),
            request_id: id,
            attempt: 0,
            organisation_id: self.caller.workspace.organisation_id,
            charges: charges.into_iter().map(Charge::from).collect(),
            amounts,
        })
    }

    pub fn append_own_call(&self, call: &OwnCallRecord<'_>, trace_id: &str) {
        let parsed = self.metadata.as_deref().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        let mut metadata = parsed.unwrap_or_default();
        metadata.insert("_internal".into(), call.purpose.into());
        if call.is_paid_by_operator {
            metadata.insert("_paid_by".into(), "operator".into());
        }
        let metadata = Value::Object(metadata).to_string();
        if let Some((_, text)) = call.estimate {
            let asked = Bytes::from(json!({ "input": text }).to_string());
            let answered = AnsweredText::Plain(Bytes::new());
            self.journal.note_uncounted(call.id, UncountedCall { model: Some(call.model.to_owned()), asked, answered });
        }
        let saved = match &self.config {
            Some(LoggedConfig::Saved(saved)) => Some(&saved.row),
            Some(LoggedConfig::Inline) | None => None,
        };
        let charges = call.reserved.map(|reserved| reserved.charges().map(Charge::from).collect::<Charges<'_>>());
        self.journal.append(&Record {
            id: call.id,
            // Not the request's own, whose promises its own records settle.
            internal_trace_id: call.id,
            organisation_id: self.caller.workspace.organisation_id,
            workspace_id: self.caller.workspace.id,
            api_key_id: self.caller.key.id,
            user_id: self.caller.key.user_id,
            ai_org: Some(call.provider),
            requested_model: Some(cut(call.model, text_bounds::MODEL)),
            config: saved.map(|row| cut_bytes(&row.slug, text_bounds::SLUG)),
            config_id: saved.map(|row| row.id),
            config_version_id: saved.map(|row| row.version_id),
            method: "POST",
            url: "/v1/embeddings",
            status: call.status,
            response_time: call.millis,
            upstream_time: call.millis,
            usage: call.usage.into_iter().collect(),
            estimate: call.estimate.map(|(tokens, _)| (tokens, 0)),
            trace_id: cut(trace_id, text_bounds::NAME),
            metadata: Some(&metadata),
            charges: charges.unwrap_or_default(),
            ..Record::default()
        });
    }
}
