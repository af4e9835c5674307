//! The migrated database that every test clones: `CREATE DATABASE … TEMPLATE` takes 50 ms where migrating takes
//! seconds. Its name carries a fingerprint of the migrations, so an edited one makes a new template, and it gets that
//! name only when it is whole.

use anyhow::Context as _;
use shared::db::request_logs::days;
use tokio_postgres::{Client, Config, NoTls};

/// Any number, the same in every test process.
const LOCK: i64 = 0x706f_7274;
/// What test databases are called: this and a UUID.
pub const CLONE_PREFIX: &str = "t_";

/// What a template holds beside what the migrations make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Migrated,
    /// Also the tables of the coming days of logs, which admin would make at its start: 200 ms of Postgres for each stack.
    LogDays,
}

/// The template's name; made first if it does not exist. `url` names any database of the server.
pub async fn ensure(url: &str, content: Content) -> anyhow::Result<String> {
    let today = chrono::Utc::now().format("%Y%m%d");
    let name = match content {
        Content::Migrated => format!("gw_template_{}", shared::db::migrate::fingerprint()),
        Content::LogDays => format!("gw_template_{}_{today}", shared::db::migrate::fingerprint()),
    };
    let client = connect(url, "postgres").await?;
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    let made = make(&client, url, &name, content).await;
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await?;
    made?;
    Ok(name)
}

/// Drops the databases of killed tests; only for a server that no test uses yet.
pub async fn clear_leftovers(url: &str) -> anyhow::Result<()> {
    let client = connect(url, "postgres").await?;
    for row in client.query("SELECT datname FROM pg_database WHERE datname LIKE 't\\_%'", &[]).await? {
        let name: String = row.try_get("datname")?;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)")).await?;
    }
    Ok(())
}

/// A connection to one database of the server that `url` names.
pub async fn connect(url: &str, database: &str) -> anyhow::Result<Client> {
    let mut config: Config = url.parse().context("the URL of the test server is malformed")?;
    config.dbname(database);
    let (client, connection) = config.connect(NoTls).await.context("cannot connect to the test server")?;
    tokio::spawn(connection);
    Ok(client)
}

async fn make(client: &Client, url: &str, name: &str, content: Content) -> anyhow::Result<()> {
    if client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]).await?.is_some() {
        return Ok(());
    }
    let half = format!("{name}_half");
    client.batch_execute(&format!("DROP DATABASE IF EXISTS \"{half}\" WITH (FORCE)")).await?;
    client.batch_execute(&format!("CREATE DATABASE \"{half}\"")).await?;
    let mut inside = connect(url, &half).await?;
    shared::db::migrate::run(&mut inside).await.context("the migrations failed")?;
    if content == Content::LogDays {
        days::make_coming_days(&inside, days::DAYS_AHEAD).await.context("the days of logs cannot be made")?;
    }
    drop(inside);
    // A session that is ending still counts as a user of the database, and a template must have none.
    client
        .execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1", &[&half])
        .await?;
    client.batch_execute(&format!("ALTER DATABASE \"{half}\" RENAME TO \"{name}\"")).await?;
    Ok(())
}
