//! Method and path → the route of a request. Under `/v1`, in this order: browsers' preflights, the endpoints that the
//! engine understands, `/explain` and prompts (which the proxy answers although the control plane's table has them),
//! the control plane's table, `/models`; everything else is relayed to a provider. An endpoint is the same in every
//! spelling of its path, and a path that could be read as two endpoints is refused: a limit must not depend on
//! spelling.

use crate::refusal::Dialect;
use crate::request::path_spelling::{canonical, loosest};
use http::Method;
use shared::providers::Family;
use shared::routes::{self, Lookup};
use std::borrow::Cow;

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
    /// The provider's path, without `/v1`: as it is written, or in the one spelling of its family.
    Relay(Cow<'p, str>),
    /// The models there are, or the one that is named.
    Models {
        path: &'p str,
        name: Option<&'p str>,
    },
    /// A spelling that a provider may take for this family's, or not.
    Ambiguous(Family),
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
    fn from_path(method: &Method, path: &str) -> Option<Self> {
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
            // Where links of invitations lead.
            ("/invites/accept", &Method::GET) => Route::ControlPlane,
            _ => Route::NotFound,
        };
    };
    if matches!(*method, Method::OPTIONS | Method::HEAD) {
        return Route::Preflight;
    }
    if let Some(endpoint) = Endpoint::from_path(method, rest) {
        return Route::Engine(endpoint);
    }
    let spelled = canonical(rest);
    if let Some(endpoint) = Endpoint::from_path(method, without_proxy(&spelled)) {
        return Route::Engine(endpoint);
    }
    // In the table of the control plane, but the proxy knows what it would do.
    if (method, &*spelled) == (&Method::POST, "/explain") {
        return Route::Explain;
    }
    if *method == Method::POST && is_prompt(&spelled) {
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
        Method::GET | Method::POST | Method::PUT | Method::DELETE | Method::PATCH => relayed(method, rest, &spelled),
        _ => Route::MethodNotAllowed,
    }
}

/// `spelled` is the canonical spelling of `rest`.
fn relayed<'p>(method: &Method, rest: &'p str, spelled: &str) -> Route<'p> {
    let spelled = without_proxy(spelled);
    let family = Family::from_path(method, spelled).map(|(family, _)| family);
    if let Some((loose, _)) =
        loosest(spelled).as_deref().and_then(|loose| Family::from_path(method, without_proxy(loose)))
        && family != Some(loose)
    {
        return Route::Ambiguous(loose);
    }
    match without_proxy(rest) {
        written if family.is_none() || written == spelled => Route::Relay(Cow::Borrowed(written)),
        _ => Route::Relay(Cow::Owned(spelled.to_owned())),
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
        Route::Ambiguous(Family::Messages | Family::CountTokens) => Dialect::Anthropic,
        _ => Dialect::OpenAi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(path: &str) -> Route<'_> {
        Route::Relay(path.into())
    }

    #[test]
    fn each_path_has_one_meaning() {
        for (method, path, route) in [
            ("GET", "/", Route::Greeting),
            ("GET", "/elsewhere", Route::NotFound),
            ("GET", "/model-configs/pricing/openai/gpt-4o", Route::ControlPlane),
            ("POST", "/v1/v1/messages", Route::Engine(Endpoint(Family::Messages))),
            ("POST", "/v1/v1/messages/count_tokens", Route::Engine(Endpoint(Family::CountTokens))),
            ("GET", "/v1/v1/messages/batches", relay("/messages/batches")),
            ("POST", "/v1/v1/messagesx", relay("/v1/messagesx")),
            ("POST", "/v1/v1/chat/completions", relay("/v1/chat/completions")),
            ("GET", "/v1x/models", Route::NotFound),
            ("POST", "/v1/chat/completions", Route::Engine(Endpoint(Family::Chat))),
            ("GET", "/v1/chat/completions", relay("/chat/completions")),
            ("POST", "/v1/chat/completions/", Route::Engine(Endpoint(Family::Chat))),
            ("POST", "/v1/proxy/chat/completions", Route::Engine(Endpoint(Family::Chat))),
            ("POST", "/v1/proxy/%63hat//completions/", Route::Engine(Endpoint(Family::Chat))),
            ("POST", "/v1//messages/count%5ftokens", Route::Engine(Endpoint(Family::CountTokens))),
            ("POST", "/v1/Chat/Completions", Route::Ambiguous(Family::Chat)),
            ("POST", "/v1/chat%2Fcompletions", Route::Ambiguous(Family::Chat)),
            ("POST", "/v1/x/../messages", Route::Ambiguous(Family::Messages)),
            ("GET", "/v1/Realtime", Route::Ambiguous(Family::Realtime)),
            ("GET", "/v1/chat%2Fcompletions", relay("/chat%2Fcompletions")),
            ("GET", "/v1/realtime/", relay("/realtime")),
            ("POST", "/v1/%66iles", relay("/files")),
            ("POST", "/v1/x/../y", relay("/x/../y")),
            ("POST", "/v1/odd//path/", relay("/odd//path/")),
            ("GET", "/v1/files/a%2Fb", relay("/files/a%2Fb")),
            ("GET", "/v1/models", Route::Models { path: "/models", name: None }),
            ("GET", "/v1/models/", Route::Models { path: "/models/", name: None }),
            ("GET", "/v1/models/@a/b/c", Route::Models { path: "/models/@a/b/c", name: Some("@a/b/c") }),
            ("GET", "/v1/modelsx", relay("/modelsx")),
            ("DELETE", "/v1/models/m", relay("/models/m")),
            ("POST", "/v1/moderations", Route::Engine(Endpoint(Family::Moderate))),
            ("POST", "/v1/audio/translations", Route::Engine(Endpoint(Family::Translate))),
            ("POST", "/v1/files", relay("/files")),
            ("POST", "/v1/explain", Route::Explain),
            ("POST", "/v1/prompts/pp-a/completions", Route::Prompt),
            ("GET", "/v1/prompts/pp-a/completions", relay("/prompts/pp-a/completions")),
            ("POST", "/v1/prompts/a/b/completions", relay("/prompts/a/b/completions")),
            ("POST", "/v1/prompts/pp-a/render", Route::ControlPlane),
            ("GET", "/v1/responses/r/input_items", relay("/responses/r/input_items")),
            ("PUT", "/v1/proxy/rerank", relay("/rerank")),
            ("POST", "/v1/proxyx", relay("/proxyx")),
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
