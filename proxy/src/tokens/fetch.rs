//! Key sets and other small files, fetched through the dialer and therefore under its rules: judged names and addresses, verified TLS, no
//! redirects.

use crate::dial::{Dialer, Upstream, UpstreamError};
use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderValue, header};
use pingora_http::RequestHeader;
use shared::jwt::key_ring::{FETCH_WITHIN, Fetch, LONGEST_SET};
use std::sync::Arc;

pub fn through(dialer: Arc<Dialer>) -> Fetch {
    Box::new(move |url| {
        let dialer = dialer.clone();
        async move { fetch(&dialer, &url).await }.boxed()
    })
}

/// One file.
pub async fn fetch(dialer: &Dialer, url: &str) -> Result<Vec<u8>, String> {
    let (origin, path) = dialer.custom_url(url).map_err(|rule| rule.to_string())?;
    let mut head =
        RequestHeader::build("GET", path.as_str().as_bytes(), Some(4)).map_err(|_| "its path is not valid")?;
    for (name, value) in [(header::ACCEPT, "application/json"), (header::USER_AGENT, "portcullis")] {
        let _ = head.insert_header(name, HeaderValue::from_static(value));
    }
    // Fetches are rare: a connection of its own is simpler than one that may have died meanwhile.
    let upstream = dialer.connect(&origin, true).await;
    let mut upstream = upstream.map_err(|error| spoken(error.class().label()))?;
    // The ring's own limit comes first, and says so in its own words.
    upstream.set_timeouts(FETCH_WITHIN * 2, FETCH_WITHIN * 2);
    upstream.send(head, Bytes::new()).await.map_err(broken)?;
    upstream.read_head().await.map_err(broken)?;
    match upstream.head().status.as_u16() {
        200 => body(&mut upstream).await,
        status => Err(format!("it answered {status}")),
    }
}

async fn body(upstream: &mut Upstream) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = upstream.read_body().await.map_err(broken)? {
        if body.len() + piece.len() > LONGEST_SET {
            return Err("the answer is too long".into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn broken(error: UpstreamError) -> String {
    spoken(error.class().label())
}

/// A class of failures as words.
fn spoken(label: &str) -> String {
    format!("the connection failed ({})", label.replace('_', " "))
}
