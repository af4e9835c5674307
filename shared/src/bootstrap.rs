//! The first tenant, and further ones: organisation, default workspace, owner and an admin key.
//!
//! There are no default credentials: a key is given by the operator or drawn at random, handed to the caller once to be
//! shown, and stored only as its hash.

use crate::identity::{api_key, scopes};
use crate::model::KeyKind;
use crate::settings;
use std::fmt;
use tokio_postgres::{Client, GenericClient, Transaction};
use uuid::Uuid;

/// Serialises first starts: two admins on an empty store make one organisation.
const LOCK: i64 = 0x706f_7274_6375_6c02;

const DEFAULT_WORKSPACE: &str = "Shared Team Workspace";

#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    #[error("{setting} {problem}")]
    Invalid { setting: &'static str, problem: &'static str },
    #[error("`{0}` is not a scope of this kind of key")]
    UnknownScope(String),
    #[error("there is no active workspace with this id")]
    NoWorkspace,
    #[error("the database failed: {}", crate::db::explain(.0))]
    Database(#[from] tokio_postgres::Error),
}

/// A key at the one moment when it is known.
#[derive(Clone)]
pub struct IssuedKey {
    pub id: Uuid,
    pub key: String,
}

impl fmt::Debug for IssuedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedKey").field("id", &self.id).field("key", &"…").finish()
    }
}

#[derive(Debug, Clone)]
pub struct FirstKeys {
    pub organisation_id: Uuid,
    pub workspace_id: Uuid,
    pub owner_id: Uuid,
    pub admin_key: IssuedKey,
    /// False when the operator gave the key and so knows it already.
    pub is_generated: bool,
}

/// Makes the first organisation; `None` when there is one already.
pub async fn run(
    client: &mut Client,
    settings: &settings::Bootstrap,
    api_key_prefix: &str,
) -> Result<Option<FirstKeys>, BootstrapError> {
    let transaction = client.transaction().await?;
    let keys = run_within(&transaction, settings, api_key_prefix).await?;
    transaction.commit().await?;
    Ok(keys)
}

/// The same as a part of something larger.
pub async fn run_within(
    transaction: &Transaction<'_>,
    settings: &settings::Bootstrap,
    api_key_prefix: &str,
) -> Result<Option<FirstKeys>, BootstrapError> {
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let found = transaction.query_one("SELECT EXISTS (SELECT FROM organisations)", &[]).await?;
    if found.try_get(0)? {
        return Ok(None);
    }
    let tenant = NewTenant {
        name: checked_name("BOOTSTRAP_ORGANISATION", &settings.bootstrap_organisation)?,
        owner_email: checked_email("BOOTSTRAP_OWNER_EMAIL", &settings.bootstrap_owner_email)?,
        admin_key: settings.bootstrap_admin_key.as_deref().map(checked_key).transpose()?,
    };
    insert(transaction, tenant, api_key_prefix).await.map(Some)
}

/// Makes a further organisation with a generated admin key.
pub async fn create_organisation(
    client: &mut Client,
    name: &str,
    owner_email: &str,
    api_key_prefix: &str,
) -> Result<FirstKeys, BootstrapError> {
    let transaction = client.transaction().await?;
    let keys = create_organisation_within(&transaction, name, owner_email, api_key_prefix).await?;
    transaction.commit().await?;
    Ok(keys)
}

/// The same as a part of something larger.
pub async fn create_organisation_within(
    transaction: &Transaction<'_>,
    name: &str,
    owner_email: &str,
    api_key_prefix: &str,
) -> Result<FirstKeys, BootstrapError> {
    let tenant = NewTenant {
        name: checked_name("the name", name)?,
        owner_email: checked_email("the owner's address", owner_email)?,
        admin_key: None,
    };
    insert(transaction, tenant, api_key_prefix).await
}

/// Makes a service key of a workspace, with the given scopes.
pub async fn create_workspace_key(
    client: &impl GenericClient,
    workspace: Uuid,
    name: &str,
    scopes: &[&str],
    api_key_prefix: &str,
) -> Result<IssuedKey, BootstrapError> {
    const INSERT: &str = "INSERT INTO api_keys (organisation_id, workspace_id, kind, name, hash, mask, scopes)
                          SELECT organisation_id, id, $2, $3, $4, $5, $6 FROM workspaces WHERE id = $1 AND status = 'active'
                          RETURNING id";
    let kind = KeyKind::WorkspaceService;
    let allowed = scopes::all_for(kind);
    if let Some(unknown) = scopes.iter().find(|scope| !allowed.contains(scope)) {
        return Err(BootstrapError::UnknownScope((*unknown).to_owned()));
    }
    let key = api_key::generate(api_key_prefix);
    let (hash, mask) = stored_form(&key);
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&workspace, &kind.as_str(), &name, &hash, &mask, &scopes];
    match client.query_opt(INSERT, &values).await? {
        Some(row) => Ok(IssuedKey { id: row.try_get(0)?, key }),
        None => Err(BootstrapError::NoWorkspace),
    }
}

/// The default workspace of the oldest organisation: where a single-tenant installation works.
pub async fn first_workspace(client: &impl GenericClient) -> Result<Option<Uuid>, BootstrapError> {
    const OLDEST: &str = "SELECT w.id FROM workspaces w JOIN organisations o ON o.id = w.organisation_id
                          WHERE w.is_default ORDER BY o.created_at, o.id LIMIT 1";
    Ok(client.query_opt(OLDEST, &[]).await?.map(|row| row.try_get(0)).transpose()?)
}

