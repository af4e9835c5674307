//! AWS Signature Version 4 over a request's head and body. Pure: keys and the clock are arguments.

use super::http::{Request, escape};
use super::text;
use crate::secrets::seal::Secret;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Keys of AWS, for ever or for a while.
#[derive(Debug, Clone)]
pub struct AwsKeys {
    pub id: Secret,
    pub secret: Secret,
    pub session: Option<Secret>,
}

/// For whom a signature is good.
#[derive(Debug, Clone, Copy)]
pub struct SigningScope<'s> {
    pub region: &'s str,
    /// As AWS calls it when it signs: `bedrock` for all hosts of Bedrock.
    pub service: &'s str,
}

/// What is signed of a request. It must be sent just so.
#[derive(Clone, Copy)]
pub struct RequestToSign<'r> {
    pub method: &'r str,
    /// As the header says it, with a port that is not the scheme's own.
    pub host: &'r str,
    /// As it is sent, escaped.
    pub path: &'r str,
    pub query: &'r str,
    /// All of them are signed, so whoever is on the way must not change them. Names in small letters.
    pub headers: &'r [(&'r str, &'r str)],
    pub body: SignedBody<'r>,
}

#[derive(Clone, Copy)]
pub enum SignedBody<'r> {
    Whole(&'r [u8]),
    /// S3 takes bodies that nobody has read before.
    Unsigned,
}

/// The headers to add: the date, the session, the signature, and for S3 the body's hash.
pub fn headers(
    request: &RequestToSign<'_>,
    keys: &AwsKeys,
    scope: SigningScope<'_>,
    now: DateTime<Utc>,
) -> Vec<(&'static str, String)> {
    let SigningScope { region, service } = scope;
    let is_s3 = service == "s3";
    let (stamp, day) = (now.format("%Y%m%dT%H%M%SZ").to_string(), now.format("%Y%m%d").to_string());
    let body = match request.body {
        SignedBody::Whole(bytes) => hex::encode(Sha256::digest(bytes)),
        SignedBody::Unsigned => "UNSIGNED-PAYLOAD".to_owned(),
    };
    let mut added = vec![("x-amz-date", stamp.clone())];
    if let Some(session) = &keys.session {
        added.push(("x-amz-security-token", text(session).to_owned()));
    }
    if is_s3 {
        added.push(("x-amz-content-sha256", body.clone()));
    }
    let (names, lines) = canonical_headers(request, &added);
    // Escaped once more, as every service but S3 wants it.
    let path = if is_s3 { request.path.to_owned() } else { escape(&normal_path(request.path), "/") };
    let query = canonical_query(request.query);
    let canonical = format!("{}\n{path}\n{query}\n{lines}\n{names}\n{body}", request.method);
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let message = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}", hex::encode(Sha256::digest(&canonical)));
    let seed = [b"AWS4", keys.secret.expose()].concat();
    let key = [day.as_str(), region, service, "aws4_request"].iter().fold(seed, |key, part| mac(&key, part.as_bytes()));
    let signature = hex::encode(mac(&key, message.as_bytes()));
    let credential = format!("{}/{scope}", text(&keys.id));
    let value = format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}");
    added.push(("authorization", value));
    added
}

/// A request of our own with its signature.
pub fn signed(request: Request, keys: &AwsKeys, scope: SigningScope<'_>, now: DateTime<Utc>) -> Request {
    let (host, path, query) = parts(&request.url);
    let own: Vec<(&str, &str)> = request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let body = SignedBody::Whole(&request.body);
    let to_sign = RequestToSign { method: request.method, host, path, query, headers: &own, body };
    let added = headers(&to_sign, keys, scope, now);
    added.into_iter().fold(request, |request, (name, value)| request.with(name, value))
}

fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// The names, and a line for each: sorted, values of one name joined, spaces made one.
fn canonical_headers(request: &RequestToSign<'_>, added: &[(&'static str, String)]) -> (String, String) {
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let own = request.headers.iter().copied();
    let added = added.iter().map(|(name, value)| (*name, value.as_str()));
    for (name, value) in own.chain(added).chain([("host", request.host)]) {
        all.entry(name).or_default().push(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
    }
    let names = all.keys().copied().collect::<Vec<_>>().join(";");
    let lines = all.iter().map(|(name, values)| format!("{name}:{}\n", values.join(","))).collect();
    (names, lines)
}

/// Host (with port), path and query of an http or https URL.
fn parts(url: &str) -> (&str, &str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(at);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    (host, if path.is_empty() { "/" } else { path }, query)
}

/// Without empty and dotted segments, as AWS reads it.
fn normal_path(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let last = if path.ends_with('/') && !segments.is_empty() { "/" } else { "" };
    format!("/{}{last}", segments.join("/"))
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
mod tests;
