//! Bedrock: batches are model invocation jobs over files in S3, fine-tuning is model customisation. Ids are ARNs, escaped.

use super::batch_rows::{BatchRow, answered, failed, rewritten};
use super::objects::{Batch, TuningJob, count, entries, list, put, text, time};
use super::storage::{bedrock_row, file_id, file_url, own_folder, own_url};
use super::{AskedJob, JobAnswer, JobCall, JobCodec, JobReply, JobVerb, escaped};
use crate::wire::codecs::CodecError;
use crate::wire::codecs::converse::ConverseCodec;
use crate::wire::codecs::messages::MessagesCodec;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct BedrockBatches;

impl JobCodec for BedrockBatches {
    fn name(&self) -> &'static str {
        "bedrock_batches"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        Ok(match asked.verb {
            JobVerb::Create => JobCall::post(asked.place.clone(), &invocation_job(asked)?),
            JobVerb::List => JobCall::get(format!("{}s{}", asked.place, asked.page("maxResults", "nextToken"))),
            JobVerb::Retrieve | JobVerb::Output => JobCall::get(asked.own_place()),
            JobVerb::Cancel => JobCall::post(format!("{}/stop", asked.own_place()), &json!({})),
            JobVerb::Delete | JobVerb::Content => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, step: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        if asked.verb == JobVerb::Output && step == 1 {
            return Ok(JobAnswer::Bytes("application/jsonl", rewritten(&reply.body, |_, row| output(row, asked))));
        }
        let reply = reply.json()?;
        Ok(match (asked.verb, step) {
            // Only its name is told of a new job, and nothing of a stopped one.
            (JobVerb::Create, 0) => {
                let arn =
                    text(&reply, "/jobArn").ok_or_else(|| CodecError::field("jobArn", "is missing in the answer"))?;
                JobAnswer::Ask(JobCall::get(format!("{}/{}", asked.place, escaped(&arn))))
            }
            (JobVerb::Cancel, 0) => JobAnswer::Ask(JobCall::get(asked.own_place())),
            (JobVerb::Output, _) => match output_place(&reply, asked) {
                Ok(place) => JobAnswer::Ask(JobCall::get(place).of_files()),
                Err(why) => JobAnswer::Refused(why.to_owned()),
            },
            (JobVerb::List, _) => {
                let jobs = entries(&reply, "invocationJobSummaries").into_iter().map(|one| batch(one, asked)).collect();
                JobAnswer::Json(list(jobs, text(&reply, "/nextToken").as_deref()))
            }
            _ => JobAnswer::Json(batch(&reply, asked)),
        })
    }

    fn input_row(&self, row: &BatchRow, model: &str) -> Result<Value, CodecError> {
        bedrock_row(row, model)
    }

    fn output_row(&self, asked: &AskedJob, _: usize, reply: &Value) -> Value {
        output(reply, asked)
    }
}

fn job_name(asked: &AskedJob) -> String {
    asked.option_text("job_name").map_or_else(|| format!("batch-{}", asked.request_id), str::to_owned)
}

/// An address as such, or below `s3Uri`, as AWS writes it.
fn s3_address(value: &Value) -> Option<String> {
    let text = value.as_str().or_else(|| value.pointer("/s3OutputDataConfig/s3Uri").and_then(Value::as_str));
    text.or_else(|| value.get("s3Uri").and_then(Value::as_str)).map(file_url)
}

fn invocation_job(asked: &AskedJob) -> Result<Value, CodecError> {
    let input = own_url("input_file_id", asked.need("input_file_id")?, "s3://", asked)?;
    let model = asked.option_text("model").or(asked.model.as_deref());
    let model = model.ok_or_else(|| CodecError::field("model", "is required, and a text"))?;
    let role = asked.option_text("role_arn");
    let role =
        role.ok_or_else(|| CodecError::field("role_arn", "is required: the role that reads and writes the files"))?;
    let output = asked.option("output_data_config").and_then(s3_address);
    let output = output_folder(output, &input, asked)?;
    Ok(json!({
        "clientRequestToken": asked.request_id, "jobName": job_name(asked), "modelId": model, "roleArn": role,
        "inputDataConfig": { "s3InputDataConfig": { "s3InputFormat": "JSONL", "s3Uri": input } },
        "outputDataConfig": { "s3OutputDataConfig": { "s3Uri": output } },
    }))
}

/// Where answers are written: as said, else beside what is read.
fn output_folder(named: Option<String>, input: &str, asked: &AskedJob) -> Result<String, CodecError> {
    let default_folder = || format!("{}/output/", input.rsplit_once('/').map_or(input, |(folder, _)| folder));
    own_folder("output_data_config", named.unwrap_or_else(default_folder), "s3://", asked)
}

fn batch(reply: &Value, asked: &AskedJob) -> Value {
    let status = match reply["status"].as_str().unwrap_or_default() {
        "InProgress" => "in_progress",
        "Completed" | "PartiallyCompleted" => "completed",
        "Failed" => "failed",
        "Stopping" => "cancelling",
        "Stopped" => "cancelled",
        "Expired" => "expired",
        _ => "validating",
    };
    let of = |name: &str| count(reply, &format!("/{name}"));
    let batch = Batch {
        id: escaped(&text(reply, "/jobArn").unwrap_or_default()),
        status,
        model: text(reply, "/modelId"),
        input_file: text(reply, "/inputDataConfig/s3InputDataConfig/s3Uri").map(|url| file_id(&url)),
        output_file: output_url(reply).filter(|_| status == "completed").map(|url| file_id(&url)),
        created: time(reply, "submitTime"),
        started: time(reply, "submitTime"),
        ended: time(reply, "endTime"),
        expires: time(reply, "jobExpirationTime"),
        counts: (of("successRecordCount"), of("errorRecordCount"), of("totalRecordCount")),
        error: text(reply, "/message"),
        metadata: asked.body.get("metadata").cloned().unwrap_or_default(),
        ..Batch::default()
    };
    batch.json(&asked.provider)
}

/// `<folder>/<job>/<file>.out`.
fn output_url(reply: &Value) -> Option<String> {
    let folder = text(reply, "/outputDataConfig/s3OutputDataConfig/s3Uri")?;
    let input = text(reply, "/inputDataConfig/s3InputDataConfig/s3Uri")?;
    let job = text(reply, "/jobArn")?;
    let (job, file) = (job.rsplit('/').next()?, input.rsplit('/').next()?);
    Some(format!("{}/{job}/{file}.out", folder.trim_end_matches('/')))
}

fn output_place(reply: &Value, asked: &AskedJob) -> Result<String, &'static str> {
    let url =
        output_url(reply).filter(|_| matches!(reply["status"].as_str(), Some("Completed" | "PartiallyCompleted")));
    let url = url.ok_or("the batch has no output yet")?;
    let bucket = asked.placed("bucket").filter(|bucket| !bucket.is_empty());
    let key = bucket.and_then(|bucket| url.strip_prefix("s3://")?.strip_prefix(bucket)?.strip_prefix('/'));
    let key = key.ok_or("the batch has its output in another bucket than the account's")?;
    let key: Vec<String> = key.split('/').map(escaped).collect();
    Ok(format!("{}/{}", asked.files, key.join("/")))
}

