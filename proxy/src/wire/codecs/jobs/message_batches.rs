//! Anthropic's message batches. They take their rows in the request and not from a file, so a batch is made with `requests`:
//! rows as OpenAI's files have them, or Anthropic's own. Anthropic's files cannot be read again by whoever wrote them.

use super::batch_rows::{BatchRow, answered, failed, from_json, rewritten, translated};
use super::objects::{Batch, count, entries, list, text, time};
use super::{AskedJob, JobAnswer, JobCall, JobCodec, JobReply, JobVerb};
use crate::wire::codecs::CodecError;
use crate::wire::codecs::messages::MessagesCodec;
use crate::wire::codecs::options::RequestOptions;
use serde_json::{Value, json};

#[derive(Debug)]
pub(super) struct MessageBatches;

const MAX_ROWS: usize = 100_000;
/// Of a row's id. One that is no such id would fail the whole batch.
const MAX_ID: usize = 64;

impl JobCodec for MessageBatches {
    fn name(&self) -> &'static str {
        "message_batches"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        let own = asked.own_place();
        Ok(match asked.verb {
            JobVerb::Create => JobCall::post(asked.place.clone(), &json!({ "requests": requests(asked)? })),
            JobVerb::List => JobCall::get(format!("{}{}", asked.place, asked.page("limit", "after_id"))),
            JobVerb::Retrieve => JobCall::get(own),
            JobVerb::Cancel => JobCall::post(format!("{own}/cancel"), &json!({})),
            JobVerb::Output => JobCall::get(format!("{own}/results")),
            JobVerb::Delete | JobVerb::Content => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, _: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        if asked.verb == JobVerb::Output {
            let rows = rewritten(&reply.body, |_, row| output(row, asked));
            return Ok(JobAnswer::Bytes("application/jsonl", rows));
        }
        let reply = reply.json()?;
        Ok(JobAnswer::Json(match asked.verb {
            JobVerb::List => {
                let batches = entries(&reply, "data").into_iter().map(|one| batch(one, asked)).collect();
                let next = text(&reply, "/last_id").filter(|_| reply["has_more"] == true);
                list(batches, next.as_deref())
            }
            _ => batch(&reply, asked),
        }))
    }

    fn input_row(&self, row: &BatchRow, model: &str) -> Result<Value, CodecError> {
        if !is_id(&row.custom_id) {
            let problem = format!("may have {MAX_ID} letters, digits, `_` and `-` at this provider");
            return Err(CodecError::field("custom_id", problem));
        }
        message_row(row, Some(model))
    }

    fn input_frame(&self) -> [&'static str; 3] {
        ["{\"requests\":[", ",", "]}"]
    }

    fn questions_before_output(&self) -> usize {
        0
    }

    fn output_row(&self, asked: &AskedJob, _: usize, reply: &Value) -> Value {
        output(reply, asked)
    }
}

fn requests(asked: &AskedJob) -> Result<Vec<Value>, CodecError> {
    let Some(Value::Array(rows)) = asked.body.get("requests") else {
        let problem = "is required here, a list of rows: this provider's batches take no `input_file_id`";
        return Err(CodecError::field("requests", problem));
    };
    if rows.len() > MAX_ROWS {
        return Err(CodecError::TooMany { field: "requests".into(), most: MAX_ROWS });
    }
    let written = rows.iter().enumerate().map(|(number, row)| {
        let wrong = || CodecError::field(format!("requests[{number}]"), "needs a `custom_id` and `body` or `params`");
        if row.get("params").is_some() && row.get("custom_id").is_some() {
            return Ok(row.clone());
        }
        let row = row.as_object().cloned().and_then(from_json).ok_or_else(wrong)?;
        message_row(&row, row.body.get("model").and_then(Value::as_str))
    });
    written.collect()
}

fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(fits)
}

fn message_row(row: &BatchRow, model: Option<&str>) -> Result<Value, CodecError> {
    let options = RequestOptions { model, ..RequestOptions::default() };
    let mut params = translated(&row.body, &MessagesCodec, &options)?;
    params.remove("stream");
    Ok(json!({ "custom_id": row.custom_id, "params": params }))
}

fn batch(reply: &Value, asked: &AskedJob) -> Value {
    let of = |name: &str| count(reply, &["/request_counts/", name].concat());
    let (succeeded, errored, cancelled, expired) = (of("succeeded"), of("errored"), of("canceled"), of("expired"));
    let status = match reply["processing_status"].as_str() {
        Some("canceling") => "cancelling",
        Some("ended") if succeeded + errored == 0 && cancelled > 0 => "cancelled",
        Some("ended") if succeeded + errored == 0 && expired > 0 => "expired",
        Some("ended") => "completed",
        _ => "in_progress",
    };
    let failed = errored + cancelled + expired;
    let batch = Batch {
        id: text(reply, "/id").unwrap_or_default(),
        status,
        created: time(reply, "created_at"),
        started: time(reply, "created_at"),
        ended: time(reply, "ended_at"),
        cancelling: time(reply, "cancel_initiated_at"),
        expires: time(reply, "expires_at"),
        counts: (succeeded, failed, succeeded + failed + of("processing")),
        metadata: asked.body.get("metadata").cloned().unwrap_or_default(),
        ..Batch::default()
    };
    batch.json(&asked.provider)
}

fn output(row: &Value, asked: &AskedJob) -> Value {
    let id = row["custom_id"].as_str().unwrap_or_default();
    match row.pointer("/result/type").and_then(Value::as_str) {
        Some("succeeded") => answered(id, &row["result"]["message"], &MessagesCodec, &asked.provider, asked.now),
        Some("canceled") => failed(id, "batch_cancelled", "the batch was cancelled before this row was asked"),
        Some("expired") => failed(id, "batch_expired", "the batch expired before this row was asked"),
        _ => {
            let error = row.pointer("/result/error/error").or_else(|| row.pointer("/result/error"));
            let error_text = |name: &str| error.and_then(|error| error[name].as_str()).unwrap_or("error");
            failed(id, error_text("type"), error_text("message"))
        }
    }
}
