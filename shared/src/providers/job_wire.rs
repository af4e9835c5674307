//! Files, batches and fine-tuning where a provider has them in a form of its own: which codec maps them, and where the
//! collection is. Codecs are the proxy's; here they are names.

use super::path_template::PathTemplate;
use serde::Deserialize;

/// The names that rows may use; the proxy has a codec for each.
pub const JOB_CODECS: [&str; 11] = [
    "message_batches",
    "vertex_batches",
    "vertex_tuning",
    "vertex_files",
    "bedrock_batches",
    "bedrock_tuning",
    "bedrock_files",
    "cohere_batches",
    "cohere_files",
    "fireworks_tuning",
    "fireworks_files",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWire {
    pub codec: Box<str>,
    /// The collection.
    pub path: PathTemplate,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobRow {
    codec: String,
    path: String,
}

impl JobRow {
    pub fn wire(&self) -> Result<JobWire, String> {
        if !JOB_CODECS.contains(&&*self.codec) {
            return Err(format!("jobs: there is no codec `{}`", self.codec));
        }
        let path = PathTemplate::parse(&self.path).map_err(|why| format!("jobs: {why}"))?;
        Ok(JobWire { codec: self.codec.as_str().into(), path })
    }
}
