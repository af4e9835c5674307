//! Files where batches and fine-tuning read them from a bucket: S3 for Bedrock, Google's storage for Vertex. A file's id is
//! its address, escaped (`s3%3A%2F%2Fbucket%2Fkey`), and only the account's own bucket is read or written. Rows of a batch
//! are rewritten on their way in: the model that they are for must be known then.

use super::batch_rows::{BatchRow, each_row, translated};
use super::objects::{ProviderFile, count, deleted, entries, list, text, time};
use super::{AskedJob, JobAnswer, JobCall, JobCodec, JobReply, JobVerb, escaped, unescaped};
use crate::wire::codecs::converse::ConverseCodec;
use crate::wire::codecs::gemini::GeminiCodec;
use crate::wire::codecs::messages::MessagesCodec;
use crate::wire::codecs::options::RequestOptions;
use crate::wire::codecs::{Codec, CodecError};
use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};

/// An address as the id of a file.
pub fn file_id(url: &str) -> String {
    escaped(url)
}

/// The address that an id is made of.
pub fn file_url(id: &str) -> String {
    unescaped(id)
}

/// The address that a field of the request names, which must be in the account's bucket.
pub fn own_url(field: &str, id: &str, scheme: &str, asked: &AskedJob) -> Result<String, CodecError> {
    let url = file_url(id);
    located(field, &url, scheme, asked)?;
    Ok(url)
}

/// The same of a folder, which may be the whole bucket.
pub fn own_folder(field: &str, url: String, scheme: &str, asked: &AskedJob) -> Result<String, CodecError> {
    located(field, &format!("{}/_", url.trim_end_matches('/')), scheme, asked)?;
    Ok(url)
}

/// Bucket and key of an address, which must be in the account's bucket.
fn located<'u>(field: &str, url: &'u str, scheme: &str, asked: &AskedJob) -> Result<(&'u str, &'u str), CodecError> {
    let wrong = |problem: &str| CodecError::field(field, problem);
    let rest = url.strip_prefix(scheme).ok_or_else(|| wrong(&format!("must be an escaped {scheme} address")))?;
    let (bucket, key) =
        rest.split_once('/').filter(|(_, key)| !key.is_empty()).ok_or_else(|| wrong("names no file"))?;
    match asked.placed("bucket") == Some(bucket) {
        true => Ok((bucket, key)),
        false => Err(wrong("is in another bucket than the account's")),
    }
}

/// The name under which a new file is kept.
fn new_key(asked: &AskedJob) -> String {
    let name = asked.file_name.clone().or_else(|| asked.file.as_ref().map(|file| file.name.clone()));
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "file.jsonl".to_owned());
    let name = name.trim_start_matches('/').replace("..", "_");
    format!("{}/{name}", asked.request_id)
}

/// The bytes that are kept.
fn new_file(asked: &AskedJob, row: impl Fn(&BatchRow, &str) -> Result<Value, CodecError>) -> Result<Bytes, CodecError> {
    let file = asked.file.as_ref().ok_or_else(|| CodecError::field("file", "is required"))?;
    if asked.text("purpose") != Some("batch") {
        return Ok(file.bytes.clone());
    }
    let mut out = Vec::with_capacity(file.bytes.len());
    for found in each_row(&file.bytes) {
        let found = found?;
        let named = asked.model.as_deref().or_else(|| found.body.get("model").and_then(Value::as_str));
        let model = named.ok_or_else(|| CodecError::field("file", "names no model, and no header does"))?;
        out.extend_from_slice(row(&found, model)?.to_string().as_bytes());
        out.push(b'\n');
    }
    Ok(Bytes::from(out))
}

fn in_words(
    row: &BatchRow,
    codec: &dyn Codec,
    model: Option<&str>,
    anthropic_version: Option<&str>,
) -> Result<Map<String, Value>, CodecError> {
    let is_claude = model.is_some_and(|model| model.contains("anthropic."));
    let options = RequestOptions { model, anthropic_version, is_claude, ..RequestOptions::default() };
    let mut body = translated(&row.body, codec, &options)?;
    body.remove("stream");
    body.remove("model");
    Ok(body)
}

fn stored_file(asked: &AskedJob, url: &str, bytes: u64, created: Option<i64>) -> Value {
    let file = ProviderFile {
        id: file_id(url),
        name: url.rsplit('/').next().unwrap_or_default().to_owned(),
        bytes,
        created,
        purpose: asked.text("purpose").unwrap_or("batch").to_owned(),
        ..ProviderFile::default()
    };
    file.json(&asked.provider)
}

#[derive(Debug)]
pub(super) struct BedrockFiles;

impl BedrockFiles {
    fn place(asked: &AskedJob, url: &str) -> Result<String, CodecError> {
        let (_, key) = located("file_id", url, "s3://", asked)?;
        let key: Vec<String> = key.split('/').map(escaped).collect();
        Ok(format!("{}/{}", asked.place, key.join("/")))
    }

