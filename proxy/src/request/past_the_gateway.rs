//! Requests that a provider answers with a credential of its own, or with a session that its client holds beside the gateway:
//! what is said there is neither counted, nor limited, nor judged by anybody here. Told by the path as the most forgiving
//! reader takes it, whoever's the interface is.

use super::path_spelling::loosest;
use http::Method;

/// A session stands at the first of these; what is below them makes keys for one, or opens it another way. The second is
/// Azure's older one.
const SESSIONS: [&str; 2] = ["realtime", "realtimeapi"];
/// Whatever is below them or after a colon (Gemini's, in both spellings).
const TOKENS: [&str; 2] = ["auth_tokens", "authtokens"];
/// What makes keys that last, by how its path ends; a star is one segment.
const KEYS: [&[&str]; 6] = [
    &["auth", "grant"],
    &["chatkit", "sessions"],
    &["projects", "*", "keys"],
    &["projects", "*", "api_keys"],
    &["projects", "*", "service_accounts"],
    &["organization", "admin_api_keys"],
];

pub fn leads_past_the_gateway(method: &Method, path: &str) -> bool {
    let loose = loosest(path);
    let path = loose.as_deref().unwrap_or(path);
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let is_posted = *method == Method::POST;
    let opens = |(at, segment): (usize, &&str)| match segments.len() - at {
        // A browser posts its offer there, and gets the provider's answer to it.
        1 => SESSIONS.contains(segment) && is_posted,
        _ => SESSIONS.contains(segment),
    };
    let is_token = |segment: &&str| TOKENS.contains(&segment.split(':').next().unwrap_or_default());
    segments.iter().enumerate().any(opens)
        || segments.iter().any(is_token)
        || (is_posted && KEYS.iter().any(|ending| ends_with(&segments, ending)))
}

fn ends_with(segments: &[&str], ending: &[&str]) -> bool {
    let Some(from) = segments.len().checked_sub(ending.len()) else { return false };
    segments[from..].iter().zip(ending).all(|(segment, wanted)| *wanted == "*" || segment == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_sessions_beside_the_gateway_are_told_in_every_spelling() {
        for (method, path, expected) in [
            ("GET", "/realtime", false),
            ("GET", "/realtime/", false),
            ("POST", "/realtime", true),
            ("POST", "/realtime/", true),
            ("POST", "/realtime/client_secrets", true),
            ("POST", "/realtime//sessions", true),
            ("POST", "/%72ealtime/sessions", true),
            ("POST", "/Realtime/sessions", true),
            ("POST", "/x/../realtime/sessions", true),
            ("POST", "/realtime/transcription_sessions", true),
            ("POST", "/realtime/calls", true),
            ("POST", "/chatkit/sessions", true),
            ("POST", "/chatkit/sessions/cksess_1/cancel", false),
            ("POST", "/realtime/calls/c/accept", true),
            ("POST", "/proxy/realtime/client_secrets", true),
            ("POST", "/openai/v1/realtime/client_secrets", true),
            ("POST", "/openai/realtime/sessions", true),
            ("POST", "/openai/realtimeapi/sessions", true),
            ("POST", "/openai/deployments/d/realtime/calls", true),
            ("POST", "/v1alpha/auth_tokens", true),
            ("POST", "/v1beta/authTokens", true),
            ("POST", "/v1beta/auth_tokens:create", true),
            ("POST", "/auth/grant", true),
            ("POST", "/projects/p/keys", true),
            ("POST", "/organization/projects/p/service_accounts", true),
            ("POST", "/organization/admin_api_keys", true),
            ("GET", "/organization/admin_api_keys", false),
            ("POST", "/realtimes/x", false),
            ("POST", "/projects/p/keys/k", false),
            ("POST", "/threads/runs", false),
            ("POST", "/keys", false),
            ("POST", "", false),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(leads_past_the_gateway(&method, path), expected, "{method} {path}");
        }
    }
}
