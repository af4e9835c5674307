//! AWS Signature Version 4 over a request's head and body. Pure: keys and the clock are arguments.

use super::http::{Request, escape};
use super::text;
use crate::seal::Secret;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Keys of AWS, for ever or for a while.
#[derive(Debug, Clone)]
pub struct AwsKeys {
    pub id: Secret,
    pub secret: Secret,
    pub session: Option<Secret>,
}

/// Adds the date, the session and the signature. The headers that the request has already are signed too.
pub fn signed(request: Request, keys: &AwsKeys, region: &str, service: &str, now: DateTime<Utc>) -> Request {
    let (stamp, day) = (now.format("%Y%m%dT%H%M%SZ").to_string(), now.format("%Y%m%d").to_string());
    let mut request = request.with("x-amz-date", stamp.clone());
    if let Some(session) = &keys.session {
        request = request.with("x-amz-security-token", text(session));
    }
    let (host, path, query) = parts(&request.url);
    let (path, query) = (canonical_path(path), canonical_query(query));
    let mut headers: Vec<(&str, &str)> = request.headers.iter().map(|(name, value)| (*name, value.trim())).collect();
    headers.push(("host", host));
    headers.sort_unstable();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let body = hex::encode(Sha256::digest(&request.body));
    let canonical = format!("{}\n{path}\n{query}\n{lines}\n{names}\n{body}", request.method);
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let message = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}", hex::encode(Sha256::digest(&canonical)));
    let seed = [b"AWS4", keys.secret.expose()].concat();
    let key = [day.as_str(), region, service, "aws4_request"].iter().fold(seed, |key, part| mac(&key, part.as_bytes()));
    let signature = hex::encode(mac(&key, message.as_bytes()));
    let credential = format!("{}/{scope}", text(&keys.id));
    let value = format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}");
    request.with("authorization", value)
}

fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// Host (with port), path and query of an http or https URL.
fn parts(url: &str) -> (&str, &str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(at);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    (host, if path.is_empty() { "/" } else { path }, query)
}

/// Escaped once more, as every service but S3 wants it.
fn canonical_path(path: &str) -> String {
    escape(path, "/")
}

fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> AwsKeys {
        AwsKeys {
            id: "AKIDEXAMPLE".to_owned().into(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned().into(),
            session: None,
        }
    }

    /// From the test suite that AWS publishes; all of it was signed at this moment for `us-east-1/service`.
    #[test]
    fn the_published_examples_are_signed_as_published() {
        let now = "2015-08-30T12:36:00Z".parse().unwrap();
        let url = |rest: &str| format!("https://example.amazonaws.com{rest}");
        let form = b"Param1=value1".to_vec();
        for (request, signature) in [
            (Request::get(url("/")), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            (
                Request::get(url("/?Param2=value2&Param1=value1")),
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                Request { method: "POST", ..Request::get(url("/")) },
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                Request::post(url("/"), "application/x-www-form-urlencoded", form),
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
        ] {
            let signed = signed(request.clone(), &keys(), "us-east-1", "service", now);
            let found = signed.headers.iter().find(|(name, _)| *name == "authorization").unwrap();
            assert!(found.1.ends_with(&format!("Signature={signature}")), "{request:?}: {}", found.1);
            assert!(found.1.contains("Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"));
        }
    }

    #[test]
    fn a_session_is_sent_and_signed() {
        let keys = AwsKeys { session: Some("token".to_owned().into()), ..keys() };
        let signed = signed(Request::get("https://x.test".into()), &keys, "r", "s", Utc::now());
        let header = |name: &str| signed.headers.iter().find(|(one, _)| *one == name).map(|(_, value)| value.as_str());
        assert_eq!(header("x-amz-security-token"), Some("token"));
        assert!(header("authorization").unwrap().contains("SignedHeaders=host;x-amz-date;x-amz-security-token,"));
    }
}
