//! Invitations: how people join. The link carries a token that is stored as a hash, shown to the inviter once and
//! mailed to the person invited. An invitation ends by being accepted, cancelled, or after seven days.

mod accept;
mod create;
mod docs;
mod status;

use super::organisation::refuse_if_scim_only;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource, Routes};
use crate::http::{ApiError, Time};
use crate::identity::Call;
use crate::resources::api_keys::issue::PromisedKey;
use axum::Json;
use axum::extract::{Path, State};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use status::InviteStatus;
use tokio_postgres::Row;
use uuid::Uuid;

pub fn routes() -> Routes {
    let item = format!("{}/{{inviteId}}", Invite::PATH);
    Routes::default()
        .post(Invite::PATH, create::create)
        .get(Invite::PATH, crud::list::<Invite>)
        .get(&item, crud::read::<Invite>)
        .delete(&item, cancel)
        .post(&format!("{item}/resend"), create::resend)
        .post(&format!("{}/accept", Invite::PATH), accept::accept)
        .describe(docs::docs())
}

#[derive(Serialize)]
struct Invite {
    id: Uuid,
    email: String,
    role: String,
    status: InviteStatus,
    workspaces: Vec<Seat>,
    first_name: Option<String>,
    last_name: Option<String>,
    invited_by: Uuid,
    created_at: Time,
    last_updated_at: Time,
    expires_at: Time,
    accepted_at: Option<Time>,
    /// What keys to make on acceptance; not shown.
    #[serde(skip)]
    key: Option<KeyDetails>,
}

/// A place in a workspace that comes with the invitation.
#[derive(Serialize, Deserialize)]
struct Seat {
    /// Exactly as the inviter wrote it, id or slug: one client refuses anything else.
    id: String,
    workspace_id: Uuid,
    role: String,
}

/// The key that acceptance makes in each of the workspaces.
#[derive(Serialize, Deserialize)]
struct KeyDetails {
    scopes: Vec<String>,
    name: Option<String>,
    expiry: Option<String>,
    metadata: Option<std::collections::BTreeMap<String, String>>,
}

/// Without a job: time alone makes a pending invitation an expired one.
const STATUS: &str = "(CASE WHEN status = 'pending' AND expires_at <= now() THEN 'expired' ELSE status END)";

impl Resource for Invite {
    type Create = IgnoredAny;
    type Update = IgnoredAny;
    const OBJECT: &'static str = "invite";
    const PATH: &'static str = "/admin/users/invites";
    const TABLE: Table = Table {
        name: "user_invites",
        columns: SelectList::Sql(
            "id, email, role, workspaces, first_name, last_name, invited_by, created_at, last_updated_at,
                  expires_at, accepted_at, workspace_api_key_details,
                  (CASE WHEN status = 'pending' AND expires_at <= now() THEN 'expired' ELSE status END) AS status",
        ),
        slug: None,
        tenancy: Tenancy::Organisation,
        on_delete: OnDelete::Delete,
    };
    const UNIQUE: &'static str = "e-mail address";

    fn from_row(row: &Row) -> Result<Self, RowError> {
        let (seats, key): (Value, Option<Value>) =
            (row.try_get("workspaces")?, row.try_get("workspace_api_key_details")?);
        Ok(Self {
            id: row.try_get("id")?,
            email: row.try_get("email")?,
            role: row.try_get("role")?,
            status: row::column(row, "status")?,
            // Written from these very types.
            workspaces: serde_json::from_value(seats).unwrap_or_default(),
            first_name: row.try_get("first_name")?,
            last_name: row.try_get("last_name")?,
            invited_by: row.try_get("invited_by")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            expires_at: row.try_get("expires_at")?,
            accepted_at: row.try_get("accepted_at")?,
            key: key.and_then(|key| serde_json::from_value(key).ok()),
        })
    }

    fn id(&self) -> Uuid {
        self.id
    }

    async fn create(_: &Action<'_>, _: IgnoredAny) -> Result<Columns, ApiError> {
        Err(ApiError::NotBuilt)
    }

    async fn update(_: &Action<'_>, _: &Self, _: IgnoredAny) -> Result<Columns, ApiError> {
        Err(ApiError::NotBuilt)
    }

    /// A list leaves out what was cancelled, unless asked for it; by id everything stays readable.
    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let query = call.query();
        let statuses = query.choices("status", &["pending", "accepted", "cancelled", "expired"])?;
        let mut filter = match statuses.is_empty() {
            true => Filter::default().holds("status <> 'cancelled'"),
            false => Filter::default().one_of(STATUS, statuses),
        };
        let roles = query.choices("role", &["admin", "member"])?;
        if !roles.is_empty() {
            filter = filter.one_of("role", roles);
        }
        if let Some(email) = query.text("email") {
            filter = filter.and("lower(email) = lower(?)", email.to_owned());
        }
        Ok(filter)
    }
}

/// The key that an invitation promised, as its row has it, for who accepts it by signing in.
pub fn promised_key(details: &Value) -> Option<PromisedKey> {
    let details: KeyDetails = serde_json::from_value(details.clone()).ok()?;
    Some(accept::promise(&details))
}

impl Invite {
    fn is_open(&self) -> bool {
        matches!(self.status, InviteStatus::Pending | InviteStatus::Expired)
    }
}

async fn cancel(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let invite = crud::held::<Invite>(&mut action, &id, None).await?;
    if !invite.is_open() {
        return Err(ApiError::invalid(format!("This invite is {} and cannot be cancelled", invite.status.as_str())));
    }
    let columns = Columns::default().set("status", "cancelled");
    Invite::TABLE.update(&action.tx, invite.id, &columns).await?;
    let change = Change { resource_id: invite.id.to_string(), before: Some(invite.shown(&call)), after: None };
    action.commit(change).await?;
    Ok(Json(json!({})))
}

/// Inviting makes no sense where people come from a directory, nor for who is there already.
async fn may_invite(action: &Action<'_>, email: &str) -> Result<(), ApiError> {
    const USER: &str =
        "SELECT FROM users WHERE organisation_id = $1 AND lower(email) = lower($2) AND status = 'active'";
    refuse_if_scim_only(&action.tx, action.organisation_id()).await?;
    match action.tx.query_opt(USER, &[&action.organisation_id(), &email]).await? {
        Some(_) => Err(ApiError::Conflict("There is a user with this e-mail address already".into())),
        None => Ok(()),
    }
}
