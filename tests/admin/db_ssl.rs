//! `DB_SSL`: each mode against each kind of server, by the pool, a plain and a direct connection alike.

mod server;

use bench::mock::Authority;
use server::Postgres;
use shared::db::{self, DbError};
use shared::settings::{Database, DbSsl};
use std::path::PathBuf;
use tempfile::TempDir;

const MODES: [DbSsl; 5] = [DbSsl::Disabled, DbSsl::Preferred, DbSsl::Required, DbSsl::VerifyCa, DbSsl::VerifyIdentity];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Plain,
    Tls,
    /// With a message that says this.
    Refused(&'static str),
}
use Outcome::{Plain, Refused, Tls};

#[tokio::test]
async fn each_mode_accepts_exactly_the_servers_it_should() {
    let folder = Files::new();
    let (ours, foreign) = (Authority::new().unwrap(), Authority::new().unwrap());
    let (our_ca, foreign_ca) = (folder.write(&ours.pem().unwrap()), folder.write(&foreign.pem().unwrap()));
    let encrypted = Postgres::with_tls(&ours.issue(&["db.example"]).unwrap(), None).await;
    let plain = Postgres::without_tls().await;
    let (name, authority) = (Refused("ostname mismatch"), Refused("certificate verify failed"));
    let no_tls = Refused("server does not support TLS");
    for (server, host, ca, expected) in [
        (&encrypted, "db.example", &our_ca, [Plain, Tls, Tls, Tls, Tls]),
        (&encrypted, "other.example", &our_ca, [Plain, Tls, Tls, Tls, name]),
        (&encrypted, "db.example", &foreign_ca, [Plain, Tls, Tls, authority, authority]),
        (&plain, "db.example", &our_ca, [Plain, Plain, no_tls, no_tls, no_tls]),
    ] {
        for (mode, expected) in MODES.into_iter().zip(expected) {
            let settings = Database { db_ssl_ca: Some(ca.clone()), ..settings(server.url(host), mode) };
            assert_outcome(server, &settings, expected).await;
        }
    }
}

#[tokio::test]
async fn without_a_file_the_authorities_of_the_system_decide() {
    let ours = Authority::new().unwrap();
    let encrypted = Postgres::with_tls(&ours.issue(&["db.example"]).unwrap(), None).await;
    for (mode, expected) in [(DbSsl::Required, Tls), (DbSsl::VerifyCa, Refused("certificate verify failed"))] {
        assert_outcome(&encrypted, &settings(encrypted.url("db.example"), mode), expected).await;
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_demands_one() {
    let folder = Files::new();
    let ours = Authority::new().unwrap();
    let us = ours.issue(&["gateway"]).unwrap();
    let strangers = Authority::new().unwrap().issue(&["gateway"]).unwrap();
    let authority = ours.pem().unwrap();
    let server = Postgres::with_tls(&ours.issue(&["db.example"]).unwrap(), Some(&authority)).await;
    let verified = Database {
        db_ssl_ca: Some(folder.write(&authority)),
        ..settings(server.url("db.example"), DbSsl::VerifyIdentity)
    };
    for (identity, expected) in [(Some(&us), Tls), (Some(&strangers), Refused("")), (None, Refused(""))] {
        let settings = Database {
            db_ssl_cert: identity.map(|identity| folder.write(&identity.cert_pem)),
            db_ssl_key: identity.map(|identity| folder.write(&identity.key_pem)),
            ..verified.clone()
        };
        assert_outcome(&server, &settings, expected).await;
    }
    let torn = Database {
        db_ssl_cert: Some(folder.write(&us.cert_pem)),
        db_ssl_key: Some(folder.write(&strangers.key_pem)),
        ..verified
    };
    let error = db::connect(&torn).await.err().unwrap().to_string();
    assert!(error.starts_with("DB_SSL_KEY"), "{error}");
}

#[tokio::test]
async fn migrations_run_over_a_verified_connection() {
    let folder = Files::new();
    let ours = Authority::new().unwrap();
    let server = Postgres::with_tls(&ours.issue(&["db.example"]).unwrap(), None).await;
    let settings = Database {
        db_ssl_ca: Some(folder.write(&ours.pem().unwrap())),
        ..settings(server.url("db.example"), DbSsl::VerifyIdentity)
    };
    let mut client = db::connect_direct(&settings).await.unwrap();
    let applied = db::migrate::run(&mut client).await.unwrap();
    assert!(!applied.migrations.is_empty());
    assert_eq!(db::migrate::check(&client).await.unwrap(), db::migrate::SchemaState::Known);
}

/// The pool, a connection and a direct connection must agree.
async fn assert_outcome(server: &Postgres, settings: &Database, expected: Outcome) {
    let pool = db::pool(settings).await;
    let pooled = match &pool {
        Ok(pool) => Ok(server.is_encrypted(&pool.get().await.unwrap()).await),
        Err(error) => Err(error),
    };
    let (one, direct) = (db::connect(settings).await, db::connect_direct(settings).await);
    let mut seen = vec![pooled];
    for client in [&one, &direct] {
        seen.push(match client {
            Ok(client) => Ok(server.is_encrypted(client).await),
            Err(error) => Err(error),
        });
    }
    for seen in seen {
        match (seen, expected) {
            (Ok(false), Plain) | (Ok(true), Tls) => {}
            // A refusal is the server's or the certificate's own, not the end of a wait.
            (Err(error @ DbError::Connect { .. }), Refused(why)) if error.to_string().contains(why) => {}
            (seen, _) => panic!("{:?}: expected {expected:?}, but {seen:?}", settings.db_ssl),
        }
    }
}

fn settings(url: String, db_ssl: DbSsl) -> Database {
    Database {
        database_url: url,
        database_listen_url: None,
        database_pool_size: 2,
        database_connect_timeout_ms: 10_000,
        database_statement_timeout_ms: 0,
        db_ssl,
        db_ssl_ca: None,
        db_ssl_cert: None,
        db_ssl_key: None,
    }
}

/// PEM files that vanish with the test.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, pem: &str) -> PathBuf {
        let path = self.0.path().join(format!("{}.pem", uuid::Uuid::new_v4()));
        std::fs::write(&path, pem).unwrap();
        path
    }
}
