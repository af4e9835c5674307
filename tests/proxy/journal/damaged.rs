//! Files that nobody can read are kept for somebody to look at, and not longer than until their organisation erases logs.

use super::ship::{LOGS, emptied, files, leave, one, open, record, uploader};
use harness::{Database, until};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio_postgres::Client;
use uuid::Uuid;

fn damaged(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "damaged")).collect()
}

/// A file of three calls whose second one was spoilt on the disk, as it is set aside.
async fn set_aside(folder: &Path, database: &Database, organisation: Uuid) -> PathBuf {
    let before = damaged(folder);
    let records: Vec<_> = (0..3).map(|_| record((organisation, Uuid::new_v4()))).collect();
    leave(folder, &records);
    let file = files(folder).into_iter().find(|path| path.extension().is_some_and(|ending| ending == "seg")).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    // In the middle: half a record at the end is what a crash leaves.
    let at = bytes.len() / 2;
    bytes[at] ^= 0x40;
    std::fs::write(&file, bytes).unwrap();
    let (journal, mut shipper, meters) = open(folder, database.settings());
    let uploader = uploader();
    tokio::select! {
        () = journal.run(&mut shipper, &uploader) => {}
        () = emptied(folder) => {}
    }
    assert_eq!(meters.rejected.get(), 1);
    damaged(folder).into_iter().find(|path| !before.contains(path)).expect("it is set aside")
}

async fn organisation(client: &Client) -> Uuid {
    client.query_one("INSERT INTO organisations (name) VALUES ('O') RETURNING id", &[]).await.unwrap().get(0)
}

/// Lets the organisation erase a person's logs, and a proxy run until this file is gone.
async fn erase(folder: &Path, database: &Database, organisation: Uuid, gone: &Path) {
    const ERASE: &str = "INSERT INTO log_erasures (organisation_id, subject, name, mode)
                         VALUES ($1, 'user', 'ada', 'delete')";
    database.client().await.execute(ERASE, &[&organisation]).await.unwrap();
    let (journal, mut shipper, _) = open(folder, database.settings());
    let uploader = uploader();
    tokio::select! {
        () = journal.run(&mut shipper, &uploader) => {}
        () = until("the file is gone", async || !gone.exists()) => {}
    }
}

#[tokio::test]
async fn a_file_that_nobody_can_read_goes_when_its_organisation_erases_logs() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let (folder, client) = (folder.path(), database.client().await);
    let (ours, others, last) = (organisation(&client).await, organisation(&client).await, organisation(&client).await);
    let own = set_aside(folder, &database, ours).await;
    let other = set_aside(folder, &database, others).await;
    let latest = set_aside(folder, &database, last).await;
    assert_eq!(one::<i64>(&client, LOGS).await, 3, "what could be read of them is stored");
    erase(folder, &database, ours, &own).await;
    // Once a second one is gone, everything was looked at twice.
    erase(folder, &database, last, &latest).await;
    assert_eq!(damaged(folder), [other]);
}
