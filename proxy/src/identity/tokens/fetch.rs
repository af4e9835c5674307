//! Key sets and other small files, fetched through the dialer and therefore under its rules: judged names and
//! addresses, verified TLS, no redirects.

use crate::net::dial::{Dialer, internal_call};
use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderValue, header};
use pingora_http::RequestHeader;
use shared::identity::jwt::key_ring::{FETCH_WITHIN, KeySetFetch, MAX_SET};
use std::sync::Arc;

pub fn through(dialer: Arc<Dialer>) -> KeySetFetch {
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
    let mut upstream = upstream.map_err(|error| internal_call::spoken(error.class()))?;
    // The ring's own limit comes first, and says so in its own words.
    upstream.set_timeouts(FETCH_WITHIN * 2, FETCH_WITHIN * 2);
    match internal_call::send(&mut upstream, head, Bytes::new()).await? {
        200 => internal_call::whole(&mut upstream, MAX_SET).await,
        status => Err(format!("it answered {status}")),
    }
}
