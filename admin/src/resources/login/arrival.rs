//! Somebody comes back from an identity provider: who is that here? By issuer and subject, if they were here before. By
//! their address only if the provider vouches for it, and only inside the organisation whose provider it is, so that
//! no organisation's provider can log anybody into another.

mod claim_rules;
mod joining;

pub use joining::JoinedWorkspace;

use super::{LoginProvider, owner_links};
use crate::http::{ApiError, text};
use serde_json::Value;
use tokio_postgres::Transaction;
use uuid::Uuid;

/// What an identity provider says of somebody. Everything that had to be verified (signature, audience, time, replay)
/// was verified by whoever makes one.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Whose identity provider it is: of the login that was begun, never of anything that came back.
    pub organisation_id: Uuid,
    pub provider: LoginProvider,
    pub issuer: String,
    pub subject: String,
    pub email: String,
    /// Whether the provider vouches for the address. Without that it finds nobody.
    pub email_verified: bool,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    /// All that was said, for the rules of roles and workspaces.
    pub claims: Value,
}

/// A person of the organisation, and what became of them in this login.
#[derive(Debug)]
pub struct Arrived {
    pub user_id: Uuid,
    pub email: String,
    /// They were not there before.
    pub is_new: bool,
    pub invite_id: Option<Uuid>,
    /// The role that claims gave, if it is another than before.
    pub new_role: Option<&'static str>,
    /// Workspaces that they are in as of now; keys may come with them.
    pub joined: Vec<JoinedWorkspace>,
    /// Workspaces that claims no longer give them.
    pub left: Vec<Uuid>,
}

#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("This person was removed from the organisation")]
    Removed,
    #[error("The identity provider does not vouch for the e-mail address")]
    UnverifiedEmail,
    #[error("The identity provider sent no e-mail address, or no name for the person that can be used")]
    Unusable,
    #[error("Another account of the identity provider belongs to this e-mail address")]
    OtherAccount,
    #[error("An owner is signed in by an identity provider only after they allowed it")]
    OwnerNotAsked,
    #[error("Nobody with this e-mail address is in the organisation or invited to it")]
    NotInvited,
    #[error("Users of this organisation are managed through SCIM only")]
    ScimOnly,
    #[error(transparent)]
    Failed(#[from] ApiError),
}

impl From<tokio_postgres::Error> for Refused {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Removed => Self::Forbidden("This person was removed from the organisation"),
            Refused::UnverifiedEmail => {
                Self::Forbidden("The identity provider does not vouch for the e-mail address (email_verified)")
            }
            Refused::Unusable => Self::Forbidden("The identity provider sent no e-mail address that can be used"),
            Refused::OtherAccount => {
                Self::Forbidden("Another account of the identity provider belongs to this e-mail address")
            }
            Refused::OwnerNotAsked => Self::Forbidden(
                "An owner is signed in by an identity provider only after they allowed it; sign in by a link, then \
                 POST /v1/auth/owner-links",
            ),
            Refused::NotInvited => {
                Self::Forbidden("Nobody with this e-mail address is in the organisation or invited to it")
            }
            Refused::ScimOnly => Self::Forbidden("Users of this organisation are managed through SCIM only"),
            Refused::Failed(error) => error,
        }
    }
}

const MAX_NAME: usize = 1024;

/// Finds or makes the person, inside the caller's transaction; nothing of it holds when that is rolled back.
pub async fn arrive(tx: &Transaction<'_>, arrival: &Arrival) -> Result<Arrived, Refused> {
    let is_usable = |name: &str| (1..=MAX_NAME).contains(&name.len()) && !name.contains('\0');
    if !is_usable(&arrival.issuer) || !is_usable(&arrival.subject) {
        return Err(Refused::Unusable);
    }
    let mut arrived = match known(tx, arrival).await? {
        Some(arrived) => arrived,
        None => by_address(tx, arrival).await?,
    };
    claim_rules::apply(tx, arrival, &mut arrived).await?;
    Ok(arrived)
}

