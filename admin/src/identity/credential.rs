//! Which credential a request carries, decided from its headers alone: `x-gateway-api-key` under any accepted prefix,
//! else a bearer token. Provider headers mean nothing here; client libraries send them on every call.

use crate::http::ApiError;
use axum::http::{HeaderMap, header};
use shared::headers::header_prefix::Aliases;
use shared::identity::jwt::looks_like_jwt;

#[derive(PartialEq)]
pub enum Credential<'a> {
    ApiKey(&'a [u8]),
    Jwt(&'a [u8]),
}

/// The credential itself is never printed.
impl std::fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Jwt(_)) { "Jwt" } else { "ApiKey" })
    }
}

/// The credential, or a refusal where there is none.
pub fn credential<'a>(headers: &'a HeaderMap, aliases: &Aliases) -> Result<Credential<'a>, ApiError> {
    sent(headers, aliases)?.ok_or(ApiError::Unauthenticated("No valid credential was sent"))
}

/// None where there is none: a session's cookie may stand in for it.
pub fn sent<'a>(headers: &'a HeaderMap, aliases: &Aliases) -> Result<Option<Credential<'a>>, ApiError> {
    let names = aliases.prefixes().map(|prefix| format!("{prefix}api-key"));
    let mut keys =
        names.flat_map(|name| headers.get_all(name)).map(|value| value.as_bytes()).filter(|value| !value.is_empty());
    let value = match keys.next() {
        Some(key) if keys.any(|other| other != key) => {
            return Err(ApiError::Unauthenticated("Two different API keys were sent"));
        }
        Some(key) => Some(key),
        None => bearer(headers),
    };
    let read = |value| if looks_like_jwt(value) { Credential::Jwt(value) } else { Credential::ApiKey(value) };
    Ok(value.map(read))
}

pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else { return None };
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const JWT: &str = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln";

    fn found(lines: &[(&'static str, &'static str)]) -> Result<String, String> {
        let aliases = Aliases::new(&["X-Acme-".into()]).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        match credential(&headers, &aliases) {
            Ok(Credential::ApiKey(key)) => Ok(String::from_utf8(key.to_vec()).unwrap()),
            Ok(Credential::Jwt(_)) => Ok("jwt".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn our_header_wins_over_authorization_under_any_prefix() {
        for (lines, key) in [
            (&[("x-gateway-api-key", "pk_1"), ("authorization", "Bearer sk-provider")][..], "pk_1"),
            (&[("x-acme-api-key", "pk_2"), ("authorization", "Bearer sk-provider")], "pk_2"),
            (&[("x-gateway-api-key", "pk_1"), ("x-acme-api-key", "pk_1")], "pk_1"),
            (&[("authorization", "Bearer pk_3")], "pk_3"),
            (&[("authorization", "bearer  pk_3 ")], "pk_3"),
            (&[("x-gateway-api-key", ""), ("authorization", "Bearer pk_3")], "pk_3"),
            (&[("x-gateway-api-key", JWT)], "jwt"),
            (&[("x-gateway-api-key", "a.b.c")], "a.b.c"),
        ] {
            assert_eq!(found(lines).as_deref(), Ok(key), "{lines:?}");
        }
    }

    #[test]
    fn nothing_else_is_a_credential() {
        for lines in [
            &[][..],
            &[("authorization", "Basic dTpw")],
            &[("authorization", "Bearer ")],
            &[("authorization", "Bearer a"), ("authorization", "Bearer b")],
            &[("x-api-key", "pk_1")],
            &[("x-other-api-key", "pk_1")],
        ] {
            assert_eq!(found(lines).unwrap_err(), "No valid credential was sent", "{lines:?}");
        }
    }

    #[test]
    fn two_different_keys_are_refused_rather_than_chosen_from() {
        let lines = [("x-gateway-api-key", "pk_1"), ("x-acme-api-key", "pk_2")];
        assert_eq!(found(&lines).unwrap_err(), "Two different API keys were sent");
    }
}
