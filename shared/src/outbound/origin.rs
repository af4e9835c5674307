//! Where a request goes: scheme, host and port, parsed from a URL by stricter rules than a browser's. A browser repairs
//! odd spellings (backslashes, tabs, `0x7f.1`, full-width digits), and what one parser repairs another reads differently;
//! so this one refuses them and nothing is left to disagree about.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderValue;
use http::uri::Authority;

const MAX_URL: usize = 2048;
const MAX_LABELS: usize = 10;
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

/// A host is either a name to resolve or an address in its one canonical spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

/// Two origins are equal when scheme, host and port are: this is what credentials are bound to.
/// The base path and our trust in the host do not belong to that identity.
#[derive(Debug, Clone)]
pub struct Origin {
    scheme: Scheme,
    host: Host,
    /// The host as a name for DNS, TLS and logs: an IPv6 address has no brackets here.
    name: String,
    port: u16,
    base_path: String,
    authority: Authority,
    authority_value: HeaderValue,
    trusted: bool,
    pool_key: String,
}

/// Which rule a host breaks, as the end of a sentence that names the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    #[error("it is empty")]
    Empty,
    #[error("it has control characters")]
    Control,
    #[error("it is longer than 2048 characters")]
    TooLong,
    #[error("it must start with http:// or https://")]
    Scheme,
    #[error("it must start with https://")]
    Plain,
    #[error("it must not contain credentials or `@`")]
    Credentials,
    #[error("it must not have `%` in its host")]
    Escape,
    #[error("it has a character that no host may have")]
    Character,
    #[error("it may only have the letters a-z, digits, dots and hyphens in its host")]
    Alphabet,
    #[error("it must not end in a dot")]
    TrailingDot,
    #[error("it has more than 10 labels")]
    Labels,
    #[error("it has an empty or too long label")]
    Label,
    #[error("it has a port that is not a number from 1 to 65535")]
    Port,
    #[error("it must not have a query or a fragment")]
    Query,
    #[error("it has a character in its path that no path may have")]
    Path,
    #[error("it points at this service itself")]
    Itself,
    #[error("it points at a cloud metadata or cluster service")]
    Metadata,
    #[error("it points at an address that is not public; an operator can allow it by TRUSTED_CUSTOM_HOSTS")]
    Private,
    #[error("it spells an IP address in an unusual way")]
    Spelling,
    #[error("it is in a domain that is not public; an operator can allow it by TRUSTED_CUSTOM_HOSTS")]
    Domain,
    #[error("it is in a domain that resolves to any address the caller wants")]
    Rebinding,
}

