//! The way to Postgres: a pool for queries, single connections for migrations and LISTEN, TLS as `DB_SSL` says.
//!
//! bb8 hides why it cannot connect until its wait is over, so the pool is made only after one plain connection has
//! succeeded: a wrong certificate or password stops the start at once, with its own message.

pub mod limit_intents;
pub mod migrate;
pub mod request_logs;
pub mod table;
mod tls;
pub mod usage_slots;

use crate::settings;
use bb8_postgres::PostgresConnectionManager;
use postgres_openssl::TlsStream;
use std::time::Duration;
use tokio_postgres::config::{Config, Host};
use tokio_postgres::{Client, Socket};

pub type Pool = bb8::Pool<PostgresConnectionManager<tls::TlsOffer>>;

/// A connection on loan.
pub type Pooled<'a> = bb8::PooledConnection<'a, PostgresConnectionManager<tls::TlsOffer>>;

/// A connection that nobody drives yet: its owner polls it, and so sees the notices of LISTEN.
pub type Connection = tokio_postgres::Connection<Socket, TlsStream<Socket>>;

#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The cause is left out unless it is known to quote nothing: a misplaced character makes the parser take a
    /// piece of the password for an option and name it.
    #[error(
        "{setting} is not a Postgres URL (postgres://user:password@host:port/database, with special characters percent-encoded){detail}"
    )]
    Url { setting: &'static str, detail: String },
    #[error("{setting}: {message}")]
    Setting { setting: &'static str, message: String },
    #[error("cannot connect to Postgres at {address}: {}", explain(cause))]
    Connect { address: String, cause: tokio_postgres::Error },
    #[error("Postgres at {address} did not answer within {} ms", waited.as_millis())]
    Timeout { address: String, waited: Duration },
    #[error("the pool could not be filled: {}", explain(.0))]
    Pool(tokio_postgres::Error),
}

/// Whether the settings could lead to a Postgres at all: URLs, modes and certificates are read, nobody is called.
pub fn check(settings: &settings::Database) -> Result<(), DbError> {
    Target::from_settings(settings, Url::Main)?;
    Target::from_settings(settings, Url::Direct)?;
    Ok(())
}

/// Makes the pool. Fails at once, with the real reason, when Postgres cannot be reached with these settings.
pub async fn pool(settings: &settings::Database) -> Result<Pool, DbError> {
    connect(settings).await?;
    let target = Target::from_settings(settings, Url::Main)?.bounded(settings);
    bb8::Pool::builder()
        .max_size(settings.database_pool_size.max(1))
        .connection_timeout(target.timeout)
        .error_sink(Box::new(LogFailures))
        .build(PostgresConnectionManager::new(target.config, target.tls))
        .await
        .map_err(DbError::Pool)
}

/// One connection, driven by a task of its own until the client is dropped.
pub async fn connect(settings: &settings::Database) -> Result<Client, DbError> {
    let (client, connection) = Target::from_settings(settings, Url::Main)?.connect().await?;
    drive(connection);
    Ok(client)
}

/// As `connect`, but past a transaction pooler when `DATABASE_LISTEN_URL` names a way: for what needs a session of
/// its own, such as the lock that migrations take.
pub async fn connect_direct(settings: &settings::Database) -> Result<Client, DbError> {
    let (client, connection) = connect_listen(settings).await?;
    drive(connection);
    Ok(client)
}

/// A direct connection for LISTEN. Nothing happens on it until the caller polls the second half (`poll_message`).
pub async fn connect_listen(settings: &settings::Database) -> Result<(Client, Connection), DbError> {
    Target::from_settings(settings, Url::Direct)?.connect().await
}

/// The whole chain of causes: the driver's own text for most failures is just "db error".
pub fn explain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

fn drive(connection: Connection) {
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(error = explain(&error), "a connection to Postgres ended");
        }
    });
}

#[derive(Clone, Copy)]
enum Url {
    Main,
    Direct,
}

