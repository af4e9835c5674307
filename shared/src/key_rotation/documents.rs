//! Sealed texts inside JSON documents, for rotations and reports. Which data key a text is under stands in it in plain,
//! so that Postgres finds the rows that a rotation must touch.

use crate::config::credentials::{self, MARK, SealedText, secrets};
use crate::key_rotation::report::{self, SealedCounts};
use crate::key_rotation::rotation;
use crate::secrets::seal::{SealError, SealedDocument, Sealer};
use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

/// That the row `t` has a text under the data key `k`.
pub fn names_key(document: &SealedDocument) -> String {
    format!("t.organisation_id = k.organisation_id AND strpos(t.{}::text, '{MARK}' || k.id::text) > 0", document.column)
}

/// Seals anew what is under retired keys of the organisation.
pub async fn reseal(
    client: &mut Client,
    sealer: &Sealer,
    document: &SealedDocument,
    organisation: Uuid,
) -> Result<u64, SealError> {
    let SealedDocument { table, column, config } = document;
    let select = format!(
        "SELECT t.id, t.{config}, t.{column} FROM {table} t WHERE t.organisation_id = $1 AND t.id > $2
         AND EXISTS (SELECT FROM data_keys k WHERE k.organisation_id = $1 AND k.status = 'retired' AND {})
         ORDER BY t.id LIMIT $3 FOR NO KEY UPDATE OF t",
        names_key(document)
    );
    let write = format!("UPDATE {table} SET {column} = $2 WHERE id = $1");
    // Row after row and never back, so that a text which only looks sealed is not read for ever.
    let (mut last, mut done) = (Uuid::nil(), 0);
    loop {
        let tx = client.transaction().await?;
        let rows = tx.query(&select, &[&organisation, &last, &rotation::BATCH]).await?;
        for row in &rows {
            last = row.try_get(0)?;
            let place = credentials::place(organisation, row.try_get(1)?);
            let mut content: Value = row.try_get(2)?;
            for found in secrets(&content) {
                let Some(value) = content.pointer_mut(&found.pointer) else { continue };
                let Some(text) = SealedText::from_value(value) else { continue };
                let secret = sealer.open(&tx, &place, &text.sealed).await?;
                let sealed = sealer.seal(&tx, &place, secret.expose()).await?;
                *value = text.resealed(&sealed)?.into();
                done += 1;
            }
            tx.execute(&write, &[&last, &content]).await?;
        }
        tx.commit().await?;
        if rows.is_empty() {
            return Ok(done);
        }
    }
}

/// Opens every sealed text.
pub async fn verify(
    client: &Client,
    sealer: &Sealer,
    document: &SealedDocument,
    values: &mut SealedCounts,
) -> Result<(), SealError> {
    let SealedDocument { table, column, config } = document;
    let select = format!(
        "SELECT id, organisation_id, {config}, {column} FROM {table}
         WHERE id > $1 AND strpos({column}::text, '{MARK}') > 0 ORDER BY id LIMIT $2"
    );
    let mut last = Uuid::nil();
    loop {
        let rows = client.query(&select, &[&last, &report::BATCH]).await?;
        for row in &rows {
            last = row.try_get(0)?;
            let place = credentials::place(row.try_get(1)?, row.try_get(2)?);
            let content: Value = row.try_get(3)?;
            let texts = secrets(&content)
                .into_iter()
                .filter_map(|found| SealedText::from_value(content.pointer(&found.pointer)?));
            for text in texts {
                match sealer.open(client, &place, &text.sealed).await {
                    Ok(_) => values.opened += 1,
                    Err(SealError::Database(error)) => return Err(error.into()),
                    Err(error) => values.add(table, last, &error),
                }
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}
