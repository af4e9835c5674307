//! Cohere: files are datasets, batches are jobs that embed one.

use super::objects::{Batch, ProviderFile, deleted, entries, list, put, text, time};
use super::{AskedJob, JobAnswer, JobCall, JobCodec, JobReply, JobVerb, escaped};
use crate::wire::codecs::CodecError;
use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct CohereBatches;

impl JobCodec for CohereBatches {
    fn name(&self) -> &'static str {
        "cohere_batches"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        Ok(match asked.verb {
            JobVerb::Create => JobCall::post(asked.place.clone(), &embed_job(asked)?),
            JobVerb::List => JobCall::get(asked.place.clone()),
            JobVerb::Retrieve => JobCall::get(asked.own_place()),
            JobVerb::Cancel => JobCall::post(format!("{}/cancel", asked.own_place()), &json!({})),
            JobVerb::Delete | JobVerb::Content | JobVerb::Output => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, step: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        if (asked.verb, step) == (JobVerb::Cancel, 0) {
            return Ok(JobAnswer::Ask(JobCall::get(asked.own_place())));
        }
        let reply = reply.json()?;
        Ok(match (asked.verb, step) {
            (JobVerb::Create, 0) => {
                let id =
                    text(&reply, "/job_id").ok_or_else(|| CodecError::field("job_id", "is missing in the answer"))?;
                JobAnswer::Ask(JobCall::get(format!("{}/{}", asked.place, escaped(&id))))
            }
            (JobVerb::List, _) => {
                let jobs = entries(&reply, "embed_jobs").into_iter().map(|one| batch(one, asked)).collect();
                JobAnswer::Json(list(jobs, None))
            }
            _ => JobAnswer::Json(batch(&reply, asked)),
        })
    }
}

fn embed_job(asked: &AskedJob) -> Result<Value, CodecError> {
    let model = asked.option_text("model").or(asked.model.as_deref());
    let model = model.ok_or_else(|| CodecError::field("model", "is required, and a text"))?;
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("dataset_id".into(), asked.need("input_file_id")?.into());
    body.insert("input_type".into(), asked.option_text("input_type").unwrap_or("search_document").into());
    put(&mut body, "name", asked.option("job_name").cloned());
    for name in ["embedding_types", "truncate"] {
        put(&mut body, name, asked.option(name).cloned());
    }
    Ok(body.into())
}

fn batch(reply: &Value, asked: &AskedJob) -> Value {
    let status = match reply["status"].as_str().unwrap_or_default() {
        "complete" => "completed",
        "cancelling" => "cancelling",
        "cancelled" => "cancelled",
        "failed" => "failed",
        _ => "in_progress",
    };
    let batch = Batch {
        id: text(reply, "/job_id").unwrap_or_default(),
        status,
        endpoint: Some("/v1/embeddings".to_owned()),
        model: text(reply, "/model"),
        input_file: text(reply, "/input_dataset_id"),
        output_file: text(reply, "/output_dataset_id"),
        created: time(reply, "created_at"),
        started: time(reply, "created_at"),
        metadata: asked.body.get("metadata").cloned().unwrap_or_default(),
        ..Batch::default()
    };
    batch.json(&asked.provider)
}

#[derive(Debug)]
pub(super) struct CohereFiles;

impl JobCodec for CohereFiles {
    fn name(&self) -> &'static str {
        "cohere_files"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        Ok(match asked.verb {
            JobVerb::Create => upload(asked)?,
            JobVerb::List => JobCall::get(format!("{}{}", asked.place, asked.page("limit", "offset"))),
            JobVerb::Retrieve => JobCall::get(asked.own_place()),
            JobVerb::Delete => JobCall { method: Method::DELETE, ..JobCall::get(asked.own_place()) },
            JobVerb::Cancel | JobVerb::Content | JobVerb::Output => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, step: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        if asked.verb == JobVerb::Delete {
            return Ok(JobAnswer::Json(deleted(&asked.id)));
        }
        let reply = reply.json()?;
        Ok(match (asked.verb, step) {
            (JobVerb::Create, 0) => {
                let id = text(&reply, "/id").ok_or_else(|| CodecError::field("id", "is missing in the answer"))?;
                JobAnswer::Ask(JobCall::get(format!("{}/{}", asked.place, escaped(&id))))
            }
            (JobVerb::List, _) => {
                let files = entries(&reply, "datasets").into_iter().map(|one| file(one, asked)).collect();
                JobAnswer::Json(list(files, None))
            }
            _ => JobAnswer::Json(file(&reply["dataset"], asked)),
        })
    }
}

/// A dataset is a form with the file in it; all else stands in the query.
fn upload(asked: &AskedJob) -> Result<JobCall, CodecError> {
    let file = asked.file.as_ref().ok_or_else(|| CodecError::field("file", "is required"))?;
    let kind = match asked.text("purpose") {
        Some("fine-tune") => "chat-finetune-input",
        _ => "embed-input",
    };
    let name = asked.file_name.as_deref().unwrap_or(&file.name);
    let place = format!("{}?name={}&type={kind}", asked.place, escaped(name));
    Ok(form(place, "data", name, &file.bytes, &asked.request_id))
}

/// A form with one file.
pub(super) fn form(place: String, field: &str, name: &str, bytes: &Bytes, boundary: &str) -> JobCall {
    let name = name.replace(['"', '\r', '\n', '\\'], "_");
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    let end = format!("\r\n--{boundary}--\r\n");
    JobCall {
        method: Method::POST,
        content_type: Some(format!("multipart/form-data; boundary={boundary}")),
        body: Bytes::from([head.as_bytes(), bytes, end.as_bytes()].concat()),
        ..JobCall::get(place)
    }
}

fn file(reply: &Value, asked: &AskedJob) -> Value {
    let status = match reply["validation_status"].as_str() {
        Some("failed") => "error",
        Some("validated") => "processed",
        _ => "uploaded",
    };
    let purpose = match reply["dataset_type"].as_str() {
        Some(kind) if kind.contains("finetune") => "fine-tune",
        Some("embed-result") => "batch_output",
        _ => "batch",
    };
    let file = ProviderFile {
        id: text(reply, "/id").unwrap_or_default(),
        name: text(reply, "/name").unwrap_or_default(),
        bytes: 0,
        created: time(reply, "created_at"),
        purpose: purpose.to_owned(),
        status,
    };
    file.json(&asked.provider)
}
