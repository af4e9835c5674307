//! The five `DB_SSL` modes, by OpenSSL.
//!
//! | mode | without TLS | with any certificate | checks the authority | checks the name |
//! |---|---|---|---|---|
//! | DISABLED | always | never asked | – | – |
//! | PREFERRED | when the server has none | yes | no | no |
//! | REQUIRED | refused | yes | no | no |
//! | VERIFY_CA | refused | no | yes | no |
//! | VERIFY_IDENTITY | refused | no | yes | yes |
//!
//! To make a connector OpenSSL reads all authorities of the system, some 20 ms. So connections share one for as long as
//! settings and files are the same; a certificate that was replaced holds from the next connection on.

mod offer;

pub use offer::TlsOffer;

use super::DbError;
use crate::settings::{Database, DbSsl};
use openssl::error::ErrorStack;
use openssl::ssl::{SslConnector, SslFiletype, SslMethod, SslVerifyMode, SslVersion};
use openssl::x509::X509;
use openssl::x509::store::{X509Store, X509StoreBuilder};
use parking_lot::Mutex;
use postgres_openssl::MakeTlsConnector;
use sha2::{Digest as _, Sha256};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres::config::SslMode;

/// A process has one database.
static SHARED: Connectors = Connectors(Mutex::new(None));

/// The connector that was made last, and of what.
struct Connectors(Mutex<Option<(Fingerprint, Arc<MakeTlsConnector>)>>);

type Fingerprint = [u8; 32];

/// Whether to ask for TLS, and whether to go on without it. A URL may ask for more than `DB_SSL`, never for less.
pub fn mode(db_ssl: DbSsl, url: SslMode, setting: &'static str) -> Result<SslMode, DbError> {
    match (db_ssl, url) {
        (DbSsl::Disabled, SslMode::Require) => {
            let message = "asks for sslmode=require while DB_SSL is DISABLED; remove one of the two".into();
            Err(DbError::Setting { setting, message })
        }
        (DbSsl::Disabled, _) => Ok(SslMode::Disable),
        (DbSsl::Preferred, SslMode::Require) => Ok(SslMode::Require),
        (DbSsl::Preferred, _) => Ok(SslMode::Prefer),
        (DbSsl::Required | DbSsl::VerifyCa | DbSsl::VerifyIdentity, _) => Ok(SslMode::Require),
    }
}

/// What to check once TLS is spoken.
pub fn offer(settings: &Database) -> Result<TlsOffer, DbError> {
    SHARED.offer(settings)
}

impl Connectors {
    fn offer(&self, settings: &Database) -> Result<TlsOffer, DbError> {
        if settings.db_ssl == DbSsl::Disabled {
            return Ok(TlsOffer(None));
        }
        let wanted = fingerprint(settings)?;
        // Held while one is made, so that many connections at once do not make one each.
        let mut last = self.0.lock();
        if let Some((of, made)) = &*last
            && *of == wanted
        {
            return Ok(TlsOffer(Some(made.clone())));
        }
        let made = Arc::new(connector(settings)?);
        *last = Some((wanted, made.clone()));
        Ok(TlsOffer(Some(made)))
    }
}

/// Of everything a connector is made from, but for the system's authorities.
fn fingerprint(settings: &Database) -> Result<Fingerprint, DbError> {
    let mut all = Sha256::new_with_prefix([settings.db_ssl as u8]);
    for (setting, path) in [
        ("DB_SSL_CA", &settings.db_ssl_ca),
        ("DB_SSL_CERT", &settings.db_ssl_cert),
        ("DB_SSL_KEY", &settings.db_ssl_key),
    ] {
        let content = path.as_ref().map(|path| readable(setting, path)).transpose()?;
        all.update(content.map_or([0; 32], |content| Sha256::digest(content).into()));
    }
    Ok(all.finalize().into())
}

/// Files are read in every mode but DISABLED, so that a wrong path shows before the mode is tightened.
fn connector(settings: &Database) -> Result<MakeTlsConnector, DbError> {
    let failed = |setting| move |error: ErrorStack| DbError::Setting { setting, message: error.to_string() };
    let mut builder = SslConnector::builder(SslMethod::tls_client()).map_err(failed("DB_SSL"))?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2)).map_err(failed("DB_SSL"))?;
    if matches!(settings.db_ssl, DbSsl::Preferred | DbSsl::Required) {
        builder.set_verify(SslVerifyMode::NONE);
    }
    if let Some(path) = &settings.db_ssl_ca {
        builder.set_cert_store(authorities(path)?);
    }
    if let (Some(cert), Some(key)) = (&settings.db_ssl_cert, &settings.db_ssl_key) {
        builder.set_certificate_chain_file(cert).map_err(failed("DB_SSL_CERT"))?;
        builder.set_private_key_file(key, SslFiletype::PEM).map_err(failed("DB_SSL_KEY"))?;
        builder.check_private_key().map_err(failed("DB_SSL_KEY"))?;
    }
    let mut connector = MakeTlsConnector::new(builder.build());
    if settings.db_ssl == DbSsl::VerifyCa {
        connector.set_callback(|connection, _host| {
            connection.set_verify_hostname(false);
            Ok(())
        });
    }
    Ok(connector)
}

