//! Requests as callers might write them who are after a credential.

use super::saved::SAVED;
use super::{HOMES, HTTPS, Home};
use http::{HeaderMap, HeaderName, HeaderValue};
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// One request as a caller might write it who is after a credential.
pub struct Case<'r>(pub &'r mut StdRng);

impl Case<'_> {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    fn home(&mut self) -> &'static Home {
        &HOMES[self.0.random_range(0..HOMES.len())]
    }

    /// Somebody's host, written as it is, otherwise, or almost.
    fn host(&mut self) -> String {
        if self.chance(15) {
            let odd = [
                "https://evil.example",
                "http://evil.example:8080",
                "https://evil.example/api.openai.com",
                "//api.openai.com",
                "https://api.openai.com@evil.example",
                "https://evil.example#api.openai.com",
                "https://evil.example?api.openai.com",
                "https://bücher.example/v1",
                "https://xn--bcher-kva.example.evil.example",
                "https://[::ffff:93.184.216.34]",
                "",
                "https://0x5db8d822",
                "https://api.openai.com%2eevil.example",
                "https://api.openai.com\\@evil.example",
                "javascript:1",
                "https://api.openai.com:443:80",
                "https://api.openai.com,evil.example",
                "https://ａｐｉ.openai.com",
                "https://api。openai。com",
            ];
            return self.one(&odd).to_owned();
        }
        let (scheme, name, port) = match self.0.random_range(0..10) {
            0..6 => self.home().origin,
            6..8 => self.home().model_origin,
            _ => SAVED[self.0.random_range(0..SAVED.len())].origin.unwrap_or(HOMES[0].origin),
        };
        let mut name = match name.contains(':') {
            true => format!("[{name}]"),
            false => name.to_owned(),
        };
        if self.chance(25) {
            name = name.to_ascii_uppercase();
        }
        if self.chance(20) {
            name = match self.0.random_range(0..6) {
                0 => format!("{name}."),
                1 => format!("{name}.."),
                2 => format!("{name}.evil.example"),
                3 => format!("evil-{name}"),
                4 => format!("{name}%00.evil.example"),
                _ => name.replace('.', "%2e"),
            };
        }
        let user = match self.chance(12) {
            true => self.one(&["user@", "user:pass@", "@", "api.openai.com@", ":@"]),
            false => "",
        };
        let scheme = match self.chance(20) {
            true => self.one(&["http", "https", "HTTPS", "ftp", "wss", "https:"]),
            false if scheme == HTTPS => "https",
            false => "http",
        };
        let port = match self.chance(45) {
            true => self.one(&[":443", ":80", ":8443", ":", ":0443", ":65535", ":65536", ":443 "]).to_owned(),
            false if [80, 443].contains(&port) => String::new(),
            false => format!(":{port}"),
        };
        let path = match self.chance(50) {
            true => self.one(&[
                "/v1",
                "/",
                "/base/../..",
                "//evil.example",
                "/v1?x=1",
                "/v1#x",
                "/\t",
                "/@evil.example",
                "/v1/",
            ]),
            false => "",
        };
        format!("{scheme}://{user}{name}{port}{path}")
    }

    /// A target, or a tree of them.
    fn config(&mut self, depth: usize) -> Value {
        let mut node = json!({});
        if self.chance(40) {
            node["custom_host"] = json!(self.host());
        }
        if depth > 0 && self.chance(60) {
            let mode = self.one(&["single", "fallback", "loadbalance"]);
            node["strategy"] = json!({ "mode": mode });
            let count = self.0.random_range(1..=2);
            node["targets"] = (0..count).map(|_| self.config(depth - 1)).collect();
            return node;
        }
        match self.0.random_range(0..6) {
            0 | 1 => node["provider"] = json!(format!("@{}", self.home().slug)),
            2 => node["virtual_key"] = json!(self.home().slug),
            3 => {
                node["provider"] = json!(self.one(&["openai", "anthropic", "groq"]));
                node["api_key"] = json!("sk-of-the-config");
            }
            4 => node["passthrough"] = json!(true),
            _ => {}
        }
        if self.chance(25) {
            node["override_params"] = json!({ "model": self.model() });
        }
        if self.chance(20) {
            node["forward_headers"] = json!([self.one(&["authorization", "x-api-key", "x-mine"])]);
        }
        node
    }

    pub fn model(&mut self) -> String {
        let name = self.one(&["gpt-4o", "tuned", "org/model"]);
        if self.chance(50) { format!("@{}/{name}", self.home().slug) } else { name.to_owned() }
    }

    pub fn headers(&mut self) -> HeaderMap {
        let mut head = HeaderMap::new();
        let mut put = |name: &'static str, value: String| {
            if let Ok(value) = HeaderValue::try_from(value) {
                head.insert(HeaderName::from_static(name), value);
            }
        };
        put("x-gateway-api-key", "service-key".into());
        if self.chance(60) {
            put("x-gateway-custom-host", self.host());
        }
        match self.0.random_range(0..5) {
            0 | 1 => put("x-gateway-provider", format!("@{}", self.home().slug)),
            2 => put("x-gateway-provider", self.one(&["openai", "anthropic", "groq"]).to_owned()),
            3 => put("x-gateway-virtual-key", self.home().slug.to_owned()),
            _ => {}
        }
        match self.0.random_range(0..10) {
            0..5 => put("x-gateway-config", self.config(3).to_string()),
            5..8 => put("x-gateway-config", self.0.random_range(0..SAVED.len()).to_string()),
            _ => {}
        }
        if self.chance(40) {
            put("authorization", "Bearer sk-of-the-caller".into());
        }
        if self.chance(20) {
            put("x-gateway-forward-headers", self.one(&["x-mine", "authorization", "x-mine, x-api-key"]).into());
        }
        head
    }
}
