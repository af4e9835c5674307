//! The texts a server is set up with, from the options alone. Our settings stand in a file of their own, which
//! `postgresql.conf` includes: it is written anew at each start, and a developer's own edits survive.

use super::{Options, Purpose};
use std::fmt::Write as _;
use std::path::Path;

/// The line that makes Postgres read our file, and the file's name.
pub const INCLUDE: &str = "\ninclude 'portcullis.conf'\n";
pub const FILE: &str = "portcullis.conf";

/// No Unix socket at all: everybody comes by TCP, and a deep checkout cannot exceed a socket path's 107 bytes.
pub fn conf(options: &Options, port: u16, home: &Path) -> String {
    let mut text = format!("port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n");
    text += match options.purpose {
        Purpose::Run => "max_connections = 200\n",
        // A test database lives for seconds; losing it in a power cut is no loss.
        Purpose::Test => {
            "max_connections = 400\nfsync = off\nsynchronous_commit = off\nfull_page_writes = off\n\
             wal_level = minimal\nmax_wal_senders = 0\njit = off\n"
        }
    };
    if let Some(tls) = &options.tls {
        let home = quoted(home);
        let _ = writeln!(text, "ssl = on\nssl_cert_file = '{home}/server.crt'\nssl_key_file = '{home}/server.key'");
        if tls.client_authority.is_some() {
            let _ = writeln!(text, "ssl_ca_file = '{home}/client-ca.crt'");
        }
    }
    text
}

/// Passwords on every connection; a client certificate too when an authority for them is given.
pub fn hba(options: &Options) -> String {
    let wants_certificate = options.tls.as_ref().is_some_and(|tls| tls.client_authority.is_some());
    let (kind, extra) = if wants_certificate { ("hostssl", " clientcert=verify-ca") } else { ("host", "") };
    // SCRAM makes a client hash 4,096 times for each connection, and tests make tens of thousands of those.
    let method = match options.purpose {
        Purpose::Run => "scram-sha-256",
        Purpose::Test => "password",
    };
    format!("{kind} all all 127.0.0.1/32 {method}{extra}\n")
}

/// `initdb`'s argument for how passwords are stored. A password stored for SCRAM costs the server 4,096 hashes at each connection,
/// also where clients send it plainly: that was a fifth of the processor time of all tests.
pub fn stored_password(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Run => "--auth=scram-sha-256",
        Purpose::Test => "--auth=md5",
    }
}

fn quoted(path: &Path) -> String {
    path.to_string_lossy().replace('\'', "''")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::Tls;

    #[test]
    fn durability_is_given_up_for_tests_only() {
        let conf_for = |purpose| conf(&Options::new("x", purpose), 5000, Path::new("/h"));
        assert!(conf_for(Purpose::Test).contains("fsync = off"));
        assert!(!conf_for(Purpose::Run).contains("fsync"));
    }

    #[test]
    fn a_client_authority_makes_tls_and_a_certificate_mandatory() {
        let mut options = Options::new("x", Purpose::Test);
        assert_eq!(hba(&options), "host all all 127.0.0.1/32 password\n");
        options.tls = Some(Tls { certificate: "c".into(), key: "k".into(), client_authority: Some("a".into()) });
        assert_eq!(hba(&options), "hostssl all all 127.0.0.1/32 password clientcert=verify-ca\n");
        let run = Options::new("x", Purpose::Run);
        assert_eq!(hba(&run), "host all all 127.0.0.1/32 scram-sha-256\n");
        assert!(conf(&options, 5000, Path::new("/it's")).contains("ssl_ca_file = '/it''s/client-ca.crt'"));
    }
}
