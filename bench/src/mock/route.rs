//! Which endpoint a request means. Paths work with and without the `/v1` prefix, and OpenAI's also where Azure has them.

use http::Method;

use super::{buckets, objects, small_wires};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Chat,
    Completions,
    Embeddings,
    Models,
    Messages,
    CountTokens,
    /// `GET /bytes/{n}`: n bytes of the pattern.
    Bytes,
    /// `POST /fixed`: the chat answer without looking at the request, for measuring relays.
    Fixed,
    Realtime,
    Responses,
    /// Gemini's, on Google's own host and on Vertex.
    GenerateContent,
    EmbedContent,
    CountContent,
    GeminiModels,
    /// Bedrock's.
    Converse,
    Invoke,
    CohereChat,
    CohereEmbed,
    CohereRerank,
    /// A wire of one or two families.
    SmallWire,
    /// What is kept or made beside chats.
    Objects,
    /// Files in buckets, and jobs over them.
    Buckets,
    /// A server of the Model Context Protocol.
    Mcp,
    /// Anything else: tells what arrived.
    Echo,
}

impl Endpoint {
    pub const ALL: [Self; 24] = [
        Self::Chat,
        Self::Completions,
        Self::Embeddings,
        Self::Models,
        Self::Messages,
        Self::CountTokens,
        Self::Bytes,
        Self::Fixed,
        Self::Realtime,
        Self::Responses,
        Self::GenerateContent,
        Self::EmbedContent,
        Self::CountContent,
        Self::GeminiModels,
        Self::Converse,
        Self::Invoke,
        Self::CohereChat,
        Self::CohereEmbed,
        Self::CohereRerank,
        Self::SmallWire,
        Self::Objects,
        Self::Buckets,
        Self::Mcp,
        Self::Echo,
    ];

    pub fn of(method: &Method, path: &str) -> Self {
        if buckets::knows(path) {
            return Self::Buckets;
        }
        if let Some(endpoint) = of_vendor(method, unversioned(path)) {
            return endpoint;
        }
        let path = canonical(path);
        match (method.as_str(), path) {
            // The second of each is no endpoint that the gateway knows: it relays it.
            ("POST", "/chat/completions" | "/relayed/chat/completions") => Self::Chat,
            ("POST", "/completions" | "/relayed/completions") => Self::Completions,
            ("POST", "/embeddings") => Self::Embeddings,
            ("POST", "/messages") => Self::Messages,
            ("POST", "/messages/count_tokens") => Self::CountTokens,
            ("POST", "/fixed") => Self::Fixed,
            ("GET", "/models") => Self::Models,
            ("GET", "/realtime") => Self::Realtime,
            ("POST", "/responses") => Self::Responses,
            ("GET", path) if path.starts_with("/models/") => Self::Models,
            ("GET", path) if path.starts_with("/bytes/") => Self::Bytes,
            (_, path) if path.starts_with("/mcp/") => Self::Mcp,
            (_, path) if objects::knows(method, path) => Self::Objects,
            _ => Self::Echo,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Embeddings => "embeddings",
            Self::Models => "models",
            Self::Messages => "messages",
            Self::CountTokens => "count_tokens",
            Self::Bytes => "bytes",
            Self::Fixed => "fixed",
            Self::Realtime => "realtime",
            Self::Responses => "responses",
            Self::GenerateContent => "generate_content",
            Self::EmbedContent => "embed_content",
            Self::CountContent => "count_content",
            Self::GeminiModels => "gemini_models",
            Self::Converse => "converse",
            Self::Invoke => "invoke",
            Self::CohereChat => "cohere_chat",
            Self::CohereEmbed => "cohere_embed",
            Self::CohereRerank => "cohere_rerank",
            Self::SmallWire => "small_wire",
            Self::Objects => "objects",
            Self::Buckets => "buckets",
            Self::Mcp => "mcp",
            Self::Echo => "echo",
        }
    }

    pub fn speaks_anthropic(self) -> bool {
        matches!(self, Self::Messages | Self::CountTokens)
    }
}

/// The last segment: the id of a model, the number of bytes.
pub fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn of_vendor(method: &Method, path: &str) -> Option<Endpoint> {
    let (google, is_google) = match ["/v1beta1/", "/v1beta/"].iter().find_map(|version| path.strip_prefix(*version)) {
        Some(rest) => (rest, true),
        None => (path.trim_start_matches('/'), false),
    };
    if *method == Method::GET {
        return (is_google && (google == "models" || google.starts_with("models/"))).then_some(Endpoint::GeminiModels);
    }
    if *method != Method::POST {
        return None;
    }
    match path {
        "/v2/chat" => return Some(Endpoint::CohereChat),
        "/v2/embed" => return Some(Endpoint::CohereEmbed),
        // The second is where Azure has it.
        "/v2/rerank" | "/providers/cohere/v2/rerank" => return Some(Endpoint::CohereRerank),
        path if small_wires::wire_at(path).is_some() => return Some(Endpoint::SmallWire),
        _ => {}
    }
    if let Some((_, action)) = path.strip_prefix("/model/").and_then(|rest| rest.rsplit_once('/')) {
        return match action {
            "converse" | "converse-stream" => Some(Endpoint::Converse),
            "invoke" => Some(Endpoint::Invoke),
            _ => None,
        };
    }
    let is_model = ["models/", "tunedModels/", "projects/"].iter().any(|start| google.starts_with(start));
    let (model, action) = google.rsplit_once(':').filter(|_| is_model)?;
    match action {
        "generateContent" | "streamGenerateContent" => Some(Endpoint::GenerateContent),
        "embedContent" | "batchEmbedContents" | "predict" => Some(Endpoint::EmbedContent),
        "countTokens" => Some(Endpoint::CountContent),
        "rawPredict" if model.ends_with("/count-tokens") => Some(Endpoint::CountTokens),
        "rawPredict" | "streamRawPredict" => Some(Endpoint::Messages),
        _ => None,
    }
}

