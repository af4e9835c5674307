//! The SSRF guard: which hosts and addresses may be dialled. Pure: names are judged as written, addresses as resolved.
//! Every connection is judged twice, by name when the URL is read and by address when the socket is opened, because a
//! harmless name may resolve to a harmful address, and differently each time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::uri::PathAndQuery;
use ipnet::IpNet;

use super::origin::{BadHost, Host, Origin};

/// Hosts an operator trusts although they are private, and the service's own names.
#[derive(Debug, Default)]
pub struct Guard {
    trusted: Vec<Host>,
    own: Vec<Host>,
    allows_plain: bool,
}

impl Guard {
    /// An entry that is not a host stops the start: an ignored one would silently trust less, or guard less.
    pub fn new(trusted: &[String], own: &[String]) -> anyhow::Result<Self> {
        let (trusted, own) = (hosts("TRUSTED_CUSTOM_HOSTS", trusted)?, hosts("OWN_HOSTNAMES", own)?);
        Ok(Self { trusted, own, allows_plain: false })
    }

    /// Whether callers may name any public host without TLS.
    pub fn allowing_plain(self, allows_plain: bool) -> Self {
        Self { allows_plain, ..self }
    }

    /// Listed, or a subdomain of what is listed.
    pub fn is_trusted(&self, host: &Host) -> bool {
        self.trusted.iter().any(|listed| match (host, listed) {
            (Host::Name(name), Host::Name(suffix)) => is_under(name, suffix),
            (host, listed) => host == listed,
        })
    }

    pub fn is_own(&self, host: &Host) -> bool {
        self.own.contains(host)
    }

    /// A host named by a caller: every rule holds, private ones and those without TLS only for hosts the operator lists.
    pub fn custom_host(&self, url: &str) -> Result<Origin, BadHost> {
        let mut origin = Origin::parse(url)?;
        if self.is_own(origin.host()) {
            return Err(BadHost::Itself);
        }
        let trusted = self.is_trusted(origin.host());
        check_host(origin.host(), trusted)?;
        if !origin.is_tls() && !trusted && !self.allows_plain {
            return Err(BadHost::Plain);
        }
        origin.set_trusted(trusted);
        Ok(origin)
    }

    /// A whole URL named by a caller, query included, as the origin to dial and the path to ask for. Without TLS only
    /// for hosts the operator lists.
    pub fn custom_url(&self, url: &str) -> Result<(Origin, PathAndQuery), BadHost> {
        let origin = self.custom_host(url.split_once('?').map_or(url, |(before, _)| before))?;
        if !origin.is_tls() && !origin.is_trusted() {
            return Err(BadHost::Plain);
        }
        Ok((origin, path_of(url)?))
    }
}

/// What a whole URL asks its origin for.
pub fn path_of(url: &str) -> Result<PathAndQuery, BadHost> {
    if url.contains('#') {
        return Err(BadHost::Query);
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find(['/', '?']).map_or("/", |start| &rest[start..]);
    let path = if path.starts_with('?') { format!("/{path}") } else { path.to_owned() };
    PathAndQuery::try_from(path).map_err(|_| BadHost::Path)
}

fn hosts(setting: &str, entries: &[String]) -> anyhow::Result<Vec<Host>> {
    let listed = entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty());
    listed.map(|entry| listed_host(entry).map_err(|rule| anyhow::anyhow!("{setting}: `{entry}` {rule}"))).collect()
}

/// Operators write `::1` as well as `[::1]`.
fn listed_host(entry: &str) -> Result<Host, BadHost> {
    match entry.parse::<Ipv6Addr>() {
        Ok(address) => Ok(Host::Address(IpAddr::V6(address))),
        Err(_) => Host::parse(entry),
    }
}

/// May a request name this host? Decided from its text alone.
pub fn check_host(host: &Host, trusted: bool) -> Result<(), BadHost> {
    let name = match host {
        Host::Address(address) => return check_address(*address, trusted),
        Host::Name(name) => name,
    };
    if METADATA_HOSTS.contains(&name.as_str()) || METADATA_SUFFIXES.iter().any(|suffix| is_under(name, suffix)) {
        return Err(BadHost::Metadata);
    }
    let numeric = is_numeric(name);
    if numeric && legacy_ipv4(name).is_some_and(|address| is_in(IpAddr::V4(address), ALWAYS)) {
        return Err(BadHost::Metadata);
    }
    if trusted {
        return Ok(());
    }
    if numeric {
        return Err(BadHost::Spelling);
    }
    if PRIVATE_TLDS.iter().any(|tld| is_under(name, tld)) {
        return Err(BadHost::Domain);
    }
    if REBINDING.iter().any(|suffix| is_under(name, suffix)) {
        return Err(BadHost::Rebinding);
    }
    Ok(())
}

