//! Whether a call costs something, by what it asks for: the families of endpoints, the routes of vendors' own clients, and
//! the paths that a provider's row lists. An answer on one of them that does not say what it used is estimated. Whatever
//! else changes something at a provider has no price that anybody knows, and is counted.

use crate::request::native_route::NativeRoute;
use http::Method;
use shared::providers::{BilledBy, Family, ProviderEntry};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaidRoute<'r> {
    /// A name of it from a closed set.
    Paid(&'r str, BilledBy),
    Free,
    Unpriced,
}

impl<'r> PaidRoute<'r> {
    /// `path` is canonical and whole.
    pub fn find(method: &Method, path: &str, row: &'r ProviderEntry) -> Self {
        let rest = within_version(path);
        if let Some((family, rest)) = Family::from_path(method, rest) {
            return family.billed_by(method, rest).map_or(Self::Free, |billed| Self::Paid(family.path(), billed));
        }
        if method.is_safe() || *method == Method::DELETE {
            return Self::Free;
        }
        if let Some((route, _)) = NativeRoute::find(path).filter(|(route, _)| !route.is_count()) {
            return Self::Paid(route.path(), BilledBy::Text);
        }
        // A stored prompt that is run.
        if rest.starts_with("/prompts/") && rest.ends_with("/completions") {
            return Self::Paid(Family::Complete.path(), BilledBy::Text);
        }
        if is_count(rest) || is_upload(rest) || is_stop(rest) {
            return Self::Free;
        }
        // The whole path too: a vendor's own version may look like the gateway's.
        match row.paid.iter().find(|paid| paid.matches(rest) || paid.matches(path)) {
            Some(paid) => Self::Paid(paid.as_str(), paid.billed),
            None => Self::Unpriced,
        }
    }

    /// Whether a call costs nothing whichever provider it goes to: it looks something up, keeps, deletes or stops it. What may
    /// become a session is none of these.
    pub fn is_free(method: &Method, path: &str) -> bool {
        let rest = within_version(path);
        match Family::from_path(method, rest) {
            Some((Family::Realtime, _)) => false,
            Some((family, rest)) => family.billed_by(method, rest).is_none(),
            None if method.is_safe() || *method == Method::DELETE => true,
            None => is_count(rest) || is_upload(rest) || is_stop(rest),
        }
    }
}

/// Files in parts, as OpenAI and Google take them. What is kept is billed by its time, if at all, and not by the call.
fn is_upload(path: &str) -> bool {
    path == "/uploads" || path.starts_with("/uploads/") || path == "/upload/v1beta/files"
}

fn is_stop(path: &str) -> bool {
    path.ends_with("/cancel") || path.ends_with(":cancel")
}

impl PaidRoute<'_> {
    /// What it is paid by; none where nothing is known to be paid.
    pub fn billed_by(&self) -> Option<BilledBy> {
        match self {
            Self::Paid(_, billed) => Some(*billed),
            Self::Free | Self::Unpriced => None,
        }
    }
}

/// Questions how long something would be, which nobody is billed for.
fn is_count(path: &str) -> bool {
    const ENDINGS: [&str; 5] =
        ["/count_tokens", "/count-tokens", "/count-tokens:rawPredict", ":countTokens", "/input_tokens"];
    ENDINGS.iter().any(|ending| path.ends_with(ending))
}

