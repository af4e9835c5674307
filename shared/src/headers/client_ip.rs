//! Whose address a request comes from. `X-Forwarded-For` is whatever the sender wrote, so each entry counts only if
//! the hop that appended it is a trusted proxy: reading from the right, the first untrusted address is the client.

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// What some proxies add to say where the client is. Whatever the sender wrote, unless it is such a proxy.
pub const COUNTRY: [&str; 3] = ["cf-ipcountry", "cloudfront-viewer-country", "x-client-country"];

pub fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer.to_canonical();
    let lines = headers.get_all(FORWARDED_FOR).into_iter().filter_map(|line| line.to_str().ok());
    let entries: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
    for entry in entries.iter().rev() {
        if !is_trusted(client, trusted) {
            break;
        }
        // A hop that wrote something else than an address tells us nothing about those before it.
        let Some(address) = parse(entry.trim()) else { break };
        client = address;
    }
    client
}

pub fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    let address = address.to_canonical();
    trusted.iter().any(|network| network.contains(&address))
}

/// Some proxies append the port.
fn parse(entry: &str) -> Option<IpAddr> {
    let address = entry.parse::<IpAddr>().ok().or_else(|| entry.parse::<SocketAddr>().ok().map(|both| both.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn seen(peer: &str, lines: &[&'static str]) -> String {
        let trusted: Vec<IpNet> =
            ["127.0.0.0/8", "::1/128", "10.0.0.0/8"].iter().map(|net| net.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
        }
        client_ip(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn the_client_is_the_right_most_address_that_is_not_a_trusted_proxy() {
        for (peer, lines, client) in [
            ("127.0.0.1", &["203.0.113.7"][..], "203.0.113.7"),
            ("127.0.0.1", &["6.6.6.6, 203.0.113.7"], "203.0.113.7"),
            ("127.0.0.1", &["203.0.113.7, 10.1.2.3"], "203.0.113.7"),
            ("127.0.0.1", &["203.0.113.7", "10.1.2.3"], "203.0.113.7"),
            ("127.0.0.1", &["10.9.9.9, 10.1.2.3"], "10.9.9.9"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("127.0.0.1", &["203.0.113.7:4711"], "203.0.113.7"),
            ("127.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("::ffff:127.0.0.1", &["::ffff:203.0.113.7"], "203.0.113.7"),
            ("::1", &["2001:db8::2"], "2001:db8::2"),
        ] {
            assert_eq!(seen(peer, lines), client, "{peer} {lines:?}");
        }
    }

    #[test]
    fn an_untrusted_peer_is_not_believed() {
        assert_eq!(seen("198.51.100.1", &["203.0.113.7"]), "198.51.100.1");
    }

    #[test]
    fn an_entry_that_is_no_address_ends_the_search() {
        assert_eq!(seen("127.0.0.1", &["203.0.113.7, unknown, 10.1.2.3"]), "10.1.2.3");
        assert_eq!(seen("127.0.0.1", &["203.0.113.7, "]), "127.0.0.1");
    }
}
