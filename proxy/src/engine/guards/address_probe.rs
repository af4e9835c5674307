//! Whether an address that somebody named in a text is there: its head is asked for, or its name resolved, under the dialer's
//! rules. An address that may not be called is not there. Redirects are answers, and are not followed.

use crate::net::dial::{Dialer, Origin, UpstreamRequest};
use bytes::Bytes;
use http::{HeaderValue, Method, header};
use std::time::{Duration, Instant};

/// For one address.
const LIMIT: Duration = Duration::from_secs(3);

pub async fn is_there(dialer: &Dialer, url: &str, only_name: bool, deadline: Instant) -> bool {
    let limit = deadline.min(Instant::now() + LIMIT);
    let looking = async {
        match only_name {
            true => resolves(dialer, url).await,
            false => answers(dialer, url).await.unwrap_or(false),
        }
    };
    tokio::time::timeout_at(limit.into(), looking).await.unwrap_or(false)
}

async fn resolves(dialer: &Dialer, url: &str) -> bool {
    match Origin::parse(url.split(['?', '#']).next().unwrap_or(url)) {
        Ok(origin) => dialer.resolves(&origin).await,
        Err(_) => false,
    }
}

/// None for what cannot be asked.
async fn answers(dialer: &Dialer, url: &str) -> Option<bool> {
    // Without its query: whoever wrote the text would be told what it says.
    let (origin, path) = dialer.custom_url(url.split(['?', '#']).next()?).ok()?;
    // Not one of the pool: nothing says when an answer without a body is over.
    let mut upstream = dialer.connect(&origin, true).await.ok()?;
    upstream.set_timeouts(LIMIT, LIMIT);
    let mut request = UpstreamRequest::new(Method::HEAD, path.as_str().to_owned())?;
    request.put(header::USER_AGENT, HeaderValue::from_static("portcullis"));
    request.put(header::ACCEPT, HeaderValue::from_static("*/*"));
    upstream.send(request, Bytes::new()).await.ok()?;
    upstream.read_head().await.ok()?;
    let status = upstream.head().status;
    Some(status.is_success() || status.is_redirection())
}
