//! The cookies of people who sign in. Where the gateway is reached by https they are `Secure` and bear the prefix
//! `__Host-`, which browsers keep to this host alone; by plain HTTP (at a desk) they have neither.

use axum::http::{HeaderMap, HeaderValue, header};
use uuid::Uuid;

/// Which cookies this installation sets, by its public address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CookieNames {
    is_secure: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cookie {
    /// The token of a session.
    Session,
    /// The secret of a browser that has a login under way.
    Login,
}

/// The session of a caller who came with a cookie.
pub struct CallerSession {
    pub id: Uuid,
    /// What calls that change something have to repeat.
    pub csrf_token: String,
    /// Whether the person signed in a short while ago; a replaced token does not make it so.
    pub is_recent: bool,
    /// `Set-Cookie` of the answer, when the token was replaced.
    pub renewed: Option<HeaderValue>,
}

/// Neither token is printed.
impl std::fmt::Debug for CallerSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CallerSession({})", self.id)
    }
}

/// From where a browser sends a cookie along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameSite {
    Lax,
    /// Also with a form that another site posts, as answers of SAML are. Such cookies are `Secure` or not kept at all,
    /// so over plain HTTP it is `Lax`.
    None,
}

/// Longer is none of ours.
const MAX_COOKIE: usize = 128;

impl CookieNames {
    pub fn new(public_url: &str) -> Self {
        Self { is_secure: public_url.starts_with("https://") }
    }

    pub const fn name(self, cookie: Cookie) -> &'static str {
        match (cookie, self.is_secure) {
            (Cookie::Session, true) => "__Host-gateway_session",
            (Cookie::Session, false) => "gateway_session",
            (Cookie::Login, true) => "__Host-gateway_login",
            (Cookie::Login, false) => "gateway_login",
        }
    }

    /// The value that was sent. Two different values are none: somebody put one beside ours.
    pub fn sent(self, headers: &HeaderMap, cookie: Cookie) -> Option<&str> {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(name, _)| *name == self.name(cookie)).map(|(_, value)| value);
        let value = values.next()?;
        (is_token(value) && values.all(|other| other == value)).then_some(value)
    }

    /// The line that sets it. Without `max_age` it lasts as long as the browser runs.
    pub fn set(self, cookie: Cookie, value: &str, same_site: SameSite, max_age: Option<u32>) -> HeaderValue {
        let age = max_age.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
        let (secure, same_site) = match (self.is_secure, same_site) {
            (true, SameSite::Lax) => ("; Secure", "Lax"),
            (true, SameSite::None) => ("; Secure", "None"),
            (false, _) => ("", "Lax"),
        };
        let line = format!("{}={value}; Path=/; HttpOnly{secure}; SameSite={same_site}{age}", self.name(cookie));
        // Values are tokens of ours.
        HeaderValue::try_from(line).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    pub fn clear(self, cookie: Cookie) -> HeaderValue {
        self.set(cookie, "", SameSite::Lax, Some(0))
    }
}

fn is_token(value: &str) -> bool {
    (1..=MAX_COOKIE).contains(&value.len())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(names: CookieNames, line: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static(line));
        names.sent(&headers, Cookie::Session).map(str::to_owned)
    }

    #[test]
    fn by_https_a_cookie_is_kept_to_this_host() {
        let set = |url| {
            let line = CookieNames::new(url).set(Cookie::Session, "t", SameSite::Lax, None);
            line.to_str().unwrap().to_owned()
        };
        assert_eq!(set("https://gateway.test"), "__Host-gateway_session=t; Path=/; HttpOnly; Secure; SameSite=Lax");
        assert_eq!(set("http://localhost:8787"), "gateway_session=t; Path=/; HttpOnly; SameSite=Lax");
        let secure = CookieNames::new("https://gateway.test");
        assert_eq!(sent(secure, "gateway_session=planted"), None);
    }

    #[test]
    fn one_value_counts_and_two_different_ones_do_not() {
        let names = CookieNames::new("http://localhost:8787");
        for (line, expected) in [
            ("gateway_session=abc", Some("abc")),
            ("a=b; gateway_session=abc;c=d", Some("abc")),
            ("gateway_session=abc; gateway_session=abc", Some("abc")),
            ("gateway_session=abc; gateway_session=xyz", None),
            ("gateway_session=", None),
            ("gateway_session=a b", None),
            ("xgateway_session=abc", None),
        ] {
            assert_eq!(sent(names, line).as_deref(), expected, "{line}");
        }
    }
}