fn within_version(path: &str) -> &str {
    let below = |path: &'_ str, prefix: &str| -> Option<usize> {
        path.strip_prefix(prefix).filter(|rest| rest.starts_with('/')).map(|rest| path.len() - rest.len())
    };
    let path = below(path, "/v1").map_or(path, |at| &path[at..]);
    let path = below(path, "/proxy").map_or(path, |at| &path[at..]);
    match below(path, "/v1").map(|at| &path[at..]) {
        Some(rest) if rest.starts_with("/messages") || rest.starts_with("/complete") => rest,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::providers::Providers;

    /// Every operation on what providers keep, by whether a strict budget must know its bound.
    #[test]
    fn what_keeps_looks_up_deletes_or_stops_something_is_free() {
        for (method, path, is_free) in [
            ("POST", "/files", true),
            ("GET", "/files", true),
            ("GET", "/v1/files/f", true),
            ("GET", "/files/f/content", true),
            ("DELETE", "/files/f", true),
            ("POST", "/uploads", true),
            ("POST", "/uploads/u/parts", true),
            ("POST", "/uploads/u/complete", true),
            ("POST", "/upload/v1beta/files", true),
            ("POST", "/batches", false),
            ("GET", "/batches", true),
            ("GET", "/batches/b", true),
            ("GET", "/batches/b/output", true),
            ("POST", "/batches/b/cancel", true),
            ("POST", "/messages/batches", false),
            ("GET", "/messages/batches/b/results", true),
            ("POST", "/v1/messages/batches/b/cancel", true),
            ("POST", "/projects/p/locations/l/batchPredictionJobs/1:cancel", true),
            ("POST", "/fine_tuning/jobs", false),
            ("GET", "/fine_tuning/jobs/j/events", true),
            ("POST", "/fine_tuning/jobs/j/cancel", true),
            ("POST", "/vector_stores", false),
            ("GET", "/vector_stores", true),
            ("GET", "/vector_stores/v/files", true),
            ("POST", "/vector_stores/v/files", false),
            ("POST", "/vector_stores/v/search", false),
            ("DELETE", "/vector_stores/v", true),
            ("POST", "/responses", false),
            ("GET", "/responses/r", true),
            ("POST", "/responses/r/cancel", true),
            ("DELETE", "/responses/r", true),
            ("POST", "/threads/t/runs", false),
            ("GET", "/threads/t/runs/r", true),
            ("POST", "/threads/t/runs/r/cancel", true),
            ("GET", "/models", true),
            ("GET", "/realtime", false),
            ("POST", "/moderations", true),
            ("POST", "/messages/count_tokens", true),
            ("POST", "/v1beta/models/g:countTokens", true),
            ("POST", "/v1beta/models/g:generateContent", false),
            ("POST", "/chat/completions", false),
            ("POST", "/whatever", false),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(PaidRoute::is_free(&method, path), is_free, "{method} {path}");
        }
    }

    #[test]
    fn a_route_is_paid_by_its_family_its_vendor_or_its_row() {
        let providers = Providers::bundled().unwrap();
        let (post, get) = (Method::POST, Method::GET);
        for (provider, method, path, expected) in [
            ("openai", &post, "/v1/chat/completions", PaidRoute::Paid("/chat/completions", BilledBy::Text)),
            ("openai", &post, "/v1/proxy/embeddings", PaidRoute::Paid("/embeddings", BilledBy::Prompt)),
            ("openai", &post, "/v1/threads/t/runs", PaidRoute::Paid("/threads/*/runs", BilledBy::Text)),
            ("openai", &get, "/v1/threads/t/runs", PaidRoute::Free),
            ("openai", &post, "/v1/threads", PaidRoute::Unpriced),
            ("openai", &post, "/v1/prompts/p@1/completions", PaidRoute::Paid("/completions", BilledBy::Text)),
            ("openai", &post, "/v1/moderations", PaidRoute::Free),
            ("openai", &post, "/v1/files", PaidRoute::Free),
            ("openai", &post, "/v1/uploads/u/parts", PaidRoute::Free),
            ("openai", &post, "/v1/threads/t/runs/r/cancel", PaidRoute::Free),
            ("anthropic", &post, "/v1/v1/messages", PaidRoute::Paid("/messages", BilledBy::Text)),
            ("anthropic", &post, "/v1/messages/count_tokens", PaidRoute::Free),
            ("anthropic", &post, "/v1/messages/batches", PaidRoute::Paid("/messages/batches", BilledBy::Text)),
            (
                "bedrock",
                &post,
                "/model/m/invoke-with-response-stream",
                PaidRoute::Paid("/model/*/invoke-with-response-stream", BilledBy::Text),
            ),
            (
                "bedrock",
                &post,
                "/model/m/converse-stream",
                PaidRoute::Paid(NativeRoute::ConverseStream.path(), BilledBy::Text),
            ),
            ("google", &post, "/v1beta/models/g:countTokens", PaidRoute::Free),
            (
                "google",
                &post,
                "/v1beta/models/g:embedContent",
                PaidRoute::Paid("/models/*:embedContent", BilledBy::Prompt),
            ),
            (
                "vertex-ai",
                &post,
                "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
                PaidRoute::Free,
            ),
            (
                "vertex-ai",
                &post,
                "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict",
                PaidRoute::Paid("/models/*:streamRawPredict", BilledBy::Text),
            ),
            ("vertex-ai", &post, "/v1/projects/p/tuningJobs", PaidRoute::Paid("/tuningJobs", BilledBy::Other)),
            ("triton", &post, "/v1/generate_stream", PaidRoute::Paid("/generate_stream", BilledBy::Text)),
            ("huggingface", &post, "/v1/generate", PaidRoute::Paid("/generate", BilledBy::Text)),
            ("reka-ai", &post, "/v1/chat", PaidRoute::Paid("/chat", BilledBy::Text)),
            ("cohere", &post, "/v1/v1/chat", PaidRoute::Paid("/v1/chat", BilledBy::Text)),
            ("cohere", &post, "/v1/chat", PaidRoute::Paid("/v1/chat", BilledBy::Text)),
            ("cohere", &post, "/v1/v2/embed", PaidRoute::Paid("/v2/embed", BilledBy::Prompt)),
            ("oracle", &post, "/v1/20231130/actions/chat", PaidRoute::Paid("/*/actions/chat", BilledBy::Text)),
            ("ollama", &post, "/v1/api/embed", PaidRoute::Paid("/api/embed", BilledBy::Prompt)),
            ("workers-ai", &post, "/v1/run/@cf/meta/llama", PaidRoute::Paid("/run/*", BilledBy::Text)),
            ("groq", &post, "/v1/elsewhere", PaidRoute::Unpriced),
            ("qdrant", &Method::PUT, "/v1/proxy/collections/c", PaidRoute::Unpriced),
        ] {
            let row = providers.get(provider).unwrap();
            assert_eq!(PaidRoute::find(method, path, row), expected, "{provider} {method} {path}");
        }
    }
}