const ONE_CORE: &str = "-c max_parallel_workers_per_gather=0";

/// The settings, understood.
struct Target {
    config: Config,
    tls: tls::TlsOffer,
    timeout: Duration,
}

impl Target {
    fn from_settings(settings: &settings::Database, url: Url) -> Result<Self, DbError> {
        let (setting, url) = match (url, &settings.database_listen_url) {
            (Url::Direct, Some(url)) => ("DATABASE_LISTEN_URL", url),
            _ => ("DATABASE_URL", &settings.database_url),
        };
        let timeout = Duration::from_millis(settings.database_connect_timeout_ms.max(1));
        let mut config = parse_url(setting, url)?;
        config.ssl_mode(tls::mode(settings.db_ssl, config.get_ssl_mode(), setting)?);
        config.connect_timeout(timeout);
        // A peer that vanished without a word is noticed in about a minute, not in two hours.
        config.keepalives(true).keepalives_idle(Duration::from_secs(30));
        config.keepalives_interval(Duration::from_secs(10)).keepalives_retries(3);
        if config.get_application_name().is_none() {
            config.application_name("portcullis");
        }
        Ok(Self { config, tls: tls::offer(settings)?, timeout })
    }

    /// With a bound for each statement, and none takes more than one core of the database: whoever searches must not slow
    /// those down who write. As parameters of the session, so that no statement can be sent without them; a transaction
    /// pooler would refuse that, or hand the session to somebody else.
    fn bounded(mut self, settings: &settings::Database) -> Self {
        if settings.database_listen_url.is_some() {
            return self;
        }
        let given = self.config.get_options().map(|given| format!("{given} ")).unwrap_or_default();
        let longest = match settings.database_statement_timeout_ms {
            0 => String::new(),
            longest => format!("-c statement_timeout={longest} "),
        };
        self.config.options(format!("{given}{longest}{ONE_CORE}"));
        self
    }

    async fn connect(self) -> Result<(Client, Connection), DbError> {
        let address = address(&self.config);
        // The driver's own timeout covers TCP only; a silent server would hold the TLS or login exchange for ever.
        match tokio::time::timeout(self.timeout, self.config.connect(self.tls)).await {
            Ok(Ok(both)) => Ok(both),
            Ok(Err(cause)) => Err(DbError::Connect { address, cause }),
            Err(_) => Err(DbError::Timeout { address, waited: self.timeout }),
        }
    }
}

fn parse_url(setting: &'static str, url: &str) -> Result<Config, DbError> {
    match url.parse::<Config>() {
        Ok(config) if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() => {
            Err(DbError::Url { setting, detail: ": it names no host".into() })
        }
        Ok(config) => Ok(config),
        Err(error) => {
            let cause = error.into_source().map(|cause| cause.to_string()).unwrap_or_default();
            let quotes_nothing = cause.starts_with("invalid value for option");
            Err(DbError::Url { setting, detail: if quotes_nothing { format!(": {cause}") } else { String::new() } })
        }
    }
}

