//! Connections that were accepted and have shown no request yet. A process that leaves waits for them a moment: their
//! clients were let in, and cannot know that nobody will read what they are about to send.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// How long a process that leaves waits for a first request: clients, networks and machines are busy at times.
pub const FIRST_REQUEST: Duration = Duration::from_secs(5);

/// Of the process, as the drain asks for all of them.
static COUNT: AtomicUsize = AtomicUsize::new(0);

pub fn count() -> usize {
    COUNT.load(Relaxed)
}

/// Counts until its first request comes or the connection goes.
#[derive(Debug)]
pub struct FreshConnection(AtomicBool);

impl FreshConnection {
    /// HTTP/2 tells its clients what it will not serve any more: such a connection never counts.
    pub fn new(is_http2: bool) -> Self {
        if !is_http2 {
            COUNT.fetch_add(1, Relaxed);
        }
        Self(AtomicBool::new(!is_http2))
    }

    pub fn is_fresh(&self) -> bool {
        self.0.load(Relaxed)
    }

    pub fn begin_request(&self) {
        if self.0.load(Relaxed) && self.0.swap(false, Relaxed) {
            COUNT.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for FreshConnection {
    fn drop(&mut self) {
        self.begin_request();
    }
}
