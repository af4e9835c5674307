//! The five `DB_SSL` modes, by OpenSSL.
//!
//! | mode | without TLS | with any certificate | checks the authority | checks the name |
//! |---|---|---|---|---|
//! | DISABLED | always | never asked | – | – |
//! | PREFERRED | when the server has none | yes | no | no |
//! | REQUIRED | refused | yes | no | no |
//! | VERIFY_CA | refused | no | yes | no |
//! | VERIFY_IDENTITY | refused | no | yes | yes |

use super::DbError;
use crate::conf::{Database, DbSsl};
use openssl::error::ErrorStack;
use openssl::ssl::{SslConnector, SslFiletype, SslMethod, SslVerifyMode, SslVersion};
use openssl::x509::X509;
use openssl::x509::store::{X509Store, X509StoreBuilder};
use postgres_openssl::MakeTlsConnector;
use std::path::Path;
use tokio_postgres::config::SslMode;

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
pub fn connector(settings: &Database) -> Result<MakeTlsConnector, DbError> {
    let failed = |setting| move |error: ErrorStack| DbError::Setting { setting, message: error.to_string() };
    let mut builder = SslConnector::builder(SslMethod::tls_client()).map_err(failed("DB_SSL"))?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2)).map_err(failed("DB_SSL"))?;
    if matches!(settings.db_ssl, DbSsl::Disabled | DbSsl::Preferred | DbSsl::Required) {
        builder.set_verify(SslVerifyMode::NONE);
    }
    // Files are read in every mode but DISABLED, so that a wrong path shows before the mode is tightened.
    if settings.db_ssl != DbSsl::Disabled {
        if let Some(path) = &settings.db_ssl_ca {
            builder.set_cert_store(authorities(path)?);
        }
        if let (Some(cert), Some(key)) = (&settings.db_ssl_cert, &settings.db_ssl_key) {
            readable("DB_SSL_CERT", cert)?;
            readable("DB_SSL_KEY", key)?;
            builder.set_certificate_chain_file(cert).map_err(failed("DB_SSL_CERT"))?;
            builder.set_private_key_file(key, SslFiletype::PEM).map_err(failed("DB_SSL_KEY"))?;
            builder.check_private_key().map_err(failed("DB_SSL_KEY"))?;
        }
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

    #[test]
    fn a_missing_or_empty_file_is_named_together_with_its_setting() {
        let empty = Path::new("/dev/null");
        let gone = Path::new("/nonexistent/file.pem");
        let base = Database {
            database_url: String::new(),
            database_listen_url: None,
            database_pool_size: 1,
            database_connect_timeout_ms: 1,
            db_ssl: VerifyCa,
            db_ssl_ca: None,
            db_ssl_cert: None,
            db_ssl_key: None,
        };
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
            let error = connector(&settings).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
