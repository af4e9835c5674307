//! Takes a request's body: JSON whole, files up to a length, anything else as it streams past, so that a large upload is
//! hashed but never held.

use bytes::{Bytes, BytesMut};
use http::Version;
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use openssl::sha::{Sha256, sha256};

use super::batches::MAX_FILE;
use super::pattern::hex;
use super::record::{MAX_RECORDED_BODY, Recorded};
use super::route::Endpoint;

#[derive(Default)]
pub struct Received {
    /// The body, or its beginning when it is large and not JSON.
    pub bytes: Bytes,
    length: u64,
    /// Absent while `kept` is everything: then it can be computed when asked for.
    hash: Option<[u8; 32]>,
}

pub async fn body(body: Incoming, endpoint: Endpoint) -> Result<Received, hyper::Error> {
    match endpoint {
        Endpoint::Echo => return stream(body, MAX_RECORDED_BODY).await,
        // Files are remembered.
        Endpoint::Objects | Endpoint::Buckets => return stream(body, MAX_FILE).await,
        _ => {}
    }
    let bytes = body.collect().await?.to_bytes();
    Ok(Received { length: bytes.len() as u64, bytes, hash: None })
}

async fn stream(mut body: Incoming, most: usize) -> Result<Received, hyper::Error> {
    let mut bytes = BytesMut::new();
    let mut length = 0;
    let mut hash = Sha256::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        hash.update(&data);
        length += data.len() as u64;
        let room = most - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
    }
    Ok(Received { bytes: bytes.freeze(), length, hash: Some(hash.finish()) })
}

impl Received {
    pub fn recorded(&self, head: &Parts, connection: u64) -> Recorded {
        Recorded {
            connection,
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            version: if head.version == Version::HTTP_2 { "HTTP/2" } else { "HTTP/1.1" },
            headers: head.headers.clone(),
            body: self.bytes.slice(..self.bytes.len().min(MAX_RECORDED_BODY)),
            body_bytes: self.length,
            body_sha256: hex(&self.hash.unwrap_or_else(|| sha256(&self.bytes))),
        }
    }
}
