//! The format in which a provider is asked for what it does not offer in the client's own: which codec writes it, where
//! it goes, and what a codec must be told of the provider. Codecs are the proxy's; here they are names.

use super::Family;
use super::path_template::PathTemplate;
use serde::Deserialize;

/// Families that are translated into each other: all of them are conversations.
pub const CONVERSATIONS: [Family; 4] = [Family::Chat, Family::Complete, Family::Messages, Family::Responses];

/// The names that rows may use; the proxy has a codec for each.
pub const CODECS: &[&str] = &[
    "chat",
    "completions",
    "messages",
    "responses",
    "gemini",
    "converse",
    "cohere",
    "oracle",
    "reka",
    "triton",
    "bedrock_cohere_text",
    "bedrock_ai21_text",
];

/// The same of requests that are one object there and one back.
pub const OBJECT_CODECS: &[&str] = &[
    "gemini_embeddings",
    "vertex_embeddings",
    "cohere_embeddings",
    "titan_embeddings",
    "bedrock_cohere_embeddings",
    "nomic_embeddings",
    "pinecone_embeddings",
    "voyage_rerank",
    "pinecone_rerank",
    "gemini_count",
    "converse_count",
    "stability_v1_images",
    "stability_v2_images",
    "stability_sd3_images",
    "segmind_images",
    "fireworks_images",
    "fireworks_workflow_images",
    "siliconflow_images",
    "hyperbolic_images",
    "fal_images",
    "workers_images",
    "bedrock_images",
    "vertex_images",
    "cohere_rerank",
    "bedrock_rerank",
    "vertex_rerank",
    "vertex_count",
    "vertex_claude_count",
    "ai21_embeddings",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    pub codec: Box<str>,
    /// Its address, where that is not the provider's.
    pub base_url: Option<Box<str>>,
    pub path: PathTemplate,
    /// Where streams are asked for, if that is another place.
    pub stream_path: Option<PathTemplate>,
    /// Where it is on an address that is the account's own.
    pub own_base_path: Option<PathTemplate>,
    /// Of models whose name begins so; it is not part of the name that the provider is told, unless the row keeps it.
    pub model_prefix: Option<Box<str>>,
    keeps_prefix: bool,
    /// How the names of its models begin, where that is no part of a name; all of them when there are none.
    models: Vec<Box<str>>,
    /// What stands before the name that the provider is told.
    pub model_folder: Option<Box<str>>,
    /// The provider is told what follows a colon, since what stands before it is in the path.
    pub names_adapter: bool,
    /// Places whose values the codec writes into bodies.
    pub body_places: Vec<String>,
    /// Anthropic's version, where it is a field of the body.
    pub anthropic_version: Option<Box<str>>,
    /// Whether the newer name of `max_tokens` is known there.
    pub has_max_completion_tokens: bool,
    /// Whether media are taken as bytes alone, so that addresses must be fetched before.
    pub takes_media_as_bytes: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireRow {
    codec: String,
    base_url: Option<String>,
    path: String,
    stream_path: Option<String>,
    own_base_path: Option<String>,
    model_prefix: Option<String>,
    #[serde(default)]
    keeps_prefix: bool,
    model_folder: Option<String>,
    #[serde(default)]
    names_adapter: bool,
    #[serde(default)]
    body_places: Vec<String>,
    anthropic_version: Option<String>,
    #[serde(default)]
    max_completion_tokens: bool,
    #[serde(default)]
    media_as_bytes: bool,
}

impl WireRow {
    /// `codecs` are those that it may name.
    pub fn wire(self, codecs: &[&str]) -> Result<Wire, String> {
        if !codecs.contains(&&*self.codec) {
            return Err(format!("wires: there is no codec `{}`", self.codec));
        }
        if let Some(url) = self.base_url.as_deref().filter(|url| !url.starts_with("https://") || url.ends_with('/')) {
            return Err(format!("wires: `{url}` is no address"));
        }
        let path = |text: &str| PathTemplate::parse(text).map_err(|why| format!("wires: {why}"));
        Ok(Wire {
            path: path(&self.path)?,
            stream_path: self.stream_path.as_deref().map(path).transpose()?,
            own_base_path: self.own_base_path.as_deref().map(path).transpose()?,
            codec: self.codec.into(),
            base_url: self.base_url.map(Into::into),
            model_prefix: self.model_prefix.map(Into::into),
            keeps_prefix: self.keeps_prefix,
            models: Vec::new(),
            model_folder: self.model_folder.map(Into::into),
            names_adapter: self.names_adapter,
            body_places: self.body_places,
            anthropic_version: self.anthropic_version.map(Into::into),
            has_max_completion_tokens: self.max_completion_tokens,
            takes_media_as_bytes: self.media_as_bytes,
        })
    }
}

impl Wire {
    /// One that goes where the provider takes its own format.
    pub(super) fn of_own(codec: &str, path: PathTemplate, has_max_completion_tokens: bool) -> Self {
        Self {
            codec: codec.into(),
            base_url: None,
            path,
            stream_path: None,
            own_base_path: None,
            model_prefix: None,
            keeps_prefix: false,
            models: Vec::new(),
            model_folder: None,
            names_adapter: false,
            body_places: Vec::new(),
            anthropic_version: None,
            has_max_completion_tokens,
            takes_media_as_bytes: false,
        }
    }

    /// For models whose names begin so, and no others.
    pub(super) fn for_models(self, beginnings: &[String]) -> Self {
        Self { models: beginnings.iter().map(|text| text.as_str().into()).collect(), ..self }
    }

    /// Where it is asked, for a stream or not, on the provider's address or on one that is the account's own.
    pub fn place(&self, is_stream: bool, has_own_base: bool) -> &PathTemplate {
        match (&self.own_base_path, &self.stream_path) {
            (Some(path), _) if has_own_base => path,
            (_, Some(path)) if is_stream => path,
            _ => &self.path,
        }
    }

    /// What the provider calls the model.
    pub fn model_name(&self, model: &str) -> String {
        let prefix = self.model_prefix.as_deref().filter(|_| !self.keeps_prefix);
        let bare = prefix.and_then(|prefix| model.strip_prefix(prefix)).unwrap_or(model);
        let bare = if self.names_adapter { bare.split_once(':').map_or("", |(_, adapter)| adapter) } else { bare };
        [self.model_folder.as_deref().unwrap_or_default(), bare].concat()
    }

    /// Whether models of this name are asked for through it.
    pub(super) fn serves(&self, model: &str) -> bool {
        self.model_prefix.as_deref().is_none_or(|prefix| model.starts_with(prefix))
            && (self.models.is_empty() || self.models.iter().any(|beginning| model.starts_with(&**beginning)))
    }
}
