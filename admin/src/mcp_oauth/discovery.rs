//! Finds the authorisation server of an MCP server: the MCP server's protected-resource metadata (RFC 9728) names it, and
//! its own metadata (RFC 8414, or OpenID's) names the endpoints. Both documents are a stranger's: what they say is
//! believed only as far as it is about the server that was asked.

use crate::outbound::Outbound;
use axum::http::{HeaderMap, HeaderValue, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::mcp;
use shared::outbound::Guard;
use url::Url;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";
const MAX_URL: usize = 2048;

/// An authorisation server, as far as it is used. Stored with the client that is registered there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationServer {
    pub issuer: String,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: String,
    #[serde(default)]
    pub registration_endpoint: Option<String>,
    #[serde(default)]
    pub revocation_endpoint: Option<String>,
    /// How clients may authenticate at the token endpoint.
    #[serde(default)]
    pub auth_methods: Vec<String>,
    /// Whether every answer to a person's browser names the issuer (RFC 9207).
    #[serde(default)]
    pub names_issuer: bool,
}

/// Where tokens for an MCP server come from, and what they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    pub server: AuthorizationServer,
    pub resource: String,
    pub scope: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct ProtectedResource {
    resource: String,
    issuer: String,
    scope: Option<String>,
}

pub async fn discover(outbound: &Outbound, mcp_url: &str) -> Result<Discovered, String> {
    let url = Url::parse(mcp_url).map_err(|_| "the address of the MCP server is no URL".to_owned())?;
    let named_url = resource_metadata_url(outbound, mcp_url).await;
    let candidates = match &named_url {
        Some(named_url) => vec![named_url.clone()],
        None => resource_candidates(&url),
    };
    let mut found = None;
    for candidate in &candidates {
        let answer = outbound.document(candidate).await;
        match answer {
            Ok(answer) if answer.status == 200 => {
                found = Some(read_resource(&url, &answer.json())?);
                break;
            }
            // What the server itself named has to be there.
            Err(fault) if named_url.is_some() => return Err(format!("its resource metadata cannot be read: {fault}")),
            Ok(answer) if named_url.is_some() => {
                return Err(format!("its resource metadata cannot be read: it answered {}", answer.status));
            }
            _ => {}
        }
    }
    // Servers of the first revision with authorisation are their own authorisation server.
    let resource = found.unwrap_or_else(|| ProtectedResource {
        resource: without_query(&url),
        issuer: url.origin().ascii_serialization(),
        scope: None,
    });
    let server = authorization_server(outbound, &resource.issuer).await?;
    Ok(Discovered { server, resource: resource.resource, scope: resource.scope })
}

/// Asks without credentials: a server that wants them says where its metadata is.
async fn resource_metadata_url(outbound: &Outbound, mcp_url: &str) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let greeting = mcp::initialize(1).to_string().into_bytes();
    let refused = outbound.refusal(mcp_url, headers, greeting).await.ok().filter(|answer| answer.status == 401)?;
    let challenges = refused.headers.get_all(header::WWW_AUTHENTICATE).iter();
    challenges.filter_map(|value| value.to_str().ok()).find_map(metadata_in_challenge)
}

/// The `resource_metadata` of a `WWW-Authenticate: Bearer …`.
fn metadata_in_challenge(challenge: &str) -> Option<String> {
    if !challenge.get(..6)?.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (_, rest) = challenge.split_once("resource_metadata=")?;
    let url = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split([',', ' ']).next(),
    };
    url.filter(|url| !url.is_empty() && url.len() <= MAX_URL).map(str::to_owned)
}

fn resource_candidates(url: &Url) -> Vec<String> {
    let origin = url.origin().ascii_serialization();
    let path = url.path().trim_end_matches('/');
    let mut candidates = vec![format!("{origin}{RESOURCE}")];
    if !path.is_empty() {
        candidates.insert(0, format!("{origin}{RESOURCE}{path}"));
    }
    candidates
}

