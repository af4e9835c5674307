//! Slugs generated from a name, with a random end where the plain one is taken. An advisory lock makes two that want
//! the same slug wait for each other, so a slug that was found free is still free when it is used.

use crate::http::{ApiError, text};
use tokio_postgres::Transaction;
use uuid::Uuid;

/// Where a slug must be unique among rows that are not archived.
#[derive(Debug, Clone, Copy)]
pub struct SlugScope {
    pub table: &'static str,
    /// The column of the owner: an organisation, a workspace.
    pub owner: &'static str,
}

/// Slugs of providers, which integrations make too.
pub const PROVIDER_SLUGS: SlugScope = SlugScope { table: "providers", owner: "workspace_id" };

impl SlugScope {
    /// The slug of this name, or with a random end.
    pub async fn of_name(self, tx: &Transaction<'_>, owner: Uuid, name: &str) -> Result<String, ApiError> {
        let plain = text::slugified(name);
        let plain = plain.get(..240).unwrap_or(&plain).trim_matches('-').to_owned();
        if !plain.is_empty() && tenable(&plain) && self.is_free(tx, owner, &plain).await? {
            return Ok(plain);
        }
        Ok(text::generated_slug("", &plain, 240))
    }

    /// Whether nobody has it. It stays so until the transaction ends, if all who take one ask here first.
    pub async fn is_free(self, tx: &Transaction<'_>, owner: Uuid, slug: &str) -> Result<bool, ApiError> {
        let Self { table, owner: column } = self;
        let name = format!("{table}/{owner}/{slug}");
        tx.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&name]).await?;
        let taken =
            format!("SELECT EXISTS (SELECT FROM {table} WHERE {column} = $1 AND slug = $2 AND status <> 'archived')");
        Ok(!tx.query_one(&taken, &[&owner, &slug]).await?.try_get::<_, bool>(0)?)
    }
}

/// A slug that reads as an id could never be asked for.
fn tenable(slug: &str) -> bool {
    text::slug("slug", slug.to_owned()).is_ok()
}
