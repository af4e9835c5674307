//! Which keys are in use, and whether every sealed value opens: what an operator reads before an old master key is
//! thrown away.

use crate::key_rotation::documents;
use crate::key_rotation::rotation::value;
use crate::secrets::seal::{DOCUMENTS, SEALED, SealError, Sealer};
use std::collections::BTreeMap;
use std::fmt;
use tokio_postgres::Client;
use uuid::Uuid;

/// Rows that are opened at a time.
pub(super) const BATCH: i64 = 500;
/// Values that do not open are told one by one up to here.
const MAX_LISTED: usize = 20;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The keyring's ids, the one in use first; empty without a keyring.
    pub keyring: Vec<String>,
    /// Data keys by master key.
    pub data_keys: BTreeMap<String, i64>,
    /// Data keys that a rotation has not finished with.
    pub retired: i64,
    /// Present only where every value was opened.
    pub values: Option<SealedCounts>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct SealedCounts {
    pub opened: u64,
    pub broken: u64,
    /// The first of the broken, by table, row and reason.
    pub failures: Vec<(String, Uuid, String)>,
}

/// Which keys are in use.
pub async fn status(client: &Client, sealer: &Sealer) -> Result<Report, SealError> {
    const COUNT: &str =
        "SELECT master_key_id, count(*), count(*) FILTER (WHERE status = 'retired') FROM data_keys GROUP BY 1";
    let ring = sealer.master().current();
    let keyring = ring.iter().flat_map(|ring| ring.ids()).map(str::to_owned).collect();
    let mut report = Report { keyring, ..Report::default() };
    for row in client.query(COUNT, &[]).await? {
        report.data_keys.insert(row.try_get(0)?, row.try_get(1)?);
        report.retired += row.try_get::<_, i64>(2)?;
    }
    Ok(report)
}

/// The same, after opening every value there is.
pub async fn verify(client: &Client, sealer: &Sealer) -> Result<Report, SealError> {
    let mut values = SealedCounts::default();
    for place in SEALED {
        let sql = format!(
            "SELECT id, {column}, {owner} FROM {table} WHERE {column} IS NOT NULL AND id > $1 ORDER BY id LIMIT $2",
            column = place.column,
            owner = place.organisation,
            table = place.table
        );
        let mut last = Uuid::nil();
        loop {
            let rows = client.query(&sql, &[&last, &BATCH]).await?;
            for row in &rows {
                let (id, sealed) = value(row)?;
                last = id;
                match sealer.open(client, &place.place(row.try_get(2)?, id), &sealed).await {
                    Ok(_) => values.opened += 1,
                    Err(SealError::Database(error)) => return Err(error.into()),
                    Err(error) => values.add(place.table, id, &error),
                }
            }
            if rows.is_empty() {
                break;
            }
        }
    }
    for document in DOCUMENTS {
        documents::verify(client, sealer, document, &mut values).await?;
    }
    Ok(Report { values: Some(values), ..status(client, sealer).await? })
}

impl SealedCounts {
    pub(super) fn add(&mut self, table: &str, id: Uuid, error: &SealError) {
        self.broken += 1;
        if self.failures.len() < MAX_LISTED {
            self.failures.push((table.to_owned(), id, error.to_string()));
        }
    }
}

impl Report {
    /// Whether every data key is under the first master key and every value that was looked at opens.
    pub fn is_sound(&self) -> bool {
        let active = self.keyring.first();
        let is_current = self.data_keys.keys().all(|id| Some(id) == active);
        is_current && self.values.as_ref().is_none_or(|values| values.broken == 0)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keyring.split_first() {
            None => writeln!(f, "keyring: none (GATEWAY_MASTER_KEY_FILE, GATEWAY_MASTER_KEY)")?,
            Some((active, [])) => writeln!(f, "keyring: {active} in use")?,
            Some((active, others)) => writeln!(f, "keyring: {active} in use; also {}", others.join(", "))?,
        }
        for (id, count) in &self.data_keys {
            let note = match self.keyring.iter().position(|one| one == id) {
                Some(0) => "",
                Some(_) => " (to be wrapped anew: gateway-admin keys rotate)",
                None => " (NOT IN THE KEYRING: what they sealed cannot be opened)",
            };
            writeln!(f, "master key {id}: {count} data keys{note}")?;
        }
        if self.retired > 0 {
            writeln!(f, "retired data keys still in use: {}", self.retired)?;
        }
        let Some(values) = &self.values else { return Ok(()) };
        write!(f, "sealed values: {} open, {} do not", values.opened, values.broken)?;
        values.failures.iter().try_for_each(|(table, id, reason)| write!(f, "\n  {table} {id}: {reason}"))
    }
}
