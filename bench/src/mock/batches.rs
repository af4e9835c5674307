//! Files and batches that are remembered: what was uploaded can be read again, and a batch over it is run, row by row, as the
//! same requests would have been answered. A batch is over when it was looked at twice. Ids that were not given out here are
//! left to `objects`, where every id exists.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};

use super::ask::Ask;
use super::bill::{Bill, BillKey, reported};
use super::openai::{self, CREATED};
use super::shape::Payload;

/// Of one file; longer ones are forgotten.
pub const MAX_FILE: usize = 64 << 20;

#[derive(Default)]
pub struct Shelf {
    stored: Mutex<Stored>,
}

#[derive(Default)]
struct Stored {
    files: BTreeMap<String, StoredFile>,
    batches: BTreeMap<String, StoredBatch>,
}

struct StoredFile {
    name: String,
    purpose: String,
    bytes: Bytes,
}

struct StoredBatch {
    object: Map<String, Value>,
    /// How often it was looked at.
    looks: u32,
    is_cancelled: bool,
}

impl Shelf {
    /// None for what was not kept here.
    pub fn answer(
        &self,
        method: &Method,
        path: &str,
        body: &[u8],
        id: u64,
        account: Option<(&Bill, &HeaderMap)>,
    ) -> Option<Payload> {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let mut stored = self.lock();
        let answer = match (method.as_str(), &segments[..]) {
            ("POST", ["files"]) => stored.upload(body, id)?,
            ("GET", ["files", file]) => stored.files.get(*file).map(|stored| file_object(file, stored))?,
            ("GET", ["files", file, "content"]) => {
                return stored
                    .files
                    .get(*file)
                    .map(|stored| Payload::Typed("application/octet-stream", stored.bytes.clone()));
            }
            ("DELETE", ["files", file]) => {
                stored.files.remove(*file)?;
                json!({ "id": file, "object": "file", "deleted": true })
            }
            ("POST", ["batches"]) => stored.start(body, id, account)?,
            ("GET", ["batches"]) if !stored.batches.is_empty() => stored.list(),
            ("GET", ["batches", batch]) => stored.look(batch)?,
            ("POST", ["batches", batch, "cancel"]) => stored.cancel(batch)?,
            _ => return None,
        };
        Some(Payload::whole(answer.to_string().into_bytes()))
    }

    pub fn clear(&self) {
        *self.lock() = Stored::default();
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn upload(&mut self, form: &[u8], id: u64) -> Option<Value> {
        let (name, bytes) = file_part(form)?;
        let purpose = field(form, "purpose").unwrap_or_else(|| "batch".to_owned());
        let file = StoredFile { name, purpose, bytes };
        let id = format!("file-{id:016}");
        let object = file_object(&id, &file);
        self.files.insert(id, file);
        Some(object)
    }

    fn start(&mut self, body: &[u8], id: u64, account: Option<(&Bill, &HeaderMap)>) -> Option<Value> {
        let asked: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let input = self.files.get(asked.get("input_file_id")?.as_str()?)?.bytes.clone();
        let (output, errors) = (format!("file-out-{id:016}"), format!("file-err-{id:016}"));
        let mut object = asked;
        let id = format!("batch_{id:016}");
        let facts = json!({ "id": id, "object": "batch", "created_at": CREATED, "status": "validating", "errors": null,
            "output_file_id": null, "error_file_id": null });
        object.extend(facts.as_object().cloned().unwrap_or_default());
        match run(&input, account) {
            Err(line) => {
                let error = json!({ "code": "invalid_json_line", "message": "This line is not parseable as valid JSON.",
                    "param": null, "line": line });
                object.insert("errors".into(), json!({ "object": "list", "data": [error] }));
            }
            Ok((good, bad)) => {
                let count = |rows: &str| rows.lines().count();
                object.insert(
                    "request_counts".into(),
                    json!({ "total": count(&good) + count(&bad), "completed": count(&good), "failed": count(&bad) }),
                );
                for (id, field, rows) in [(output, "output_file_id", good), (errors, "error_file_id", bad)] {
                    if !rows.is_empty() {
                        object.insert(field.into(), json!(id));
                        let file = StoredFile {
                            name: format!("{id}.jsonl"),
                            purpose: "batch_output".into(),
                            bytes: rows.into(),
                        };
                        self.files.insert(id, file);
                    }
                }
            }
        }
        let batch = StoredBatch { object, looks: 0, is_cancelled: false };
        let shown = batch.shown();
        self.batches.insert(id, batch);
        Some(shown)
    }

    fn look(&mut self, id: &str) -> Option<Value> {
        let batch = self.batches.get_mut(id)?;
        batch.looks += 1;
        Some(batch.shown())
    }

    fn cancel(&mut self, id: &str) -> Option<Value> {
        let batch = self.batches.get_mut(id)?;
        batch.is_cancelled |= batch.looks < 2;
        Some(batch.shown())
    }

    fn list(&self) -> Value {
        let data: Vec<Value> = self.batches.values().rev().map(StoredBatch::shown).collect();
        json!({ "object": "list", "first_id": data.first().map(|one| one["id"].clone()),
            "last_id": data.last().map(|one| one["id"].clone()), "has_more": false, "data": data })
    }
}

impl StoredBatch {
    fn shown(&self) -> Value {
        let has_failed = self.object.get("errors").is_some_and(|errors| !errors.is_null());
        let status = match (has_failed, self.looks, self.is_cancelled) {
            (true, ..) => "failed",
            (false, 0, true) => "cancelling",
            (false, _, true) => "cancelled",
            (false, 0, false) => "validating",
            (false, 1, false) => "in_progress",
            (false, _, false) => "completed",
        };
        let mut object = self.object.clone();
        object.insert("status".into(), status.into());
        if !matches!(status, "completed" | "cancelled") {
            object.insert("output_file_id".into(), Value::Null);
            object.insert("error_file_id".into(), Value::Null);
        }
        Value::Object(object)
    }
}

/// The rows of the output and of the errors, or the line that is no row.
fn run(input: &[u8], account: Option<(&Bill, &HeaderMap)>) -> Result<(String, String), usize> {
    let (mut good, mut bad) = (String::new(), String::new());
    for (number, line) in input.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let row: Value = serde_json::from_slice(line).map_err(|_| number + 1)?;
        let (status, body) = answered(&row, number as u64);
        if let Some((bill, headers)) = account.filter(|_| status < 400)
            && let Some(key) = BillKey::find(headers, line)
        {
            bill.add(&key, reported(&body));
        }
        let rows = if status < 400 { &mut good } else { &mut bad };
        let answer = json!({ "id": format!("batch_req_{number:08}"), "custom_id": row["custom_id"],
            "response": { "status_code": status, "request_id": format!("req_{number:08}"), "body": body }, "error": null });
        rows.push_str(&answer.to_string());
        rows.push('\n');
    }
    Ok((good, bad))
}

