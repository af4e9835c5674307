//! Vertex: batches are `batchPredictionJobs` over files in a bucket, fine-tuning is `tuningJobs`.

use super::batch_rows::{BatchRow, answered, failed, rewritten};
use super::objects::{Batch, TuningJob, count, entries, list, put, text, time};
use super::storage::{file_id, file_url, object_place, own_folder, own_url, vertex_row};
use super::{AskedJob, JobAnswer, JobCall, JobCodec, JobReply, JobVerb, escaped};
use crate::wire::codecs::CodecError;
use crate::wire::codecs::gemini::GeminiCodec;
use crate::wire::codecs::messages::MessagesCodec;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct VertexBatches;

impl JobCodec for VertexBatches {
    fn name(&self) -> &'static str {
        "vertex_batches"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        Ok(match asked.verb {
            JobVerb::Create => JobCall::post(asked.place.clone(), &prediction_job(asked)?),
            JobVerb::List => JobCall::get(format!("{}{}", asked.place, asked.page("pageSize", "pageToken"))),
            JobVerb::Retrieve | JobVerb::Output => JobCall::get(asked.own_place()),
            JobVerb::Cancel => JobCall::post(format!("{}:cancel", asked.own_place()), &json!({})),
            JobVerb::Delete | JobVerb::Content => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, step: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        if asked.verb == JobVerb::Output && step == 1 {
            return Ok(JobAnswer::Bytes(
                "application/jsonl",
                rewritten(&reply.body, |number, row| output(number, row, asked)),
            ));
        }
        let reply = reply.json()?;
        Ok(match (asked.verb, step) {
            // Nothing is told of a job that was just cancelled.
            (JobVerb::Cancel, 0) => JobAnswer::Ask(JobCall::get(asked.own_place())),
            (JobVerb::Output, _) => match text(&reply, "/outputInfo/gcsOutputDirectory") {
                Some(folder) => match object_place(&format!("{folder}/predictions.jsonl"), asked) {
                    Ok(place) => JobAnswer::Ask(JobCall::get(format!("{place}?alt=media")).of_files()),
                    Err(error) => JobAnswer::Refused(error.to_string()),
                },
                None => JobAnswer::Refused("the batch has no output yet".to_owned()),
            },
            (JobVerb::List, _) => {
                let jobs = entries(&reply, "batchPredictionJobs").into_iter().map(|one| batch(one, asked)).collect();
                JobAnswer::Json(list(jobs, text(&reply, "/nextPageToken").as_deref()))
            }
            _ => JobAnswer::Json(batch(&reply, asked)),
        })
    }

    fn input_row(&self, row: &BatchRow, model: &str) -> Result<Value, CodecError> {
        vertex_row(row, model)
    }

    fn output_row(&self, asked: &AskedJob, number: usize, reply: &Value) -> Value {
        output(number, reply, asked)
    }
}

fn prediction_job(asked: &AskedJob) -> Result<Value, CodecError> {
    let input = own_url("input_file_id", asked.need("input_file_id")?, "gs://", asked)?;
    let model = asked.option_text("model").or(asked.model.as_deref());
    let model = model.ok_or_else(|| CodecError::field("model", "is required, and a text"))?;
    let output = match asked.option_text("output_data_config") {
        Some(prefix) => file_url(prefix),
        None => format!("{}/output", input.rsplit_once('/').map_or(&*input, |(folder, _)| folder)),
    };
    let output = own_folder("output_data_config", output, "gs://", asked)?;
    let name = asked.option_text("job_name").map_or_else(|| ["batch-", &asked.request_id].concat(), str::to_owned);
    let mut job = json!({
        "displayName": name, "model": publisher_model(model),
        "inputConfig": { "instancesFormat": "jsonl", "gcsSource": { "uris": [input] } },
        "outputConfig": { "predictionsFormat": "jsonl", "gcsDestination": { "outputUriPrefix": output } },
    });
    let labels = labels(asked);
    if !labels.is_empty() {
        job["labels"] = labels.into();
    }
    Ok(job)
}

/// Metadata, as far as Vertex takes it.
fn labels(asked: &AskedJob) -> Map<String, Value> {
    const MAX_LABEL: usize = 63;
    let fits = |text: &str| {
        text.len() <= MAX_LABEL && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
    };
    let is_name = |text: &str| fits(text) && text.starts_with(|first: char| first.is_ascii_lowercase());
    let pairs = asked.body.get("metadata").and_then(Value::as_object).into_iter().flatten();
    let fitting = pairs.filter(|(name, value)| is_name(name) && value.as_str().is_some_and(fits));
    fitting.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// `anthropic.claude-x` and `gemini-x` as Vertex writes them.
fn publisher_model(model: &str) -> String {
    if model.contains('/') {
        return model.to_owned();
    }
    let known = ["anthropic", "meta", "mistralai", "google"];
    let split = model.split_once('.').filter(|(publisher, _)| known.contains(publisher));
    let (publisher, name) = split.unwrap_or(("google", model));
    format!("publishers/{publisher}/models/{name}")
}

fn batch(reply: &Value, asked: &AskedJob) -> Value {
    let status = match reply["state"].as_str().unwrap_or_default().trim_start_matches("JOB_STATE_") {
        "CANCELLING" => "cancelling",
        "CANCELLED" => "cancelled",
        "EXPIRED" => "expired",
        "FAILED" => "failed",
        "SUCCEEDED" | "PARTIALLY_SUCCEEDED" => "completed",
        "RUNNING" | "UPDATING" => "in_progress",
        _ => "validating",
    };
    let of = |name: &str| count(reply, &["/completionStats/", name].concat());
    let (completed, failed) = (of("successfulCount"), of("failedCount"));
    let output = text(reply, "/outputInfo/gcsOutputDirectory");
    let batch = Batch {
        id: last_segment(reply),
        status,
        model: text(reply, "/model"),
        input_file: text(reply, "/inputConfig/gcsSource/uris/0").map(|url| file_id(&url)),
        output_file: output.map(|folder| file_id(&format!("{folder}/predictions.jsonl"))),
        created: time(reply, "createTime"),
        started: time(reply, "startTime"),
        ended: time(reply, "endTime"),
        counts: (completed, failed, completed + failed + of("incompleteCount")),
        error: text(reply, "/error/message"),
        metadata: reply.get("labels").cloned().unwrap_or_default(),
        ..Batch::default()
    };
    batch.json(&asked.provider)
}

/// Of `projects/p/locations/l/jobs/1`.
fn last_segment(reply: &Value) -> String {
    let name = text(reply, "/name").unwrap_or_default();
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

fn output(number: usize, row: &Value, asked: &AskedJob) -> Value {
    let named = ["requestId", "custom_id", "key"].into_iter().find_map(|name| row[name].as_str());
    let id = named.map_or_else(|| format!("request-{}", number + 1), str::to_owned);
    let reply = &row["response"];
    match (row["status"].as_str(), reply.is_object()) {
        (Some(problem), _) if !problem.is_empty() => failed(&id, "provider_error", problem),
        (_, false) => failed(&id, "provider_error", "the provider gave no answer"),
        (_, true) if reply["type"] == "message" => answered(&id, reply, &MessagesCodec, &asked.provider, asked.now),
        (_, true) => answered(&id, reply, &GeminiCodec, &asked.provider, asked.now),
    }
}

#[derive(Debug)]
pub(super) struct VertexTuning;

impl JobCodec for VertexTuning {
    fn name(&self) -> &'static str {
        "vertex_tuning"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        Ok(match asked.verb {
            JobVerb::Create => JobCall::post(asked.place.clone(), &tuning_job(asked)?),
            JobVerb::List => JobCall::get(format!("{}{}", asked.place, asked.page("pageSize", "pageToken"))),
            JobVerb::Retrieve => JobCall::get(asked.own_place()),
            JobVerb::Cancel => JobCall::post(format!("{}:cancel", asked.own_place()), &json!({})),
            JobVerb::Delete | JobVerb::Content | JobVerb::Output => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, step: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        let reply = reply.json()?;
        Ok(match (asked.verb, step) {
            (JobVerb::Cancel, 0) => JobAnswer::Ask(JobCall::get(asked.own_place())),
            (JobVerb::List, _) => {
                let jobs = entries(&reply, "tuningJobs").into_iter().map(|one| tuned(one, asked)).collect();
                JobAnswer::Json(list(jobs, text(&reply, "/nextPageToken").as_deref()))
            }
            _ => JobAnswer::Json(tuned(&reply, asked)),
        })
    }
}

fn tuning_job(asked: &AskedJob) -> Result<Value, CodecError> {
    let mut spec = Map::new();
    let own = |field: &'static str, id: &str| own_url(field, id, "gs://", asked);
    spec.insert("trainingDatasetUri".into(), own("training_file", asked.need("training_file")?)?.into());
    let validation = asked.text("validation_file").map(|file| own("validation_file", file)).transpose()?;
    put(&mut spec, "validationDatasetUri", validation.map(Value::from));
    let of_method = asked.body.get("method").and_then(|method| method.pointer("/supervised/hyperparameters"));
    let sent = asked.body.get("hyperparameters").or(of_method);
    let known = [
        ("n_epochs", "epochCount"),
        ("learning_rate_multiplier", "learningRateMultiplier"),
        ("adapter_size", "adapterSize"),
    ];
    let mut parameters = Map::new();
    for (name, theirs) in known {
        let value = sent.and_then(|sent| sent.get(name)).filter(|value| *value != "auto");
        put(&mut parameters, theirs, value.cloned());
    }
    if !parameters.is_empty() {
        spec.insert("hyperParameters".into(), parameters.into());
    }
    let mut body = Map::new();
    body.insert("baseModel".into(), asked.need("model")?.into());
    body.insert("supervisedTuningSpec".into(), spec.into());
    put(&mut body, "tunedModelDisplayName", asked.text("suffix").map(Into::into));
    Ok(body.into())
}

fn tuned(reply: &Value, asked: &AskedJob) -> Value {
    let status = match reply["state"].as_str().unwrap_or_default().trim_start_matches("JOB_STATE_") {
        "CANCELLED" | "CANCELLING" | "EXPIRED" => "cancelled",
        "FAILED" => "failed",
        "SUCCEEDED" => "succeeded",
        "RUNNING" | "UPDATING" => "running",
        _ => "queued",
    };
    let file = |pointer: &str| text(reply, pointer).map(|url| file_id(&url));
    let parameters = reply.pointer("/supervisedTuningSpec/hyperParameters").map(
        |parameters| json!({ "n_epochs": parameters["epochCount"], "learning_rate_multiplier": parameters["learningRateMultiplier"] }),
    );
    let job = TuningJob {
        id: last_segment(reply),
        status,
        model: text(reply, "/baseModel"),
        // Its endpoint is what requests ask.
        tuned: text(reply, "/tunedModel/endpoint")
            .or_else(|| text(reply, "/tunedModel/model"))
            .map(|name| endpoint(&name)),
        created: time(reply, "createTime"),
        finished: time(reply, "endTime"),
        training_file: file("/supervisedTuningSpec/trainingDatasetUri"),
        validation_file: file("/supervisedTuningSpec/validationDatasetUri"),
        hyperparameters: parameters,
        error: text(reply, "/error/message"),
    };
    job.json(&asked.provider)
}

/// As requests name it.
fn endpoint(name: &str) -> String {
    match name.split_once("/endpoints/") {
        Some((_, id)) => ["endpoints.", &escaped(id)].concat(),
        None => name.to_owned(),
    }
}
