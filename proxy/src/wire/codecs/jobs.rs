//! Files, batches and fine-tuning of providers that keep them in forms of their own. The client's side is always OpenAI's
//! objects; a codec says which questions a request becomes and what the answers mean.
//!
//! Codecs are pure, as all are. Most of what is asked is one question; a codec that needs more asks for the next one when
//! it has read an answer, and whoever calls them does not ask for ever.

mod batch_rows;
mod bedrock;
mod cohere;
mod fireworks;
mod message_batches;
mod objects;
mod openai;
mod storage;
mod vertex;

pub use batch_rows::{BatchRow, MAX_LINE_BYTES, MAX_LINES, failed as failed_row};

use super::error::CodecError;
use bytes::Bytes;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};
use shared::providers::Family;

/// Of an object or a list of them. Only files are longer, and these are read line by line.
pub const MAX_OBJECT: usize = 4 << 20;

pub trait JobCodec: Sync {
    fn name(&self) -> &'static str;
    /// The first question.
    fn ask(&self, asked: &AskedJob) -> Result<JobCall, CodecError>;
    /// What a good answer to the question of this number means.
    fn read(&self, asked: &AskedJob, step: usize, reply: &JobReply) -> Result<JobAnswer, CodecError>;

    /// Of batches: a row in the provider's form. Who writes them one by one needs not hold them all.
    fn input_row(&self, _row: &BatchRow, _model: &str) -> Result<Value, CodecError> {
        Err(CodecError::field("file", "has rows, and this provider takes none"))
    }

    /// What stands before, between and after the rows.
    fn input_frame(&self) -> [&'static str; 3] {
        JSONL
    }

    /// How many questions stand before the file of a batch's answers.
    fn questions_before_output(&self) -> usize {
        1
    }

    /// A line of that file as OpenAI's have it.
    fn output_row(&self, _asked: &AskedJob, _number: usize, reply: &Value) -> Value {
        reply.clone()
    }
}

/// The frame of rows that are lines.
pub const JSONL: [&str; 3] = ["", "\n", "\n"];

pub static JOB_CODECS: &[&dyn JobCodec] = &[
    &message_batches::MessageBatches,
    &vertex::VertexBatches,
    &vertex::VertexTuning,
    &storage::VertexFiles,
    &bedrock::BedrockBatches,
    &bedrock::BedrockTuning,
    &storage::BedrockFiles,
    &cohere::CohereBatches,
    &cohere::CohereFiles,
    &fireworks::FireworksTuning,
    &fireworks::FireworksFiles,
];

/// Batches of whoever speaks OpenAI's own interface, for questions that no client asks.
pub static NATIVE_BATCHES: &dyn JobCodec = &openai::OpenAiBatches;

pub fn by_name(name: &str) -> Option<&'static dyn JobCodec> {
    JOB_CODECS.iter().copied().find(|codec| codec.name() == name)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobVerb {
    Create,
    List,
    Retrieve,
    Cancel,
    Delete,
    /// The bytes of a file.
    Content,
    /// The rows of a batch's answers.
    Output,
}

