//! A browser whose sign-in was refused is led where it wanted to go, which can say why: `?error=` with one of a few words that tell
//! nothing about anybody. Who named no place gets the refusal itself, as programs do.

use super::finish::redirect;
use super::place::HOME;
use crate::http::ApiError;
use axum::response::{IntoResponse as _, Response};

/// Every word that `error` can be.
pub const CODES: [&str; 4] = ["access_denied", "sign_in_refused", "too_many_attempts", "unavailable"];

/// `return_to` was checked before: a path of this host. `provider_error` is what the identity provider itself said.
pub fn answer(return_to: &str, refused: ApiError, provider_error: Option<&str>) -> Response {
    match return_to == HOME {
        true => refused.into_response(),
        false => redirect(&with_error(return_to, code(&refused, provider_error)), []),
    }
}

fn code(refused: &ApiError, provider_error: Option<&str>) -> &'static str {
    match refused.status().as_u16() {
        403 if provider_error == Some(CODES[0]) => CODES[0],
        429 => CODES[2],
        500.. => CODES[3],
        _ => CODES[1],
    }
}

/// Nothing but the query changes, so the path leads to this host still. An `error` that was there already is taken out.
fn with_error(path: &str, code: &str) -> String {
    let (path, fragment) = path.split_once('#').map_or((path, None), |(path, fragment)| (path, Some(fragment)));
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let is_other = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some("error");
    let error = format!("error={code}");
    let pairs: Vec<&str> = query.split('&').filter(is_other).chain([error.as_str()]).collect();
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    format!("{path}?{}{fragment}", pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header;

    #[test]
    fn the_reason_is_added_to_the_query_and_nothing_else_changes() {
        for (path, expected) in [
            ("/console", "/console?error=x"),
            ("/console?a=1&b", "/console?a=1&b&error=x"),
            ("/console?error=forged&a=1&error", "/console?a=1&error=x"),
            ("/console?error_of=1#/logs?error=2", "/console?error_of=1&error=x#/logs?error=2"),
            ("/#", "/?error=x#"),
        ] {
            assert_eq!(with_error(path, "x"), expected, "{path}");
        }
    }

    #[test]
    fn a_refusal_is_one_of_a_few_words_and_without_a_place_to_go_an_answer() {
        let refused = || ApiError::SignInRefused("The user ada@acme.test was removed".into());
        for (refused, provider, expected) in [
            (refused(), None, "sign_in_refused"),
            (refused(), Some("access_denied"), "access_denied"),
            (refused(), Some("<script>"), "sign_in_refused"),
            (ApiError::invalid("bad"), Some("access_denied"), "sign_in_refused"),
            (ApiError::NotFound("organisation"), None, "sign_in_refused"),
            (ApiError::RateLimited { message: "m", retry_after: 1 }, None, "too_many_attempts"),
            (ApiError::Internal, None, "unavailable"),
        ] {
            let answer = answer("/console", refused, provider);
            assert_eq!(answer.status(), 303);
            assert_eq!(answer.headers()[header::LOCATION], format!("/console?error={expected}"));
            assert!(CODES.contains(&expected));
        }
        assert_eq!(answer(HOME, refused(), None).status(), 403);
    }
}
