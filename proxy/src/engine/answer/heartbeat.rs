//! Heartbeats, for configs that ask for them: while nothing else is to be said, a comment in the event stream now and
//! then, so that nobody on the way takes a silent connection for a dead one.
//!
//! The first may have to go out before there is an answer. The client then has a head that says 200 and nothing but
//! comments: another attempt may still take its place, and a failure is told as an event.

use super::Ended;
use crate::context::Visit;
use crate::net::downstream::Downstream;
use bytes::Bytes;
use http::{HeaderValue, header};
use pingora_http::ResponseHeader;
use std::future::{Future, pending};
use std::time::Duration;

const COMMENT: &[u8] = b": heartbeat\n\n";

/// Waits for some work, pinned where it stands, unless the client leaves first. The error ends everything at once.
pub async fn with_heartbeats<T>(
    client: &mut impl Downstream,
    visit: &mut Visit,
    mut work: impl Future<Output = T> + Unpin,
) -> Result<T, Ended> {
    loop {
        let every = visit.answer.pulse.every;
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = client.gone() => return Err(Ended::ClientGone),
            () = silence(every) => {}
        }
        Box::pin(beat(client, visit)).await?;
    }
}

/// One heartbeat, with a head before it if there was none yet.
async fn beat(client: &mut impl Downstream, visit: &mut Visit) -> Result<(), Ended> {
    if !visit.answer.pulse.has_begun {
        let head = own_head(visit);
        client.write_head(head).await?;
        visit.answer.pulse.has_begun = true;
    }
    client.write_body(Bytes::from_static(COMMENT), false).await?;
    Ok(())
}

async fn silence(every: Option<Duration>) {
    match every {
        Some(every) => tokio::time::sleep(every).await,
        None => pending().await,
    }
}

/// The head of a stream that begins before its answer does.
fn own_head(visit: &mut Visit) -> ResponseHeader {
    let mut head = ResponseHeader::build_no_case(200, Some(12)).expect("200 is a status");
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    let _ = head.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    visit.answer.status = 200;
    visit.warn_of_deprecated_model();
    visit.stamp(&mut head);
    head
}
