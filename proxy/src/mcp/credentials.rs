//! What goes to a server besides the message: headers that its integration keeps, headers of the client's that it wants, a
//! token, and who is asking. The client's own key never does.

use super::asker::{Asker, NoCredential};
use super::identity_claims::{IdentityForwarding, identity_header};
use super::signed_identity::IdentitySigner;
use super::visible::McpTarget;
use crate::snapshot::Snapshot;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Map, Value};
use shared::model::Credentials;
use shared::secrets::seal::{Sealed, SealedPlace, Sealer};
use std::sync::Arc;

/// Headers of a client's, or of an integration's own, that are read.
const MAX_HEADERS: usize = 64;

/// Never shown: its values may be credentials.
#[derive(Default)]
pub struct UpstreamHeaders(Vec<(HeaderName, HeaderValue)>);

impl UpstreamHeaders {
    pub fn iter(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        self.0.iter()
    }

    fn put(&mut self, name: HeaderName, mut value: HeaderValue) {
        value.set_sensitive(true);
        self.0.retain(|(present, _)| *present != name);
        self.0.push((name, value));
    }
}

pub struct CredentialSource {
    pub snapshot: Arc<Snapshot>,
    pub sealer: Arc<Sealer>,
}

impl CredentialSource {
    pub fn signer(&self) -> IdentitySigner<'_> {
        IdentitySigner { snapshot: &self.snapshot, sealer: &self.sealer }
    }

    /// `configurations` are those of the integration, opened.
    pub fn headers(
        &self,
        target: &McpTarget,
        configurations: &Map<String, Value>,
        asker: &Asker<'_>,
    ) -> Result<UpstreamHeaders, NoCredential> {
        let integration = &target.integration;
        let mut headers = UpstreamHeaders::default();
        for name in wanted(configurations) {
            let sent = asker.head.get(&name).filter(|_| may_pass(&name) && !asker.aliases.is_ours(&name));
            if let Some(value) = sent.filter(|value| !asker.own.are_in(value)) {
                headers.put(name, value.clone());
            }
        }
        for (name, value) in own_headers(configurations) {
            headers.put(name, value);
        }
        if let Some(token) = self.token(target, asker)? {
            headers.put(header::AUTHORIZATION, token);
        }
        let forwarding = configurations.get("user_identity_forwarding").and_then(IdentityForwarding::parse);
        if let Some(forwarding) = forwarding
            && let Some((name, value)) = identity_header(&forwarding, asker, &self.signer(), &integration.url)?
        {
            headers.put(name, value);
        }
        tracing::trace!(integration = integration.slug, headers = headers.0.len(), "an MCP server is asked");
        Ok(headers)
    }

    /// With what is secret of them, in plain text: for the head of one request.
    pub fn configurations(&self, target: &McpTarget) -> Result<Map<String, Value>, NoCredential> {
        let integration = &target.integration;
        let mut all = integration.configurations.as_object().cloned().unwrap_or_default();
        if let Some(sealed) = &integration.sealed {
            let opened = self.open(sealed, &integration.place(), &integration.slug)?;
            let opened = Credentials::parse(&opened).ok_or(NoCredential::Unopened)?;
            all.extend(opened.configurations);
        }
        Ok(all)
    }

    fn token(&self, target: &McpTarget, asker: &Asker<'_>) -> Result<Option<HeaderValue>, NoCredential> {
        let (sealed, place, expires_at) = match target.integration.auth_type.as_str() {
            "oauth_auto" | "oauth" => {
                let user = asker.user.ok_or(NoCredential::NoPerson)?;
                let found = self.snapshot.mcp_connection(target.server.id, user).ok_or(NoCredential::NotConnected)?;
                (found.access_token.clone(), found.place(), found.expires_at)
            }
            "oauth_client_credentials" => {
                let found = self.snapshot.mcp_client(target.integration.id).ok_or(NoCredential::NoToken)?;
                (found.access_token.clone().ok_or(NoCredential::NoToken)?, found.place(), found.expires_at)
            }
            _ => return Ok(None),
        };
        if expires_at.is_some_and(|end| end <= asker.now) {
            return Err(NoCredential::Expired);
        }
        let token = self.open(&sealed, &place, &target.integration.slug)?;
        let value = [b"Bearer ", token.expose()].concat();
        HeaderValue::from_bytes(&value).map(Some).map_err(|_| NoCredential::Unopened)
    }

    fn open(
        &self,
        sealed: &Sealed,
        place: &SealedPlace,
        slug: &str,
    ) -> Result<shared::secrets::seal::Secret, NoCredential> {
        let data_key = sealed.data_key_id().ok().and_then(|id| self.snapshot.data_key(&id));
        let Some(data_key) = data_key else {
            tracing::error!(integration = slug, "the data key of an MCP integration is not known here");
            return Err(NoCredential::Unopened);
        };
        self.sealer.open_with(&data_key, place, sealed).map_err(|error| {
            tracing::error!(integration = slug, %error, "a credential of an MCP integration cannot be opened");
            NoCredential::Unopened
        })
    }
}

