//! The snapshot against a real Postgres: what the feed brings, and how the follower lives through failures.

mod feed;
mod follower;

use harness::Database;
use proxy::snapshot::Snapshot;
use shared::identity::api_key::KeyHash;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_postgres::{Client, GenericClient};
use uuid::Uuid;

/// Far beyond anything a healthy run needs: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database with one organisation and one workspace.
struct Tenant {
    database: Database,
    client: Client,
    organisation: Uuid,
    workspace: Uuid,
}

impl Tenant {
    async fn new() -> Self {
        let database = Database::fresh().await;
        let client = database.client().await;
        let (organisation, workspace) = tenancy(&client).await;
        Self { database, client, organisation, workspace }
    }

    async fn insert(&self, db: &impl GenericClient, secret: &str) -> Uuid {
        insert(db, self.organisation, secret).await
    }
}

async fn tenancy(db: &impl GenericClient) -> (Uuid, Uuid) {
    let organisation = db.query_one("INSERT INTO organisations (name) VALUES ('Acme') RETURNING id", &[]).await;
    let organisation: Uuid = organisation.unwrap().get(0);
    let workspace = "INSERT INTO workspaces (organisation_id, slug, name) VALUES ($1, 'team', 'Team') RETURNING id";
    (organisation, db.query_one(workspace, &[&organisation]).await.unwrap().get(0))
}

async fn insert(db: &impl GenericClient, organisation: Uuid, secret: &str) -> Uuid {
    const KEY: &str = "INSERT INTO api_keys (organisation_id, kind, name, hash, mask, scopes)
                       VALUES ($1, 'organisation-service', 'key', $2, '*', '{completions.write}') RETURNING id";
    db.query_one(KEY, &[&organisation, &hash(secret).0.as_slice()]).await.unwrap().get(0)
}

async fn rotate(db: &impl GenericClient, id: Uuid, secret: &str) {
    db.execute("UPDATE api_keys SET hash = $2 WHERE id = $1", &[&id, &hash(secret).0.as_slice()]).await.unwrap();
}

async fn set_status(db: &impl GenericClient, id: Uuid, status: &str) {
    db.execute("UPDATE api_keys SET status = $2 WHERE id = $1", &[&id, &status]).await.unwrap();
}

async fn delete(db: &impl GenericClient, id: Uuid) {
    db.execute("DELETE FROM api_keys WHERE id = $1", &[&id]).await.unwrap();
}

fn hash(secret: &str) -> KeyHash {
    KeyHash::from_key(secret.as_bytes())
}

/// The status of the key with this secret, if the snapshot knows it.
fn status(snapshot: &Snapshot, secret: &str) -> Option<String> {
    snapshot.api_key(&hash(secret)).map(|key| key.status.as_str().to_owned())
}

/// Which of these secrets the snapshot knows.
fn known<'a>(snapshot: &Snapshot, secrets: &[&'a str]) -> Vec<&'a str> {
    secrets.iter().copied().filter(|secret| status(snapshot, secret).is_some()).collect()
}

/// Waits for something that must come true.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("waited in vain until {what}"));
}

/// Every key in the table, to be compared with memory.
async fn assert_same_as_table(snapshot: &Snapshot, db: &impl GenericClient) {
    let rows = db.query("SELECT id, hash, status FROM api_keys", &[]).await.unwrap();
    let mut missing = BTreeSet::new();
    for row in &rows {
        let (id, hash, status): (Uuid, &[u8], &str) = (row.get(0), row.get(1), row.get(2));
        let found = snapshot.api_key(&KeyHash(hash.try_into().unwrap()));
        if found.is_none_or(|key| key.id.uuid() != id || key.status.as_str() != status) {
            missing.insert(id);
        }
    }
    assert!(missing.is_empty(), "{} of {} keys differ from the table", missing.len(), rows.len());
    // As many as in the table and all of those: so none that the table does not have.
    assert_eq!(snapshot.rows().find(|(table, _)| *table == "api_keys").unwrap().1, rows.len());
}
