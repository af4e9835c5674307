//! Oracle's request signatures: RSA with SHA-256 over chosen headers, as the drafts of HTTP signatures have it. Pure: the
//! key and the clock are arguments.

use super::error::SigningError;
use super::sensitive;
use chrono::{DateTime, Utc};
use http::{HeaderName, HeaderValue, header};
use openssl::base64::encode_block;
use openssl::pkey::{PKey, Private};
use sha2::{Digest as _, Sha256};
use shared::secrets::cloud::rs256;

/// What is signed of a request. It must be sent just so.
#[derive(Clone, Copy)]
pub struct OciRequest<'r> {
    pub method: &'r str,
    pub host: &'r str,
    pub path_and_query: &'r str,
    pub content_type: Option<&'r str>,
    pub body: &'r [u8],
}

static X_CONTENT_SHA256: HeaderName = HeaderName::from_static("x-content-sha256");

/// The headers to add: the date, the body's hash where there is a body, and the signature. `key_id` is
/// `tenancy/user/fingerprint`.
pub fn headers(
    request: &OciRequest<'_>,
    key_id: &str,
    key: &PKey<Private>,
    now: DateTime<Utc>,
) -> Result<Vec<(HeaderName, HeaderValue)>, SigningError> {
    let date = now.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let hash = encode_block(Sha256::digest(request.body).as_slice());
    let has_body = matches!(request.method, "POST" | "PUT" | "PATCH");
    let (message, names) = message(request, &date, has_body.then_some(hash.as_str()));
    let signature = encode_block(&rs256::signature(key, message.as_bytes())?);
    let value = format!(
        "Signature version=\"1\",headers=\"{names}\",keyId=\"{key_id}\",algorithm=\"rsa-sha256\",signature=\"{signature}\""
    );
    let mut added = vec![(header::DATE, sensitive(date)?)];
    if has_body {
        added.push((X_CONTENT_SHA256.clone(), sensitive(hash)?));
        if request.content_type.is_none() {
            added.push((header::CONTENT_TYPE, HeaderValue::from_static(JSON)));
        }
    }
    added.push((header::AUTHORIZATION, sensitive(value)?));
    Ok(added)
}

const JSON: &str = "application/json";

