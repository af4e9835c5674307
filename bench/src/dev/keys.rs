//! The two keys of a development stack, kept in `.run/keys` so that a second start prints the same ones. A deployment
//! never does this: there a key is shown once and only its hash is stored.

use super::folder::RunFolder;
use shared::identity::api_key::{self, KeyHash};
use std::fmt::Write as _;
use tokio_postgres::Client;

const FILE: &str = "keys";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Offered to the first start, which makes it the owner's key if the database is new.
    pub admin: String,
    pub workspace: Option<String>,
}

impl Keys {
    /// The kept ones. An admin key is given or made up, and kept before anybody uses it.
    pub fn load(folder: &RunFolder, given: Option<&str>, prefix: &str) -> anyhow::Result<Self> {
        let stored = folder.read(FILE).unwrap_or_default();
        let value =
            |name: &str| stored.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned()));
        // A kept key may already open the database; one given later opens nothing.
        let admin = value("GATEWAY_ADMIN_KEY").or_else(|| given.filter(|key| !key.is_empty()).map(str::to_owned));
        let admin = admin.unwrap_or_else(|| api_key::generate(prefix));
        let keys = Self { admin, workspace: value("GATEWAY_WORKSPACE_KEY") };
        keys.save(folder)?;
        Ok(keys)
    }

    pub fn save(&self, folder: &RunFolder) -> anyhow::Result<()> {
        let mut text = format!("GATEWAY_ADMIN_KEY={}\n", self.admin);
        if let Some(key) = &self.workspace {
            let _ = writeln!(text, "GATEWAY_WORKSPACE_KEY={key}");
        }
        folder.write_private(FILE, &text)
    }
}

/// Whether this database knows the key and would accept it.
pub async fn is_known(client: &Client, key: &str) -> anyhow::Result<bool> {
    const KNOWN: &str = "SELECT 1 FROM api_keys WHERE hash = $1 AND status = 'active'";
    let hash = KeyHash::from_key(key.as_bytes());
    Ok(client.query_opt(KNOWN, &[&hash.0.as_slice()]).await?.is_some())
}

/// Gives a kept key what newer versions give a new one.
pub async fn widen(client: &Client, key: &str, scopes: &[&str]) -> anyhow::Result<()> {
    const WIDEN: &str = "UPDATE api_keys SET scopes = ARRAY(SELECT DISTINCT unnest(scopes || $2::text[]) ORDER BY 1)
        WHERE hash = $1 AND NOT scopes @> $2::text[]";
    let hash = KeyHash::from_key(key.as_bytes());
    client.execute(WIDEN, &[&hash.0.as_slice(), &scopes]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_a_restart() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::take(place.path()).unwrap();
        let mut first = Keys::load(&folder, None, "pk_").unwrap();
        assert_eq!(Keys::load(&folder, None, "pk_").unwrap(), first);
        first.workspace = Some("pk_w".into());
        first.save(&folder).unwrap();
        assert_eq!(Keys::load(&folder, Some("pk_later"), "pk_").unwrap(), first);
    }

    #[test]
    fn a_given_key_is_offered_to_an_empty_run_folder_and_an_empty_one_counts_as_none() {
        for (given, is_used) in [(Some("pk_given"), true), (Some(""), false), (None, false)] {
            let place = tempfile::tempdir().unwrap();
            let folder = RunFolder::take(place.path()).unwrap();
            let admin = Keys::load(&folder, given, "pk_").unwrap().admin;
            assert_eq!(admin == "pk_given", is_used, "{given:?}");
            assert!(!admin.is_empty());
        }
    }
}
