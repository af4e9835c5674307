//! Owners of the organisation. They are made and unmade by owners alone, by their own session: keys and admins could
//! become one otherwise. There is always one left, also when two owners act at once, and all of them get a letter.

use crate::crud::Action;
use crate::http::ApiError;
use crate::identity::Caller;
use crate::mail::{
    self,
    owners::{self, OwnerNews},
};
use tokio_postgres::GenericClient;
use uuid::Uuid;

const FOR_OWNERS: ApiError = ApiError::Forbidden(
    "An owner of the organisation is made, changed and removed by owners alone, signed in as themselves",
);

pub fn may_change(caller: &Caller) -> Result<(), ApiError> {
    if caller.is_signed_in_owner() { caller.require_recent_sign_in() } else { Err(FOR_OWNERS) }
}

/// Makes somebody an owner in the action's transaction; the caller writes the role.
pub async fn promote(action: &Action<'_>, person: Uuid, email: &str) -> Result<(), ApiError> {
    hold(action, person).await?;
    tell(action, person, &OwnerNews::IsOwner(email)).await
}

/// An owner becomes somebody else, or leaves.
pub async fn demote(action: &Action<'_>, person: Uuid, email: &str) -> Result<(), ApiError> {
    const OTHERS: &str = "SELECT FROM users
        WHERE organisation_id = $1 AND id <> $2 AND role = 'owner' AND status = 'active' LIMIT 1";
    hold(action, person).await?;
    if action.tx.query_opt(OTHERS, &[&action.organisation_id(), &person]).await?.is_none() {
        return Err(ApiError::Conflict(
            "This is the last owner of the organisation: make somebody else an owner first".into(),
        ));
    }
    tell(action, person, &OwnerNews::IsOwnerNoMore(email)).await
}

/// A former owner is no owner when their row comes back to life.
pub async fn forget(action: &Action<'_>, person: Uuid) -> Result<(), ApiError> {
    const FORGET: &str = "UPDATE users SET role = 'member' WHERE id = $1 AND organisation_id = $2";
    action.tx.execute(FORGET, &[&person, &action.organisation_id()]).await?;
    Ok(())
}

/// Owners change one after the other, and each by who is an owner still: `person` may have just left by themselves. The
/// row of the organisation is not what is locked, since others lock it before a person's.
async fn hold(action: &Action<'_>, person: Uuid) -> Result<(), ApiError> {
    const HOLD: &str = "SELECT pg_advisory_xact_lock(hashtextextended('owners ' || $1::uuid::text, 0))";
    const IS_OWNER: &str = "SELECT FROM users
        WHERE organisation_id = $1 AND id = $2 AND role = 'owner' AND (status = 'active' OR id = $3)";
    let organisation = action.organisation_id();
    action.tx.execute(HOLD, &[&organisation]).await?;
    let caller = action.call.caller.user_id();
    match action.tx.query_opt(IS_OWNER, &[&organisation, &caller, &person]).await? {
        Some(_) => Ok(()),
        None => Err(FOR_OWNERS),
    }
}

/// Who is, who was and who becomes one; part of the transaction, so that there is no letter about what did not happen.
async fn tell(action: &Action<'_>, person: Uuid, news: &OwnerNews<'_>) -> Result<(), ApiError> {
    let organisation = action.organisation_id();
    let by = action.call.caller.user_id();
    let owners = addresses(&action.tx, organisation, person, by).await?;
    for to in owners.to {
        mail::put(&action.tx, organisation, &owners::letter(to, &owners.organisation, news, &owners.by)).await?;
    }
    Ok(())
}

struct Addresses {
    organisation: String,
    by: String,
    to: Vec<String>,
}

async fn addresses(
    db: &impl GenericClient,
    organisation: Uuid,
    person: Uuid,
    by: Option<Uuid>,
) -> Result<Addresses, ApiError> {
    const NAMES: &str = "SELECT o.name, coalesce(u.email, '') AS email
        FROM organisations o LEFT JOIN users u ON u.organisation_id = o.id AND u.id = $2 WHERE o.id = $1";
    const TO: &str =
        "SELECT email FROM users WHERE organisation_id = $1 AND (id = $2 OR role = 'owner' AND status = 'active')
        ORDER BY created_at, id";
    let names = db.query_one(NAMES, &[&organisation, &by]).await?;
    let rows = db.query(TO, &[&organisation, &person]).await?;
    let to = rows.iter().map(|row| row.try_get("email")).collect::<Result<_, _>>()?;
    Ok(Addresses { organisation: names.try_get("name")?, by: names.try_get("email")?, to })
}
