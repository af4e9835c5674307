//! Streams that clients are about to listen to. A client opens one and calls a tool without waiting for it; a server that
//! wants something of the client for that call says so over the stream, or, while there is none, to nobody. The two come
//! over different connections, so a call that overtook its stream would lose what the server asks. Calls therefore wait for
//! the stream of their session, if one is being opened here.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// From the moment that a stream was asked for. Some servers say nothing of a stream until there is something to hear.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// By the server and its own id of the session.
type StreamKey = (Uuid, Box<[u8]>);

#[derive(Debug, Default)]
pub struct OpeningStreams {
    all: Mutex<HashMap<StreamKey, Opening>>,
    /// How many there are, so that calls take no lock while there are none.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Opening {
    until: Instant,
    /// Dropped once the server has answered.
    open: watch::Sender<()>,
}

impl OpeningStreams {
    /// A stream is being opened until what is returned is dropped.
    pub fn begin(&self, server: Uuid, session: &[u8]) -> OpeningStream<'_> {
        let (open, seen) = watch::channel(());
        let key = (server, Box::from(session));
        let opening = Opening { until: Instant::now() + MAX_WAIT, open };
        let mut all = self.all.lock();
        all.insert(key.clone(), opening);
        self.count.store(all.len(), Ordering::Release);
        OpeningStream { streams: self, key, seen }
    }

    /// Waits for the stream of a session, if one is being opened.
    pub async fn settled(&self, server: Uuid, session: &[u8]) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let opening = {
            let all = self.all.lock();
            all.get(&(server, Box::from(session))).map(|opening| (opening.open.subscribe(), opening.until))
        };
        if let Some((mut open, until)) = opening {
            let _ = timeout_at(until, open.changed()).await;
        }
    }
}

#[derive(Debug)]
pub struct OpeningStream<'a> {
    streams: &'a OpeningStreams,
    key: StreamKey,
    seen: watch::Receiver<()>,
}

impl Drop for OpeningStream<'_> {
    fn drop(&mut self) {
        let mut all = self.streams.all.lock();
        // Another of the same session may have taken its place.
        if all.get(&self.key).is_some_and(|opening| opening.open.subscribe().same_channel(&self.seen)) {
            all.remove(&self.key);
            self.streams.count.store(all.len(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const SERVER: Uuid = Uuid::from_u128(1);

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_the_stream_of_its_session_and_for_no_other() {
        let streams = OpeningStreams::default();
        let first = streams.begin(SERVER, b"one");
        for (server, session, waits) in
            [(SERVER, b"one", true), (SERVER, b"two", false), (Uuid::from_u128(2), b"one", false)]
        {
            assert_eq!(streams.settled(server, session).now_or_never().is_none(), waits, "{server} {session:?}");
        }
        let second = streams.begin(SERVER, b"one");
        drop(first);
        assert!(streams.settled(SERVER, b"one").now_or_never().is_none(), "the second is being opened still");
        let mut waiting = Box::pin(streams.settled(SERVER, b"one"));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(second);
        assert!(waiting.now_or_never().is_some());
        assert!(streams.all.lock().is_empty());
        assert_eq!(streams.count.load(Ordering::Acquire), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stays_silent_is_not_waited_for_again_and_again() {
        let (streams, began) = (OpeningStreams::default(), Instant::now());
        let _silent = streams.begin(SERVER, b"one");
        streams.settled(SERVER, b"one").await;
        streams.settled(SERVER, b"one").await;
        assert_eq!(began.elapsed(), MAX_WAIT);
    }
}
