//! Where a login begins and ends: how often one address may try, and where a browser may be sent afterwards.

use crate::app::App;
use crate::http::ApiError;
use crate::identity::call::RequestOrigin;
use chrono::Utc;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Who is signed in, until there is a console to go to.
pub const HOME: &str = "/v1/auth/session";
const LONGEST: usize = 2048;
const TOO_OFTEN: &str = "Too many attempts to sign in from this address";

/// Counts an attempt of the client's address.
pub fn allow(app: &App, origin: &RequestOrigin) -> Result<(), ApiError> {
    let digest: [u8; 32] = Sha256::digest(origin.seen.client_ip.to_string()).into();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    app.sign_in_limit.take(Uuid::from_bytes(id), Utc::now()).map_err(|refused| match refused {
        ApiError::RateLimited { retry_after, .. } => ApiError::RateLimited { message: TOO_OFTEN, retry_after },
        other => other,
    })
}

/// A path on this very host. Anything that a browser could take for another host is refused, or a link to our login
/// would lead wherever its author likes.
pub fn return_to(sent: Option<&str>) -> Result<String, ApiError> {
    let Some(path) = sent else { return Ok(HOME.into()) };
    let is_path = path.starts_with('/') && !path.starts_with("//");
    let is_plain = path.len() <= LONGEST && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    match is_path && is_plain {
        true => Ok(path.to_owned()),
        false => Err(ApiError::field("return_to", "must be a path of this host, as /console")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_this_host_is_gone_back_to() {
        for (sent, accepted) in [
            ("/console", true),
            ("/console?a=b#c", true),
            ("/", true),
            ("//evil.test", false),
            ("/\\evil.test", false),
            ("\\\\evil.test", false),
            ("https://evil.test", false),
            ("javascript:alert(1)", false),
            ("console", false),
            ("/a b", false),
            ("/\tx", false),
            ("/\r\nset-cookie: a=b", false),
            ("/ä", false),
            ("", false),
        ] {
            assert_eq!(return_to(Some(sent)).is_ok(), accepted, "{sent:?}");
        }
        assert!(return_to(Some(&format!("/{}", "x".repeat(LONGEST)))).is_err());
        assert_eq!(return_to(None).unwrap(), HOME);
    }
}
