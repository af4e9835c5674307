//! The schema's history: applied once, survived by old code, refused when it is not ours.

use harness::Database;
use shared::bootstrap;
use shared::db;
use shared::db::migrate::{self, Applied, MigrateError, SchemaState};
use shared::model::{ApiKey, Workspace};
use std::time::Duration;

#[tokio::test]
async fn four_migrators_at_once_apply_each_migration_once() {
    let database = Database::blank().await;
    let migrators: Vec<_> = (0..4)
        .map(|_| {
            let settings = database.settings();
            tokio::spawn(async move {
                let mut client = db::connect_direct(&settings).await.unwrap();
                migrate::run(&mut client).await.unwrap()
            })
        })
        .collect();
    let mut applied: Vec<String> = Vec::new();
    for migrator in migrators {
        applied.extend(migrator.await.unwrap().migrations);
    }
    const HISTORY: &str = "SELECT count(*) FROM refinery_schema_history";
    let known: i64 = database.client().await.query_one(HISTORY, &[]).await.unwrap().get(0);
    assert_eq!(applied.len() as i64, known, "{applied:?}");
    assert_eq!(migrate::check(&database.client().await).await.unwrap(), SchemaState::Known);
}

#[tokio::test]
async fn a_migrated_schema_is_left_alone() {
    let database = Database::fresh().await;
    let applied = migrate::run(&mut database.client().await).await.unwrap();
    assert_eq!(applied, Applied { migrations: vec![] });
}

#[tokio::test]
async fn old_code_runs_on_a_newer_schema() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    client
        .batch_execute(
            "INSERT INTO refinery_schema_history VALUES (9001, 'future', '2030-01-01T00:00:00Z', '1');
             ALTER TABLE api_keys ADD COLUMN invented_later text NOT NULL DEFAULT 'x';
             ALTER TABLE workspaces ADD COLUMN invented_later text",
        )
        .await
        .unwrap();
    assert_eq!(migrate::check(&client).await.unwrap(), SchemaState::Newer { version: 9001 });
    assert_eq!(migrate::run(&mut client).await.unwrap().migrations, Vec::<String>::new());
    let keys = bootstrap::create_organisation(&mut client, "Acme", "a@acme.example", "pk_").await.unwrap();
    let row = client.query_one(&format!("SELECT {} FROM api_keys", ApiKey::COLUMNS), &[]).await.unwrap();
    assert_eq!(ApiKey::from_row(&row).unwrap().organisation_id.uuid(), keys.organisation_id);
    let row = client.query_one(&format!("SELECT {} FROM workspaces", Workspace::COLUMNS), &[]).await.unwrap();
    assert_eq!(Workspace::from_row(&row).unwrap().id.uuid(), keys.workspace_id);
}