/// Whether Vertex was asked for a model of Anthropic's, and whether for a stream of its.
pub fn raw_prediction(path: &str) -> Option<bool> {
    match path.rsplit_once(':')?.1 {
        "rawPredict" => Some(false),
        "streamRawPredict" => Some(true),
        _ => None,
    }
}

/// A deployment of Azure's must be asked with the version of the API.
pub fn lacks_api_version(path: &str, query: Option<&str>) -> bool {
    let is_deployment = path.contains("/openai/deployments/");
    is_deployment && !query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("api-version=2")))
}

/// OpenAI's path, without what providers put before it.
pub fn canonical(path: &str) -> &str {
    let path = unversioned(path);
    let path = match path.strip_prefix("/openai") {
        Some(rest) if rest.starts_with('/') => unversioned(rest),
        _ => path,
    };
    let deployed = path.strip_prefix("/deployments/").and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    deployed.unwrap_or(path)
}

fn unversioned(path: &str) -> &str {
    match path.strip_prefix("/v1") {
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_with_and_without_version() {
        for (method, path, endpoint) in [
            (Method::POST, "/chat/completions", Endpoint::Chat),
            (Method::POST, "/v1/chat/completions", Endpoint::Chat),
            (Method::GET, "/v1/chat/completions", Endpoint::Echo),
            (Method::GET, "/v1/models/gpt-4o", Endpoint::Models),
            (Method::GET, "/bytes/12", Endpoint::Bytes),
            (Method::POST, "/v1beta/x", Endpoint::Echo),
            (Method::POST, "/v1", Endpoint::Echo),
            (Method::POST, "/v1/files", Endpoint::Objects),
            (Method::PUT, "/v1/files/f", Endpoint::Echo),
            (Method::PUT, "/mock-bucket/f", Endpoint::Buckets),
            (Method::POST, "/v1/projects/p/locations/l/batchPredictionJobs/1:cancel", Endpoint::Buckets),
            (Method::GET, "/v1/filesystem", Endpoint::Echo),
            (Method::POST, "/v1/messages/count_tokens", Endpoint::CountTokens),
            (Method::POST, "/v1beta/models/g:generateContent", Endpoint::GenerateContent),
            (Method::POST, "/v1/v1beta/models/g:streamGenerateContent", Endpoint::GenerateContent),
            (Method::POST, "/v1beta/models/g:batchEmbedContents", Endpoint::EmbedContent),
            (Method::POST, "/v1beta/models/g:countTokens", Endpoint::CountContent),
            (Method::POST, "/v1beta/models/g:tuneModel", Endpoint::Echo),
            (Method::GET, "/v1beta/models", Endpoint::GeminiModels),
            (Method::GET, "/v1/models", Endpoint::Models),
            (
                Method::POST,
                "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
                Endpoint::GenerateContent,
            ),
            (
                Method::POST,
                "/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict",
                Endpoint::Messages,
            ),
            (Method::POST, "/model/anthropic.claude%3A0/converse-stream", Endpoint::Converse),
            (Method::POST, "/v1/model/amazon.titan-embed-text-v2:0/invoke", Endpoint::Invoke),
            (Method::POST, "/v2/chat", Endpoint::CohereChat),
            (Method::POST, "/v2/rerank", Endpoint::CohereRerank),
            (Method::POST, "/v1/rerank", Endpoint::Echo),
            (Method::POST, "/openai/deployments/gpt/chat/completions", Endpoint::Chat),
            (Method::POST, "/openai/v1/responses", Endpoint::Responses),
            (Method::POST, "/v1/openai/v1/embeddings", Endpoint::Embeddings),
            (Method::POST, "/openapi/v1/embeddings", Endpoint::Echo),
        ] {
            assert_eq!(Endpoint::of(&method, path), endpoint, "{method} {path}");
        }
    }

    #[test]
    fn a_deployment_wants_the_version_of_the_api() {
        let path = "/openai/deployments/gpt/chat/completions";
        assert!(lacks_api_version(path, None));
        assert!(lacks_api_version(path, Some("x=1")));
        assert!(!lacks_api_version(path, Some("x=1&api-version=2024-10-21")));
        assert!(!lacks_api_version("/openai/v1/chat/completions", None));
    }
}
