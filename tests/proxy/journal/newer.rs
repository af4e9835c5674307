//! Files of a later version, as a process meets them after it was rolled back: nothing of them is lost, and nothing is
//! given back of what their records are charged to.

use super::ship::{LOGS, files, one, open, record, settings, ship_until, tenant};
use harness::Database;
use proxy::journal::Record;
use std::path::Path;
use tempfile::TempDir;
use tokio_postgres::Client;
use uuid::Uuid;

/// What stands before a record in a file: its kind, its length and its sum.
const HEAD: usize = 9;

#[tokio::test]
async fn a_file_of_a_later_version_waits_for_it_with_all_that_is_charged_to_its_limits() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let client = database.client().await;
    let records: Vec<_> = (0..6).map(|_| record(tenant())).collect();
    let newer = leave_with_lease(folder.path(), &records, &client).await;
    let file = files(folder.path()).remove(0);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, with_another_field(&whole, 3)).unwrap();
    // A process that is gone as well, and wrote nothing.
    let gone = leave_with_lease(folder.path(), &[], &client).await;
    let its_lease = format!("SELECT count(*) FROM limit_leases WHERE boot = '{gone}'");
    let meters = ship_until(folder.path(), &database, &its_lease, 0_i64).await;
    let leases = format!("SELECT count(*) FROM limit_leases WHERE boot = '{newer}'");
    assert_eq!((one::<i64>(&client, LOGS).await, one::<i64>(&client, &leases).await), (3, 1));
    assert_eq!((meters.rejected.get(), meters.lost.get(), meters.left.get()), (0, 0, 1));
    assert_eq!(files(folder.path()), std::slice::from_ref(&file));
    // A process that knows the field finds a record like any other.
    std::fs::write(&file, whole).unwrap();
    ship_until(folder.path(), &database, &leases, 0_i64).await;
    assert_eq!(one::<i64>(&client, LOGS).await, 6);
    assert_eq!(files(folder.path()).len(), 0);
}

/// Notes records as a process does that is killed right afterwards and holds a part of a limit.
async fn leave_with_lease(folder: &Path, records: &[Record<'_>], client: &Client) -> Uuid {
    let (journal, ..) = open(folder, settings().database);
    records.iter().for_each(|record| journal.append(record));
    const LEASE: &str =
        "INSERT INTO limit_leases (id, boot, organisation_id, scope, scope_id, unit, period, starts_at, amount)
        VALUES (gen_random_uuid(), $1, gen_random_uuid(), 'policy', 'p', 'cost', 'total', '-infinity', 5)";
    client.execute(LEASE, &[&journal.boot()]).await.unwrap();
    journal.boot()
}

/// The file as a later version writes it: one of its records has a field more.
fn with_another_field(file: &[u8], number: usize) -> Vec<u8> {
    let length = |at: usize| u32::from_le_bytes(file[at + 1..at + 5].try_into().unwrap()) as usize;
    let mut at = 0;
    for _ in 0..number {
        at += HEAD + length(at);
    }
    let end = at + HEAD + length(at);
    let mut record = file[at + HEAD..end].to_vec();
    let fields = u16::from_be_bytes([record[1], record[2]]) + 1;
    record[1..3].copy_from_slice(&fields.to_be_bytes());
    record.push(0xc3);
    let mut head = vec![file[at]];
    head.extend_from_slice(&u32::try_from(record.len()).unwrap().to_le_bytes());
    head.extend_from_slice(&crc32(&record).to_le_bytes());
    [&file[..at], &head, &record, &file[end..]].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    let shifted = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| shifted(sum)))
}