/// May a socket be opened to this address? Trust lifts what is private, never what is metadata.
pub fn check_address(address: IpAddr, trusted: bool) -> Result<(), BadHost> {
    let embedded = match address {
        IpAddr::V6(v6) => embedded_ipv4(v6),
        IpAddr::V4(_) => None,
    };
    if is_in(address, ALWAYS) || embedded.is_some_and(|(v4, _)| is_in(IpAddr::V4(v4), ALWAYS)) {
        return Err(BadHost::Metadata);
    }
    if trusted {
        return Ok(());
    }
    let private = match (address, embedded) {
        // Providers reached through NAT64 look like this on IPv6-only networks; judge who is behind.
        (IpAddr::V6(_), Some((v4, Embedding::Gateway))) => is_in(IpAddr::V4(v4), PRIVATE),
        // Nobody's DNS has a reason to answer with these.
        (IpAddr::V6(_), Some((_, Embedding::Disguise))) => true,
        (IpAddr::V6(v6), None) => !is_global_unicast(v6) || is_in(address, PRIVATE),
        (IpAddr::V4(_), _) => is_in(address, PRIVATE),
    };
    if private { Err(BadHost::Private) } else { Ok(()) }
}

const METADATA_HOSTS: &[&str] = &["metadata", "instance-data", "kubernetes"];

const METADATA_SUFFIXES: &[&str] = &[
    "metadata.google.internal",
    "metadata.azure.com",
    "internal.cloudapp.net",
    "ec2.internal",
    "compute.internal",
    "cluster.local",
    "consul",
];

const PRIVATE_TLDS: &[&str] =
    &["local", "localdomain", "internal", "intranet", "lan", "home", "corp", "test", "invalid", "onion", "localhost"];

const REBINDING: &[&str] = &["nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me"];

/// Credentials are served here to whoever asks; no setting opens them.
const ALWAYS: &[IpNet] = &[
    v4([169, 254, 169, 0], 24),
    v4([169, 254, 170, 2], 32),
    v4([169, 254, 170, 23], 32),
    v4([100, 100, 100, 200], 32),
    v4([168, 63, 129, 16], 32),
    v4([192, 0, 0, 192], 32),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 96),
];

/// Addresses that are not somebody's public server. IPv6 is refused outside 2000::/3, so only its exceptions inside
/// that block stand here.
const PRIVATE: &[IpNet] = &[
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 3),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

const fn v4(octets: [u8; 4], prefix: u8) -> IpNet {
    let [a, b, c, d] = octets;
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix)
}

const fn v6(segments: [u16; 8], prefix: u8) -> IpNet {
    let [a, b, c, d, e, f, g, h] = segments;
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix)
}

fn is_in(address: IpAddr, nets: &[IpNet]) -> bool {
    nets.iter().any(|net| net.contains(&address))
}

fn is_global_unicast(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xe000 == 0x2000
}

fn is_under(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Embedding {
    /// NAT64 and ISATAP: the address stands for the IPv4 host behind a gateway.
    Gateway,
    /// Mapped, compatible, translated, 6to4, Teredo: other spellings of an IPv4 address.
    Disguise,
}

fn embedded_ipv4(address: Ipv6Addr) -> Option<(Ipv4Addr, Embedding)> {
    let segments = address.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let last = pair(segments[6], segments[7]);
    match segments {
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0, 0, 0, 0, 0, 0, _, _] => {
            Some((last, Embedding::Disguise))
        }
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some((last, Embedding::Gateway)),
        [0x64, 0xff9b, 1, ..] => Some((last, Embedding::Disguise)),
        [0x2002, high, low, ..] => Some((pair(high, low), Embedding::Disguise)),
        [0x2001, 0, ..] => Some((Ipv4Addr::from(!u32::from(last)), Embedding::Disguise)),
        // ISATAP sits under any prefix, so the prefix must be judged as well.
        [_, _, _, _, 0 | 0x200, 0x5efe, _, _] if is_global_unicast(address) && !is_in(IpAddr::V6(address), PRIVATE) => {
            Some((last, Embedding::Gateway))
        }
        _ => None,
    }
}

/// Would a resolver read this name as an IPv4 address? Its last label decides, as in browsers.
fn is_numeric(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    match last.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
        None => last.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// What `inet_aton` makes of `0x7f.1`, `0177.0.0.1`, `2130706433` and their like.
fn legacy_ipv4(name: &str) -> Option<Ipv4Addr> {
    let mut parts = Vec::with_capacity(4);
    for label in name.split('.') {
        parts.push(match label.strip_prefix("0x") {
            Some("") => 0,
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None if label.len() > 1 && label.starts_with('0') => u64::from_str_radix(label, 8).ok()?,
            None => label.parse().ok()?,
        });
    }
    let (last, heads) = parts.split_last()?;
    if heads.len() > 3 || heads.iter().any(|part| *part > 255) || *last >= 1 << (8 * (4 - heads.len())) {
        return None;
    }
    let mut value = *last;
    for (index, part) in heads.iter().enumerate() {
        value |= part << (8 * (3 - index));
    }
    u32::try_from(value).ok().map(Ipv4Addr::from)
}

#[cfg(test)]
mod tests;
