//! May a request be sent again? Only when the provider cannot have worked on it: somebody would pay twice. What can be
//! known is what a provider says itself (HTTP/2), and what its machine has taken from us (HTTP/1).

use super::error::Class;
use h2::Reason;
use pingora_core::Error;
use pingora_core::protocols::l4::ext::get_tcp_info;
use std::os::fd::RawFd;

/// The provider says that it did nothing with this stream: it refused it, or it went away and the stream is above the
/// last one it took (of those below h2 says only that the connection ended).
pub fn is_unprocessed(error: &Error) -> bool {
    let fault = error.root_cause().downcast_ref::<h2::Error>();
    fault.is_some_and(|fault| {
        let is_refused = fault.is_reset() && fault.reason() == Some(Reason::REFUSED_STREAM);
        fault.is_remote() && (is_refused || fault.is_go_away())
    })
}

/// How a request had gone when its connection failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendProgress {
    /// The connection had carried another before.
    pub is_reused: bool,
    pub is_written: bool,
    /// Something of an answer came.
    pub has_heard: bool,
}

impl SendProgress {
    /// Whether the provider cannot have read the whole request. `is_taken` tells whether its machine has taken all of it,
    /// and is asked only when that decides.
    pub fn is_unread(self, class: Class, is_taken: impl FnOnce() -> bool) -> bool {
        self.is_reused && class == Class::Reset && !self.has_heard && (!self.is_written || !is_taken())
    }
}

/// Whether the other end's kernel has acknowledged every byte that was written. A connection that it had closed
/// acknowledges nothing more; what it acknowledged may have been read.
pub(super) fn is_acknowledged(socket: RawFd) -> bool {
    // Unknown counts as taken.
    let Ok(info) = get_tcp_info(socket) else { return true };
    let sent = info.tcpi_bytes_sent.saturating_sub(info.tcpi_bytes_retrans);
    // The opening of a connection counts as one byte acknowledged, and none sent.
    info.tcpi_notsent_bytes == 0 && info.tcpi_bytes_acked.saturating_sub(1) >= sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn what_arrived_at_an_open_connection_counts_as_taken_and_what_met_a_closed_one_does_not() {
        let (mut client, mut server) = pair();
        client.write_all(b"first").unwrap();
        server.read_exact(&mut [0; 5]).unwrap();
        server.write_all(b"!").unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
        client.write_all(b"second").unwrap();
        server.read_exact(&mut [0; 6]).unwrap();
        // The end of the connection says what had come until then.
        drop(server);
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        assert!(is_acknowledged(client.as_raw_fd()));

        let (mut client, mut server) = pair();
        client.write_all(b"first").unwrap();
        server.read_exact(&mut [0; 5]).unwrap();
        drop(server);
        client.write_all(b"second").unwrap();
        // The end, then a reset.
        while client.read(&mut [0; 1]).is_ok_and(|read| read > 0) {}
        assert!(!is_acknowledged(client.as_raw_fd()));
    }

    #[test]
    fn only_a_wordless_end_of_an_old_connection_leaves_a_request_unread() {
        for (is_reused, class, is_written, has_heard, is_taken, expected) in [
            (true, Class::Reset, true, false, false, true),
            (true, Class::Reset, true, false, true, false),
            (true, Class::Reset, false, false, true, true),
            (true, Class::Reset, false, true, false, false),
            (true, Class::Reset, true, true, false, false),
            (false, Class::Reset, true, false, false, false),
            (false, Class::Reset, false, false, false, false),
            (true, Class::FirstByteTimeout, true, false, false, false),
            (true, Class::WriteTimeout, false, false, false, false),
            (true, Class::Protocol, true, false, false, false),
        ] {
            let progress = SendProgress { is_reused, is_written, has_heard };
            assert_eq!(progress.is_unread(class, || is_taken), expected, "{progress:?} {class:?} taken {is_taken}");
        }
    }
}
