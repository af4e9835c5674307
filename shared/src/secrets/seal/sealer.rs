//! Seals and opens with the keys at hand. Data keys are unwrapped once and kept; which one seals is asked of Postgres
//! each time, because another process may have replaced it a moment ago. Opening needs no database where the reader
//! has the data keys already, as the proxy does.

use super::data_key::DataKey;
use super::{MasterKeys, SealError, Sealed, SealedPlace, SealingKey, Secret};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

/// How often the keyring file is looked at.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Sealer {
    master: MasterKeys,
    data_keys: RwLock<HashMap<Uuid, Arc<SealingKey>>>,
}

impl Sealer {
    pub fn new(master: MasterKeys) -> Self {
        Self { master, data_keys: RwLock::default() }
    }

    pub fn master(&self) -> &MasterKeys {
        &self.master
    }

    /// Whether anything can be sealed or opened at all.
    pub fn has_master_key(&self) -> bool {
        self.master.current().is_some()
    }

    /// Seals with the organisation's data key, which is made if there is none. It cannot be retired before the
    /// transaction ends.
    pub async fn seal(&self, tx: &Transaction<'_>, place: &SealedPlace, secret: &[u8]) -> Result<Sealed, SealError> {
        if !self.has_master_key() {
            return Err(SealError::NoMasterKey);
        }
        let data_key = self.hold_active(tx, place.organisation).await?;
        Sealed::seal(data_key.id, &*self.unwrapped(&data_key)?, place, secret)
    }

    /// Makes the organisation's data key if there is none, for who seals without a database.
    pub async fn ensure_data_key(&self, tx: &Transaction<'_>, organisation: Uuid) -> Result<(), SealError> {
        self.hold_active(tx, organisation).await.map(drop)
    }

    /// Opens a value whose data key is looked up as needed.
    pub async fn open(
        &self,
        db: &impl GenericClient,
        place: &SealedPlace,
        sealed: &Sealed,
    ) -> Result<Secret, SealError> {
        let id = sealed.data_key_id()?;
        let known = self.data_keys.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(key) = known {
            return sealed.open(&key, place);
        }
        let sql = format!("SELECT {} FROM data_keys WHERE id = $1 AND organisation_id = $2", DataKey::COLUMNS);
        let row = db.query_opt(&sql, &[&id, &place.organisation]).await?.ok_or(SealError::UnknownDataKey(id))?;
        self.open_with(&DataKey::from_row(&row)?, place, sealed)
    }

    /// Opens a value with its data key; no database is asked.
    pub fn open_with(&self, data_key: &DataKey, place: &SealedPlace, sealed: &Sealed) -> Result<Secret, SealError> {
        if sealed.data_key_id()? != data_key.id || data_key.organisation_id != place.organisation {
            return Err(SealError::Refused);
        }
        sealed.open(&*self.unwrapped(data_key)?, place)
    }

    /// The counterpart of `open_with`.
    pub fn seal_with(&self, data_key: &DataKey, place: &SealedPlace, secret: &[u8]) -> Result<Sealed, SealError> {
        Sealed::seal(data_key.id, &*self.unwrapped(data_key)?, place, secret)
    }

    /// A new data key, which is nowhere stored yet.
    pub fn new_data_key(&self, organisation: Uuid) -> Result<DataKey, SealError> {
        let ring = self.master.current().ok_or(SealError::NoMasterKey)?;
        let id = Uuid::new_v4();
        let wrapped = Sealed::wrap(&ring, organisation, id, &SealingKey::random()?)?;
        Ok(DataKey { id, organisation_id: organisation, wrapped, is_active: true })
    }

    /// The unwrapped key; unwrapped keys are kept until the keyring changes.
    pub(super) fn unwrapped(&self, data_key: &DataKey) -> Result<Arc<SealingKey>, SealError> {
        let known = self.data_keys.read().unwrap_or_else(PoisonError::into_inner).get(&data_key.id).cloned();
        if let Some(key) = known {
            return Ok(key);
        }
        let key = match self.unwrap(data_key) {
            // Another process may have put a new master key to use before we looked at the file.
            Err(SealError::UnknownMasterKey(_)) if self.look().unwrap_or(false) => self.unwrap(data_key)?,
            outcome => outcome?,
        };
        let key = Arc::new(key);
        self.data_keys.write().unwrap_or_else(PoisonError::into_inner).insert(data_key.id, key.clone());
        Ok(key)
    }

    fn unwrap(&self, data_key: &DataKey) -> Result<SealingKey, SealError> {
        let ring = self.master.current().ok_or(SealError::NoMasterKey)?;
        data_key.wrapped.unwrap(&ring, data_key.organisation_id, data_key.id)
    }

    async fn hold_active(&self, tx: &Transaction<'_>, organisation: Uuid) -> Result<DataKey, SealError> {
        const MAKE: &str = "INSERT INTO data_keys (id, organisation_id, wrapped, master_key_id) VALUES ($1, $2, $3, $4)
                            ON CONFLICT (organisation_id) WHERE status = 'active' DO NOTHING";
        let columns = DataKey::COLUMNS;
        let active =
            format!("SELECT {columns} FROM data_keys WHERE organisation_id = $1 AND status = 'active' FOR SHARE");
        for _ in 0..10 {
            if let Some(row) = tx.query_opt(&active, &[&organisation]).await? {
                return Ok(DataKey::from_row(&row)?);
            }
            // There is none yet, or it was retired while we waited for it: then its successor is there already. A key made
            // now must not be under a master key that is about to go.
            if let Err(problem) = self.look() {
                tracing::error!(problem, "the keyring cannot be used; its last good state stays in use");
            }
            let ring = self.master.current().ok_or(SealError::NoMasterKey)?;
            let id = Uuid::new_v4();
            let wrapped = Sealed::wrap(&ring, organisation, id, &SealingKey::random()?)?;
            tx.execute(MAKE, &[&id, &organisation, &wrapped.as_bytes(), &ring.active().0]).await?;
        }
        Err(SealError::Unsettled)
    }

    /// Follows the keyring file for ever; spawn it beside the service.
    pub async fn watch(self: Arc<Self>) {
        let mut last_problem = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let problem = self.look().err();
            if problem != last_problem {
                if let Some(problem) = &problem {
                    tracing::error!(problem, "the keyring cannot be used; its last good state stays in use");
                }
                last_problem = problem;
            }
        }
    }

    /// Reads the keyring file again; true when it changed.
    pub fn look(&self) -> Result<bool, String> {
        let has_changed = self.master.reload()?;
        if has_changed {
            self.data_keys.write().unwrap_or_else(PoisonError::into_inner).clear();
            let ids = self.master.current().map(|ring| ring.ids().join(", "));
            tracing::info!(ids, "the keyring changed; its first key seals");
        }
        Ok(has_changed)
    }
}
