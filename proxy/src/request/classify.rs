//! Method and path → the route of a request. Under `/v1`, in this order: browsers' preflights, the endpoints that the
//! engine understands, `/explain` and prompts (which the proxy answers although the control plane's table has them),
//! the control plane's table, `/models`; everything else is relayed to a provider. Routes of Google's and Bedrock's own
//! clients are the same under `/v1` and where those clients write them. An endpoint is the same in every spelling of its
//! path, and a path that could be read as two endpoints is refused: a limit must not depend on spelling.

use super::refusal::Dialect;
use crate::request::mcp_paths::{keys_of, resource_of};
use crate::request::native_route::{NativeRoute, is_outside_v1};
use crate::request::path_spelling::{canonical, loosest};
use http::Method;
use percent_encoding::percent_decode_str;
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
    /// A saved prompt is run: `slug@version`.
    Prompt(String),
    Engine(Endpoint),
    /// The provider's path, without `/v1`: as it is written, or in the one spelling of its family.
    Relay(Cow<'p, str>),
    /// The models there are, or the one that is named.
    Models {
        path: &'p str,
        name: Option<&'p str>,
    },
    /// An MCP server by its slug, or all of a workspace.
    Mcp(Option<&'p str>),
    /// What a client of MCP servers is told before it has a key; the path of what it asks about.
    McpMetadata(&'p str),
    /// The keys that sign identities for MCP servers, by organisation.
    McpKeys(&'p str),
    /// A spelling that a provider may take for this endpoint's, or not.
    Ambiguous(Endpoint),
    NotFound,
    MethodNotAllowed,
}

/// A family whose bodies the engine reads: JSON or a form in, and an answer that is an object, a stream of events or
/// bytes. A vendor's own route is an endpoint of the family whose answers it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    family: Family,
    native: Option<NativeRoute>,
}

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
        ENGINE.iter().find(|family| family.path() == path).map(|family| Self::of(*family))
    }

    /// `path` is canonical and whole.
    fn from_native_path(method: &Method, path: &str) -> Option<Self> {
        if *method != Method::POST {
            return None;
        }
        NativeRoute::find(path).map(|(route, _)| Self::of_native(route))
    }

    pub(crate) const fn of(family: Family) -> Self {
        Self { family, native: None }
    }

    const fn of_native(route: NativeRoute) -> Self {
        let family = if route.is_count() { Family::CountTokens } else { Family::Chat };
        Self { family, native: Some(route) }
    }

    pub const fn family(self) -> Family {
        self.family
    }

    /// The vendor's own route that it is, if it is one.
    pub const fn native_route(self) -> Option<NativeRoute> {
        self.native
    }

    pub const fn path(self) -> &'static str {
        match self.native {
            None => self.family.path(),
            Some(route) => route.path(),
        }
    }

    /// Whether bodies are uploads, with their fields around them.
    pub const fn takes_forms(self) -> bool {
        matches!(self.family, Family::Transcribe | Family::Translate | Family::ImageEdit | Family::ImageVariation)
    }

    fn dialect(self) -> Dialect {
        match (self.native, self.family) {
            (Some(route), _) if route.is_google() => Dialect::Google,
            (Some(_), _) => Dialect::Aws,
            (None, Family::Messages | Family::CountTokens) => Dialect::Anthropic,
            (None, Family::Responses) => Dialect::Responses,
            (None, _) => Dialect::OpenAi,
        }
    }
}