/// A store of these authorities alone: adding them to the system's would let any public authority vouch for the server.
fn authorities(path: &Path) -> Result<X509Store, DbError> {
    const SETTING: &str = "DB_SSL_CA";
    let failed = |message| DbError::Setting { setting: SETTING, message };
    let pem = readable(SETTING, path)?;
    let certificates = X509::stack_from_pem(&pem).map_err(|error| failed(error.to_string()))?;
    if certificates.is_empty() {
        return Err(failed(format!("{} holds no certificate", path.display())));
    }
    let mut store = X509StoreBuilder::new().map_err(|error| failed(error.to_string()))?;
    for certificate in certificates {
        store.add_cert(certificate).map_err(|error| failed(error.to_string()))?;
    }
    Ok(store.build())
}

fn readable(setting: &'static str, path: &Path) -> Result<Vec<u8>, DbError> {
    std::fs::read(path)
        .map_err(|error| DbError::Setting { setting, message: format!("cannot read {}: {error}", path.display()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use DbSsl::{Disabled, Preferred, Required, VerifyCa, VerifyIdentity};
    use openssl::asn1::Asn1Time;
    use openssl::hash::MessageDigest;
    use openssl::pkey::PKey;

    #[test]
    fn a_url_can_tighten_the_mode_and_never_loosen_it() {
        for (db_ssl, url, expected) in [
            (Disabled, SslMode::Prefer, Some(SslMode::Disable)),
            (Disabled, SslMode::Require, None),
            (Preferred, SslMode::Disable, Some(SslMode::Prefer)),
            (Preferred, SslMode::Prefer, Some(SslMode::Prefer)),
            (Preferred, SslMode::Require, Some(SslMode::Require)),
            (Required, SslMode::Disable, Some(SslMode::Require)),
            (VerifyCa, SslMode::Prefer, Some(SslMode::Require)),
            (VerifyIdentity, SslMode::Disable, Some(SslMode::Require)),
        ] {
            assert_eq!(mode(db_ssl, url, "DATABASE_URL").ok(), expected, "{db_ssl:?} {url:?}");
        }
    }

    fn settings(db_ssl: DbSsl) -> Database {
        Database {
            database_url: String::new(),
            database_listen_url: None,
            database_pool_size: 1,
            database_connect_timeout_ms: 1,
            database_statement_timeout_ms: 0,
            db_ssl,
            db_ssl_ca: None,
            db_ssl_cert: None,
            db_ssl_key: None,
        }
    }

    #[test]
    fn connections_share_a_connector_until_settings_or_files_change() {
        let connectors = Connectors(Mutex::default());
        let file = tempfile::NamedTempFile::new().unwrap();
        let with_file = |db_ssl| Database { db_ssl_ca: Some(file.path().to_owned()), ..settings(db_ssl) };
        let authority = || {
            let (key, day) = (PKey::generate_ed25519().unwrap(), Asn1Time::days_from_now(1).unwrap());
            let mut authority = X509::builder().unwrap();
            authority.set_not_before(&day).unwrap();
            authority.set_not_after(&day).unwrap();
            authority.set_pubkey(&key).unwrap();
            authority.sign(&key, MessageDigest::null()).unwrap();
            authority.build().to_pem().unwrap()
        };
        let made = |settings: &Database| connectors.offer(settings).unwrap().0.unwrap();
        let first = made(&settings(Required));
        assert!(Arc::ptr_eq(&first, &made(&settings(Required))));
        assert!(!Arc::ptr_eq(&first, &made(&settings(VerifyCa))), "another mode checks something else");
        std::fs::write(file.path(), authority()).unwrap();
        let first = made(&with_file(VerifyCa));
        assert!(Arc::ptr_eq(&first, &made(&with_file(VerifyCa))));
        std::fs::write(file.path(), authority()).unwrap();
        assert!(!Arc::ptr_eq(&first, &made(&with_file(VerifyCa))), "it trusts another authority now");
    }

    #[test]
    fn without_tls_nothing_is_made_or_read() {
        let gone = Some(Path::new("/nonexistent/file.pem").to_owned());
        let settings =
            Database { db_ssl_ca: gone.clone(), db_ssl_cert: gone.clone(), db_ssl_key: gone, ..settings(Disabled) };
        let connectors = Connectors(Mutex::default());
        assert!(connectors.offer(&settings).unwrap().0.is_none());
        assert!(connectors.0.lock().is_none());
    }

    #[test]
    fn a_missing_or_empty_file_is_named_together_with_its_setting() {
        let empty = Path::new("/dev/null");
        let gone = Path::new("/nonexistent/file.pem");
        let base = settings(VerifyCa);
        let both = |path: &Path| (Some(path.to_owned()), Some(path.to_owned()));
        for (settings, expected) in [
            (Database { db_ssl_ca: Some(gone.into()), ..base.clone() }, "DB_SSL_CA: cannot read /nonexistent/file.pem"),
            (Database { db_ssl_ca: Some(empty.into()), ..base.clone() }, "DB_SSL_CA: /dev/null holds no certificate"),
            (
                Database { db_ssl_cert: both(gone).0, db_ssl_key: both(gone).1, ..base.clone() },
                "DB_SSL_CERT: cannot read",
            ),
            (Database { db_ssl_cert: both(empty).0, db_ssl_key: both(empty).1, ..base.clone() }, "DB_SSL_CERT: "),
        ] {
            let error = offer(&settings).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