struct NewTenant<'a> {
    name: &'a str,
    owner_email: &'a str,
    admin_key: Option<&'a str>,
}

async fn insert(db: &Transaction<'_>, tenant: NewTenant<'_>, prefix: &str) -> Result<FirstKeys, BootstrapError> {
    const ORGANISATION: &str = "INSERT INTO organisations (name) VALUES ($1) RETURNING id";
    const OWNER: &str = "INSERT INTO users (organisation_id, email, role) VALUES ($1, $2, 'owner') RETURNING id";
    const WORKSPACE: &str =
        "INSERT INTO workspaces (organisation_id, slug, name, is_default, creation_source, created_by)
                             VALUES ($1, $2, $3, true, 'default', $4) RETURNING id";
    const KEY: &str =
        "INSERT INTO api_keys (organisation_id, kind, name, hash, mask, scopes, creation_mode, created_by)
                       VALUES ($1, $2, 'Bootstrap admin key', $3, $4, $5, 'auto', $6) RETURNING id";
    let organisation_id: Uuid = db.query_one(ORGANISATION, &[&tenant.name]).await?.try_get(0)?;
    let owner_id: Uuid = db.query_one(OWNER, &[&organisation_id, &tenant.owner_email]).await?.try_get(0)?;
    let slug = format!("ws-shared-{}", hex::encode(rand::random::<[u8; 3]>()));
    let workspace = db.query_one(WORKSPACE, &[&organisation_id, &slug, &DEFAULT_WORKSPACE, &owner_id]).await?;
    let kind = KeyKind::OrganisationService;
    let key = tenant.admin_key.map_or_else(|| api_key::generate(prefix), str::to_owned);
    let (hash, mask) = stored_form(&key);
    let scopes = scopes::all_for(kind);
    let row = db.query_one(KEY, &[&organisation_id, &kind.as_str(), &hash, &mask, &scopes, &owner_id]).await?;
    Ok(FirstKeys {
        organisation_id,
        workspace_id: workspace.try_get(0)?,
        owner_id,
        admin_key: IssuedKey { id: row.try_get(0)?, key },
        is_generated: tenant.admin_key.is_none(),
    })
}

fn stored_form(key: &str) -> (Vec<u8>, String) {
    (api_key::KeyHash::from_key(key.as_bytes()).0.to_vec(), api_key::mask(key))
}

fn checked_name<'a>(setting: &'static str, name: &'a str) -> Result<&'a str, BootstrapError> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 255 || name.contains('\0') {
        return Err(BootstrapError::Invalid { setting, problem: "must have 1 to 255 characters" });
    }
    Ok(name)
}

fn checked_email<'a>(setting: &'static str, email: &'a str) -> Result<&'a str, BootstrapError> {
    let problem = "must be an e-mail address";
    let email = email.trim();
    let is_plain = email.len() <= 320 && !email.contains(|c: char| c.is_whitespace() || c.is_control());
    match email.split_once('@') {
        Some((local, domain)) if is_plain && !local.is_empty() && !domain.is_empty() => Ok(email),
        _ => Err(BootstrapError::Invalid { setting, problem }),
    }
}

/// A given key must travel in a header and be beyond guessing: only the hash protects it, and that hash is fast.
fn checked_key(key: &str) -> Result<&str, BootstrapError> {
    let setting = "BOOTSTRAP_ADMIN_KEY";
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(BootstrapError::Invalid { setting, problem: "must be visible ASCII characters without spaces" });
    }
    let distinct = key.bytes().collect::<std::collections::HashSet<_>>().len();
    if !(32..=255).contains(&key.len()) || distinct < 8 {
        return Err(BootstrapError::Invalid { setting, problem: "must be 32 to 255 random characters" });
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_admin_key_must_be_long_varied_and_fit_for_a_header() {
        for (key, accepted) in [
            ("pk_3fA9zQ7LmX2vB8nK5tR1wY6cD4eG0hJ", true),
            ("0123456789abcdef0123456789abcdef", true),
            ("changeme", false),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("0123456789abcdef 0123456789abcdef", false),
            ("0123456789abcdef0123456789abcdé", false),
        ] {
            assert_eq!(checked_key(key).is_ok(), accepted, "{key}");
        }
    }

    #[test]
    fn a_refused_key_is_not_repeated() {
        let error = checked_key("changeme").err().unwrap();
        assert!(!format!("{error} {error:?}").contains("changeme"));
    }

    #[test]
    fn an_issued_key_does_not_print_itself() {
        let issued = IssuedKey { id: Uuid::nil(), key: "pk_secret".into() };
        assert!(!format!("{issued:?}").contains("secret"));
    }

    #[test]
    fn addresses_and_names_are_checked_before_anything_is_written() {
        for (email, accepted) in
            [("owner@localhost", true), (" a@b.c ", true), ("owner", false), ("@b", false), ("a b@c", false)]
        {
            assert_eq!(checked_email("x", email).is_ok(), accepted, "{email}");
        }
        for (name, accepted) in [("Default", true), ("  ", false), ("a\0b", false)] {
            assert_eq!(checked_name("x", name).is_ok(), accepted, "{name:?}");
        }
    }
}
