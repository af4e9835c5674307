//! What a client that has no key yet is told: which address it asked for, and whose tokens open it (RFC 9728). Also which
//! web pages may ask at all: a page of any origin could otherwise make a browser speak for it.

use crate::mcp::INVOKE;
use crate::request::mcp_paths::WELL_KNOWN;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, header};
use serde_json::json;
use shared::settings::McpSettings;

pub struct ResourceMetadata {
    base_url: Option<String>,
    allowed_origins: Vec<String>,
    authorization_servers: Vec<String>,
}

impl ResourceMetadata {
    pub fn new(settings: &McpSettings) -> anyhow::Result<Self> {
        let base_url = settings.mcp_base_url.as_deref().filter(|url| !url.is_empty());
        let base_url = base_url.map(|url| url.trim_end_matches('/').to_owned());
        if let Some(url) = &base_url {
            let parsed = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            anyhow::ensure!(parsed.is_some(), "MCP_BASE_URL must be an http or https URL");
        }
        let plain = |list: &[String]| -> Vec<String> {
            let trimmed = list.iter().map(|one| one.trim().trim_end_matches('/').to_owned());
            trimmed.filter(|one| !one.is_empty()).collect()
        };
        Ok(Self {
            base_url,
            allowed_origins: plain(&settings.mcp_allowed_origins),
            authorization_servers: plain(&settings.mcp_authorization_servers),
        })
    }

    pub fn document(&self, resource: &str, uri: &Uri, headers: &HeaderMap) -> Bytes {
        let mut document = json!({
            "resource": format!("{}{resource}", self.base(uri, headers)),
            "bearer_methods_supported": ["header"],
            "scopes_supported": [INVOKE],
            "resource_name": "Portcullis",
        });
        if !self.authorization_servers.is_empty() {
            document["authorization_servers"] = json!(self.authorization_servers);
        }
        Bytes::from(document.to_string())
    }

    /// What a client without a key gets in `WWW-Authenticate`.
    pub fn challenge(&self, uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
        let url = format!("{}{WELL_KNOWN}{}", self.base(uri, headers), uri.path());
        let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        HeaderValue::try_from(format!("Bearer resource_metadata=\"{url}\"")).ok().filter(|_| is_plain)
    }

    /// Whether a request may come from this page, if it comes from one.
    pub fn is_allowed(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return true };
        let Ok(origin) = origin.to_str() else { return false };
        let is_own = || {
            let own = self.base_url.as_deref().and_then(|url| url::Url::parse(url).ok());
            own.is_some_and(|own| own.origin().ascii_serialization() == origin)
        };
        self.allowed_origins.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin)) || is_own()
    }

    /// As the operator says, else as the request says.
    fn base(&self, uri: &Uri, headers: &HeaderMap) -> String {
        if let Some(url) = &self.base_url {
            return url.clone();
        }
        let host =
            headers.get(header::HOST).and_then(|host| host.to_str().ok()).or_else(|| Some(uri.authority()?.as_str()));
        let is_tls = uri.scheme_str() == Some("https")
            || headers.get("x-forwarded-proto").is_some_and(|sent| sent.as_bytes().eq_ignore_ascii_case(b"https"));
        format!("{}://{}", if is_tls { "https" } else { "http" }, host.unwrap_or("localhost"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn metadata(base: Option<&str>, origins: &[&str]) -> ResourceMetadata {
        ResourceMetadata::new(&McpSettings {
            mcp_base_url: base.map(str::to_owned),
            mcp_allowed_origins: origins.iter().map(|&origin| origin.to_owned()).collect(),
            mcp_authorization_servers: vec!["https://login.example.com/".into()],
            mcp_call_timeout_ms: 1,
            mcp_stream_idle_s: 1,
        })
        .unwrap()
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn the_challenge_leads_to_a_document_about_the_same_resource() {
        let metadata = metadata(None, &[]);
        let (uri, head) = ("/tools/mcp".parse().unwrap(), headers(&[("host", "gw.example.com")]));
        let challenge = metadata.challenge(&uri, &head).unwrap();
        let url = "http://gw.example.com/.well-known/oauth-protected-resource/tools/mcp";
        assert_eq!(challenge, format!("Bearer resource_metadata=\"{url}\""));
        let resource =
            crate::request::mcp_paths::resource_of("/.well-known/oauth-protected-resource/tools/mcp").unwrap();
        let document: Value = serde_json::from_slice(&metadata.document(resource, &uri, &head)).unwrap();
        assert_eq!(document["resource"], "http://gw.example.com/tools/mcp");
        assert_eq!(document["authorization_servers"], json!(["https://login.example.com"]));
        assert_eq!(metadata.challenge(&uri, &headers(&[("host", "a\"b")])), None);
    }

    #[test]
    fn only_pages_that_the_operator_names_may_ask() {
        for (base, origins, sent, allowed) in [
            (None, &[][..], None, true),
            (None, &[][..], Some("https://evil.example"), false),
            (Some("https://gw.example.com/"), &[][..], Some("https://gw.example.com"), true),
            (Some("https://gw.example.com"), &[][..], Some("http://gw.example.com"), false),
            (None, &["https://app.example.com/"][..], Some("https://app.example.com"), true),
            (None, &["*"][..], Some("https://evil.example"), true),
            (None, &["https://app.example.com"][..], Some("null"), false),
        ] {
            let head = sent.map_or_else(HeaderMap::new, |origin| headers(&[("origin", origin)]));
            assert_eq!(metadata(base, origins).is_allowed(&head), allowed, "{base:?} {origins:?} {sent:?}");
        }
    }
}