fn read_resource(url: &Url, document: &Value) -> Result<ProtectedResource, String> {
    let resource = text(document, "resource").ok_or("its resource metadata names no resource")?;
    if !covers(&resource, url) {
        return Err("its resource metadata is about another server".into());
    }
    let issuer = document["authorization_servers"].as_array().and_then(|all| all.first()).and_then(Value::as_str);
    let issuer = issuer.filter(|issuer| issuer.len() <= MAX_URL);
    let issuer = issuer.ok_or("its resource metadata names no authorisation server")?.to_owned();
    let scopes = document["scopes_supported"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let scope = scopes.take(50).collect::<Vec<_>>().join(" ");
    Ok(ProtectedResource { resource, issuer, scope: Some(scope).filter(|scope| is_scope(scope)) })
}

/// Whether tokens for `resource` are for this server: the same origin, and its path or one above it.
fn covers(resource: &str, url: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let above = resource.path().trim_end_matches('/');
    let rest = url.path().strip_prefix(above);
    resource.origin() == url.origin()
        && resource.origin().is_tuple()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn authorization_server(outbound: &Outbound, issuer: &str) -> Result<AuthorizationServer, String> {
    let mut last = "it has no metadata".to_owned();
    for candidate in issuer_candidates(issuer)? {
        match outbound.document(&candidate).await {
            Ok(answer) if answer.status == 200 => return read_server(outbound.guard(), issuer, &answer.json()),
            Ok(answer) => last = format!("its metadata answered {}", answer.status),
            Err(fault) => last = fault,
        }
    }
    Err(format!("the authorisation server cannot be used: {last}"))
}

fn issuer_candidates(issuer: &str) -> Result<Vec<String>, String> {
    let url = Url::parse(issuer).ok().filter(|url| url.origin().is_tuple() && url.query().is_none());
    let url = url.ok_or("the authorisation server's name is no URL")?;
    let origin = url.origin().ascii_serialization();
    let path = url.path().trim_end_matches('/');
    Ok(match path {
        "" => vec![format!("{origin}{OAUTH}"), format!("{origin}{OPENID}")],
        path => {
            vec![format!("{origin}{OAUTH}{path}"), format!("{origin}{OPENID}{path}"), format!("{origin}{path}{OPENID}")]
        }
    })
}

/// Metadata must be of the issuer that was asked for: otherwise one server could speak for another.
fn read_server(guard: &Guard, issuer: &str, document: &Value) -> Result<AuthorizationServer, String> {
    let stated = text(document, "issuer").unwrap_or_default();
    if stated.trim_end_matches('/') != issuer.trim_end_matches('/') {
        return Err("the authorisation server's metadata is of another issuer".into());
    }
    let endpoint = |name: &str| match text(document, name) {
        None => Ok(None),
        Some(url) => match guard.custom_url(&url) {
            Ok(_) => Ok(Some(url)),
            Err(rule) => Err(format!("the authorisation server's {name} cannot be used: {rule}")),
        },
    };
    let methods = list(document, "code_challenge_methods_supported");
    let authorization_endpoint = endpoint("authorization_endpoint")?;
    if authorization_endpoint.is_some() && !methods.iter().any(|method| method == "S256") {
        return Err("the authorisation server does not say that it supports PKCE with S256".into());
    }
    Ok(AuthorizationServer {
        issuer: stated,
        authorization_endpoint,
        token_endpoint: endpoint("token_endpoint")?.ok_or("the authorisation server names no token_endpoint")?,
        registration_endpoint: endpoint("registration_endpoint")?,
        revocation_endpoint: endpoint("revocation_endpoint")?,
        auth_methods: list(document, "token_endpoint_auth_methods_supported"),
        names_issuer: document["authorization_response_iss_parameter_supported"] == true,
    })
}

fn text(document: &Value, name: &str) -> Option<String> {
    document[name].as_str().filter(|text| (1..=MAX_URL).contains(&text.len())).map(str::to_owned)
}

fn list(document: &Value, name: &str) -> Vec<String> {
    let items = document[name].as_array().into_iter().flatten().filter_map(Value::as_str);
    items.filter(|item| item.len() <= 64).take(50).map(str::to_owned).collect()
}

fn is_scope(scope: &str) -> bool {
    (1..=4096).contains(&scope.len()) && scope.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests;
