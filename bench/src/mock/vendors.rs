//! The wires of other vendors than OpenAI and Anthropic. Each reads a request into a `Question`, says whether it is one
//! of its own, and writes the answer and the errors in its vendor's shape; what they share is here.

use bytes::Bytes;
use serde_json::Value;

use super::fault::{BadFault, Fault};
use super::question::Question;
use super::route::Endpoint;
use super::shape::Payload;

/// Where a request was sent.
pub struct Call<'a> {
    pub endpoint: Endpoint,
    pub path: &'a str,
    pub query: Option<&'a str>,
}

pub trait Vendor: Sync {
    /// The body as it came; most vendors take JSON alone.
    fn read(&self, body: &[u8]) -> Result<Value, String> {
        serde_json::from_slice(body).map_err(|error| error.to_string())
    }

    /// The body in the one spelling that the other functions know.
    fn spelled(&self, body: Value) -> Value {
        body
    }

    /// Takes what it finds: a request that is not of this wire may still carry a fault.
    fn question(&self, call: &Call<'_>, body: &Value) -> Question;

    /// Why the vendor would refuse this request, with its status.
    fn flaw(&self, call: &Call<'_>, body: &Value) -> Option<(u16, String)>;

    fn answer(&self, call: &Call<'_>, body: &Value, question: &Question, fault: &Fault, id: u64) -> Payload;

    /// The error body that belongs to a status.
    fn error(&self, status: u16, message: &str) -> Value;

    /// Headers of an answer with this status.
    fn headers(&self, _question: &Question, _status: u16) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// The fault, the status and the answer; or the status and the reason of a refusal.
pub fn react(
    vendor: &dyn Vendor,
    call: &Call<'_>,
    early: Option<Fault>,
    body: &[u8],
    id: u64,
) -> Result<(Fault, u16, Payload), (u16, String)> {
    let is_unread = call.endpoint == Endpoint::GeminiModels || early.as_ref().is_some_and(|fault| fault.early_answer);
    let body = match is_unread {
        true => Value::Null,
        false => vendor.read(body).map_err(|error| (400, format!("Invalid JSON payload: {error}")))?,
    };
    let body = vendor.spelled(body);
    let question = vendor.question(call, &body);
    let mut fault = match early {
        Some(fault) => fault,
        None => question.fault().map_err(|BadFault(reason)| (400, reason))?.unwrap_or_default(),
    };
    let status = fault.status.unwrap_or(200);
    for (name, value) in vendor.headers(&question, status) {
        fault.headers.entry(name.to_owned()).or_insert(value);
    }
    if let Some(body) = &fault.body {
        let payload = Payload::Whole(Bytes::from(body.clone()));
        return Ok((fault, status, payload));
    }
    if status >= 400 || (fault.error_in_200 && !question.is_streaming) {
        let named = if status >= 400 { status } else { 500 };
        let body = vendor.error(named, "mock error, as asked");
        return Ok((fault, status, Payload::whole(body.to_string().into_bytes())));
    }
    if let Some(refusal) = vendor.flaw(call, &body).filter(|_| !is_unread) {
        return Err(refusal);
    }
    let payload = vendor.answer(call, &body, &question, &fault, id);
    Ok((fault, status, payload))
}

/// A part of a path as it was before it was escaped.
pub fn unescaped(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}
