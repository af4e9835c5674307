//! The accounts behind virtual keys: integrations of a workspace that nobody sees by themselves.

use super::secrets::{self, Fields};
use super::{AccountChange, Integration, change};
use crate::crud::{Action, Resource as _};
use crate::http::{ApiError, text};
use uuid::Uuid;

pub async fn add_hidden(
    action: &Action<'_>,
    workspace: Uuid,
    name: &str,
    provider: &str,
    account: AccountChange,
) -> Result<Uuid, ApiError> {
    let id = Uuid::new_v4();
    let columns = change::account(action, id, provider, account).await?;
    let columns = columns
        .set("organisation_id", action.organisation_id())
        .set("workspace_id", workspace)
        .set("name", name.to_owned())
        .set("slug", text::generated_slug("", name, 240))
        .set("is_hidden", true)
        .set("created_by", action.call.caller.actor_id());
    Integration::TABLE.insert(&action.tx, &columns).await?;
    Ok(id)
}

pub async fn change_hidden(action: &Action<'_>, id: Uuid, account: AccountChange) -> Result<(), ApiError> {
    let sql = format!(
        "SELECT {} FROM integrations WHERE id = $1 AND organisation_id = $2 AND is_hidden FOR NO KEY UPDATE",
        Integration::TABLE.columns
    );
    let row = action.tx.query_opt(&sql, &[&id, &action.organisation_id()]).await?;
    let current = Integration::from_row(&row.ok_or(ApiError::NotFound(Integration::OBJECT))?)?;
    let columns = change::account_changed(action, &current, account).await?;
    if !columns.is_empty() {
        Integration::TABLE.update(&action.tx, id, &columns).await?;
    }
    Ok(())
}

/// What may be read of these fields, and masks of the rest.
pub fn without_secrets(fields: Fields) -> (Fields, Fields) {
    let parts = secrets::parted(fields);
    let masks = secrets::masks(&parts.secret);
    (parts.plain, masks)
}
