//! Method and path → what the request is. The control plane's table goes first, then the endpoints the engine
//! understands; everything else under `/v1` is passed through.

use crate::refusal::Dialect;
use http::Method;
use shared::providers::Family;
use shared::routes::{self, Lookup};

#[derive(Debug, PartialEq, Eq)]
pub enum Route<'p> {
    /// `GET /`: the one page of our own.
    Greeting,
    /// A browser asks what it may send; HEAD is answered alike.
    Preflight,
    ControlPlane,
    /// What would become of a request, or what became of one.
    Explain,
    /// A saved prompt is run.
    Prompt,
    Engine(Endpoint),
    /// The provider's path, without `/v1`.
    Relay(&'p str),
    /// The models there are, or the one that is named.
    Models {
        path: &'p str,
        name: Option<&'p str>,
    },
    NotFound,
    MethodNotAllowed,
}

/// A family whose bodies the engine reads: JSON or a form in, and an answer that is an object, a stream of events or
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint(Family);

const ENGINE: &[Family] = &[
    Family::Chat,
    Family::Complete,
    Family::Embed,
    Family::Messages,
    Family::CountTokens,
    Family::Responses,
    Family::Image,
    Family::Speech,
    Family::Rerank,
    Family::Ocr,
    Family::Moderate,
    Family::Transcribe,
    Family::Translate,
    Family::ImageEdit,
    Family::ImageVariation,
];

impl Endpoint {
    fn of(method: &Method, path: &str) -> Option<Self> {
        if *method != Method::POST {
            return None;
        }
        ENGINE.iter().find(|family| family.path() == path).map(|family| Self(*family))
    }

    pub const fn family(self) -> Family {
        self.0
    }

    pub const fn path(self) -> &'static str {
        self.0.path()
    }

    /// Whether bodies are uploads, with their fields around them.
    pub const fn takes_forms(self) -> bool {
        matches!(self.0, Family::Transcribe | Family::Translate | Family::ImageEdit | Family::ImageVariation)
    }
}

pub fn classify<'p>(method: &Method, path: &'p str) -> Route<'p> {
    let Some(rest) = under_v1(path) else {
        return match (path, method) {
            ("/", &Method::GET | &Method::HEAD) => Route::Greeting,
            // One client looks for prices at the host's root.
            _ if path.starts_with("/model-configs/") => Route::ControlPlane,
            _ => Route::NotFound,
        };
    };
    if matches!(*method, Method::OPTIONS | Method::HEAD) {
        return Route::Preflight;
    }
    if let Some(endpoint) = Endpoint::of(method, rest) {
        return Route::Engine(endpoint);
    }
    // In the table of the control plane, but the proxy knows what it would do.
    if (method, rest) == (&Method::POST, "/explain") {
        return Route::Explain;
    }
    if *method == Method::POST && is_prompt(rest) {
        return Route::Prompt;
    }
    match routes::find(method.as_str(), rest) {
        Lookup::Operation(_) | Lookup::WrongMethod => return Route::ControlPlane,
        Lookup::NotControlPlane => {}
    }
    if *method == Method::GET
        && let Some(rest) = without_proxy(rest).strip_prefix("/models")
        && (rest.is_empty() || rest.starts_with('/'))
    {
        let name = rest.strip_prefix('/').filter(|name| !name.is_empty());
        return Route::Models { path: without_proxy(under_v1(path).unwrap_or(path)), name };
    }
    match *method {
        Method::GET | Method::POST | Method::PUT | Method::DELETE | Method::PATCH => Route::Relay(without_proxy(rest)),
        _ => Route::MethodNotAllowed,
    }
}

/// The path after `/v1`, or None outside of it. `/v1` itself is `/`.
fn under_v1(path: &str) -> Option<&str> {
    match path.strip_prefix("/v1")? {
        "" => Some("/"),
        rest => rest.starts_with('/').then(|| without_own_version(rest)),
    }
}

/// Anthropic's SDKs write their own `/v1` after a base URL that ends in ours.
fn without_own_version(rest: &str) -> &str {
    match rest.strip_prefix("/v1") {
        Some(path) if ["/messages", "/complete"].iter().any(|own| is_at_or_below(path, own)) => path,
        _ => rest,
    }
}

