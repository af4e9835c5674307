//! The change feed's promises, as any writer meets them: marks, tombstones, notices, epochs.

use futures::future::poll_fn;
use harness::Database;
use shared::{bootstrap, db};
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;

const TRACKED: [&str; 3] = ["organisations", "workspaces", "api_keys"];

async fn text(client: &Client, query: &str) -> String {
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn epoch(client: &Client) -> Uuid {
    client.query_one("SELECT epoch FROM feed_epoch", &[]).await.unwrap().get(0)
}

async fn tenant(client: &mut Client) -> bootstrap::FirstKeys {
    bootstrap::create_organisation(client, "Acme", "a@acme.example", "pk_").await.unwrap()
}

#[tokio::test]
async fn every_insert_and_update_marks_its_row_with_its_transaction_whatever_the_writer_says() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    tenant(&mut client).await;
    for table in TRACKED {
        let transaction = client.transaction().await.unwrap();
        transaction.execute(&format!("UPDATE {table} SET changed_xid = '3'"), &[]).await.unwrap();
        let query = format!("SELECT changed_xid = pg_current_xact_id() FROM {table}");
        let is_marked: bool = transaction.query_one(&query, &[]).await.unwrap().get(0);
        assert!(is_marked, "{table}");
        transaction.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn a_delete_leaves_a_tombstone_and_a_rolled_back_one_does_not() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    let keys = tenant(&mut client).await;
    let transaction = client.transaction().await.unwrap();
    transaction.execute("DELETE FROM api_keys", &[]).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(text(&client, "SELECT count(*)::text FROM tombstones").await, "0");
    for table in ["api_keys", "collections", "workspaces"] {
        client.execute(&format!("DELETE FROM {table}"), &[]).await.unwrap();
    }
    let rows = client.query("SELECT table_name, row_id FROM tombstones ORDER BY table_name", &[]).await.unwrap();
    let found: Vec<(String, Uuid)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, [("api_keys".to_owned(), keys.admin_key.id), ("workspaces".to_owned(), keys.workspace_id)]);
}

#[tokio::test]
async fn a_write_to_any_tracked_table_is_announced_once_per_transaction_with_an_empty_payload() {
    let database = Database::fresh().await;
    let mut writer = database.client().await;
    tenant(&mut writer).await;
    let (listener, mut connection) = db::connect_listen(&database.settings()).await.unwrap();
    let (sender, mut notices) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notice) = message {
                let _ = sender.send((notice.channel().to_owned(), notice.payload().to_owned()));
            }
        }
    });
    listener.batch_execute("LISTEN gateway_changes").await.unwrap();
    for statement in [
        "UPDATE organisations SET name = name",
        "UPDATE workspaces SET name = name",
        "UPDATE api_keys SET name = name",
        "UPDATE users SET first_name = 'x'",
        "BEGIN; UPDATE workspaces SET name = name; UPDATE api_keys SET name = name; COMMIT",
        "DELETE FROM api_keys",
    ] {
        writer.batch_execute(statement).await.unwrap();
        // Members are not held by the proxy: nothing is said about them.
        let end = "UPDATE workspace_members SET role = role; NOTIFY gateway_changes, 'end of step'";
        writer.batch_execute(end).await.unwrap();
        let step = [notices.recv().await.unwrap(), notices.recv().await.unwrap()];
        let expected = ["", "end of step"].map(|payload| ("gateway_changes".to_owned(), payload.to_owned()));
        assert_eq!(step, expected, "{statement}");
    }
}

#[tokio::test]
async fn a_reader_that_follows_the_rules_misses_no_transaction_that_commits_late() {
    let database = Database::fresh().await;
    let (mut early, mut late) = (database.client().await, database.client().await);
    let tenant = tenant(&mut early).await;
    let mut reader = Reader { client: database.client().await, cursor: "0".into() };
    reader.changes().await;

    let insert = "INSERT INTO workspaces (organisation_id, slug, name) VALUES ($1, $2, $2)";
    let slow = late.transaction().await.unwrap();
    slow.execute(insert, &[&tenant.organisation_id, &"slow"]).await.unwrap();
    early.execute(insert, &[&tenant.organisation_id, &"quick"]).await.unwrap();
    assert!(reader.changes().await.contains(&"quick".to_owned()));
    slow.commit().await.unwrap();
    assert!(reader.changes().await.contains(&"slow".to_owned()));
}

