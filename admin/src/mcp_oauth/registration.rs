//! Registers the gateway at an authorisation server (RFC 7591), once for each MCP integration, so that nobody has to make
//! a client there by hand.

use super::discovery::AuthorizationServer;
use crate::outbound::Outbound;
use axum::http::{HeaderMap, HeaderValue, header};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use shared::secrets::seal::Secret;
use url::Url;

#[derive(Debug)]
pub struct Registered {
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub auth_method: String,
    pub secret_expires_at: Option<DateTime<Utc>>,
}

pub async fn register(
    outbound: &Outbound,
    server: &AuthorizationServer,
    redirect_uri: &str,
    scope: Option<&str>,
) -> Result<Registered, String> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err("the authorisation server registers no clients by itself; make one there, and tell its client_id \
                    in configurations.oauth_metadata"
            .into());
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let body = request(server, redirect_uri, scope).to_string().into_bytes();
    let answer = outbound.submit(endpoint, headers, body).await;
    let answer = answer.map_err(|fault| format!("the gateway cannot be registered: {fault}"))?;
    match answer.status {
        200 | 201 => read(&answer.json(), auth_method(server)),
        status => Err(format!("the authorisation server refused to register the gateway with {status}")),
    }
}

/// A secret is asked for where the server knows how to check one, so that a stolen code is of no use.
pub fn auth_method(server: &AuthorizationServer) -> &'static str {
    let has = |method: &str| server.auth_methods.iter().any(|one| one == method);
    // What a server without such a list supports.
    if server.auth_methods.is_empty() || has("client_secret_basic") {
        "client_secret_basic"
    } else if has("client_secret_post") {
        "client_secret_post"
    } else {
        "none"
    }
}

fn request(server: &AuthorizationServer, redirect_uri: &str, scope: Option<&str>) -> Value {
    // Clients on the web must have an https address; one on this machine is told to be native.
    let is_plain = Url::parse(redirect_uri).is_ok_and(|url| url.scheme() == "http");
    let mut body = json!({
        "client_name": "Portcullis",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method(server),
        "application_type": if is_plain { "native" } else { "web" },
    });
    if let Some(scope) = scope {
        body["scope"] = scope.into();
    }
    body
}

fn read(answer: &Value, asked: &str) -> Result<Registered, String> {
    const BAD: &str = "the authorisation server's answer to the registration cannot be read";
    let text = |name: &str| answer[name].as_str().filter(|text| (1..=2048).contains(&text.len())).map(str::to_owned);
    let client_id = text("client_id").ok_or(BAD)?;
    let client_secret = text("client_secret").map(Secret::from);
    let auth_method = match (text("token_endpoint_auth_method"), &client_secret) {
        (_, None) => "none".to_owned(),
        (Some(method), Some(_)) if ["client_secret_basic", "client_secret_post", "none"].contains(&&*method) => method,
        (Some(_), Some(_)) => return Err(BAD.into()),
        (None, Some(_)) if asked == "none" => "client_secret_basic".to_owned(),
        (None, Some(_)) => asked.to_owned(),
    };
    let secret_expires_at = answer["client_secret_expires_at"].as_i64().filter(|at| *at > 0);
    let secret_expires_at = secret_expires_at.and_then(|at| DateTime::from_timestamp(at, 0));
    Ok(Registered { client_id, client_secret, auth_method, secret_expires_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(methods: &[&str]) -> AuthorizationServer {
        AuthorizationServer {
            issuer: "https://as.example".into(),
            authorization_endpoint: None,
            token_endpoint: "https://as.example/token".into(),
            registration_endpoint: None,
            revocation_endpoint: None,
            auth_methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            names_issuer: false,
        }
    }

    #[test]
    fn the_strongest_method_that_both_know_is_asked_for() {
        for (methods, expected) in [
            (&[][..], "client_secret_basic"),
            (&["none", "client_secret_post"], "client_secret_post"),
            (&["none", "private_key_jwt"], "none"),
        ] {
            assert_eq!(request(&server(methods), "https://gw/cb", None)["token_endpoint_auth_method"], expected);
        }
        assert_eq!(request(&server(&[]), "http://localhost/cb", None)["application_type"], "native");
    }

    #[test]
    fn a_registration_is_read_or_refused() {
        let registered = read(&json!({ "client_id": "c" }), "client_secret_basic").unwrap();
        assert_eq!((registered.auth_method.as_str(), registered.client_secret.is_none()), ("none", true));
        let registered =
            read(&json!({ "client_id": "c", "client_secret": "s", "client_secret_expires_at": 1 }), "none").unwrap();
        assert_eq!(registered.auth_method, "client_secret_basic");
        assert!(registered.secret_expires_at.is_some());
        for bad in [
            json!({}),
            json!({ "client_id": 7 }),
            json!({ "client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "tls_client_auth" }),
            json!(null),
        ] {
            assert!(read(&bad, "none").is_err(), "{bad}");
        }
    }
}