/// Headers that the integration keeps.
fn own_headers(configurations: &Map<String, Value>) -> Vec<(HeaderName, HeaderValue)> {
    let maps = ["headers", "custom_headers"].into_iter().filter_map(|name| configurations.get(name)?.as_object());
    let pairs = maps.flatten().take(MAX_HEADERS).filter_map(|(name, value)| {
        let name = HeaderName::try_from(name.as_str()).ok().filter(may_pass)?;
        Some((name, HeaderValue::try_from(value.as_str()?).ok()?))
    });
    pairs.collect()
}

/// Headers of the client's that the integration wants.
fn wanted(configurations: &Map<String, Value>) -> Vec<HeaderName> {
    let mut names: Vec<&str> = Vec::new();
    for field in ["passthrough_header", "passthrough_headers", "forward_headers"] {
        match configurations.get(field) {
            Some(Value::String(name)) => names.push(name),
            Some(Value::Array(list)) => names.extend(list.iter().filter_map(Value::as_str)),
            // Of the modes only that which names what passes: the others would pass what nobody thought of.
            Some(Value::Object(rule)) if is_allowing(rule) => {
                let list = rule.get("headers").and_then(Value::as_array).into_iter().flatten();
                names.extend(list.filter_map(Value::as_str));
            }
            _ => {}
        }
    }
    names.into_iter().take(MAX_HEADERS).filter_map(|name| HeaderName::try_from(name).ok()).collect()
}

fn is_allowing(rule: &Map<String, Value>) -> bool {
    rule.get("mode").and_then(Value::as_str).is_none_or(|mode| ["allow", "allowlist", "include"].contains(&mode))
}

/// What belongs to the connection, to the protocol, or to the gateway is nobody's to set.
fn may_pass(name: &HeaderName) -> bool {
    const OURS: [&str; 16] = [
        "host",
        "connection",
        "content-length",
        "content-type",
        "content-encoding",
        "transfer-encoding",
        "accept",
        "accept-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "keep-alive",
        "cookie",
        "last-event-id",
        "proxy-authorization",
    ];
    let name = name.as_str();
    !OURS.contains(&name) && !name.starts_with("mcp-") && !name.starts_with(crate::request::headers::PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(configurations: Value) -> Vec<String> {
        let found = wanted(configurations.as_object().unwrap());
        found.iter().map(|name| name.as_str().to_owned()).collect()
    }

    #[test]
    fn only_headers_that_are_named_pass() {
        assert_eq!(names(json!({ "passthrough_header": "X-One", "forward_headers": ["x-two"] })), ["x-one", "x-two"]);
        assert_eq!(names(json!({ "forward_headers": { "mode": "allow", "headers": ["x-a"] } })), ["x-a"]);
        assert!(names(json!({ "forward_headers": { "mode": "all_except", "headers": ["x-a"] } })).is_empty());
        for (name, may) in [
            ("authorization", true),
            ("x-tenant", true),
            ("host", false),
            ("mcp-session-id", false),
            ("x-gateway-api-key", false),
        ] {
            assert_eq!(may_pass(&HeaderName::from_static(name)), may, "{name}");
        }
    }

    #[test]
    fn headers_that_are_kept_cannot_replace_those_of_the_protocol() {
        let found = own_headers(
            json!({ "custom_headers": { "x-key": "s", "mcp-session-id": "1", "bad name": "2" } }).as_object().unwrap(),
        );
        assert_eq!(found, [(HeaderName::from_static("x-key"), HeaderValue::from_static("s"))]);
    }
}
