//! Which of a client's headers may be sent on to a provider, for the lists in configs and those in headers alike. Some
//! would open a door that the request cannot see: metadata services answer to a header, and hop-by-hop headers change
//! where a message ends.

use crate::headers::header_prefix::PREFIX;
use http::HeaderName;

/// They frame or encode the message, belong to a hop or to the client's own session, or open a cloud's metadata service.
static REFUSED: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "metadata-flavor",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-aws-ec2-metadata-token",
    "x-aws-ec2-metadata-token-ttl-seconds",
    "x-google-metadata-request",
];

/// Why a header is not sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotForwarded {
    #[error("is not the name of a header")]
    NoName,
    #[error("belongs to the gateway and never goes to a provider")]
    Ours,
    #[error("must not be sent on")]
    Refused,
}

/// A header that may be sent on, by its name in any case, with `-` or `_`. An operator's aliases of our own prefix are
/// known to whoever sends it on.
pub fn parse(name: &str) -> Result<HeaderName, NotForwarded> {
    let name = name.trim().replace('_', "-").to_ascii_lowercase();
    let name = HeaderName::try_from(name).map_err(|_| NotForwarded::NoName)?;
    match name.as_str() {
        ours if ours.starts_with(PREFIX) => Err(NotForwarded::Ours),
        other if REFUSED.contains(&other) => Err(NotForwarded::Refused),
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_judged_however_it_is_spelt() {
        for (name, judged) in [
            (" X_Tenant ", Ok("x-tenant")),
            ("transfer_encoding", Err(NotForwarded::Refused)),
            ("Cookie", Err(NotForwarded::Refused)),
            ("X-Gateway-Api-Key", Err(NotForwarded::Ours)),
            ("x_gateway_api_key", Err(NotForwarded::Ours)),
            ("a b", Err(NotForwarded::NoName)),
            ("", Err(NotForwarded::NoName)),
        ] {
            assert_eq!(parse(name).as_ref().map(HeaderName::as_str).map_err(|why| *why), judged, "{name}");
        }
        for name in REFUSED {
            assert_eq!(parse(name), Err(NotForwarded::Refused), "{name}");
        }
    }
}
