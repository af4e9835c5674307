//! Somebody's first login. An invitation decides role and workspaces; without one, people of a proved domain become
//! members, unless the organisation wants nobody who was not invited. Who was removed needs an invitation in any case:
//! otherwise they would be back with their next login.

use super::{Arrival, Arrived, Refused};
use crate::resources::login::domains;
use serde::Deserialize;
use serde_json::Value;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

/// A workspace that somebody is a member of as of this login.
#[derive(Debug)]
pub struct JoinedWorkspace {
    pub workspace_id: Uuid,
    /// The key that an invitation promised (`workspace_api_key_details` of its row).
    pub promised_key: Option<Value>,
}

struct Invite {
    id: Uuid,
    role: String,
    first_name: Option<String>,
    last_name: Option<String>,
    workspaces: Vec<Seat>,
    key: Option<Value>,
}

#[derive(Deserialize)]
struct Seat {
    workspace_id: Uuid,
    role: String,
}

pub async fn join(tx: &Transaction<'_>, arrival: &Arrival, email: &str) -> Result<Arrived, Refused> {
    const USER: &str = "INSERT INTO users (organisation_id, email, role, first_name, last_name)
                        VALUES ($1, $2, $3, $4, $5) RETURNING id";
    const JOINED: &str = "UPDATE user_invites SET user_id = $2 WHERE id = $1";
    let invite = take_invite(tx, arrival.organisation_id, email).await?;
    may_join(tx, arrival.organisation_id, email, invite.is_some()).await?;
    let role = invite.as_ref().map_or("member", |invite| invite.role.as_str());
    let first_name = name(&arrival.first_name).or_else(|| invite.as_ref().and_then(|one| one.first_name.clone()));
    let last_name = name(&arrival.last_name).or_else(|| invite.as_ref().and_then(|one| one.last_name.clone()));
    let values: [&(dyn ToSql + Sync); 5] = [&arrival.organisation_id, &email, &role, &first_name, &last_name];
    let user_id: Uuid = tx.query_one(USER, &values).await?.try_get("id")?;
    let mut arrived = Arrived { is_new: true, ..Arrived::existing(user_id, email.to_owned()) };
    if let Some(invite) = invite {
        tx.execute(JOINED, &[&invite.id, &user_id]).await?;
        for seat in &invite.workspaces {
            if sit(tx, arrival.organisation_id, user_id, seat).await? {
                let promised_key = invite.key.clone();
                arrived.joined.push(JoinedWorkspace { workspace_id: seat.workspace_id, promised_key });
            }
        }
        arrived.invite_id = Some(invite.id);
    }
    Ok(arrived)
}

async fn take_invite(tx: &Transaction<'_>, organisation: Uuid, email: &str) -> Result<Option<Invite>, Refused> {
    const TAKE: &str = "UPDATE user_invites SET status = 'accepted', accepted_at = now(), last_updated_at = now()
        WHERE organisation_id = $1 AND lower(email) = lower($2) AND status = 'pending' AND expires_at > now()
        RETURNING id, role, first_name, last_name, workspaces, workspace_api_key_details";
    let row = tx.query_opt(TAKE, &[&organisation, &email]).await?;
    Ok(row.as_ref().map(Invite::from_row).transpose()?)
}

impl Invite {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let seats: Value = row.try_get("workspaces")?;
        Ok(Self {
            id: row.try_get("id")?,
            role: row.try_get("role")?,
            first_name: row.try_get("first_name")?,
            last_name: row.try_get("last_name")?,
            workspaces: serde_json::from_value(seats).unwrap_or_default(),
            key: row.try_get("workspace_api_key_details")?,
        })
    }
}

async fn may_join(tx: &Transaction<'_>, organisation: Uuid, email: &str, is_invited: bool) -> Result<(), Refused> {
    const RULES: &str = "SELECT coalesce(settings -> 'scim_only_user_management' = 'true', false) AS is_scim_only,
            coalesce(auth_settings -> 'disable_auto_provision_user' = 'true', false) AS is_closed,
            EXISTS (SELECT FROM users u WHERE u.organisation_id = o.id AND lower(u.email) = lower($2)) AS was_here
        FROM organisations o WHERE o.id = $1";
    let row = tx.query_one(RULES, &[&organisation, &email]).await?;
    if row.try_get("is_scim_only")? {
        return Err(Refused::ScimOnly);
    }
    if is_invited {
        return Ok(());
    }
    if row.try_get("was_here")? {
        return Err(Refused::Removed);
    }
    let is_closed: bool = row.try_get("is_closed")?;
    match domains::owner(tx, email).await? {
        Some(owner) if owner == organisation && !is_closed => Ok(()),
        _ => Err(Refused::NotInvited),
    }
}

/// A workspace that was archived meanwhile has no place to offer.
async fn sit(tx: &Transaction<'_>, organisation: Uuid, user: Uuid, seat: &Seat) -> Result<bool, Refused> {
    const MEMBER: &str = "INSERT INTO workspace_members (workspace_id, user_id, organisation_id, role)
        SELECT id, $2::uuid, organisation_id, $4::text FROM workspaces
        WHERE id = $1 AND organisation_id = $3 AND status = 'active' FOR NO KEY UPDATE";
    Ok(tx.execute(MEMBER, &[&seat.workspace_id, &user, &organisation, &seat.role]).await? == 1)
}

/// What a provider says beyond what we can store is left out: a name keeps nobody from signing in.
fn name(sent: &Option<String>) -> Option<String> {
    sent.clone().filter(|name| !name.is_empty() && !name.contains('\0') && name.chars().count() <= 255)
}
