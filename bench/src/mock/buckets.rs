//! Files in buckets and jobs over them: S3 and Bedrock's invocation jobs, Google's storage and Vertex's prediction jobs. What was put
//! there can be read, and a job runs its rows as the same requests would have been answered. A job is over when it was looked
//! at twice. Of S3, which has no path of its own, buckets are known by their name (`mock-bucket…`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::anthropic;
use super::ask::Ask;
use super::bedrock::Bedrock;
use super::gemini::Gemini;
use super::route::Endpoint;
use super::shape::Payload;
use super::vendors::{self, Call, Vendor, unescaped};

const S3_BUCKET: &str = "/mock-bucket";
const UPLOADS: &str = "/upload/storage/v1/b/";
const OBJECTS: &str = "/storage/v1/b/";
const INVOCATION_JOB: &str = "/model-invocation-job";
const PREDICTION_JOBS: &str = "/batchPredictionJobs";
const TIME: &str = "2025-01-01T00:00:00Z";

type Refused = (u16, String);

#[derive(Default)]
pub struct Buckets {
    stored: Mutex<Stored>,
}

#[derive(Default)]
struct Stored {
    /// By their address, `s3://bucket/key` or `gs://bucket/key`.
    objects: BTreeMap<String, Bytes>,
    /// By ARN or name.
    jobs: BTreeMap<String, Job>,
}

struct Job {
    /// As it was asked for, and what was added.
    document: Value,
    /// How often it was looked at.
    looks: u32,
    is_stopped: bool,
}

/// Whether a path is one of these; the method tells nothing.
pub fn knows(path: &str) -> bool {
    let starts = [S3_BUCKET, UPLOADS, OBJECTS, INVOCATION_JOB];
    starts.iter().any(|start| path.starts_with(start)) || path.contains(PREDICTION_JOBS)
}

impl Buckets {
    pub fn answer(
        &self,
        method: &Method,
        path: &str,
        query: Option<&str>,
        body: &Bytes,
        id: u64,
    ) -> Result<Payload, Refused> {
        let mut stored = self.lock();
        if let Some(rest) = path.strip_prefix(UPLOADS) {
            return stored.upload(rest, query, body);
        }
        if let Some(rest) = path.strip_prefix(OBJECTS) {
            return match rest.split_once("/o/") {
                Some((bucket, key)) => stored.object(&format!("gs://{bucket}/{}", unescaped(key))),
                None => Ok(stored.list(rest.trim_end_matches("/o"))),
            };
        }
        if let Some(rest) = path.strip_prefix(INVOCATION_JOB) {
            return stored.invocation_job(method, rest, body, id);
        }
        if path.contains(PREDICTION_JOBS) {
            return stored.prediction_job(method, path, body, id);
        }
        let address = format!("s3:/{}", unescaped(path));
        match method.as_str() {
            "PUT" => {
                stored.objects.insert(address, body.clone());
                Ok(Payload::Typed("application/xml", Bytes::new()))
            }
            _ => stored.object(&address),
        }
    }