fn is_at_or_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// `/prompts/{id}/completions`: beside the control plane's paths, but inference.
fn is_prompt(rest: &str) -> bool {
    let id = rest.strip_prefix("/prompts/").and_then(|rest| rest.strip_suffix("/completions"));
    id.is_some_and(|id| !id.is_empty() && !id.contains('/'))
}

/// `/proxy/x` is an older spelling of `/x`.
fn without_proxy(rest: &str) -> &str {
    match rest.strip_prefix("/proxy") {
        Some(inner) if inner.starts_with('/') => inner,
        _ => rest,
    }
}

/// In which words clients of this path expect an error.
pub fn dialect(route: &Route<'_>) -> Dialect {
    match route {
        Route::ControlPlane | Route::Explain => Dialect::ControlPlane,
        Route::Relay(path) if path.starts_with("/messages") => Dialect::Anthropic,
        Route::Engine(Endpoint(Family::Messages | Family::CountTokens)) => Dialect::Anthropic,
        Route::Engine(Endpoint(Family::Responses)) => Dialect::Responses,
        Route::NotFound | Route::Greeting => Dialect::Plain,
        _ => Dialect::OpenAi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_one_meaning() {
        for (method, path, route) in [
            ("GET", "/", Route::Greeting),
            ("GET", "/elsewhere", Route::NotFound),
            ("GET", "/model-configs/pricing/openai/gpt-4o", Route::ControlPlane),
            ("POST", "/v1/v1/messages", Route::Engine(Endpoint(Family::Messages))),
            ("POST", "/v1/v1/messages/count_tokens", Route::Engine(Endpoint(Family::CountTokens))),
            ("GET", "/v1/v1/messages/batches", Route::Relay("/messages/batches")),
            ("POST", "/v1/v1/messagesx", Route::Relay("/v1/messagesx")),
            ("POST", "/v1/v1/chat/completions", Route::Relay("/v1/chat/completions")),
            ("GET", "/v1x/models", Route::NotFound),
            ("POST", "/v1/chat/completions", Route::Engine(Endpoint(Family::Chat))),
            ("GET", "/v1/chat/completions", Route::Relay("/chat/completions")),
            ("POST", "/v1/chat/completions/", Route::Relay("/chat/completions/")),
            ("GET", "/v1/models", Route::Models { path: "/models", name: None }),
            ("GET", "/v1/models/", Route::Models { path: "/models/", name: None }),
            ("GET", "/v1/models/@a/b/c", Route::Models { path: "/models/@a/b/c", name: Some("@a/b/c") }),
            ("GET", "/v1/modelsx", Route::Relay("/modelsx")),
            ("DELETE", "/v1/models/m", Route::Relay("/models/m")),
            ("POST", "/v1/moderations", Route::Engine(Endpoint(Family::Moderate))),
            ("POST", "/v1/audio/translations", Route::Engine(Endpoint(Family::Translate))),
            ("POST", "/v1/files", Route::Relay("/files")),
            ("POST", "/v1/explain", Route::Explain),
            ("POST", "/v1/prompts/pp-a/completions", Route::Prompt),
            ("GET", "/v1/prompts/pp-a/completions", Route::Relay("/prompts/pp-a/completions")),
            ("POST", "/v1/prompts/a/b/completions", Route::Relay("/prompts/a/b/completions")),
            ("POST", "/v1/prompts/pp-a/render", Route::ControlPlane),
            ("GET", "/v1/responses/r/input_items", Route::Relay("/responses/r/input_items")),
            ("PUT", "/v1/proxy/rerank", Route::Relay("/rerank")),
            ("POST", "/v1/proxyx", Route::Relay("/proxyx")),
            ("GET", "/v1/admin/workspaces", Route::ControlPlane),
            ("GET", "/v1/api-keys/self", Route::ControlPlane),
            ("OPTIONS", "/v1/chat/completions", Route::Preflight),
            ("HEAD", "/v1/models", Route::Preflight),
            ("TRACE", "/v1/models", Route::MethodNotAllowed),
        ] {
            assert_eq!(classify(&Method::from_bytes(method.as_bytes()).unwrap(), path), route, "{method} {path}");
        }
    }
}