/// The reader that `V0002__change_feed.sql` describes, for one table. That nothing is read twice cannot be asserted
/// here: transaction ids belong to the whole server, and transactions of other tests hold the cursor back.
struct Reader {
    client: Client,
    cursor: String,
}

impl Reader {
    async fn changes(&mut self) -> Vec<String> {
        let snapshot = self.client.build_transaction().isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
        let snapshot = snapshot.read_only(true).start().await.unwrap();
        let next = snapshot.query_one("SELECT pg_snapshot_xmin(pg_current_snapshot())::text", &[]).await.unwrap();
        let query = "SELECT slug FROM workspaces WHERE changed_xid >= $1::text::xid8";
        let slugs = snapshot.query(query, &[&self.cursor]).await.unwrap().iter().map(|row| row.get(0)).collect();
        snapshot.commit().await.unwrap();
        self.cursor = next.get(0);
        slugs
    }
}

#[tokio::test]
async fn purging_tombstones_raises_the_mark_below_which_readers_start_over() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    tenant(&mut client).await;
    client.execute("DELETE FROM api_keys", &[]).await.unwrap();
    let last = text(&client, "SELECT changed_xid::text FROM tombstones").await;
    let mark = "SELECT tombstones_purged_to::text FROM feed_epoch";
    assert_eq!(text(&client, "SELECT purge_tombstones('1 day')::text").await, "0");
    assert_eq!(text(&client, mark).await, "0");
    client.batch_execute("UPDATE tombstones SET deleted_at = now() - interval '2 days'").await.unwrap();
    assert_eq!(text(&client, "SELECT purge_tombstones('1 day')::text").await, "1");
    assert_eq!(text(&client, mark).await, last);
    assert_eq!(text(&client, "SELECT purge_tombstones('1 day')::text").await, "0");
    assert_eq!(text(&client, mark).await, last, "the mark never falls");
}

#[tokio::test]
async fn the_epoch_changes_with_the_history_of_the_data_and_not_otherwise() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    let first = epoch(&client).await;
    tenant(&mut client).await;
    assert_eq!(epoch(&database.client().await).await, first);
    client.batch_execute("TRUNCATE api_keys CASCADE").await.unwrap();
    let truncated = epoch(&client).await;
    assert_ne!(truncated, first);
    client.batch_execute("SELECT renew_feed_epoch()").await.unwrap();
    assert_ne!(epoch(&client).await, truncated);
    // A dump played back brings the stored row into another table, here of another database.
    let other = Database::fresh().await;
    let copy = other.client().await;
    let stored = text(&client, "SELECT epoch::text FROM feed").await;
    copy.execute("UPDATE feed SET epoch = $1::text::uuid", &[&stored]).await.unwrap();
    assert_ne!(epoch(&copy).await, epoch(&client).await);
}

#[tokio::test]
async fn the_id_of_a_tracked_row_cannot_change() {
    let database = Database::fresh().await;
    let mut client = database.client().await;
    tenant(&mut client).await;
    let error = client.execute("UPDATE api_keys SET id = gen_random_uuid()", &[]).await.err().unwrap();
    assert!(db::explain(&error).contains("cannot change"), "{error}");
}

#[tokio::test]
async fn a_role_that_may_only_read_can_follow_the_feed() {
    let database = Database::fresh().await;
    let client = database.client().await;
    let role = format!("reader_{}", Uuid::new_v4().simple());
    let grant = format!("CREATE ROLE {role}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}; SET ROLE {role}");
    client.batch_execute(&grant).await.unwrap();
    let seen = db::migrate::check(&client).await;
    let rows = client.query("SELECT epoch, tombstones_purged_to::text FROM feed_epoch", &[]).await;
    let refused = client.execute("UPDATE workspaces SET name = 'x'", &[]).await;
    client.batch_execute(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
    assert_eq!(seen.unwrap(), db::migrate::SchemaState::Known);
    assert_eq!(rows.unwrap().len(), 1);
    assert!(refused.is_err());
}
