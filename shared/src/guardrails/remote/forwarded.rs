//! Which headers of a client a webhook may get, if its check lists them: never a credential, nothing of the connection,
//! nothing of ours but what identifies the trace.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Credentials of the client, of the gateway, of clouds. They stay here whoever lists them.
const SECRET: &[&str] = &[
    "api-key",
    "authorization",
    "cookie",
    "ocp-apim-subscription-key",
    "proxy-authorization",
    "set-cookie",
    "x-amz-security-token",
    "x-api-key",
    "x-auth-token",
    "x-goog-api-key",
    "x-ms-token-aad-access-token",
    "metadata",
    "metadata-flavor",
    "x-aws-ec2-metadata-token",
    "x-aws-ec2-metadata-token-ttl-seconds",
    "x-google-metadata-request",
];
const OF_THE_CONNECTION: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const OURS: &str = "x-gateway-";
const OURS_FORWARDED: &[&str] = &["x-gateway-trace-id", "x-gateway-span-id"];
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

pub fn is_of_the_connection(name: &HeaderName) -> bool {
    OF_THE_CONNECTION.contains(&name.as_str())
}

/// Whether a header may be sent on at all.
pub fn may_forward(name: &HeaderName) -> bool {
    let text = name.as_str();
    let is_ours = text.starts_with(OURS) && !OURS_FORWARDED.contains(&text);
    !is_ours && !SECRET.contains(&text) && !is_of_the_connection(name)
}

/// The listed headers that the client sent and that may leave. `traceparent` is made where it is listed and was not sent.
pub fn forwarded(listed: &[HeaderName], sent: &HeaderMap, trace_id: &str) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = Vec::new();
    for name in listed.iter().filter(|name| may_forward(name)) {
        match sent.get(name) {
            Some(value) => headers.push((name.clone(), value.clone())),
            None if *name == TRACEPARENT => headers.extend(traceparent(trace_id).map(|value| (TRACEPARENT, value))),
            None => {}
        }
    }
    headers
}

/// As W3C writes it: the trace's id in 32 digits of base 16, made of whatever ours is.
fn traceparent(trace_id: &str) -> Option<HeaderValue> {
    use sha2::{Digest as _, Sha256};
    if trace_id.is_empty() {
        return None;
    }
    let plain: String = trace_id.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
    let is_hex =
        plain.len() == 32 && plain.bytes().all(|byte| byte.is_ascii_hexdigit()) && plain.bytes().any(|b| b != b'0');
    let digest = hex::encode(Sha256::digest(trace_id.as_bytes()));
    let trace = if is_hex { plain.as_str() } else { &digest[..32] };
    HeaderValue::from_str(&format!("00-{trace}-{}-01", &digest[32..48])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_sent_but_no_credential_and_nothing_of_ours() {
        let sent = [
            "authorization",
            "cookie",
            "x-api-key",
            "api-key",
            "ocp-apim-subscription-key",
            "proxy-authorization",
            "x-goog-api-key",
            "x-gateway-api-key",
            "x-gateway-config",
            "x-gateway-virtual-key",
            "metadata-flavor",
            "host",
            "content-length",
            "transfer-encoding",
            "te",
            "x-gateway-trace-id",
            "x-gateway-span-id",
            "x-team",
            "user-agent",
        ];
        let names: Vec<HeaderName> = sent.iter().map(|name| HeaderName::from_static(name)).collect();
        let headers: HeaderMap = names.iter().map(|name| (name.clone(), HeaderValue::from_static("v"))).collect();
        let passed: Vec<String> = forwarded(&names, &headers, "t").iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(passed, ["x-gateway-trace-id", "x-gateway-span-id", "x-team", "user-agent"]);
        assert!(forwarded(&[], &headers, "t").is_empty(), "nothing is sent that is not listed");
        assert!(forwarded(&names, &HeaderMap::new(), "t").is_empty());
    }

    #[test]
    fn a_traceparent_is_the_clients_or_made_of_the_trace() {
        let listed = [TRACEPARENT];
        let mut sent = HeaderMap::new();
        let made = |sent: &HeaderMap, id: &str| {
            let headers = forwarded(&listed, sent, id);
            headers.first().map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        let own = made(&sent, "0af76519-16cd-43dd-8448-eb211c80319c").unwrap();
        assert!(own.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && own.ends_with("-01"), "{own}");
        assert_eq!(made(&sent, "my-trace").unwrap().len(), 55);
        assert_eq!(made(&sent, ""), None);
        sent.insert(TRACEPARENT, HeaderValue::from_static("00-a-b-00"));
        assert_eq!(made(&sent, "my-trace").as_deref(), Some("00-a-b-00"));
    }
}