fn output(row: &Value, asked: &AskedJob) -> Value {
    let id = row["recordId"].as_str().unwrap_or_default();
    let reply = &row["modelOutput"];
    match reply.is_object() {
        true if reply["type"] == "message" => answered(id, reply, &MessagesCodec, &asked.provider, asked.now),
        true => answered(id, reply, &ConverseCodec, &asked.provider, asked.now),
        false => {
            let error_text = |name: &str| text(&row["error"], name);
            let code = row["error"]["errorCode"].to_string();
            failed(id, code.trim_matches('"'), &error_text("/errorMessage").unwrap_or_else(|| "no answer".to_owned()))
        }
    }
}

#[derive(Debug)]
pub(super) struct BedrockTuning;

impl JobCodec for BedrockTuning {
    fn name(&self) -> &'static str {
        "bedrock_tuning"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        Ok(match asked.verb {
            JobVerb::Create => JobCall::post(asked.place.clone(), &customisation_job(asked)?),
            JobVerb::List => JobCall::get(format!("{}{}", asked.place, asked.page("maxResults", "nextToken"))),
            JobVerb::Retrieve => JobCall::get(asked.own_place()),
            JobVerb::Cancel => JobCall::post(format!("{}/stop", asked.own_place()), &json!({})),
            JobVerb::Delete | JobVerb::Content | JobVerb::Output => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, step: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        let reply = reply.json()?;
        Ok(match (asked.verb, step) {
            (JobVerb::Create, 0) => {
                let arn =
                    text(&reply, "/jobArn").ok_or_else(|| CodecError::field("jobArn", "is missing in the answer"))?;
                JobAnswer::Ask(JobCall::get(format!("{}/{}", asked.place, escaped(&arn))))
            }
            (JobVerb::Cancel, 0) => JobAnswer::Ask(JobCall::get(asked.own_place())),
            (JobVerb::List, _) => {
                let jobs = entries(&reply, "modelCustomizationJobSummaries").into_iter().map(|one| tuned(one, asked));
                JobAnswer::Json(list(jobs.collect(), text(&reply, "/nextToken").as_deref()))
            }
            _ => JobAnswer::Json(tuned(&reply, asked)),
        })
    }
}

fn customisation_job(asked: &AskedJob) -> Result<Value, CodecError> {
    let training = own_url("training_file", asked.need("training_file")?, "s3://", asked)?;
    let role = asked.option_text("role_arn").or_else(|| asked.option_text("role"));
    let role =
        role.ok_or_else(|| CodecError::field("role_arn", "is required: the role that reads and writes the files"))?;
    let output = asked.option("output_data_config").or_else(|| asked.option("output_file")).and_then(s3_address);
    let output = output_folder(output, &training, asked)?;
    let name = asked.text("suffix").map_or_else(|| format!("model-{}", asked.request_id), str::to_owned);
    let mut parameters = Map::new();
    let sent = asked.body.get("hyperparameters");
    for (name, theirs) in
        [("n_epochs", "epochCount"), ("batch_size", "batchSize"), ("learning_rate_multiplier", "learningRate")]
    {
        let value = sent.and_then(|sent| sent.get(name)).filter(|value| *value != "auto" && !value.is_null());
        // Here every one of them is a text.
        let written = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        put(&mut parameters, theirs, written.map(Value::from));
    }
    let mut body = json!({
        "clientRequestToken": asked.request_id, "jobName": job_name(asked), "customModelName": name, "roleArn": role,
        "baseModelIdentifier": asked.need("model")?, "customizationType": "FINE_TUNING",
        "trainingDataConfig": { "s3Uri": training }, "outputDataConfig": { "s3Uri": output },
        "hyperParameters": parameters,
    });
    if let Some(file) = asked.text("validation_file") {
        let validation = own_url("validation_file", file, "s3://", asked)?;
        body["validationDataConfig"] = json!({ "validators": [{ "s3Uri": validation }] });
    }
    Ok(body)
}

fn tuned(reply: &Value, asked: &AskedJob) -> Value {
    let status = match reply["status"].as_str().unwrap_or_default() {
        "Completed" => "succeeded",
        "Failed" => "failed",
        "Stopping" | "Stopped" => "cancelled",
        _ => "running",
    };
    let file = |pointer: &str| text(reply, pointer).map(|url| file_id(&url));
    let job = TuningJob {
        id: escaped(&text(reply, "/jobArn").unwrap_or_default()),
        status,
        model: text(reply, "/baseModelArn"),
        tuned: text(reply, "/outputModelArn").or_else(|| text(reply, "/customModelArn")),
        created: time(reply, "creationTime"),
        finished: time(reply, "endTime"),
        training_file: file("/trainingDataConfig/s3Uri"),
        validation_file: file("/validationDataConfig/validators/0/s3Uri"),
        hyperparameters: reply.get("hyperParameters").cloned(),
        error: text(reply, "/failureMessage"),
    };
    job.json(&asked.provider)
}