fn answered(row: &Value, id: u64) -> (u16, Value) {
    let text = row["body"].to_string();
    let Ok(ask) = Ask::parse(text.as_bytes()) else { return (400, openai::error(400, "the body cannot be read")) };
    let fault = ask.fault().ok().flatten().unwrap_or_default();
    let status = fault.status.unwrap_or(200);
    if status >= 400 {
        return (status, openai::error(status, "mock error, as asked"));
    }
    let payload = match row["url"].as_str().unwrap_or_default() {
        "/v1/embeddings" => openai::embeddings(&ask, &fault),
        "/v1/completions" => openai::completion(&ask, &fault, id),
        _ => openai::chat(&ask, &fault, id),
    };
    match payload {
        Payload::Whole(body) => (200, serde_json::from_slice(&body).unwrap_or_default()),
        _ => (400, openai::error(400, "streams are not possible in a batch")),
    }
}

fn file_object(id: &str, file: &StoredFile) -> Value {
    json!({ "id": id, "object": "file", "bytes": file.bytes.len(), "created_at": CREATED, "filename": file.name,
        "purpose": file.purpose, "status": "processed" })
}

/// Name and bytes of the file in a form.
fn file_part(form: &[u8]) -> Option<(String, Bytes)> {
    let boundary = form.split(|byte| *byte == b'\r').next()?;
    let start = find(form, b"filename=\"")?;
    let rest = &form[start + b"filename=\"".len()..];
    let name = rest.split(|byte| *byte == b'"').next()?;
    let content = &rest[find(rest, b"\r\n\r\n")? + 4..];
    let end = find(content, &[b"\r\n", boundary].concat())?;
    Some((String::from_utf8_lossy(name).into_owned(), Bytes::copy_from_slice(&content[..end])))
}

fn field(form: &[u8], name: &str) -> Option<String> {
    let head = format!("name=\"{name}\"\r\n\r\n");
    let start = find(form, head.as_bytes())? + head.len();
    let value = form[start..].split(|byte| *byte == b'\r').next()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(payload: Option<Payload>) -> Value {
        match payload {
            Some(Payload::Whole(body)) => serde_json::from_slice(&body).unwrap(),
            Some(Payload::Typed(_, body)) => Value::from(String::from_utf8_lossy(&body).into_owned()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_batch_over_an_uploaded_file_is_run_and_its_rows_can_be_read() {
        let shelf = Shelf::default();
        let row = |id: &str, model: &str| {
            json!({ "custom_id": id, "method": "POST", "url": "/v1/chat/completions",
                "body": { "model": model, "messages": [{ "role": "user", "content": "Hello" }] } })
        };
        let rows = format!("{}\n{}\n", row("a", "m"), row("b", "fault/status=500"));
        let form = format!(
            "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; \
             name=\"file\"; filename=\"x.jsonl\"\r\n\r\n{rows}\r\n--b--\r\n"
        );
        let file = text(shelf.answer(&Method::POST, "/files", form.as_bytes(), 1, None));
        assert_eq!(file["bytes"], rows.len(), "{file}");
        let asked = json!({ "input_file_id": file["id"], "endpoint": "/v1/chat/completions" }).to_string();
        let batch = text(shelf.answer(&Method::POST, "/batches", asked.as_bytes(), 2, None));
        let path = format!("/batches/{}", batch["id"].as_str().unwrap());
        let looks: Vec<Value> = (0..2).map(|_| text(shelf.answer(&Method::GET, &path, b"", 3, None))).collect();
        assert_eq!(
            [&batch["status"], &looks[0]["status"], &looks[1]["status"]],
            ["validating", "in_progress", "completed"]
        );
        assert_eq!(looks[1]["request_counts"], json!({ "total": 2, "completed": 1, "failed": 1 }));
        let output = format!("/files/{}/content", looks[1]["output_file_id"].as_str().unwrap());
        let output = text(shelf.answer(&Method::GET, &output, b"", 4, None));
        assert!(output.as_str().unwrap().contains("\"custom_id\":\"a\""), "{output}");
        assert!(shelf.answer(&Method::GET, "/batches/other", b"", 5, None).is_none());
    }
}
