//! `portcullis.lock.json`: what was applied from this folder, by organisation. It is how a deletion is known to be ours, and how a
//! change in the console is told from a change in the files. It holds hashes, and nothing of secret fields.

use super::address::Address;
use super::compare::MERGED;
use super::documents::{LOCK_FILE, folder_of};
use super::live::normal;
use crate::kinds::SECRET_FIELDS;
use crate::outcome::{Failure, at_path};
use crate::secrets::redacted;
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
        Self::read_file(folder.join(LOCK_FILE))
    }

    fn read_file(path: PathBuf) -> Result<Self, Failure> {
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
        let known = self.find(organisation, address);
        if known.is_some_and(|known| known.id == entry.id && known.fields == entry.fields) {
            return Ok(());
        }
        self.change(organisation, |objects| objects.insert(address.to_string(), entry))
    }

    pub fn remove(&mut self, organisation: &str, address: &Address) -> Result<(), Failure> {
        if self.find(organisation, address).is_none() {
            return Ok(());
        }
        self.change(organisation, |objects| objects.remove(&address.to_string()))
    }

    /// Changes the file as it is now: another run may have written it since it was read. Runs wait for each other on the folder,
    /// because the file itself is replaced by every write.
    fn change(
        &mut self,
        organisation: &str,
        change: impl FnOnce(&mut BTreeMap<String, Applied>) -> Option<Applied>,
    ) -> Result<(), Failure> {
        let folder = folder_of(&self.path);
        let guard = at_path(folder, fs::File::open(folder))?;
        at_path(folder, guard.lock())?;
        let mut current = Self::read_file(self.path.clone())?;
        change(current.organisations.entry(organisation.to_owned()).or_default());
        current.write()?;
        *self = current;
        Ok(())
    }

    fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(|error| Failure::new(error.to_string()))? + "\n";
        let folder = folder_of(&self.path);
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

/// Of what a value means, whatever the order of its fields and without its secrets.
fn hash(field: &str, value: &Value) -> String {
    let digest = Sha256::digest(sorted(&redacted(field, &normal(field, value))).to_string());
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn address(name: &str) -> Address {
        Address { kind: "config", workspace: Some("w".to_owned()), name: name.to_owned() }
    }

    #[test]
    fn two_runs_keep_what_the_other_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (Lock::read(folder.path()).unwrap(), Lock::read(folder.path()).unwrap());
        one.put("o", &address("a"), "1", &Map::new()).unwrap();
        other.put("o", &address("b"), "2", &Map::new()).unwrap();
        assert_eq!(Lock::read(folder.path()).unwrap().applied("o").count(), 2);
        one.put("o", &address("c"), "3", &Map::new()).unwrap();
        other.remove("o", &address("b")).unwrap();
        let left: Vec<_> = Lock::read(folder.path()).unwrap().applied("o").map(|found| found.id.clone()).collect();
        assert_eq!(left, ["1", "3"]);
    }

    #[test]
    fn a_secret_inside_of_a_field_is_no_part_of_its_hash() {
        let field = |secret: &str| json!({ "config": { "api_key": secret, "provider": "@p" } });
        let hashed = |value: Value| hashes(value.as_object().unwrap());
        assert_eq!(hashed(field("${env:KEY}")), hashed(field("sk*****abc")));
        assert_ne!(hashed(field("x")), hashed(json!({ "config": { "api_key": "x", "provider": "@q" } })));
    }
}
