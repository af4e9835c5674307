//! Whether a file is the input of a batch. Lines are looked at as they come and forgotten; what is remembered of each is the
//! hash of its `custom_id`, so a full file costs some megabytes. Everything that is wrong is told with its line, up to a
//! number of errors.

use super::lines::{Line, LineTooLong, Lines};
use super::object::BatchError;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::HashSet;

pub const MAX_ROWS: u64 = 50_000;
pub const MAX_BYTES: u64 = 200_000_000;
/// More are not told: whoever sent the wrong file needs no list of all its lines.
pub const MAX_ERRORS: usize = 100;
/// In characters.
const MAX_CUSTOM_ID: usize = 512;

/// What the rows of a batch ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEndpoint {
    ChatCompletions,
    Completions,
    Embeddings,
}

impl BatchEndpoint {
    pub const ALL: [Self; 3] = [Self::ChatCompletions, Self::Completions, Self::Embeddings];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Embeddings => "/v1/embeddings",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|endpoint| endpoint.as_str() == text)
    }
}

/// Whether rows may name different models: a provider's batch has one, rows that we run ourselves may have any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Models {
    One,
    Any,
}

/// What a file holds that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSummary {
    pub rows: u64,
    pub bytes: u64,
    /// Of the first row.
    pub model: String,
}

/// Where a row that can be run stands in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPlace {
    /// Of all rows, from 1.
    pub number: u64,
    pub custom_id: String,
    pub at: u64,
    pub bytes: usize,
}

#[derive(Debug)]
pub struct InputCheck {
    endpoint: BatchEndpoint,
    models: Models,
    /// Good rows that nobody has taken yet; none unless they are wanted.
    places: Option<Vec<RowPlace>>,
    lines: Lines,
    rows: u64,
    bytes: u64,
    ids: HashSet<[u8; 16]>,
    model: Option<String>,
    errors: Vec<BatchError>,
    /// Nothing after this can be judged.
    is_over: bool,
}

/// Only what is looked at; the rest of a row is passed along.
#[derive(Deserialize)]
struct InputRow<'r> {
    #[serde(borrow, default)]
    custom_id: Option<Cow<'r, str>>,
    #[serde(borrow, default)]
    method: Option<Cow<'r, str>>,
    #[serde(borrow, default)]
    url: Option<Cow<'r, str>>,
    #[serde(default)]
    body: Option<InputBody>,
}

#[derive(Deserialize)]
struct InputBody {
    #[serde(default)]
    model: Option<Value>,
}

impl InputCheck {
    pub fn new(endpoint: BatchEndpoint, models: Models) -> Self {
        Self {
            endpoint,
            models,
            places: None,
            lines: Lines::default(),
            rows: 0,
            bytes: 0,
            ids: HashSet::new(),
            model: None,
            errors: Vec::new(),
            is_over: false,
        }
    }

    /// Also tells where each row stands, by `take_places`.
    #[must_use]
    pub fn with_places(mut self) -> Self {
        self.places = Some(Vec::new());
        self
    }

    /// The rows that were found since it was last asked. Whether they may run is known when all of the file was read.
    pub fn take_places(&mut self) -> Vec<RowPlace> {
        self.places.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// False when the rest of the file need not be read.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        if self.is_over {
            return false;
        }
        self.bytes += piece.len() as u64;
        if self.bytes > MAX_BYTES {
            let message = format!("the file is larger than {MAX_BYTES} bytes");
            self.stop(BatchError::new("file_too_large", message).about("input_file_id"));
            return false;
        }
        self.lines.push(piece);
        self.read_lines();
        !self.is_over
    }

    /// No more pieces come: the last line need not end in a break.
    pub fn end(&mut self) {
        if !self.is_over {
            self.lines.end();
            self.read_lines();
        }
    }

    /// What the file holds, or everything that is wrong with it.
    pub fn finish(mut self) -> Result<InputSummary, Vec<BatchError>> {
        self.end();
        if self.rows == 0 && self.errors.is_empty() {
            self.errors.push(BatchError::new("empty_file", "the file has no rows").about("input_file_id"));
        }
        match (self.errors.is_empty(), self.model) {
            (true, Some(model)) => Ok(InputSummary { rows: self.rows, bytes: self.bytes, model }),
            _ => Err(self.errors),
        }
    }

    fn read_lines(&mut self) {
        while !self.is_over {
            match self.lines.next_line() {
                Ok(Some(line)) => self.read_row(&line),
                Ok(None) => return,
                Err(long @ LineTooLong { number }) => {
                    self.stop(BatchError::new("line_too_long", long.to_string()).at(number));
                }
            }
        }
    }

    fn read_row(&mut self, line: &Line) {
        self.rows += 1;
        if self.rows > MAX_ROWS {
            let message = format!("the file has more than {MAX_ROWS} rows");
            return self.stop(BatchError::new("too_many_requests", message).about("input_file_id").at(line.number));
        }
        match self.check_row(&line.bytes) {
            Ok(custom_id) => {
                if let Some(places) = &mut self.places {
                    places.push(RowPlace { number: self.rows, custom_id, at: line.at, bytes: line.bytes.len() });
                }
            }
            Err(error) => {
                self.errors.push(error.at(line.number));
                self.is_over = self.errors.len() >= MAX_ERRORS;
            }
        }
    }

    /// The row's `custom_id`.
    fn check_row(&mut self, bytes: &[u8]) -> Result<String, BatchError> {
        let invalid = |why: &str| BatchError::new("invalid_json_line", why);
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(invalid("the line is not a JSON object"));
        }
        let row: InputRow<'_> = serde_json::from_slice(bytes)
            .map_err(|error| invalid(&format!("the line is not the row of a batch (column {})", error.column())))?;
        let is_id = |id: &str| !id.is_empty() && id.chars().count() <= MAX_CUSTOM_ID && !id.contains('\0');
        let id = row.custom_id.filter(|id| is_id(id));
        let id = id.ok_or_else(|| missing("custom_id", "a text of 1 to 512 characters"))?;
        if !self.ids.insert(digest(&id)) {
            return Err(
                BatchError::new("duplicate_custom_id", "an earlier row has the same custom_id").about("custom_id")
            );
        }
        if row.method.as_deref() != Some("POST") {
            return Err(BatchError::new("invalid_method", "the method must be POST").about("method"));
        }
        if row.url.as_deref() != Some(self.endpoint.as_str()) {
            let message = format!("the url must be {}, the endpoint of the batch", self.endpoint.as_str());
            return Err(BatchError::new("mismatched_url", message).about("url"));
        }
        let body = row.body.ok_or_else(|| missing("body", "an object"))?;
        let model = match body.model {
            Some(Value::String(model)) if !model.is_empty() => model,
            _ => return Err(missing("body.model", "the name of a model")),
        };
        match &self.model {
            None => self.model = Some(model),
            Some(first) if self.models == Models::One && *first != model => {
                let message = "all rows of this batch must name the same model";
                return Err(BatchError::new("mismatched_model", message).about("body.model"));
            }
            Some(_) => {}
        }
        Ok(id.into_owned())
    }

    fn stop(&mut self, error: BatchError) {
        self.errors.push(error);
        self.is_over = true;
    }
}

fn missing(param: &str, what: &str) -> BatchError {
    BatchError::new("missing_required_parameter", format!("{param} must be {what}")).about(param)
}

/// Half a hash: no two of so few rows share one by chance, and nobody finds two that do.
fn digest(id: &str) -> [u8; 16] {
    let whole = Sha256::digest(id.as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&whole[..16]);
    half
}
