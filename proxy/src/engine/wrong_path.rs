//! Paths that lead nowhere, and what was probably meant by them. Asked only about requests that are refused, or would be:
//! whoever names a provider may ask it for any path.

use crate::request::classify::{Route, classify};
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::request::text_bounds::{self, cut};
use http::Method;
use shared::providers::Family;
use shared::routes::{self, Lookup};

/// What the answer to a call with a doubled `/v1` says beside what the provider says to it.
pub const DOUBLED: &str = "path: it has /v1 twice, of which the provider is asked for the second";

/// Why a path outside `/v1` is not found.
pub fn outside(method: &Method, path: &str) -> Refusal {
    if path == "/docs" {
        return Refusal::docs_elsewhere();
    }
    let inside = format!("/v1{}", cut(path, text_bounds::NAME));
    let meant = match classify(method, &inside) {
        Route::ControlPlane if !is_operation(method, path) => None,
        Route::Engine(_) | Route::ControlPlane | Route::Models { .. } | Route::Explain | Route::Prompt(_) => {
            Some(format!("{method} {inside}"))
        }
        Route::Relay(path) if Family::from_path(method, &path).is_some() => Some(format!("{method} {inside}")),
        _ => None,
    };
    Refusal::outside_api(meant.or_else(|| operation(method, path)).as_deref())
}

/// Why a path under `/v1` that only a provider could know is not found, for a request that names none.
pub fn without_provider(method: &Method, path: &str) -> Option<Refusal> {
    if let Some(meant) = without_second_version(method, path) {
        return Some(Refusal::doubled_version(&meant));
    }
    if Family::from_path(method, path).is_some() {
        return None;
    }
    let meant = operation(method, path)?;
    Some(Refusal::no_operation(method.as_str(), &format!("/v1{}", cut(path, text_bounds::NAME)), &meant))
}

/// The call that is meant by one whose `/v1` is doubled.
pub fn without_second_version(method: &Method, path: &str) -> Option<String> {
    let inner = path.strip_prefix("/v1").filter(|inner| inner.starts_with('/'))?;
    let is_ours = matches!(classify(method, path), Route::Models { .. } | Route::Explain | Route::Prompt(_));
    let is_known = is_ours || Family::from_path(method, inner).is_some() || is_operation(method, inner);
    is_known.then(|| format!("{method} {}", cut(path, text_bounds::NAME)))
}

/// Whether the request itself says where it wants to go.
pub fn names_target(headers: &GatewayHeaders<'_>) -> bool {
    headers.provider.is_some()
        || headers.virtual_key.is_some()
        || headers.config.is_some()
        || headers.named_by_mode().is_some()
}

fn is_operation(method: &Method, path: &str) -> bool {
    matches!(routes::find(method.as_str(), path), Lookup::Operation(_))
}

fn operation(method: &Method, path: &str) -> Option<String> {
    let meant = routes::meant(method.as_str(), path)?;
    Some(format!("{} /v1{}", meant.method.as_str(), meant.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_outside_the_api_is_told_the_one_inside() {
        for (method, path, says) in [
            (Method::POST, "/chat/completions", "did you mean POST /v1/chat/completions?"),
            (Method::GET, "/models", "did you mean GET /v1/models?"),
            (Method::GET, "/api-keys", "did you mean GET /v1/api-keys?"),
            (Method::POST, "/api-keys", "did you mean POST /v1/api-keys/"),
            (Method::POST, "/files", "did you mean POST /v1/files?"),
            (Method::GET, "/favicon.ico", "the API is under /v1"),
            (Method::GET, "/docs", "/docs at the control plane's own address"),
        ] {
            let refusal = outside(&method, path);
            assert!(refusal.status == 404 && refusal.message.contains(says), "{path}: {}", refusal.message);
        }
        assert!(!outside(&Method::GET, "/favicon.ico").message.contains("did you mean"));
    }

    #[test]
    fn a_path_that_no_provider_is_asked_for_is_told_the_nearest_operation() {
        for (path, says) in [
            ("/workspace", Some("did you mean GET /v1/workspaces?")),
            ("/v1/models", Some("did you mean GET /v1/models?")),
            ("/v1/api-keys", Some("did you mean GET /v1/api-keys?")),
            ("/files", None),
            ("/anything/else", None),
            ("/v1/anything", None),
        ] {
            let found = without_provider(&Method::GET, path).map(|refusal| refusal.message);
            match says {
                Some(says) => assert!(found.as_ref().is_some_and(|found| found.contains(says)), "{path}: {found:?}"),
                None => assert_eq!(found, None, "{path}"),
            }
        }
    }
}
