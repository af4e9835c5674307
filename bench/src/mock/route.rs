//! Which endpoint a request means. Paths work with and without the `/v1` prefix.

use http::Method;

use super::objects;

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
    /// What is kept or made beside chats.
    Objects,
    /// Anything else: tells what arrived.
    Echo,
}

impl Endpoint {
    pub const ALL: [Self; 12] = [
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
        Self::Objects,
        Self::Echo,
    ];

    pub fn of(method: &Method, path: &str) -> Self {
        let path = unversioned(path);
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
            Self::Objects => "objects",
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

pub fn unversioned(path: &str) -> &str {
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
            (Method::GET, "/v1/filesystem", Endpoint::Echo),
            (Method::POST, "/v1/messages/count_tokens", Endpoint::CountTokens),
        ] {
            assert_eq!(Endpoint::of(&method, path), endpoint, "{method} {path}");
        }
    }
}