/// Where we connect to, for messages: hosts and ports, never user or password.
fn address(config: &Config) -> String {
    let names = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let mut names: Vec<String> = names.collect();
    if names.is_empty() {
        names = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let ports = config.get_ports();
    let with_port = names.iter().enumerate().map(|(i, name)| {
        let port = ports.get(i).or(ports.first()).copied().unwrap_or(5432);
        format!("{name}:{port}")
    });
    with_port.collect::<Vec<_>>().join(",")
}

/// bb8 retries quietly; this says why.
#[derive(Debug, Clone, Copy)]
struct LogFailures;

impl bb8::ErrorSink<tokio_postgres::Error> for LogFailures {
    fn sink(&self, error: tokio_postgres::Error) {
        tracing::warn!(error = explain(&error), "the pool could not connect to Postgres");
    }

    fn boxed_clone(&self) -> Box<dyn bb8::ErrorSink<tokio_postgres::Error>> {
        Box::new(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> settings::Database {
        settings::Database {
            database_url: url.into(),
            database_listen_url: None,
            database_pool_size: 2,
            database_connect_timeout_ms: 300,
            database_statement_timeout_ms: 0,
            db_ssl: settings::DbSsl::Preferred,
            db_ssl_ca: None,
            db_ssl_cert: None,
            db_ssl_key: None,
        }
    }

    #[test]
    fn no_error_about_a_url_repeats_any_part_of_its_password() {
        for url in [
            "postgres://user:p@hun?ter2=x@host/db",
            "postgres://user:hunter2@host:port/db",
            "postgres://user:hunter2@host/db?nosuch=hunter2",
            "postgres://user:hunter2@host/db?sslmode=verify-full",
            "user=u password='hunter2",
            "hunter2",
            "",
        ] {
            let error = Target::from_settings(&settings(url), Url::Main).err().unwrap();
            for text in [error.to_string(), format!("{error:?}")] {
                assert!(!text.contains("ter2"), "{url}: {text}");
            }
            assert!(error.to_string().contains("DATABASE_URL"), "{error}");
        }
    }

    #[test]
    fn an_address_names_every_host_with_its_port() {
        for (url, expected) in [
            ("postgres://u:p@db.example/x", "db.example:5432"),
            ("postgres://u:p@a:1,b:2/x", "a:1,b:2"),
            ("host=/run/postgresql user=u", "/run/postgresql:5432"),
            ("hostaddr=10.0.0.1 port=7 user=u", "10.0.0.1:7"),
        ] {
            assert_eq!(address(&parse_url("DATABASE_URL", url).unwrap()), expected);
        }
    }

    #[test]
    fn statements_are_bounded_beside_what_the_url_asks_for_and_not_through_a_pooler() {
        let bounded = |url: &str, longest: u32, direct: Option<&str>| {
            let mut settings = settings(url);
            settings.database_statement_timeout_ms = longest;
            settings.database_listen_url = direct.map(str::to_owned);
            let target = Target::from_settings(&settings, Url::Main).unwrap().bounded(&settings);
            target.config.get_options().map(str::to_owned)
        };
        let with_option = "postgres://u@h/x?options=-c%20search_path%3Da";
        let bound = "-c statement_timeout=700 -c max_parallel_workers_per_gather=0";
        assert_eq!(bounded("postgres://u@h/x", 700, None).as_deref(), Some(bound));
        assert_eq!(bounded(with_option, 700, None), Some(format!("-c search_path=a {bound}")));
        assert_eq!(bounded("postgres://u@h/x", 0, None).as_deref(), Some(ONE_CORE));
        assert_eq!(bounded("postgres://u@h/x", 700, Some("postgres://u@direct/x")), None);
    }

    #[test]
    fn listening_uses_the_direct_url_and_everything_else_the_main_one() {
        let mut settings = settings("postgres://u@pooler/x");
        settings.database_listen_url = Some("postgres://u@direct/x".into());
        for (url, expected) in [(Url::Main, "pooler:5432"), (Url::Direct, "direct:5432")] {
            assert_eq!(address(&Target::from_settings(&settings, url).unwrap().config), expected);
        }
    }

    #[tokio::test]
    async fn a_server_that_accepts_and_says_nothing_is_given_up() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://u:hunter2@{}/x", silent.local_addr().unwrap());
        let error = pool(&settings(&url)).await.err().unwrap();
        assert!(matches!(error, DbError::Timeout { .. }), "{error}");
    }

    #[tokio::test]
    async fn a_closed_port_is_reported_with_its_cause_at_once() {
        let error = pool(&settings("postgres://u:hunter2@127.0.0.1:1/x")).await.err().unwrap();
        let text = error.to_string();
        assert!(text.contains("127.0.0.1:1") && text.contains("refused") && !text.contains("hunter2"), "{text}");
    }
}
