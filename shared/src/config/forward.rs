//! Which of a client's headers may be sent on. Some would open a door that the request cannot see: metadata services
//! answer to a header, and hop-by-hop headers change where a message ends.

use super::fault::{Code, Reading};
use super::object::Object;

static REFUSED: &[&str] = &[
    "metadata-flavor",
    "x-aws-ec2-metadata-token",
    "x-aws-ec2-metadata-token-ttl-seconds",
    "x-google-metadata-request",
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub fn read(reading: &mut Reading<'_>, node: &mut Object<'_, '_>) -> Option<Vec<String>> {
    let names = node.texts(reading, "forward_headers")?;
    let path = node.path.key("forward_headers");
    let mut kept = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let name = name.trim().to_ascii_lowercase();
        match refusal(&name) {
            Some(message) => reading.fault(&path.index(index), Code::BadHeader, message),
            None => kept.push(name),
        }
    }
    Some(kept)
}

fn refusal(name: &str) -> Option<&'static str> {
    if http::HeaderName::try_from(name).is_err() {
        return Some("is not the name of a header");
    }
    if name.starts_with("x-gateway-") {
        return Some("belongs to the gateway and never goes to a provider");
    }
    REFUSED.contains(&name).then_some("must not be sent on")
}
