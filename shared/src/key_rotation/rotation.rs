//! New keys for old values, while everything runs. Data keys are wrapped anew under the first master key; and, when
//! asked for, values are sealed anew under new data keys. Both go in small transactions: who stops halfway has done
//! half, and goes on with the next run.

use crate::key_rotation::documents;
use crate::secrets::seal::data_key::DataKey;
use crate::secrets::seal::{DOCUMENTS, SEALED, SealError, Sealed, SealedColumn, Sealer, SealingKey};
use std::time::Duration;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

pub(super) const BATCH: i64 = 100;

/// How far a rotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Data keys that are under the first master key by this run.
    Wrapped { keys: u64 },
    /// Values of one organisation that are under its new data key.
    Sealed { organisation: Uuid, values: u64 },
}

/// Wraps every data key under the first master key of the keyring; afterwards the others open nothing.
pub async fn rewrap(client: &mut Client, sealer: &Sealer, tell: &mut dyn FnMut(Progress)) -> Result<u64, SealError> {
    const WRITE: &str = "UPDATE data_keys SET wrapped = $2, master_key_id = $3, last_updated_at = now() WHERE id = $1";
    let select = format!(
        "SELECT {} FROM data_keys WHERE master_key_id <> $1 ORDER BY id LIMIT $2 FOR NO KEY UPDATE",
        DataKey::COLUMNS
    );
    let ring = sealer.master().current().ok_or(SealError::NoMasterKey)?;
    let name = ring.active().0;
    let mut done = 0;
    loop {
        let tx = client.transaction().await?;
        let rows = tx.query(&select, &[&name, &BATCH]).await?;
        for row in &rows {
            let old = DataKey::from_row(row)?;
            let key = old.wrapped.unwrap(&ring, old.organisation_id, old.id)?;
            let wrapped = Sealed::wrap(&ring, old.organisation_id, old.id, &key)?;
            tx.execute(WRITE, &[&old.id, &wrapped.as_bytes(), &name]).await?;
        }
        tx.commit().await?;
        if rows.is_empty() {
            return Ok(done);
        }
        done += rows.len() as u64;
        tell(Progress::Wrapped { keys: done });
    }
}

/// Gives every organisation a new data key, seals its values anew, and forgets the keys that nothing needs any more:
/// after a grace, in which every proxy learns the new values, since a request may be on its way with an old one.
pub async fn replace_data_keys(
    client: &mut Client,
    sealer: &Sealer,
    grace: Duration,
    tell: &mut dyn FnMut(Progress),
) -> Result<u64, SealError> {
    const ORGANISATIONS: &str = "SELECT DISTINCT organisation_id FROM data_keys ORDER BY organisation_id";
    let mut done = 0;
    for row in client.query(ORGANISATIONS, &[]).await? {
        let organisation: Uuid = row.try_get(0)?;
        retire(client, sealer, organisation).await?;
        let mut values = 0;
        for place in SEALED {
            values += reseal(client, sealer, place, organisation).await?;
        }
        for document in DOCUMENTS {
            values += documents::reseal(client, sealer, document, organisation).await?;
        }
        tell(Progress::Sealed { organisation, values });
        done += values;
    }
    if done > 0 {
        tokio::time::sleep(grace).await;
    }
    forget_unused(client).await?;
    Ok(done)
}

/// Waits for those who are sealing with the present key; whoever comes later uses the new one.
async fn retire(client: &mut Client, sealer: &Sealer, organisation: Uuid) -> Result<(), SealError> {
    const RETIRE: &str = "UPDATE data_keys SET status = 'retired', last_updated_at = now()
                          WHERE organisation_id = $1 AND status = 'active'";
    const MAKE: &str = "INSERT INTO data_keys (id, organisation_id, wrapped, master_key_id) VALUES ($1, $2, $3, $4)";
    let ring = sealer.master().current().ok_or(SealError::NoMasterKey)?;
    let id = Uuid::new_v4();
    let wrapped = Sealed::wrap(&ring, organisation, id, &SealingKey::random()?)?;
    let tx = client.transaction().await?;
    tx.execute(RETIRE, &[&organisation]).await?;
    tx.execute(MAKE, &[&id, &organisation, &wrapped.as_bytes(), &ring.active().0]).await?;
    tx.commit().await?;
    Ok(())
}

async fn reseal(
    client: &mut Client,
    sealer: &Sealer,
    place: &SealedColumn,
    organisation: Uuid,
) -> Result<u64, SealError> {
    let SealedColumn { table, column, organisation: owner } = place;
    // A value begins with its version and the id of its data key.
    let select = format!(
        "SELECT id, {column} FROM {table} WHERE {owner} = $1 AND {column} IS NOT NULL AND substring({column} FROM 2 FOR 16)
         IN (SELECT uuid_send(k.id) FROM data_keys k WHERE k.organisation_id = $1 AND k.status = 'retired')
         ORDER BY id LIMIT $2 FOR NO KEY UPDATE"
    );
    let write = format!("UPDATE {table} SET {column} = $2 WHERE id = $1");
    let mut done = 0;
    loop {
        let tx = client.transaction().await?;
        let rows = tx.query(&select, &[&organisation, &BATCH]).await?;
        for row in &rows {
            let (id, old) = value(row)?;
            let place = place.place(organisation, id);
            let secret = sealer.open(&tx, &place, &old).await?;
            let sealed = sealer.seal(&tx, &place, secret.expose()).await?;
            tx.execute(&write, &[&id, &sealed.as_bytes()]).await?;
        }
        tx.commit().await?;
        if rows.is_empty() {
            return Ok(done);
        }
        done += rows.len() as u64;
    }
}

/// Deletes retired keys that no value names.
async fn forget_unused(client: &Client) -> Result<(), SealError> {
    let in_columns = SEALED.iter().map(|SealedColumn { table, column, organisation }| {
        format!(
            "NOT EXISTS (SELECT FROM {table} t WHERE t.{organisation} = k.organisation_id
                         AND substring(t.{column} FROM 2 FOR 16) = uuid_send(k.id))"
        )
    });
    let in_documents = DOCUMENTS.iter().map(|document| {
        format!("NOT EXISTS (SELECT FROM {} t WHERE {})", document.table, documents::names_key(document))
    });
    let unused: Vec<String> = in_columns.chain(in_documents).collect();
    let sql = format!("DELETE FROM data_keys k WHERE k.status = 'retired' AND {}", unused.join(" AND "));
    client.execute(&sql, &[]).await?;
    Ok(())
}

pub(super) fn value(row: &Row) -> Result<(Uuid, Sealed), tokio_postgres::Error> {
    Ok((row.try_get(0)?, Sealed::from(row.try_get::<_, &[u8]>(1)?)))
}
