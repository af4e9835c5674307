//! Where a login begins and ends: how often one network may try, and where a browser may be sent afterwards.
//!
//! Networks, not addresses: whoever has one address of IPv6 has at least 2^64 of them, and often a /48.

use crate::app::App;
use crate::http::ApiError;
use crate::identity::call::RequestOrigin;
use chrono::Utc;
use std::net::{IpAddr, Ipv6Addr};
use uuid::Uuid;

/// Where a browser that followed a link goes: people, so the console.
pub const CONSOLE: &str = "/console";
/// Where a login ends that named no place: who is signed in, as programs read it.
pub const HOME: &str = "/v1/auth/session";
const MAX_ADDRESS: usize = 2048;
const TOO_OFTEN: &str = "Too many attempts to sign in from this address";

/// Counts an attempt of the client's network, and of the wide one that it may be a part of.
pub fn allow(app: &App, origin: &RequestOrigin) -> Result<(), ApiError> {
    let now = Utc::now();
    let near = app.sign_in_limit.take(counted(network(origin.seen.client_ip)), now);
    let taken = match wide_network(origin.seen.client_ip) {
        Some(wide) => near.and_then(|()| app.wide_sign_in_limit.take(counted(wide), now)),
        None => near,
    };
    taken.map_err(|refused| match refused {
        ApiError::RateLimited { retry_after, .. } => ApiError::RateLimited { message: TOO_OFTEN, retry_after },
        other => other,
    })
}

/// What one client surely has for itself: an IPv4 address, a /64 of IPv6.
pub fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => masked(ip, 64),
    }
}

/// What one client may have for itself.
fn wide_network(ip: IpAddr) -> Option<IpAddr> {
    match ip.to_canonical() {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some(masked(ip, 48)),
    }
}

fn masked(ip: Ipv6Addr, bits: u32) -> IpAddr {
    Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << (128 - bits))).into()
}

/// As limits know it.
fn counted(network: IpAddr) -> Uuid {
    let whole = match network {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    Uuid::from_u128(whole.to_bits())
}

/// A path on this very host. Anything that a browser could take for another host is refused, or a link to our login
/// would lead wherever its author likes.
pub fn return_to(sent: Option<&str>) -> Result<String, ApiError> {
    let Some(path) = sent else { return Ok(HOME.into()) };
    let is_path = path.starts_with('/') && !path.starts_with("//");
    let is_plain = path.len() <= MAX_ADDRESS && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    match is_path && is_plain {
        true => Ok(path.to_owned()),
        false => Err(ApiError::field("return_to", "must be a path of this host, as /console")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_with_its_neighbours() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        for (address, expected, wide) in [
            ("192.0.2.7", "192.0.2.7", None),
            ("::ffff:192.0.2.7", "192.0.2.7", None),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", Some("2001:db8:1::")),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::", Some("2001:db8:1::")),
            ("2001:db8:1:3::1", "2001:db8:1:3::", Some("2001:db8:1::")),
        ] {
            assert_eq!(of(address), expected, "{address}");
            let found = wide_network(address.parse().unwrap()).map(|one| one.to_string());
            assert_eq!(found.as_deref(), wide, "{address}");
        }
    }

    #[test]
    fn only_a_path_of_this_host_is_gone_back_to() {
        for (sent, accepted) in [
            ("/console", true),
            ("/console?a=b#c", true),
            ("/", true),
            ("//evil.test", false),
            ("/\\evil.test", false),
            ("\\\\evil.test", false),
            ("https://evil.test", false),
            ("javascript:alert(1)", false),
            ("console", false),
            ("/a b", false),
            ("/\tx", false),
            ("/\r\nset-cookie: a=b", false),
            ("/ä", false),
            ("", false),
        ] {
            assert_eq!(return_to(Some(sent)).is_ok(), accepted, "{sent:?}");
        }
        assert!(return_to(Some(&format!("/{}", "x".repeat(MAX_ADDRESS)))).is_err());
        assert_eq!(return_to(None).unwrap(), HOME);
    }
}
