//! Requests to clouds and secret managers, sent through the dialer and therefore under its rules: judged names and addresses,
//! verified TLS, no redirects. Nothing of a request or an answer is repeated in an error.

use crate::net::dial::{Dialer, internal_call};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use pingora_http::RequestHeader;
use shared::secrets::cloud::{Http, Request, Response};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// For a whole exchange. A first use waits this long at most for each step of its fetch.
const LIMIT: Duration = Duration::from_secs(5);
const MAX_ANSWER: usize = 256 << 10;

pub struct DialerTransport(pub Arc<Dialer>);

impl Http for DialerTransport {
    fn send(&self, request: Request) -> Pin<Box<dyn Future<Output = Result<Response, String>> + Send>> {
        let dialer = self.0.clone();
        Box::pin(async move {
            match tokio::time::timeout(LIMIT, exchange(&dialer, request)).await {
                Ok(answer) => answer,
                Err(_) => Err("no answer in time".into()),
            }
        })
    }
}

async fn exchange(dialer: &Dialer, request: Request) -> Result<Response, String> {
    let (mut upstream, path) = match request.is_own_identity {
        true => dialer.own_identity(&request.url).await.map_err(|error| internal_call::spoken(error.class()))?,
        false => {
            let (origin, path) = dialer.custom_url(&request.url).map_err(|rule| rule.to_string())?;
            // Fetches are rare: a connection of its own is simpler than one that may have died meanwhile.
            let upstream = dialer.connect(&origin, true).await;
            (upstream.map_err(|error| internal_call::spoken(error.class()))?, path)
        }
    };
    // The limit above comes first.
    upstream.set_timeouts(LIMIT * 2, LIMIT * 2);
    let head = head(&request, path.as_str())?;
    let status = internal_call::send(&mut upstream, head, Bytes::from(request.body)).await?;
    Ok(Response { status, body: internal_call::whole(&mut upstream, MAX_ANSWER).await? })
}

fn head(request: &Request, path: &str) -> Result<RequestHeader, String> {
    let mut head = RequestHeader::build(request.method, path.as_bytes(), Some(request.headers.len() + 2))
        .map_err(|_| "its path is not valid")?;
    let _ = head.insert_header(http::header::USER_AGENT, HeaderValue::from_static("portcullis"));
    // The dialer says whom it asks; a second `Host` would be one too many.
    for (name, value) in request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        let name = HeaderName::try_from(*name).map_err(|_| "a header of it is not valid")?;
        let mut value = HeaderValue::try_from(value).map_err(|_| "a header of it is not valid")?;
        value.set_sensitive(true);
        let _ = head.insert_header(name, value);
    }
    Ok(head)
}