/// Who was here before with this account. Their address may have changed since, here or there.
async fn known(tx: &Transaction<'_>, arrival: &Arrival) -> Result<Option<Arrived>, Refused> {
    const FIND: &str = "SELECT u.id, u.email, u.status = 'active' AS is_active
        FROM user_identities i JOIN users u ON u.id = i.user_id AND u.organisation_id = i.organisation_id
        WHERE i.organisation_id = $1 AND i.issuer = $2 AND i.subject = $3";
    const FORGET: &str = "DELETE FROM user_identities WHERE organisation_id = $1 AND issuer = $2 AND subject = $3";
    let account: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&arrival.organisation_id, &arrival.issuer, &arrival.subject];
    let Some(row) = tx.query_opt(FIND, &account).await? else { return Ok(None) };
    if row.try_get("is_active")? {
        return Ok(Some(Arrived::existing(row.try_get("id")?, row.try_get("email")?)));
    }
    // Who was removed comes back by an invitation, as somebody new; `by_address` looks for one.
    tx.execute(FORGET, &account).await?;
    Ok(None)
}

async fn by_address(tx: &Transaction<'_>, arrival: &Arrival) -> Result<Arrived, Refused> {
    // Two first logins of one person, or one of two accounts with one address, wait for each other.
    const ALONE: &str = "SELECT pg_advisory_xact_lock(hashtextextended('login ' || $1, 0))";
    const IDENTITY: &str =
        "INSERT INTO user_identities (organisation_id, issuer, subject, user_id) VALUES ($1, $2, $3, $4)";
    let email = text::email("email", &arrival.email).map_err(|_| Refused::Unusable)?;
    if !arrival.email_verified {
        return Err(Refused::UnverifiedEmail);
    }
    tx.execute(ALONE, &[&format!("{} {}", arrival.organisation_id, email.to_lowercase())]).await?;
    // The other one may have been the same.
    if let Some(arrived) = known(tx, arrival).await? {
        return Ok(arrived);
    }
    let arrived = match existing(tx, arrival, &email).await? {
        Some(arrived) => arrived,
        None => joining::join(tx, arrival, &email).await?,
    };
    tx.execute(IDENTITY, &[&arrival.organisation_id, &arrival.issuer, &arrival.subject, &arrived.user_id]).await?;
    Ok(arrived)
}

/// An active person with the address, unless another account of the same provider is theirs: addresses are given to
/// somebody else sooner or later, accounts are not. An owner only if they allowed it.
async fn existing(tx: &Transaction<'_>, arrival: &Arrival, email: &str) -> Result<Option<Arrived>, Refused> {
    const FIND: &str = "SELECT u.id, u.email, u.role = 'owner' AS is_owner, EXISTS (SELECT FROM user_identities i
            WHERE i.organisation_id = u.organisation_id AND i.user_id = u.id AND i.issuer = $3) AS has_other
        FROM users u WHERE u.organisation_id = $1 AND lower(u.email) = lower($2) AND u.status = 'active'";
    let Some(row) = tx.query_opt(FIND, &[&arrival.organisation_id, &email, &arrival.issuer]).await? else {
        return Ok(None);
    };
    if row.try_get("has_other")? {
        return Err(Refused::OtherAccount);
    }
    let user_id = row.try_get("id")?;
    if row.try_get("is_owner")? && !owner_links::take(tx, arrival.organisation_id, user_id, &arrival.issuer).await? {
        return Err(Refused::OwnerNotAsked);
    }
    Ok(Some(Arrived::existing(user_id, row.try_get("email")?)))
}

impl Arrived {
    fn existing(user_id: Uuid, email: String) -> Self {
        Self { user_id, email, is_new: false, invite_id: None, new_role: None, joined: Vec::new(), left: Vec::new() }
    }
}