#[tokio::test]
async fn a_schema_with_another_history_is_refused_by_name_and_not_touched() {
    for (edit, expected) in [
        ("UPDATE refinery_schema_history SET checksum = '7' WHERE version = 1", "V1 tenancy was applied with another"),
        (
            "UPDATE refinery_schema_history SET name = 'other' WHERE version = 2",
            "V2 other where we have V2 change_feed",
        ),
        ("DELETE FROM refinery_schema_history WHERE version = 1", "where we have V1 tenancy"),
    ] {
        let database = Database::fresh().await;
        let mut client = database.client().await;
        client.batch_execute(edit).await.unwrap();
        for error in [migrate::check(&client).await.err().unwrap(), migrate::run(&mut client).await.err().unwrap()] {
            assert!(matches!(error, MigrateError::Unknown(_)), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

#[tokio::test]
async fn an_older_schema_is_waited_for() {
    let database = Database::blank().await;
    let reader = database.client().await;
    assert_eq!(migrate::check(&reader).await.unwrap(), SchemaState::Older { version: 0 });
    let waiting =
        tokio::spawn(async move { migrate::wait_until_current(&reader, Duration::from_millis(20)).await.unwrap() });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    migrate::run(&mut database.client().await).await.unwrap();
    assert_eq!(waiting.await.unwrap(), SchemaState::Known);
}

#[tokio::test]
async fn calls_go_on_while_a_migration_waits_for_a_table_that_is_in_use() {
    /// The schema of the first release; a later migration takes an exclusive lock on the logs.
    const FIRST_RELEASE: i32 = 28;
    let database = Database::blank().await;
    migrate::run_to(&mut database.client().await, FIRST_RELEASE).await.unwrap();
    let mut export = database.client().await;
    let export = export.transaction().await.unwrap();
    export.batch_execute("SELECT count(*) FROM request_logs").await.unwrap();

    let mut migrator = database.client().await;
    let pid: i32 = migrator.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let migrating = tokio::spawn(async move { migrate::run(&mut migrator).await.unwrap() });
    let caller = database.client().await;
    // Far longer than a migration waits for its lock, and no longer than the export lasts.
    caller.batch_execute("SET statement_timeout = '60s'").await.unwrap();
    const IS_WAITING: &str = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted)";
    for _ in 0..2 {
        while !caller.query_one(IS_WAITING, &[&pid]).await.unwrap().get::<_, bool>(0) {
            assert!(!migrating.is_finished(), "no migration takes a lock on the logs any more");
            tokio::task::yield_now().await;
        }
        caller.batch_execute("SELECT count(*) FROM request_logs").await.unwrap();
        while caller.query_one(IS_WAITING, &[&pid]).await.unwrap().get::<_, bool>(0) {
            tokio::task::yield_now().await;
        }
    }
    export.commit().await.unwrap();
    let applied = migrating.await.unwrap().migrations;
    assert_eq!(migrate::check(&caller).await.unwrap(), SchemaState::Known);
    let distinct: std::collections::HashSet<&String> = applied.iter().collect();
    assert_eq!(distinct.len(), applied.len(), "{applied:?}");
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing_behind_and_frees_the_lock() {
    let database = Database::blank().await;
    let mut client = database.client().await;
    // In the way of the first migration, after it has made its first table.
    client.batch_execute("CREATE TABLE users (id int)").await.unwrap();
    let error = migrate::run(&mut client).await.err().unwrap();
    assert!(error.to_string().contains("\"users\" already exists"), "{error}");
    let made: bool = client.query_one("SELECT to_regclass('organisations') IS NOT NULL", &[]).await.unwrap().get(0);
    assert!(!made);
    client.batch_execute("DROP TABLE users").await.unwrap();
    migrate::run(&mut database.client().await).await.unwrap();
}

#[tokio::test]
async fn no_row_can_point_into_another_organisation() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    let one = bootstrap::create_organisation(&mut client, "One", "a@one.example", "pk_").await.unwrap();
    let two = bootstrap::create_organisation(&mut client, "Two", "a@two.example", "pk_").await.unwrap();
    let key = "INSERT INTO api_keys (organisation_id, workspace_id, kind, name, hash, mask, scopes)
               VALUES ($1, $2, 'workspace-service', 'k', sha256('k'), 'k', '{}')";
    let member = "INSERT INTO workspace_members (organisation_id, workspace_id, user_id, role)
                  VALUES ($1, $2, $3, 'member')";
    assert!(client.execute(key, &[&one.organisation_id, &two.workspace_id]).await.is_err());
    assert!(client.execute(key, &[&one.organisation_id, &one.workspace_id]).await.is_ok());
    for (workspace, user, accepted) in [
        (two.workspace_id, one.owner_id, false),
        (one.workspace_id, two.owner_id, false),
        (one.workspace_id, one.owner_id, true),
    ] {
        let outcome = client.execute(member, &[&one.organisation_id, &workspace, &user]).await;
        assert_eq!(outcome.is_ok(), accepted);
    }
}

#[tokio::test]
async fn the_tables_refuse_what_the_contract_forbids() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    let tenant = bootstrap::create_organisation(&mut client, "One", "Owner@one.example", "pk_").await.unwrap();
    for (statement, what) in [
        (
            "INSERT INTO users (organisation_id, email, role) VALUES ($1, 'OWNER@ONE.example', 'member')",
            "the same address",
        ),
        ("INSERT INTO users (organisation_id, email, role) VALUES ($1, 'x@y.z', 'king')", "an unknown role"),
        ("INSERT INTO users (organisation_id, email, role) VALUES ($1, 'nobody', 'member')", "no address"),
        (
            "INSERT INTO workspaces (organisation_id, slug, name, is_default) VALUES ($1, 'w', 'w', true)",
            "a second default",
        ),
        (
            "INSERT INTO workspaces (organisation_id, slug, name) VALUES ($1, 'w', 'Shared Team Workspace')",
            "a name twice",
        ),
        ("INSERT INTO workspaces (organisation_id, slug, name) VALUES ($1, 'a b', 'x')", "a malformed slug"),
        ("UPDATE workspaces SET status = 'archived' WHERE organisation_id = $1", "archiving the default"),
        ("UPDATE api_keys SET hash = '\\x00' WHERE organisation_id = $1", "a hash of another length"),
        (
            "UPDATE api_keys SET kind = 'workspace-service' WHERE organisation_id = $1",
            "a workspace key of no workspace",
        ),
        ("UPDATE api_keys SET kind = 'root' WHERE organisation_id = $1", "an unknown kind"),
        ("UPDATE api_keys SET status = 'sleeping' WHERE organisation_id = $1", "an unknown status"),
    ] {
        let error = client.execute(statement, &[&tenant.organisation_id]).await.err();
        let code = error.and_then(|error| error.code().cloned()).unwrap_or_else(|| panic!("{what} was accepted"));
        assert!(code.code().starts_with("23"), "{what}: {code:?}");
    }
    let again = "UPDATE users SET status = 'archived'";
    client.batch_execute(again).await.unwrap();
    let invited = "INSERT INTO users (organisation_id, email, role) VALUES ($1, 'owner@one.example', 'member')";
    client.execute(invited, &[&tenant.organisation_id]).await.unwrap();
}