pub fn classify<'p>(method: &Method, path: &'p str) -> Route<'p> {
    let Some(rest) = under_v1(path).or_else(|| is_outside_v1(path).then_some(path)) else {
        // Before MCP servers: the screen `/console/mcp` is none.
        if matches!(*method, Method::GET | Method::HEAD) && is_at_or_below(path, "/console") {
            return Route::ControlPlane;
        }
        if let Some(route) = mcp(method, path) {
            return route;
        }
        return match (path, method) {
            ("/", &Method::GET | &Method::HEAD) => Route::Greeting,
            // One client looks for prices at the host's root.
            _ if path.starts_with("/model-configs/") => Route::ControlPlane,
            // Where links of invitations and of logins lead.
            ("/invites/accept" | "/auth/link", &Method::GET) => Route::ControlPlane,
            // Where people connect to MCP servers, and where MCP clients log in.
            ("/mcp-oauth/start" | "/oauth/authorize", &Method::GET | &Method::POST)
            | ("/mcp-oauth/callback" | "/.well-known/oauth-authorization-server", &Method::GET)
            | ("/oauth/register" | "/oauth/token", &Method::POST) => Route::ControlPlane,
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
    if *method == Method::POST
        && let Some(reference) = prompt(&spelled)
    {
        return Route::Prompt(reference);
    }
    if let Some(endpoint) = Endpoint::from_path(method, without_proxy(&spelled))
        .or_else(|| Endpoint::from_native_path(method, &canonical(path)))
    {
        return Route::Engine(endpoint);
    }
    // In the table of the control plane, but the proxy knows what it would do.
    if (method, &*spelled) == (&Method::POST, "/explain") {
        return Route::Explain;
    }
    match routes::find(method.as_str(), rest) {
        Lookup::Operation(_) | Lookup::WrongMethod | Lookup::Unknown => return Route::ControlPlane,
        Lookup::NotControlPlane => {}
    }
    if *method == Method::GET
        && let Some(rest) = without_proxy(rest).strip_prefix("/models")
        && (rest.is_empty() || rest.starts_with('/'))
    {
        let name = rest.strip_prefix('/').filter(|name| !name.is_empty());
        return Route::Models { path: without_proxy(under_v1(path).unwrap_or(path)), name };
    }
    if *method == Method::GET
        && let Some(below) = without_proxy(rest).strip_prefix("/v1beta/models")
        && (below.is_empty() || below.starts_with('/'))
    {
        let name = below.strip_prefix('/').filter(|name| !name.is_empty());
        return Route::Models { path: without_proxy(rest), name };
    }
    match *method {
        Method::GET | Method::POST | Method::PUT | Method::DELETE | Method::PATCH => relayed(method, rest, &spelled),
        _ => Route::MethodNotAllowed,
    }
}

/// `/mcp`, `/mcp/{slug}` and `/{slug}/mcp`, and what is known of them before anybody asks.
fn mcp<'p>(method: &Method, path: &'p str) -> Option<Route<'p>> {
    let route = match (resource_of(path), keys_of(path)) {
        (Some(resource), _) => Route::McpMetadata(resource),
        (None, Some(organisation)) => Route::McpKeys(organisation),
        (None, None) => Route::Mcp(mcp_slug(path)?),
    };
    Some(match (method, &route) {
        (&Method::OPTIONS, _) => Route::Preflight,
        (&Method::GET, _) | (&Method::POST | &Method::DELETE, Route::Mcp(_)) => route,
        _ => Route::MethodNotAllowed,
    })
}

/// None for paths that are none of these; of the merged server, that there is no slug.
fn mcp_slug(path: &str) -> Option<Option<&str>> {
    let slug = match path.strip_prefix("/mcp") {
        Some("" | "/") => return Some(None),
        Some(rest) if rest.starts_with('/') => &rest[1..],
        _ => path.strip_prefix('/')?.strip_suffix("/mcp")?,
    };
    let is_slug = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    ((1..=255).contains(&slug.len()) && slug.bytes().all(is_slug)).then_some(Some(slug))
}

