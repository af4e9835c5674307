//! The form of a custom host: what no setting and no network makes right. Whether it may be dialled from here is
//! asked again, with the operator's trust and the resolved address, by the only code that opens sockets.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MAX_URL: usize = 2048;
const MAX_LABELS: usize = 10;

/// Says which rule a URL breaks, as the end of a sentence that names the field.
pub fn check(url: &str) -> Result<(), &'static str> {
    if url.is_empty() {
        return Err("must not be empty");
    }
    if url.chars().any(char::is_control) {
        return Err("must not have control characters");
    }
    if url.len() > MAX_URL {
        return Err("must not be longer than 2048 characters");
    }
    let lower = url.to_ascii_lowercase();
    let Some(rest) = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://")) else {
        return Err("must start with http:// or https://");
    };
    if rest.contains('@') {
        return Err("must not contain credentials or `@`");
    }
    if rest.contains(['?', '#']) {
        return Err("must not have a query or a fragment");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = split_port(authority)?;
    if port.is_some_and(|port| !is_port(port)) {
        return Err("must have a port from 1 to 65535, or none");
    }
    check_host(host)
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(bracketed) = authority.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or("must close the bracket of its address")?;
        return match (rest.strip_prefix(':'), rest.is_empty()) {
            (port @ Some(_), _) => Ok((host, port)),
            (None, true) => Ok((host, None)),
            (None, false) => Err("must have a port from 1 to 65535, or none"),
        };
    }
    Ok(authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn check_host(host: &str) -> Result<(), &'static str> {
    if host.is_empty() {
        return Err("must name a host");
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return if is_metadata(address) { Err(METADATA) } else { Ok(()) };
    }
    if !host.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.' || byte == b'-') {
        return Err("may only have the letters a-z, digits, dots and hyphens in its host");
    }
    if host.ends_with('.') {
        return Err("must not end in a dot");
    }
    if host.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return Err("must not have an empty or too long label");
    }
    if host.split('.').count() > MAX_LABELS {
        return Err("must not have more than 10 labels");
    }
    let is_under = |suffix: &str| host.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if HOSTS.contains(&host) || SUFFIXES.iter().any(|suffix| is_under(suffix)) { Err(METADATA) } else { Ok(()) }
}

const METADATA: &str = "must not point at a cloud metadata or cluster service";
static HOSTS: &[&str] = &["metadata", "instance-data", "kubernetes"];
static SUFFIXES: &[&str] = &[
    "metadata.google.internal",
    "metadata.azure.com",
    "internal.cloudapp.net",
    "ec2.internal",
    "compute.internal",
    "cluster.local",
    "consul",
];

fn is_metadata(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    ADDRESSES.iter().any(|net| net.contains(&address))
}

const ADDRESSES: &[IpNet] = &[
    v4([169, 254, 169, 0], 24),
    v4([169, 254, 170, 2], 32),
    v4([169, 254, 170, 23], 32),
    v4([100, 100, 100, 200], 32),
    v4([168, 63, 129, 16], 32),
    v4([192, 0, 0, 192], 32),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0)), 96),
];

const fn v4(octets: [u8; 4], prefix: u8) -> IpNet {
    let [a, b, c, d] = octets;
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_custom_host_is_judged_and_private_addresses_are_left_to_the_dialer() {
        for (url, is_fine) in [
            ("https://api.example.com/v1", true),
            ("http://10.0.0.7:8080", true),
            ("http://[::1]:9/v1", true),
            ("https://API.Example.com", true),
            ("", false),
            ("api.example.com", false),
            ("ftp://example.com", false),
            ("https://user@example.com", false),
            ("https://example.com/@x", false),
            ("https://exa%6dple.com", false),
            ("https://ex ample.com", false),
            ("https://exämple.com", false),
            ("https://example.com.", false),
            ("https://a..b", false),
            ("https://a.b.c.d.e.f.g.h.i.j.k", false),
            ("https://example.com:0", false),
            ("https://example.com:65536", false),
            ("https://example.com:+1", false),
            ("https://example.com?x=1", false),
            ("https://exa\tmple.com", false),
            ("https://", false),
            ("https://[::1", false),
            ("https://[::1]x", false),
            ("http://169.254.169.254/latest", false),
            ("http://[::ffff:169.254.169.254]", false),
            ("http://[fd00:ec2::254]", false),
            ("http://metadata", false),
            ("http://x.metadata.google.internal", false),
            ("http://vault.consul", false),
        ] {
            assert_eq!(check(url).is_ok(), is_fine, "{url}: {:?}", check(url));
        }
        assert!(check(&format!("https://example.com/{}", "a".repeat(2048))).is_err());
    }
}