    fn url(asked: &AskedJob) -> String {
        match asked.verb {
            JobVerb::Create => format!("s3://{}/{}", asked.placed("bucket").unwrap_or_default(), new_key(asked)),
            _ => asked.id.clone(),
        }
    }
}

impl JobCodec for BedrockFiles {
    fn name(&self) -> &'static str {
        "bedrock_files"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        let place = || Self::place(asked, &Self::url(asked));
        Ok(match asked.verb {
            JobVerb::Create => JobCall {
                method: Method::PUT,
                content_type: Some("application/jsonl".to_owned()),
                body: new_file(asked, bedrock_row)?,
                ..JobCall::get(place()?)
            },
            JobVerb::Retrieve => JobCall { is_glance: true, ..JobCall::get(place()?) },
            JobVerb::Content => JobCall::get(place()?),
            JobVerb::Delete => JobCall { method: Method::DELETE, ..JobCall::get(place()?) },
            JobVerb::List | JobVerb::Cancel | JobVerb::Output => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, _: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        let url = Self::url(asked);
        Ok(match asked.verb {
            JobVerb::Content => JobAnswer::Bytes("application/octet-stream", reply.body.clone()),
            JobVerb::Delete => JobAnswer::Json(deleted(&file_id(&url))),
            JobVerb::Create => {
                let bytes = asked.file.as_ref().map_or(0, |file| file.bytes.len() as u64);
                JobAnswer::Json(stored_file(asked, &url, bytes, i64::try_from(asked.now).ok()))
            }
            _ => JobAnswer::Json(stored_file(asked, &url, reply.length.unwrap_or(0), None)),
        })
    }
}

/// Claude's models take messages; the others nearly what Converse takes.
pub fn bedrock_row(row: &BatchRow, model: &str) -> Result<Value, CodecError> {
    let input = match model.contains("anthropic.") {
        true => in_words(row, &MessagesCodec, Some(model), Some("bedrock-2023-05-31"))?,
        false => in_words(row, &ConverseCodec, Some(model), None)?,
    };
    Ok(json!({ "recordId": row.custom_id, "modelInput": input }))
}

#[derive(Debug)]
pub(super) struct VertexFiles;

/// Where an object of Google's storage is.
pub fn object_place(url: &str, asked: &AskedJob) -> Result<String, CodecError> {
    let (bucket, key) = located("file_id", url, "gs://", asked)?;
    Ok(format!("/storage/v1/b/{}/o/{}", escaped(bucket), escaped(key)))
}

impl JobCodec for VertexFiles {
    fn name(&self) -> &'static str {
        "vertex_files"
    }

    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError> {
        let place = || object_place(&asked.id, asked);
        Ok(match asked.verb {
            JobVerb::Create => {
                let upload = format!("/upload{}/o?uploadType=media&name={}", asked.place, escaped(&new_key(asked)));
                JobCall {
                    method: Method::POST,
                    content_type: Some("application/jsonl".to_owned()),
                    body: new_file(asked, vertex_row)?,
                    ..JobCall::get(upload)
                }
            }
            JobVerb::List => {
                let page = asked.page("maxResults", "pageToken");
                JobCall::get(format!("{}/o{page}", asked.place))
            }
            JobVerb::Retrieve => JobCall::get(place()?),
            JobVerb::Content => JobCall::get(format!("{}?alt=media", place()?)),
            JobVerb::Delete => JobCall { method: Method::DELETE, ..JobCall::get(place()?) },
            JobVerb::Cancel | JobVerb::Output => return Err(asked.unmapped()),
        })
    }

    fn read(&self, asked: &AskedJob, _: usize, reply: &JobReply) -> Result<JobAnswer, CodecError> {
        match asked.verb {
            JobVerb::Content => return Ok(JobAnswer::Bytes("application/octet-stream", reply.body.clone())),
            JobVerb::Delete => return Ok(JobAnswer::Json(deleted(&file_id(&asked.id)))),
            _ => {}
        }
        let reply = reply.json()?;
        let one = |reply: &Value| {
            let part = |name: &str| text(reply, name).unwrap_or_default();
            let url = format!("gs://{}/{}", part("/bucket"), part("/name"));
            stored_file(asked, &url, count(reply, "/size"), time(reply, "timeCreated"))
        };
        Ok(JobAnswer::Json(match asked.verb {
            JobVerb::List => {
                let files = entries(&reply, "items").into_iter().map(one).collect();
                list(files, text(&reply, "/nextPageToken").as_deref())
            }
            _ => one(&reply),
        }))
    }
}

pub fn vertex_row(row: &BatchRow, model: &str) -> Result<Value, CodecError> {
    Ok(match model.starts_with("anthropic.") || model.starts_with("claude") {
        true => {
            let body = in_words(row, &MessagesCodec, None, Some("vertex-2023-10-16"))?;
            json!({ "custom_id": row.custom_id, "request": body })
        }
        false => json!({ "requestId": row.custom_id, "request": in_words(row, &GeminiCodec, None, None)? }),
    })
}