/// What is signed, and the names of its lines.
fn message(request: &OciRequest<'_>, date: &str, body_hash: Option<&str>) -> (String, String) {
    let target = format!("{} {}", request.method.to_ascii_lowercase(), request.path_and_query);
    let length = request.body.len().to_string();
    let mut lines = vec![("date", date), ("(request-target)", target.as_str()), ("host", request.host)];
    if let Some(hash) = body_hash {
        let content_type = request.content_type.unwrap_or(JSON);
        lines.extend([("content-length", length.as_str()), ("content-type", content_type), ("x-content-sha256", hash)]);
    }
    let names = lines.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
    let message = lines.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n");
    (message, names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openssl::base64::decode_block;
    use openssl::hash::MessageDigest;
    use openssl::sign::Verifier;

    /// The key of the examples in Oracle's documentation ("Request Signatures"), which has it from the draft of HTTP
    /// signatures.
    const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----
MIICXgIBAAKBgQDCFENGw33yGihy92pDjZQhl0C36rPJj+CvfSC8+q28hxA161QF
NUd13wuCTUcq0Qd2qsBe/2hFyc2DCJJg0h1L78+6Z4UMR7EOcpfdUE9Hf3m/hs+F
UR45uBJeDK1HSFHD8bHKD6kv8FPGfJTotc+2xjJwoYi+1hqp1fIekaxsyQIDAQAB
AoGBAJR8ZkCUvx5kzv+utdl7T5MnordT1TvoXXJGXK7ZZ+UuvMNUCdN2QPc4sBiA
QWvLw1cSKt5DsKZ8UETpYPy8pPYnnDEz2dDYiaew9+xEpubyeW2oH4Zx71wqBtOK
kqwrXa/pzdpiucRRjk6vE6YY7EBBs/g7uanVpGibOVAEsqH1AkEA7DkjVH28WDUg
f1nqvfn2Kj6CT7nIcE3jGJsZZ7zlZmBmHFDONMLUrXR/Zm3pR5m0tCmBqa5RK95u
412jt1dPIwJBANJT3v8pnkth48bQo/fKel6uEYyboRtA5/uHuHkZ6FQF7OUkGogc
mSJluOdc5t6hI1VsLn0QZEjQZMEOWr+wKSMCQQCC4kXJEsHAve77oP6HtG/IiEn7
kpyUXRNvFsDE0czpJJBvL/aRFUJxuRK91jhjC68sA7NsKMGg5OXb5I5Jj36xAkEA
gIT7aFOYBFwGgQAQkWNKLvySgKbAZRTeLBacpHMuQdl1DfdntvAyqpAZ0lY0RKmW
G6aFKaqQfOXKCyWoUiVknQJAXrlgySFci/2ueKlIE1QqIiLSZ8V8OlpFLRnb1pzI
7U1yQXnTAEFYM560yJlzUpOb1V4cScGd365tiSMvxLOvTA==
-----END RSA PRIVATE KEY-----
";

    fn key() -> PKey<Private> {
        rs256::private_key(&KEY.to_owned().into(), None).unwrap()
    }

    /// Oracle's own example, whose date names a weekday that it was not; so the message is held against it, not the clock.
    #[test]
    fn the_published_example_is_signed_as_published() {
        let path = "/20160918/instances?availabilityDomain=Pjwf%3A%20PHX-AD-1&compartmentId=ocid1.compartment.oc1..aaaaaaaam3we6vgnherjq5q2idnccdflvjsnog7mlr6rtdb25gilchfeyjxa&displayName=TeamXInstances&volumeId=ocid1.volume.oc1.phx.abyhqljrgvttnlx73nmrwfaux7kcvzfs3s66izvxf2h4lgvyndsdsnoiwr5q";
        let host = "iaas.us-phoenix-1.oraclecloud.com";
        let request = OciRequest { method: "GET", host, path_and_query: path, content_type: None, body: b"" };
        let (message, names) = message(&request, "Thu, 05 Jan 2014 21:31:40 GMT", None);
        assert_eq!(names, "date (request-target) host");
        let signature = encode_block(&rs256::signature(&key(), message.as_bytes()).unwrap());
        let published = "GBas7grhyrhSKHP6AVIj/h5/Vp8bd/peM79H9Wv8kjoaCivujVXlpbKLjMPeDUhxkFIWtTtLBj3sUzaFj34XE6YZAHc9r2DmE4pMwOAy/kiITcZxa1oHPOeRheC0jP2dqbTll8fmTZVwKZOKHYPtrLJIJQHJjNvxFWeHQjMaR7M=";
        assert_eq!(signature, published);
    }

    #[test]
    fn a_body_is_signed_with_its_hash_length_and_type() {
        let host = "inference.generativeai.us-chicago-1.oci.oraclecloud.com";
        let (path, body) = ("/20231130/actions/chat", br#"{"compartmentId":"c"}"#);
        let request = OciRequest { method: "POST", host, path_and_query: path, content_type: None, body };
        let now = "2026-11-16T08:30:00Z".parse().unwrap();
        let added = headers(&request, "t/u/f", &key(), now).unwrap();
        let header = |name: &str| {
            added.iter().find(|(one, _)| one.as_str() == name).map(|(_, value)| value.to_str().unwrap()).unwrap()
        };
        assert_eq!(header("date"), "Mon, 16 Nov 2026 08:30:00 GMT");
        // printf '{"compartmentId":"c"}' | openssl dgst -sha256 -binary | base64
        assert_eq!(header("x-content-sha256"), "NHhJ9almArLFnBchfTaOxfpAZYfRGYppg25AM0FzEwc=");
        let (start, signature) = header("authorization").split_once(",signature=\"").unwrap();
        let expected = "Signature version=\"1\",headers=\"date (request-target) host content-length content-type x-content-sha256\",keyId=\"t/u/f\",algorithm=\"rsa-sha256\"";
        assert_eq!(start, expected);
        let message = format!(
            "date: {}\n(request-target): post {path}\nhost: {host}\ncontent-length: 21\ncontent-type: application/json\nx-content-sha256: {}",
            header("date"),
            header("x-content-sha256")
        );
        let key = key();
        let mut verifier = Verifier::new(MessageDigest::sha256(), &key).unwrap();
        let signature = decode_block(signature.trim_end_matches('"')).unwrap();
        assert!(verifier.verify_oneshot(&signature, message.as_bytes()).unwrap());
    }
}