    pub fn clear(&self) {
        *self.lock() = Stored::default();
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn object(&self, address: &str) -> Result<Payload, Refused> {
        let found = self.objects.get(address).cloned();
        found.map(|bytes| Payload::Typed("application/octet-stream", bytes)).ok_or_else(|| missing(address))
    }

    fn list(&self, bucket: &str) -> Payload {
        let folder = format!("gs://{bucket}/");
        let in_bucket =
            self.objects.iter().filter_map(|(address, bytes)| Some((address.strip_prefix(&folder)?, bytes)));
        let items = in_bucket.map(|(name, bytes)| {
            json!({ "bucket": bucket, "name": name, "size": bytes.len().to_string(), "timeCreated": TIME })
        });
        object(&json!({ "items": items.collect::<Vec<_>>() }))
    }

    /// `{bucket}/o?name=…`.
    fn upload(&mut self, rest: &str, query: Option<&str>, body: &Bytes) -> Result<Payload, Refused> {
        let bucket = rest.trim_end_matches("/o");
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let name = pairs.into_iter().find(|(name, _)| name == "name").map(|(_, value)| value.into_owned());
        let name = name.ok_or_else(|| (400, "Required parameter: name".to_owned()))?;
        self.objects.insert(format!("gs://{bucket}/{name}"), body.clone());
        Ok(object(&json!({ "bucket": bucket, "name": name, "size": body.len().to_string(), "timeCreated": TIME })))
    }

    /// What stands after `/model-invocation-job`.
    fn invocation_job(&mut self, method: &Method, rest: &str, body: &[u8], id: u64) -> Result<Payload, Refused> {
        if rest == "s" {
            let all: Vec<Value> = self.jobs.values().map(|job| job.shown(&BEDROCK)).collect();
            return Ok(object(&json!({ "invocationJobSummaries": all })));
        }
        if *method == Method::POST && rest.is_empty() {
            return self.invoke(body, id);
        }
        let rest = rest.trim_start_matches('/');
        match rest.strip_suffix("/stop") {
            Some(arn) => self.stop(&unescaped(arn), &BEDROCK),
            None => self.look(&unescaped(rest), &BEDROCK),
        }
    }

    /// One token makes one job.
    fn invoke(&mut self, body: &[u8], id: u64) -> Result<Payload, Refused> {
        let mut document: Value = serde_json::from_slice(body).map_err(|error| (400, error.to_string()))?;
        let same =
            self.jobs.iter().find(|(_, job)| job.document["clientRequestToken"] == document["clientRequestToken"]);
        if let Some((arn, _)) = same {
            return Ok(object(&json!({ "jobArn": arn })));
        }
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let (input, output) = (
            text("/inputDataConfig/s3InputDataConfig/s3Uri").unwrap_or_default(),
            text("/outputDataConfig/s3OutputDataConfig/s3Uri").unwrap_or_default(),
        );
        if text("/roleArn").is_none() {
            return Err((400, "roleArn is required".to_owned()));
        }
        let model = text("/modelId").unwrap_or_default();
        let (job, file) = (format!("job{id}"), input.rsplit('/').next().unwrap_or_default().to_owned());
        let rows = self.rows(&input)?;
        let lines: String = rows.iter().map(|row| format!("{}\n", invoked(row, &model, id))).collect();
        self.objects.insert(format!("{}/{job}/{file}.out", output.trim_end_matches('/')), lines.into());
        let arn = format!("arn:aws:bedrock:us-east-1:123456789012:model-invocation-job/{job}");
        document["jobArn"] = arn.clone().into();
        document["submitTime"] = TIME.into();
        self.jobs.insert(arn.clone(), Job { document, looks: 0, is_stopped: false });
        Ok(object(&json!({ "jobArn": arn })))
    }

    fn prediction_job(&mut self, method: &Method, path: &str, body: &[u8], id: u64) -> Result<Payload, Refused> {
        let path = path.trim_start_matches('/').trim_start_matches("v1/");
        let is_collection = path.ends_with(PREDICTION_JOBS);
        match (method.as_str(), is_collection) {
            ("POST", true) => self.predict(path, body, id),
            (_, true) => {
                let all: Vec<Value> = self.jobs.values().map(|job| job.shown(&VERTEX)).collect();
                Ok(object(&json!({ "batchPredictionJobs": all })))
            }
            _ => match path.strip_suffix(":cancel") {
                Some(name) => self.stop(name, &VERTEX),
                None => self.look(path, &VERTEX),
            },
        }
    }

    fn predict(&mut self, collection: &str, body: &[u8], id: u64) -> Result<Payload, Refused> {
        let mut document: Value = serde_json::from_slice(body).map_err(|error| (400, error.to_string()))?;
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let input = text("/inputConfig/gcsSource/uris/0").unwrap_or_default();
        let prefix = text("/outputConfig/gcsDestination/outputUriPrefix").unwrap_or_default();
        let model = text("/model").unwrap_or_default();
        let rows = self.rows(&input)?;
        let lines: String = rows.iter().map(|row| format!("{}\n", predicted(row, &model, id))).collect();
        let folder = format!("{}/prediction-{id}", prefix.trim_end_matches('/'));
        self.objects.insert(format!("{folder}/predictions.jsonl"), lines.into());
        let name = format!("{collection}/{id}");
        document["name"] = name.clone().into();
        document["createTime"] = TIME.into();
        document["outputInfo"] = json!({ "gcsOutputDirectory": folder });
        let job = Job { document, looks: 0, is_stopped: false };
        let shown = job.shown(&VERTEX);
        self.jobs.insert(name, job);
        Ok(object(&shown))
    }

    fn rows(&self, input: &str) -> Result<Vec<Value>, Refused> {
        let file = self.objects.get(input).ok_or_else(|| missing(input))?;
        let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let rows: Result<_, _> = lines.map(serde_json::from_slice).collect();
        rows.map_err(|error| (400, format!("{input}: {error}")))
    }

    fn look(&mut self, name: &str, states: &States) -> Result<Payload, Refused> {
        let job = self.jobs.get_mut(name).ok_or_else(|| missing(name))?;
        job.looks += 1;
        Ok(object(&job.shown(states)))
    }

    fn stop(&mut self, name: &str, states: &States) -> Result<Payload, Refused> {
        let job = self.jobs.get_mut(name).ok_or_else(|| missing(name))?;
        job.is_stopped |= job.shown(states)[states.field] != states.done;
        Ok(object(&json!({})))
    }
}

/// How a vendor names how a job stands: before it was looked at, then, at last, and once it was stopped.
struct States {
    field: &'static str,
    new: &'static str,
    running: &'static str,
    done: &'static str,
    stopped: &'static str,
}

const BEDROCK: States =
    States { field: "status", new: "Submitted", running: "InProgress", done: "Completed", stopped: "Stopped" };
const VERTEX: States = States {
    field: "state",
    new: "JOB_STATE_PENDING",
    running: "JOB_STATE_RUNNING",
    done: "JOB_STATE_SUCCEEDED",
    stopped: "JOB_STATE_CANCELLED",
};

impl Job {
    fn shown(&self, states: &States) -> Value {
        let state = match (self.is_stopped, self.looks) {
            (true, _) => states.stopped,
            (false, 0) => states.new,
            (false, 1) => states.running,
            (false, _) => states.done,
        };
        let mut document = self.document.clone();
        document[states.field] = state.into();
        if state != states.done
            && let Some(document) = document.as_object_mut()
        {
            document.remove("outputInfo");
        }
        document
    }
}

/// A row of Bedrock's: Claude's models are asked with messages, others with what Converse takes.
fn invoked(row: &Value, model: &str, id: u64) -> Value {
    let input = &row["modelInput"];
    let answer = match input["anthropic_version"].is_string() {
        true => message(input, id),
        false => asked_of(&Bedrock, Endpoint::Converse, &format!("/model/{model}/converse"), input, id),
    };
    let mut out = json!({ "recordId": row["recordId"], "modelInput": input });
    match answer {
        Ok(answer) => out["modelOutput"] = answer,
        Err((status, why)) => out["error"] = json!({ "errorCode": status, "errorMessage": why }),
    }
    out
}

fn predicted(row: &Value, model: &str, id: u64) -> Value {
    let request = &row["request"];
    let path = format!("/v1/projects/p/locations/l/{model}:generateContent");
    let answer = match request["anthropic_version"].is_string() {
        true => message(request, id),
        false => asked_of(&Gemini, Endpoint::GenerateContent, &path, request, id),
    };
    let mut out = row.clone();
    match answer {
        Ok(answer) => (out["status"], out["response"]) = (json!(""), answer),
        Err((status, why)) => out["status"] = json!(format!("{status}: {why}")),
    }
    out
}

fn message(input: &Value, id: u64) -> Result<Value, Refused> {
    let text = input.to_string();
    let ask = Ask::parse(text.as_bytes()).map_err(|error| (400, error.to_string()))?;
    let fault = ask.fault().ok().flatten().unwrap_or_default();
    match fault.status.unwrap_or(200) {
        status @ 400.. => Err((status, "mock error, as asked".to_owned())),
        _ => whole(&anthropic::message(&ask, &fault, id)),
    }
}

fn asked_of(vendor: &dyn Vendor, endpoint: Endpoint, path: &str, body: &Value, id: u64) -> Result<Value, Refused> {
    let call = Call { endpoint, path, query: None };
    match vendors::react(vendor, &call, None, body.to_string().as_bytes(), id)? {
        (_, status @ 400.., _) => Err((status, "mock error, as asked".to_owned())),
        (_, _, payload) => whole(&payload),
    }
}

fn whole(payload: &Payload) -> Result<Value, Refused> {
    match payload {
        Payload::Whole(body) => serde_json::from_slice(body).map_err(|error| (500, error.to_string())),
        _ => Err((400, "streams are not possible in a batch".to_owned())),
    }
}

fn object(document: &Value) -> Payload {
    Payload::whole(document.to_string().into_bytes())
}

fn missing(what: &str) -> Refused {
    (404, format!("there is no {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(answer: Result<Payload, Refused>) -> String {
        match answer.unwrap() {
            Payload::Whole(body) | Payload::Typed(_, body) => String::from_utf8_lossy(&body).into_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_job_runs_the_rows_of_its_file_and_is_over_when_it_was_looked_at_twice() {
        let buckets = Buckets::default();
        let row = |text: &str| json!({ "recordId": text, "modelInput": { "messages": [{ "role": "user", "content": [{ "text": text }] }] } });
        let rows = format!("{}\n{}\n", row("a"), row(r#"{"mock":{"status":500}}"#));
        text(buckets.answer(&Method::PUT, "/mock-bucket/in/x.jsonl", None, &rows.into(), 1));
        let asked = json!({ "clientRequestToken": "t", "modelId": "amazon.nova-lite-v1:0", "roleArn": "r",
            "inputDataConfig": { "s3InputDataConfig": { "s3Uri": "s3://mock-bucket/in/x.jsonl" } },
            "outputDataConfig": { "s3OutputDataConfig": { "s3Uri": "s3://mock-bucket/out/" } } });
        let body = Bytes::from(asked.to_string());
        let made: Vec<String> =
            (2..4).map(|id| text(buckets.answer(&Method::POST, INVOCATION_JOB, None, &body, id))).collect();
        assert_eq!(made[0], made[1], "one token makes one job");
        let arn: Value = serde_json::from_str(&made[0]).unwrap();
        let place = format!("{INVOCATION_JOB}/{}", arn["jobArn"].as_str().unwrap().replace('/', "%2F"));
        let look = || text(buckets.answer(&Method::GET, &place, None, &Bytes::new(), 9));
        assert!(look().contains("InProgress") && look().contains("Completed"));
        let output = text(buckets.answer(&Method::GET, "/mock-bucket/out/job2/x.jsonl.out", None, &Bytes::new(), 9));
        let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines[0]["modelOutput"]["output"].is_object() && lines[1]["error"]["errorCode"] == 500, "{output}");
        assert!(buckets.answer(&Method::GET, "/mock-bucket/none", None, &Bytes::new(), 9).is_err());
    }
}
