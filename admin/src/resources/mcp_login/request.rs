//! What an MCP client asks for with a person's browser. Until client and address are known to belong together nobody is
//! sent anywhere; from then on refusals go back to the client.

use super::client_id::McpClient;
use crate::http::Query;
use url::Url;

const MAX_ADDRESS: usize = 2048;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRequest {
    pub client: McpClient,
    pub client_id: String,
    pub redirect_uri: String,
    pub state: Option<String>,
    pub challenge: String,
    pub resource: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum BadLogin {
    /// For the person: there is nobody to send them back to.
    Page(&'static str),
    /// For the client: where the browser goes.
    Back(String),
}

impl LoginRequest {
    pub fn parse(query: &Query, issuer: &str) -> Result<Self, BadLogin> {
        let text = |name: &str| query.text(name).filter(|text| text.len() <= 2 * MAX_ADDRESS).map(str::to_owned);
        let client_id = text("client_id").unwrap_or_default();
        let client =
            McpClient::parse(&client_id).ok_or(BadLogin::Page("The program that sent you is not registered."))?;
        let redirect_uri = text("redirect_uri").filter(|uri| uri.len() <= MAX_ADDRESS && client.has(uri));
        let redirect_uri =
            redirect_uri.ok_or(BadLogin::Page("The program that sent you did not register this address."))?;
        let state = text("state");
        let back = |error: &str| BadLogin::Back(answer(&redirect_uri, &[("error", error)], state.as_deref(), issuer));
        if query.text("response_type") != Some("code") {
            return Err(back("unsupported_response_type"));
        }
        let challenge = text("code_challenge").filter(|text| is_challenge(text));
        let (Some(challenge), Some("S256")) = (challenge, query.text("code_challenge_method")) else {
            return Err(back("invalid_request"));
        };
        let resource = text("resource");
        Ok(Self { client, client_id, redirect_uri, state, challenge, resource })
    }

    /// Where the browser goes with a code.
    pub fn granted(&self, code: &str, issuer: &str) -> String {
        answer(&self.redirect_uri, &[("code", code)], self.state.as_deref(), issuer)
    }

    /// Where it goes without one.
    pub fn refused(&self, error: &str, issuer: &str) -> String {
        answer(&self.redirect_uri, &[("error", error)], self.state.as_deref(), issuer)
    }

    /// To whom the person is sent back, as the page names it.
    pub fn destination(&self) -> String {
        let url = Url::parse(&self.redirect_uri).ok();
        let named = url.map(|url| match url.host_str() {
            Some(host) if ["http", "https"].contains(&url.scheme()) => host.to_owned(),
            _ => format!("an app on this machine ({}:)", url.scheme()),
        });
        named.unwrap_or_default()
    }
}

/// A SHA-256 in base64url.
fn is_challenge(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn answer(redirect_uri: &str, pairs: &[(&str, &str)], state: Option<&str>, issuer: &str) -> String {
    let Ok(mut url) = Url::parse(redirect_uri) else { return redirect_uri.to_owned() };
    url.query_pairs_mut()
        .extend_pairs(pairs)
        .extend_pairs(state.map(|state| ("state", state)))
        .append_pair("iss", issuer);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn parse(change: (&str, &str)) -> Result<LoginRequest, BadLogin> {
        let client = McpClient::register(&json!({ "redirect_uris": ["https://a.example/cb?x=1"] })).unwrap().id();
        let mut pairs = vec![
            ("client_id", client.as_str()),
            ("redirect_uri", "https://a.example/cb?x=1"),
            ("response_type", "code"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("state", "s&t"),
        ];
        pairs.retain(|(name, _)| *name != change.0);
        pairs.push(change);
        let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        LoginRequest::parse(&Query::parse(Some(&text)).unwrap(), "https://gw.example")
    }

    #[test]
    fn nobody_is_sent_to_an_address_that_was_not_registered() {
        for change in [("client_id", "mcp_x"), ("redirect_uri", "https://evil.example/cb"), ("redirect_uri", "")] {
            assert!(matches!(parse(change), Err(BadLogin::Page(_))), "{change:?}");
        }
        for change in [
            ("response_type", "token"),
            ("code_challenge_method", "plain"),
            ("code_challenge", "short"),
            ("code_challenge", ""),
        ] {
            let Err(BadLogin::Back(url)) = parse(change) else { panic!("{change:?}") };
            assert!(url.starts_with("https://a.example/cb?x=1&error="), "{url}");
            assert!(url.ends_with("&state=s%26t&iss=https%3A%2F%2Fgw.example"), "{url}");
        }
        let request = parse(("scope", "mcp.invoke")).unwrap();
        assert_eq!(request.destination(), "a.example");
        assert!(request.granted("c", "https://gw.example").contains("&code=c&"));
    }
}
