//! The record of a call that the gateway made for itself while it served a request, such as for the vector of a question: a
//! row of its own with its cost, in the same trace, marked by `_internal` in its metadata. No limit is charged with it: the
//! operator chose whom to ask.

use super::Log;
use crate::journal::Record;
use crate::request::request_id;
use crate::request::text_bounds::{self, cut};
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime};

pub struct OwnCallRecord<'c> {
    /// What it was for.
    pub purpose: &'static str,
    pub provider: &'c str,
    pub model: &'c str,
    pub status: u16,
    /// In OpenAI's words.
    pub usage: Option<&'c str>,
    pub millis: u32,
}

impl Log {
    pub fn append_own_call(&self, call: &OwnCallRecord<'_>, trace_id: &str) {
        let id = request_id::new(SystemTime::now() - Duration::from_millis(u64::from(call.millis)));
        let said = self.metadata.as_deref().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        let mut metadata = said.unwrap_or_default();
        metadata.insert("_internal".into(), call.purpose.into());
        let metadata = Value::Object(metadata).to_string();
        self.journal.append(&Record {
            id,
            // Not the request's own, whose promises its own records settle.
            internal_trace_id: id,
            organisation_id: self.caller.workspace.organisation_id,
            workspace_id: self.caller.workspace.id,
            api_key_id: self.caller.key.id,
            user_id: self.caller.key.user_id,
            ai_org: Some(call.provider),
            requested_model: Some(cut(call.model, text_bounds::MODEL)),
            method: "POST",
            url: "/v1/embeddings",
            status: call.status,
            response_time: call.millis,
            upstream_time: call.millis,
            usage: call.usage.into_iter().collect(),
            trace_id: cut(trace_id, text_bounds::NAME),
            metadata: Some(&metadata),
            ..Record::default()
        });
    }
}
