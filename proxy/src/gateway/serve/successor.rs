//! Whether a new process waits for our listening sockets. Pingora leaves after SIGQUIT also when nobody took them, so
//! a successor that died of a wrong setting would end the service; we ask first. A successor waits there only when it
//! is ready to serve (`take_over`), so this alone decides when we leave.
//!
//! Connecting would use up the one connection that the successor accepts, so the kernel is asked who listens.

use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The flag of a Unix socket that listens, in the kernel's table.
const LISTENS: &str = "00010000";

/// Resolves once somebody listens on the socket of hand-overs.
pub async fn waits(socket: &Path) {
    while !is_listening(socket) {
        sleep(LOOK_EVERY).await;
    }
}

fn is_listening(socket: &Path) -> bool {
    // The table has paths as they were given, so a relative one may be another folder's; the file is in ours. Where the
    // table cannot be read, the file must do.
    socket.exists()
        && std::fs::read_to_string("/proc/net/unix").map_or(true, |table| lists(&table, &socket.to_string_lossy()))
}

/// Lines of the table: address, references, protocol, flags, type, state, inode, path. Only the path may hold spaces.
fn lists(table: &str, path: &str) -> bool {
    table.lines().any(|line| {
        let mut columns = line.split_whitespace();
        let is_listener = columns.nth(3) == Some(LISTENS);
        is_listener && line.strip_suffix(path).is_some_and(|rest| rest.ends_with(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listener_at_that_very_path_counts() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 20573 /run/a/upgrade.sock\n\
                     0000000000000000: 00000003 00000000 00000000 0001 03 20574 /run/b/upgrade.sock\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 20575 /run/a b/upgrade.sock\n";
        for (path, expected) in [
            ("/run/a/upgrade.sock", true),
            ("/run/a b/upgrade.sock", true),
            ("upgrade.sock", false),
            ("/run/b/upgrade.sock", false),
            ("/run/c/upgrade.sock", false),
        ] {
            assert_eq!(lists(table, path), expected, "{path}");
        }
    }

    #[tokio::test]
    async fn a_file_that_an_aborted_hand_over_left_is_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upgrade.sock");
        assert!(!is_listening(&path));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        waits(&path).await;
        drop(listener);
        assert!(path.exists() && !is_listening(&path), "the file stays, the listener does not");
    }
}
