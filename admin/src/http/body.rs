//! Request bodies: read whole before a handler runs, because they are small JSON and the audit trail keeps them;
//! bounded in size and time, because they come from outside.

use crate::http::ApiError;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use std::time::Duration;

const TIME: Duration = Duration::from_secs(60);

/// `limit` is the operation's own.
pub async fn receive(body: Body, headers: &HeaderMap, limit: usize) -> Result<Bytes, ApiError> {
    receive_within(body, headers, limit, TIME).await
}

/// For whom the usual time is too long.
pub async fn receive_within(body: Body, headers: &HeaderMap, limit: usize, time: Duration) -> Result<Bytes, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        discard(body);
        return Err(ApiError::TooLarge { limit });
    }
    let late = |_| Err(ApiError::invalid("The body did not arrive in time"));
    tokio::time::timeout(time, collect(body, limit)).await.unwrap_or_else(late)
}

async fn collect(mut body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(ApiError::invalid("The body broke off")) };
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limit - whole.len() {
            discard(body);
            return Err(ApiError::TooLarge { limit });
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Reads and forgets what a refused request is still sending. Closing at once would make the kernel reset the
/// connection, and the client would see that instead of the refusal.
pub fn discard(mut body: Body) {
    const MAX_DISCARDED: usize = 64 << 20;
    const MAX_TIME: Duration = Duration::from_secs(5);
    if axum::body::HttpBody::is_end_stream(&body) {
        return;
    }
    tokio::spawn(tokio::time::timeout(MAX_TIME, async move {
        let mut seen = 0;
        while let Some(Ok(frame)) = body.frame().await {
            seen += frame.data_ref().map_or(0, Bytes::len);
            if seen > MAX_DISCARDED {
                break;
            }
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use futures::stream;

    async fn received(body: Body, announced: Option<&'static str>) -> Result<usize, u16> {
        let mut headers = HeaderMap::new();
        if let Some(length) = announced {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static(length));
        }
        let whole = receive_within(body, &headers, 10, Duration::from_millis(50)).await;
        whole.map(|bytes| bytes.len()).map_err(|error| error.status().as_u16())
    }

    fn chunks(sizes: &[usize]) -> Body {
        let chunks: Vec<_> = sizes.iter().map(|size| Ok::<_, std::io::Error>(vec![b'x'; *size])).collect();
        Body::from_stream(stream::iter(chunks))
    }

    #[tokio::test]
    async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
        assert_eq!(received(chunks(&[5, 5]), None).await, Ok(10));
        assert_eq!(received(chunks(&[5, 6]), None).await, Err(413));
        assert_eq!(received(chunks(&[11]), Some("11")).await, Err(413));
        assert_eq!(received(Body::empty(), None).await, Ok(0));
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_or_stalls_is_the_senders_fault() {
        let broken = Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]));
        assert_eq!(received(broken, None).await, Err(400));
        let stalled = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(received(stalled, None).await, Err(400));
    }
}
