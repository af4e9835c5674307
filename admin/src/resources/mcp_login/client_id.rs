//! Registered MCP clients without a table. Anybody may register any address to be sent back to, so a client's id can be
//! what it registered, written out: a stored row would prove nothing more, and strangers could fill the table. What
//! protects people is the page that names the address, and the code challenge.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::{Host, Url};

const PREFIX: &str = "mcp_";
const MAX_ID: usize = 4096;
const MAX_NAME: usize = 80;
const MAX_ADDRESSES: usize = 10;
/// Schemes that run something in the browser itself instead of leading elsewhere.
const FORBIDDEN: [&str; 9] =
    ["javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source", "ftp"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpClient {
    #[serde(rename = "n")]
    pub name: String,
    #[serde(rename = "r")]
    pub redirect_uris: Vec<String>,
}

impl McpClient {
    /// Of a registration (RFC 7591); a sentence when it cannot be accepted.
    pub fn register(asked: &Value) -> Result<Self, &'static str> {
        let name = asked["client_name"].as_str().unwrap_or("MCP client");
        let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
        let addresses = asked["redirect_uris"].as_array().ok_or("redirect_uris must be a list")?;
        let addresses = addresses.iter().map(|one| one.as_str().map(str::to_owned));
        let redirect_uris = addresses.collect::<Option<Vec<_>>>().ok_or("redirect_uris must be texts")?;
        let client = Self { name, redirect_uris };
        client.check()?;
        if client.id().len() > MAX_ID {
            return Err("redirect_uris are too long");
        }
        Ok(client)
    }

    /// None for what no registration gave.
    pub fn parse(id: &str) -> Option<Self> {
        let text = id.strip_prefix(PREFIX).filter(|text| text.len() <= MAX_ID)?;
        let client: Self = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let is_name = client.name.chars().count() <= MAX_NAME && !client.name.chars().any(char::is_control);
        (is_name && client.check().is_ok()).then_some(client)
    }

    pub fn id(&self) -> String {
        // Two plain fields can always be written.
        let text = serde_json::to_vec(self).unwrap_or_default();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(text))
    }

    /// Whether it may be sent back to this address: one that it registered, on this machine with any port (RFC 8252).
    pub fn has(&self, address: &str) -> bool {
        let Ok(asked) = Url::parse(address) else { return false };
        self.redirect_uris.iter().any(|own| {
            let is_same_but_port = |own: Url| {
                let mut asked = asked.clone();
                is_loopback(&own) && asked.set_port(own.port()).is_ok() && asked == own
            };
            own == address || Url::parse(own).is_ok_and(is_same_but_port)
        })
    }

    fn check(&self) -> Result<(), &'static str> {
        if !(1..=MAX_ADDRESSES).contains(&self.redirect_uris.len()) {
            return Err("redirect_uris must list 1 to 10");
        }
        let is_fine = |address: &String| {
            let url = Url::parse(address).ok().filter(|url| url.fragment().is_none() && address.len() <= 1024);
            url.is_some_and(|url| match url.scheme() {
                "https" => url.username().is_empty() && url.password().is_none(),
                "http" => is_loopback(&url),
                scheme => !FORBIDDEN.contains(&scheme),
            })
        };
        match self.redirect_uris.iter().all(is_fine) {
            true => Ok(()),
            false => Err("redirect_uris must be https, http on this machine, or of an app's own scheme"),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    url.scheme() == "http"
        && match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_says_what_was_registered() {
        let asked = json!({ "client_name": "Ed\u{7}itor", "redirect_uris": ["http://127.0.0.1:1/cb", "editor://cb"] });
        let client = McpClient::register(&asked).unwrap();
        assert_eq!(client.name, "Editor");
        assert_eq!(McpClient::parse(&client.id()), Some(client.clone()));
        for (address, expected) in [
            ("http://127.0.0.1:1/cb", true),
            ("http://127.0.0.1:54321/cb", true),
            ("http://127.0.0.1:54321/other", false),
            ("http://localhost:1/cb", false),
            ("editor://cb", true),
            ("editor://other", false),
            ("https://evil.example/cb", false),
        ] {
            assert_eq!(client.has(address), expected, "{address}");
        }
        for id in ["", "mcp_", "mcp_x", "x", &format!("mcp_{}", "A".repeat(5000))] {
            assert_eq!(McpClient::parse(id), None, "{id}");
        }
    }

    #[test]
    fn addresses_that_could_run_something_or_leak_are_refused() {
        for address in [
            "http://example.com/cb",
            "javascript:alert(1)",
            "data:text/html,x",
            "https://a.example/#x",
            "https://user:pw@a.example/",
            "relative",
            "",
        ] {
            assert!(McpClient::register(&json!({ "redirect_uris": [address] })).is_err(), "{address}");
            let forged = McpClient { name: "x".into(), redirect_uris: vec![address.into()] };
            assert_eq!(McpClient::parse(&forged.id()), None, "{address}");
        }
        for wrong in [json!({}), json!({ "redirect_uris": [] }), json!({ "redirect_uris": [7] }), json!(null)] {
            assert!(McpClient::register(&wrong).is_err(), "{wrong}");
        }
        assert!(McpClient::register(&json!({ "redirect_uris": vec!["https://a.example/cb"; 11] })).is_err());
    }
}
