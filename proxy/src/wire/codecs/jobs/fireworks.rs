//! Fireworks: files are datasets, which are made first and filled then; fine-tuning is `supervisedFineTuningJobs`.

use super::cohere::form;
use super::objects::{ProviderFile, TuningJob, deleted, entries, list, put, text, time};
use super::{AskedJob, JobAnswer, JobCall, JobCodec, JobReply, JobVerb, escaped};
use crate::wire::codecs::CodecError;
use http::Method;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct FireworksFiles;

impl JobCodec for FireworksFiles {
    fn name(&self) -> &'static str {
        "fireworks_files"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        Ok(match asked.verb {
            JobVerb::Create => {
                let file = asked.file.as_ref().ok_or_else(|| CodecError::field("file", "is required"))?;
                let rows = file.bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
                let dataset = json!({ "displayName": file.name, "userUploaded": {}, "exampleCount": rows.to_string() });
                JobCall::post(asked.place.clone(), &json!({ "datasetId": dataset_id(asked), "dataset": dataset }))
            }
            JobVerb::List => JobCall::get(format!("{}{}", asked.place, asked.page("pageSize", "pageToken"))),
            JobVerb::Retrieve => JobCall::get(asked.own_place()),
            JobVerb::Delete => JobCall { method: Method::DELETE, ..JobCall::get(asked.own_place()) },
            JobVerb::Cancel | JobVerb::Content | JobVerb::Output => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, step: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        let made = || format!("{}/{}", asked.place, escaped(&dataset_id(asked)));
        match (asked.verb, step, &asked.file) {
            (JobVerb::Create, 0, Some(file)) => {
                let place = format!("{}:upload", made());
                return Ok(JobAnswer::Ask(form(place, "file", &file.name, &file.bytes, &asked.request_id)));
            }
            (JobVerb::Create, 1, _) => return Ok(JobAnswer::Ask(JobCall::get(made()))),
            (JobVerb::Delete, ..) => return Ok(JobAnswer::Json(deleted(&asked.id))),
            _ => {}
        }
        let reply = reply.json()?;
        Ok(JobAnswer::Json(match asked.verb {
            JobVerb::List => {
                let files = entries(&reply, "datasets").into_iter().map(|one| file(one, asked)).collect();
                list(files, text(&reply, "/nextPageToken").as_deref())
            }
            _ => file(&reply, asked),
        }))
    }
}

/// Names of datasets are small letters, digits and hyphens.
fn dataset_id(asked: &AskedJob) -> String {
    format!("file-{}", asked.request_id.to_ascii_lowercase())
}

fn last_segment(reply: &Value, pointer: &str) -> Option<String> {
    let name = text(reply, pointer)?;
    name.rsplit('/').next().map(str::to_owned)
}

fn file(reply: &Value, asked: &AskedJob) -> Value {
    let id = last_segment(reply, "/name").unwrap_or_default();
    let file = ProviderFile {
        name: text(reply, "/displayName").unwrap_or_else(|| id.clone()),
        id,
        bytes: 0,
        created: time(reply, "createTime"),
        purpose: "fine-tune".to_owned(),
        status: if reply["state"] == "READY" { "processed" } else { "uploaded" },
    };
    file.json(&asked.provider)
}

#[derive(Debug)]
pub(super) struct FireworksTuning;

impl JobCodec for FireworksTuning {
    fn name(&self) -> &'static str {
        "fireworks_tuning"
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
        if (asked.verb, step) == (JobVerb::Cancel, 0) {
            return Ok(JobAnswer::Ask(JobCall::get(asked.own_place())));
        }
        let reply = reply.json()?;
        Ok(JobAnswer::Json(match asked.verb {
            JobVerb::List => {
                let jobs =
                    entries(&reply, "supervisedFineTuningJobs").into_iter().map(|one| tuned(one, asked)).collect();
                list(jobs, text(&reply, "/nextPageToken").as_deref())
            }
            _ => tuned(&reply, asked),
        }))
    }
}

fn tuning_job(asked: &AskedJob) -> Result<Value, CodecError> {
    let account = asked.placed("account").unwrap_or_default();
    let dataset = |id: &str| match id.contains('/') {
        true => id.to_owned(),
        false => format!("accounts/{account}/datasets/{id}"),
    };
    let mut body = Map::new();
    body.insert("baseModel".into(), asked.need("model")?.into());
    body.insert("dataset".into(), dataset(asked.need("training_file")?).into());
    put(&mut body, "evaluationDataset", asked.text("validation_file").map(|file| dataset(file).into()));
    put(&mut body, "displayName", asked.text("suffix").map(Into::into));
    let sent = asked.body.get("hyperparameters");
    for (name, theirs) in [("n_epochs", "epochs"), ("learning_rate", "learningRate"), ("lora_rank", "loraRank")] {
        let value = sent.and_then(|sent| sent.get(name)).filter(|value| *value != "auto");
        put(&mut body, theirs, value.cloned());
    }
    Ok(body.into())
}

fn tuned(reply: &Value, asked: &AskedJob) -> Value {
    let status = match reply["state"].as_str().unwrap_or_default().trim_start_matches("JOB_STATE_") {
        "COMPLETED" | "EARLY_STOPPED" => "succeeded",
        "FAILED" | "EXPIRED" => "failed",
        "CANCELLED" | "DELETING" => "cancelled",
        "VALIDATING" => "validating_files",
        "RUNNING" | "WRITING_RESULTS" | "EVALUATION" => "running",
        _ => "queued",
    };
    let finished = matches!(status, "succeeded" | "failed" | "cancelled");
    let job = TuningJob {
        id: last_segment(reply, "/name").unwrap_or_default(),
        status,
        model: text(reply, "/baseModel"),
        tuned: text(reply, "/outputModel"),
        created: time(reply, "createTime"),
        finished: time(reply, "completedTime").filter(|_| finished),
        training_file: last_segment(reply, "/dataset"),
        validation_file: last_segment(reply, "/evaluationDataset"),
        hyperparameters: Some(json!({ "n_epochs": reply["epochs"], "learning_rate": reply["learningRate"] })),
        error: text(reply, "/status/message").filter(|_| status == "failed"),
    };
    job.json(&asked.provider)
}