/// A request, as far as codecs care.
#[derive(Debug)]
pub struct AskedJob {
    pub verb: JobVerb,
    /// Of what is kept, as it was before it was escaped; empty for new ones and for lists.
    pub id: String,
    /// `limit` and `after`.
    pub limit: Option<u32>,
    pub after: Option<String>,
    /// Where the collection is.
    pub place: String,
    /// The same of the files.
    pub files: String,
    pub provider: String,
    /// The fields of the request.
    pub body: Map<String, Value>,
    pub file: Option<UploadedFile>,
    /// The model that rows of a file are written for, and the name under which it is kept, where headers say them.
    pub model: Option<String>,
    pub file_name: Option<String>,
    /// Unique to the request.
    pub request_id: String,
    /// Seconds.
    pub now: u64,
    /// What is known of the account.
    pub placed: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedFile {
    pub name: String,
    pub bytes: Bytes,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCall {
    pub method: Method,
    /// Path and query.
    pub place: String,
    pub content_type: Option<String>,
    pub body: Bytes,
    /// It goes to the address of the files.
    pub of_files: bool,
    /// Only how long the file is matters.
    pub is_glance: bool,
}

#[derive(Debug, Default)]
pub struct JobReply {
    pub length: Option<u64>,
    pub body: Bytes,
}

#[derive(Debug, PartialEq, Eq)]
pub enum JobAnswer {
    Json(Value),
    /// Bytes of this kind.
    Bytes(&'static str, Bytes),
    Ask(JobCall),
    /// There is nothing to tell, and why.
    Refused(String),
}

/// What a path asks of a family; none for what no codec maps.
pub fn verb(family: Family, method: &Method, rest: &str) -> Option<(JobVerb, String)> {
    let rest = match family {
        Family::FineTuning => rest.strip_prefix("/jobs")?,
        _ => rest,
    };
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let segments: Vec<&str> = rest.split('/').skip(1).collect();
    let (verb, id) = match (family, method.as_str(), &segments[..]) {
        (_, "POST", []) => (JobVerb::Create, ""),
        (_, "GET", []) => (JobVerb::List, ""),
        (_, "GET", [id]) => (JobVerb::Retrieve, *id),
        (Family::Files, "DELETE", [id]) => (JobVerb::Delete, *id),
        (Family::Files, "GET", [id, "content"]) => (JobVerb::Content, *id),
        (Family::Batches, "GET", [id, "output"]) => (JobVerb::Output, *id),
        (Family::Batches | Family::FineTuning, "POST", [id, "cancel"]) => (JobVerb::Cancel, *id),
        _ => return None,
    };
    Some((verb, unescaped(id)))
}

/// Some ids are escaped, and some clients escape them again.
pub fn unescaped(id: &str) -> String {
    let once = percent_decode_str(id).decode_utf8_lossy().into_owned();
    match once.contains("%3A%2F%2F") || once.starts_with("arn%3A") {
        true => percent_decode_str(&once).decode_utf8_lossy().into_owned(),
        false => once,
    }
}

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// As one segment of a path, or as a value of a query.
pub fn escaped(text: &str) -> String {
    match text.bytes().all(|byte| byte == b'.') {
        true => text.replace('.', "%2E"),
        false => utf8_percent_encode(text, SEGMENT).to_string(),
    }
}

impl AskedJob {
    fn placed(&self, place: &str) -> Option<&str> {
        self.placed.iter().find(|(name, _)| name == place).map(|(_, value)| value.as_str())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn need(&self, name: &'static str) -> Result<&str, CodecError> {
        self.text(name).ok_or_else(|| CodecError::field(name, "is required, and a text"))
    }

    /// Also below `provider_options`, where some clients put what is not OpenAI's.
    fn option(&self, name: &str) -> Option<&Value> {
        let below = || self.body.get("provider_options").and_then(|options| options.get(name));
        self.body.get(name).or_else(below).filter(|value| !value.is_null())
    }

    fn option_text(&self, name: &str) -> Option<&str> {
        self.option(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The place of the one that is named.
    fn own_place(&self) -> String {
        format!("{}/{}", self.place, escaped(&self.id))
    }

    /// What a codec has no question for.
    fn unmapped(&self) -> CodecError {
        CodecError::field("path", "has no counterpart at this provider")
    }

    /// The query that asks for one page.
    fn page(&self, limit: &str, after: &str) -> String {
        let limit = self.limit.map(|most| format!("{limit}={}", most.clamp(1, 100)));
        let after = self.after.as_deref().map(|token| format!("{after}={}", escaped(token)));
        let pairs: Vec<String> = limit.into_iter().chain(after).collect();
        if pairs.is_empty() { String::new() } else { ["?", &pairs.join("&")].concat() }
    }
}

impl JobCall {
    fn get(place: String) -> Self {
        Self { method: Method::GET, place, content_type: None, body: Bytes::new(), of_files: false, is_glance: false }
    }

    fn post(place: String, body: &Value) -> Self {
        Self {
            method: Method::POST,
            place,
            content_type: Some("application/json".to_owned()),
            body: Bytes::from(body.to_string()),
            ..Self::get(String::new())
        }
    }

    fn of_files(self) -> Self {
        Self { of_files: true, ..self }
    }
}

impl JobReply {
    fn json(&self) -> Result<Value, CodecError> {
        if self.body.len() > MAX_OBJECT {
            return Err(CodecError::field("answer", "is too long"));
        }
        serde_json::from_slice(&self.body).map_err(|error| CodecError::Malformed(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