/// `spelled` is the canonical spelling of `rest`.
fn relayed<'p>(method: &Method, rest: &'p str, spelled: &str) -> Route<'p> {
    let spelled = without_proxy(spelled);
    let family = Family::from_path(method, spelled).map(|(family, _)| family);
    if let Some(loose) = loosest(spelled) {
        let read = Family::from_path(method, without_proxy(&loose)).map(|(family, _)| family);
        if let Some(read) = read.filter(|read| family != Some(*read)) {
            return Route::Ambiguous(Endpoint::of(read));
        }
        if let Some(route) = NativeRoute::resembled(&loose).filter(|_| *method == Method::POST) {
            return Route::Ambiguous(Endpoint::of_native(route));
        }
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
fn prompt(rest: &str) -> Option<String> {
    let id = rest.strip_prefix("/prompts/").and_then(|rest| rest.strip_suffix("/completions"));
    let id = id.filter(|id| !id.is_empty() && !id.contains('/'))?;
    // Some clients escape the @ before a version.
    Some(percent_decode_str(id).decode_utf8_lossy().into_owned())
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
        Route::Relay(path) if path.starts_with("/v1beta/") => Dialect::Google,
        Route::Models { path, .. } if path.starts_with("/v1beta/") => Dialect::Google,
        Route::Relay(path) if path.starts_with("/model/") => Dialect::Aws,
        Route::Engine(endpoint) | Route::Ambiguous(endpoint) => endpoint.dialect(),
        Route::Mcp(_) => Dialect::Mcp,
        Route::NotFound | Route::Greeting => Dialect::Plain,
        _ => Dialect::OpenAi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(path: &str) -> Route<'_> {
        Route::Relay(path.into())
    }

    fn engine(family: Family) -> Route<'static> {
        Route::Engine(Endpoint::of(family))
    }

    fn native(route: NativeRoute) -> Route<'static> {
        Route::Engine(Endpoint::of_native(route))
    }

    #[test]
    fn each_path_has_one_meaning() {
        for (method, path, route) in [
            ("GET", "/", Route::Greeting),
            ("GET", "/elsewhere", Route::NotFound),
            ("POST", "/mcp", Route::Mcp(None)),
            ("POST", "/tools/mcp", Route::Mcp(Some("tools"))),
            ("DELETE", "/mcp/tools", Route::Mcp(Some("tools"))),
            ("GET", "/mcp/a/b", Route::NotFound),
            ("POST", "/a/b/mcp", Route::NotFound),
            ("POST", "/mcpx", Route::NotFound),
            ("POST", "/mcp-tools/mcp", Route::Mcp(Some("mcp-tools"))),
            ("PUT", "/tools/mcp", Route::MethodNotAllowed),
            ("OPTIONS", "/tools/mcp", Route::Preflight),
            ("POST", "/v1/mcp", relay("/mcp")),
            ("POST", "/v1/tools/mcp", relay("/tools/mcp")),
            ("GET", "/.well-known/oauth-protected-resource", Route::McpMetadata("")),
            ("GET", "/.well-known/oauth-protected-resource/tools/mcp", Route::McpMetadata("/tools/mcp")),
            ("GET", "/.well-known/oauth-protected-resourceful", Route::NotFound),
            ("GET", "/.well-known/mcp-keys/x", Route::McpKeys("x")),
            ("POST", "/.well-known/mcp-keys/x", Route::MethodNotAllowed),
            ("GET", "/model-configs/pricing/openai/gpt-4o", Route::ControlPlane),
            ("GET", "/console", Route::ControlPlane),
            ("HEAD", "/console/assets/app.js", Route::ControlPlane),
            ("GET", "/console/mcp", Route::ControlPlane),
            ("POST", "/console/mcp", Route::Mcp(Some("console"))),
            ("POST", "/console", Route::NotFound),
            ("GET", "/consoles", Route::NotFound),
            ("POST", "/mcp-oauth/start", Route::ControlPlane),
            ("GET", "/mcp-oauth/callback", Route::ControlPlane),
            ("POST", "/mcp-oauth/callback", Route::NotFound),
            ("GET", "/.well-known/oauth-authorization-server", Route::ControlPlane),
            ("POST", "/oauth/token", Route::ControlPlane),
            ("POST", "/v1/v1/messages", engine(Family::Messages)),
            ("POST", "/v1/v1/messages/count_tokens", engine(Family::CountTokens)),
            ("GET", "/v1/v1/messages/batches", relay("/messages/batches")),
            ("POST", "/v1/v1/messagesx", relay("/v1/messagesx")),
            ("POST", "/v1/v1/chat/completions", relay("/v1/chat/completions")),
            ("GET", "/v1x/models", Route::NotFound),
            ("POST", "/v1/chat/completions", engine(Family::Chat)),
            ("GET", "/v1/chat/completions", relay("/chat/completions")),
            ("POST", "/v1/chat/completions/", engine(Family::Chat)),
            ("POST", "/v1/proxy/chat/completions", engine(Family::Chat)),
            ("POST", "/v1/proxy/%63hat//completions/", engine(Family::Chat)),
            ("POST", "/v1//messages/count%5ftokens", engine(Family::CountTokens)),
            ("POST", "/v1/Chat/Completions", Route::Ambiguous(Endpoint::of(Family::Chat))),
            ("POST", "/v1/chat%2Fcompletions", Route::Ambiguous(Endpoint::of(Family::Chat))),
            ("POST", "/v1/x/../messages", Route::Ambiguous(Endpoint::of(Family::Messages))),
            ("GET", "/v1/Realtime", Route::Ambiguous(Endpoint::of(Family::Realtime))),
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
            ("POST", "/v1/moderations", engine(Family::Moderate)),
            ("POST", "/v1/audio/translations", engine(Family::Translate)),
            ("POST", "/v1/files", relay("/files")),
            ("POST", "/v1/explain", Route::Explain),
            ("POST", "/v1/prompts/pp-a/completions", Route::Prompt("pp-a".into())),
            ("POST", "/v1/prompts/pp-a%40staging/completions/", Route::Prompt("pp-a@staging".into())),
            ("GET", "/v1/prompts/pp-a/completions", relay("/prompts/pp-a/completions")),
            ("POST", "/v1/prompts/a/b/completions", relay("/prompts/a/b/completions")),
            ("POST", "/v1/prompts/pp-a/render", Route::ControlPlane),
            ("GET", "/v1/responses/r/input_items", relay("/responses/r/input_items")),
            ("PUT", "/v1/proxy/rerank", relay("/rerank")),
            ("POST", "/v1/proxyx", relay("/proxyx")),
            ("GET", "/v1/admin/workspaces", Route::ControlPlane),
            ("GET", "/v1/api-keys/self", Route::ControlPlane),
            ("POST", "/v1beta/models/@s/g:generateContent", native(NativeRoute::Gemini)),
            ("POST", "/v1/models/g:streamGenerateContent", native(NativeRoute::GeminiStream)),
            ("POST", "/v1/v1beta//%6dodels/g:generateContent/", native(NativeRoute::Gemini)),
            ("POST", "/v1beta/Models/g:generateContent", Route::Ambiguous(Endpoint::of_native(NativeRoute::Gemini))),
            (
                "POST",
                "/v1/v1beta/models%2Fg:x%3AgenerateContent",
                Route::Ambiguous(Endpoint::of_native(NativeRoute::Gemini)),
            ),
            ("POST", "/v1beta/models/g:countTokens", native(NativeRoute::GeminiCount)),
            ("GET", "/v1beta/models", Route::Models { path: "/v1beta/models", name: None }),
            ("GET", "/v1beta/models/@s/g", Route::Models { path: "/v1beta/models/@s/g", name: Some("@s/g") }),
            ("OPTIONS", "/v1beta/models/g:generateContent", Route::Preflight),
            ("POST", "/model/a.b%3A0/converse", native(NativeRoute::Converse)),
            ("POST", "/v1/model/%40s%2Fm/converse-stream", native(NativeRoute::ConverseStream)),
            ("POST", "/model/a.b%3A0/invoke", relay("/model/a.b%3A0/invoke")),
            ("POST", "/model%2Fx/converse", Route::NotFound),
            ("POST", "/v1/model%2Fx/converse", Route::Ambiguous(Endpoint::of_native(NativeRoute::Converse))),
            ("OPTIONS", "/v1/chat/completions", Route::Preflight),
            ("HEAD", "/v1/models", Route::Preflight),
            ("TRACE", "/v1/models", Route::MethodNotAllowed),
        ] {
            assert_eq!(classify(&Method::from_bytes(method.as_bytes()).unwrap(), path), route, "{method} {path}");
        }
    }

    #[test]
    fn below_proxy_every_path_of_the_control_plane_is_the_providers() {
        for operation in routes::operations() {
            let path = operation.path.replace(['{', '}'], "");
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                let method: Method = method.parse().unwrap();
                let (ours, theirs) = (format!("/v1{path}"), format!("/v1/proxy{path}"));
                assert_ne!(classify(&method, &ours), relay(&path), "{method} {ours}");
                assert_eq!(classify(&method, &theirs), relay(&path), "{method} {theirs}");
            }
        }
    }
}
