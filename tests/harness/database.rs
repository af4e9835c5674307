//! A database for one test: a clone of the migrated template, dropped with the value.

use bench::postgres::template::{self, Content};
use bench::postgres::testing;
use shared::settings;
use std::future::Future;
use tokio_postgres::Client;
use uuid::Uuid;

/// One test's own database.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// A migrated, empty database.
    pub async fn fresh() -> Self {
        Self::cloned(Content::Migrated).await
    }

    /// A migrated database with the tables of the coming days of logs.
    pub async fn with_log_days() -> Self {
        Self::cloned(Content::LogDays).await
    }

    /// A database without any table, for tests of the migrations themselves.
    pub async fn blank() -> Self {
        Self::create(server_url().await, "").await
    }

    /// The connection URL. It holds the password.
    pub fn url(&self) -> String {
        let mut url = url::Url::parse(&self.server).expect("the test server's URL was used already");
        url.set_path(&self.name);
        url.into()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A plain connection.
    pub async fn client(&self) -> Client {
        template::connect(&self.server, &self.name).await.expect("the test database accepts connections")
    }

    /// The settings with which a service reaches this database.
    pub fn settings(&self) -> settings::Database {
        settings::Database {
            database_url: self.url(),
            database_listen_url: None,
            database_pool_size: 4,
            database_connect_timeout_ms: 5000,
            database_statement_timeout_ms: 0,
            db_ssl: settings::DbSsl::Preferred,
            db_ssl_ca: None,
            db_ssl_cert: None,
            db_ssl_key: None,
        }
    }

    async fn cloned(content: Content) -> Self {
        let server = server_url().await;
        let template = template::ensure(&server, content).await.expect("the template database can be made");
        Self::create(server, &format!("TEMPLATE \"{template}\"")).await
    }

    async fn create(server: String, how: &str) -> Self {
        let name = format!("{}{}", template::CLONE_PREFIX, Uuid::new_v4().simple());
        let client = template::connect(&server, "postgres").await.expect("the test server accepts connections");
        client.batch_execute(&format!("CREATE DATABASE \"{name}\" {how}")).await.expect("a database can be created");
        Self { server, name }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name);
        let server = self.server.clone();
        // Best effort: a database that stays is cleared away by the next run.
        off_this_runtime(async move {
            if let Ok(client) = template::connect(&server, "postgres").await {
                let _ = client.batch_execute(&drop).await;
            }
        });
    }
}

async fn server_url() -> String {
    let found = tokio::task::spawn_blocking(testing::url).await.expect("starting Postgres does not panic");
    found.expect("a Postgres for tests can be started")
}

/// Runs a future to its end from a place that cannot await: `drop`, inside or outside a runtime.
pub(crate) fn off_this_runtime(work: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(move || {
        if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
            runtime.block_on(work);
        }
    });
    let _ = thread.join();
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn organisations(database: &Database) -> i64 {
        database.client().await.query_one("SELECT count(*) FROM organisations", &[]).await.unwrap().get(0)
    }

    #[tokio::test]
    async fn each_test_has_a_migrated_database_to_itself() {
        let (one, other) = tokio::join!(Database::fresh(), Database::fresh());
        let insert = "INSERT INTO organisations (name) VALUES ('A')";
        one.client().await.batch_execute(insert).await.unwrap();
        assert_eq!((organisations(&one).await, organisations(&other).await), (1, 0));
    }

    #[tokio::test]
    async fn a_database_goes_with_its_test_although_connections_are_open() {
        let (survivor, database) = (Database::blank().await, Database::fresh().await);
        let _open = database.client().await;
        let name = database.name().to_owned();
        drop(database);
        let found = "SELECT 1 FROM pg_database WHERE datname = $1";
        assert!(survivor.client().await.query_opt(found, &[&name]).await.unwrap().is_none());
    }
}
