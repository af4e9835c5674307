//! `portcullis.lock.json`: what was applied from this folder, by organisation. It is how a deletion is known to be ours, and how a
//! change in the console is told from a change in the files. It holds hashes, and nothing of secret fields.

use super::address::Address;
use super::compare::MERGED;
use super::documents::LOCK_FILE;
use super::live::normal;
use crate::kinds::SECRET_FIELDS;
use crate::outcome::{Failure, at_path};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Lock {
    version: u32,
    organisations: BTreeMap<String, BTreeMap<String, Applied>>,
    #[serde(skip)]
    path: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Applied {
    pub address: Address,
    pub id: String,
    /// A hash of each field's value.
    pub fields: BTreeMap<String, String>,
    pub applied_at: String,
}

impl Lock {
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(LOCK_FILE);
        if !path.exists() {
            return Ok(Self { version: VERSION, path, ..Self::default() });
        }
        let text = at_path(&path, fs::read_to_string(&path))?;
        let lock: Self = serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("{}:{}: {error}", path.display(), error.line())))?;
        if lock.version != VERSION {
            return Err(Failure::new(format!("{} is of another version of portcullis", path.display())));
        }
        Ok(Self { path, ..lock })
    }

    pub fn applied(&self, organisation: &str) -> impl Iterator<Item = &Applied> {
        self.organisations.get(organisation).into_iter().flat_map(BTreeMap::values)
    }

    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.organisations.values().flat_map(BTreeMap::values).map(|applied| applied.address.kind)
    }

    pub fn find(&self, organisation: &str, address: &Address) -> Option<&Applied> {
        self.organisations.get(organisation)?.get(&address.to_string())
    }

    /// Remembers an object as it was applied, and writes the file: an interrupted run loses nothing.
    pub fn put(
        &mut self,
        organisation: &str,
        address: &Address,
        id: &str,
        fields: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let entry = Applied {
            address: address.clone(),
            id: id.to_owned(),
            fields: hashes(fields),
            applied_at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        };
        let of_organisation = self.organisations.entry(organisation.to_owned()).or_default();
        if of_organisation
            .get(&address.to_string())
            .is_some_and(|known| known.id == entry.id && known.fields == entry.fields)
        {
            return Ok(());
        }
        of_organisation.insert(address.to_string(), entry);
        self.write()
    }

    pub fn remove(&mut self, organisation: &str, address: &Address) -> Result<(), Failure> {
        let of_organisation = self.organisations.entry(organisation.to_owned()).or_default();
        if of_organisation.remove(&address.to_string()).is_none() {
            return Ok(());
        }
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(|error| Failure::new(error.to_string()))? + "\n";
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = at_path(folder, tempfile::NamedTempFile::new_in(folder))?;
        at_path(&self.path, file.write_all(text.as_bytes()))?;
        file.persist(&self.path).map_err(|error| Failure::new(format!("{}: {}", self.path.display(), error.error)))?;
        Ok(())
    }
}

fn hashes(fields: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut hashes = BTreeMap::new();
    // Whether a default provider is wanted is shown nowhere afterwards.
    let is_open = |field: &str| !SECRET_FIELDS.contains(&field) && field != "create_default_provider";
    for (field, value) in fields.iter().filter(|(field, _)| is_open(field)) {
        match value {
            // Parts that the file does not say are not ours.
            Value::Object(parts) if MERGED.contains(&field.as_str()) => {
                hashes.extend(parts.iter().map(|(part, value)| (format!("{field}.{part}"), hash(part, value))));
            }
            value => {
                hashes.insert(field.clone(), hash(field, value));
            }
        }
    }
    hashes
}

impl Applied {
    /// The fields, or parts of them, that are not as they were applied.
    pub fn changed_fields(&self, live: &Map<String, Value>) -> Vec<&str> {
        let is_changed = |(path, base): &(&String, &String)| {
            let (field, part) = path.split_once('.').map_or((path.as_str(), None), |(field, part)| (field, Some(part)));
            let there = live.get(field).unwrap_or(&Value::Null);
            match part {
                // What is left out in `live` has its default, which nobody can tell from one that was applied.
                Some(part) => there.get(part).is_some_and(|there| hash(part, there) != **base),
                None => hash(field, there) != **base,
            }
        };
        self.fields.iter().filter(is_changed).map(|(path, _)| path.as_str()).collect()
    }
}

/// Of what a value means, whatever the order of its fields.
fn hash(field: &str, value: &Value) -> String {
    let digest = Sha256::digest(sorted(&normal(field, value)).to_string());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        other => other.clone(),
    }
}