impl Origin {
    /// Syntax only: what the host may be is the guard's question.
    pub fn parse(url: &str) -> Result<Self, BadHost> {
        if url.is_empty() {
            return Err(BadHost::Empty);
        }
        if url.chars().any(char::is_control) {
            return Err(BadHost::Control);
        }
        if url.len() > MAX_URL {
            return Err(BadHost::TooLong);
        }
        let (scheme, rest) = split_scheme(url)?;
        if rest.contains('@') {
            return Err(BadHost::Credentials);
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (host, port) = split_port(authority)?;
        let host = Host::parse(host)?;
        let base_path = parse_path(path)?;
        let port = match port {
            Some(text) => parse_port(text)?,
            None => scheme.default_port(),
        };
        Self::assemble(scheme, host, port, base_path)
    }

    fn assemble(scheme: Scheme, host: Host, port: u16, base_path: String) -> Result<Self, BadHost> {
        let name = match &host {
            Host::Name(name) => name.clone(),
            Host::Address(address) => address.to_string(),
        };
        let bracketed = if matches!(host, Host::Address(IpAddr::V6(_))) { format!("[{name}]") } else { name.clone() };
        let written = if port == scheme.default_port() { bracketed } else { format!("{bracketed}:{port}") };
        // Neither can fail after the checks above; refusing beats assuming.
        let authority: Authority = written.parse().map_err(|_| BadHost::Alphabet)?;
        let authority_value = HeaderValue::from_str(&written).map_err(|_| BadHost::Alphabet)?;
        let mut origin = Self {
            scheme,
            host,
            name,
            port,
            base_path,
            authority,
            authority_value,
            trusted: false,
            pool_key: String::new(),
        };
        origin.set_trusted(false);
        Ok(origin)
    }

    /// Trusted origins may resolve to private addresses. They never share a connection with untrusted ones of the
    /// same name, or a pooled connection would carry a caller past the guard.
    pub fn set_trusted(&mut self, trusted: bool) {
        self.trusted = trusted;
        let mark = if trusted { "trusted" } else { "public" };
        self.pool_key = format!("{}://{}:{} {mark}", self.scheme.text(), self.name, self.port);
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn is_tls(&self) -> bool {
        self.scheme == Scheme::Https
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host as text, an IPv6 address without brackets.
    pub fn host_name(&self) -> &str {
        &self.name
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// What stands before every path of this origin: empty, or `/v1` without a slash at its end.
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// Host and port as requests name them; the port only when it is not the scheme's own.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The authority as the `Host` header has it.
    pub fn authority_value(&self) -> &HeaderValue {
        &self.authority_value
    }

    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    pub fn pool_key(&self) -> &str {
        &self.pool_key
    }
}

impl Host {
    /// `text` as it stands in a URL: a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        if text.is_empty() {
            return Err(BadHost::Empty);
        }
        if text.contains('%') {
            return Err(BadHost::Escape);
        }
        if text.chars().any(|c| c.is_whitespace() || "<>{}|\\^`".contains(c)) {
            return Err(BadHost::Character);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let address = inner.strip_suffix(']').and_then(|inner| inner.parse::<Ipv6Addr>().ok());
            return address.map(|address| Self::Address(IpAddr::V6(address))).ok_or(BadHost::Alphabet);
        }
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-') {
            return Err(BadHost::Alphabet);
        }
        if text.ends_with('.') {
            return Err(BadHost::TrailingDot);
        }
        let labels = text.split('.').count();
        if labels > MAX_LABELS {
            return Err(BadHost::Labels);
        }
        if text.len() > MAX_NAME || text.split('.').any(|label| label.is_empty() || label.len() > MAX_LABEL) {
            return Err(BadHost::Label);
        }
        match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(Self::Address(IpAddr::V4(address))),
            Err(_) => Ok(Self::Name(text.to_ascii_lowercase())),
        }
    }
}

impl Scheme {
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.scheme, &self.host, self.port).hash(state);
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.text(), self.authority)
    }
}

fn split_scheme(url: &str) -> Result<(Scheme, &str), BadHost> {
    let (scheme, rest) = url.split_once("://").ok_or(BadHost::Scheme)?;
    match scheme {
        _ if scheme.eq_ignore_ascii_case("https") => Ok((Scheme::Https, rest)),
        _ if scheme.eq_ignore_ascii_case("http") => Ok((Scheme::Http, rest)),
        _ => Err(BadHost::Scheme),
    }
}

/// Cuts `host:port`; the colons inside an IPv6 address are not the port's.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), BadHost> {
    if !authority.starts_with('[') {
        return match authority.split_once(':') {
            Some((host, port)) => Ok((host, Some(port))),
            None => Ok((authority, None)),
        };
    }
    let end = authority.find(']').ok_or(BadHost::Alphabet)? + 1;
    let (host, rest) = authority.split_at(end);
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(BadHost::Alphabet),
    }
}

fn parse_port(text: &str) -> Result<u16, BadHost> {
    if text.is_empty() || text.len() > 5 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadHost::Port);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(BadHost::Port),
        Ok(port) => Ok(port),
    }
}

fn parse_path(path: &str) -> Result<String, BadHost> {
    if path.contains(['?', '#']) {
        return Err(BadHost::Query);
    }
    if path.bytes().any(|b| !b.is_ascii_graphic() || b"<>{}|\\^`\"".contains(&b)) {
        return Err(BadHost::Path);
    }
    Ok(path.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests;
