//! People of the organisation. They join by invitation (or sign-in, or SCIM), so nothing is created here; whoever
//! leaves is archived, and with them their memberships and keys. Owners are changed by owners alone (`owners`).

mod owners;

use super::login::sessions;
use super::organisation::refuse_if_scim_only;
use crate::crud::{self, Action, Resource, Routes, Verb};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::Call;
use crate::openapi::{Doc, choices, schema};
use crate::resources::api_keys::authority;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::model::Status;
use tokio_postgres::Row;
use uuid::Uuid;

pub fn routes() -> Routes {
    let item = format!("{}/{{userId}}", User::PATH);
    Routes::default()
        .get(User::PATH, crud::list::<User>)
        .get(&item, crud::read::<User>)
        .put(&item, crud::update::<User>)
        .delete(&item, crud::delete::<User>)
        .describe(docs())
}

fn docs() -> [Doc; 4] {
    let name = |example: &str| schema::text(0..=255).eg(example).or_null();
    let user = schema::shown("User", User::OBJECT)
        .need("first_name", name("Ada"))
        .need("last_name", name("Lovelace"))
        .need("role", schema::choice(&["member", "admin", "owner"]))
        .need("email", schema::any_text().eg("ada@example.com"))
        .need("status", schema::choice(&["active", "archived"]))
        .need("workspace_ids", schema::list(schema::any_text().eg("ws-market-3f9a01")).says("Slugs."))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
        .need("updated_at", schema::time());
    let change = schema::object("UserChange")
        .need(
            "role",
            schema::choice(&["member", "admin", "owner"])
                .says("Owners are made, changed and removed by an owner's session."),
        )
        .may("first_name", name("Ada"))
        .may("last_name", name("Lovelace"));
    [
        Doc::list::<User>(&user)
            .filter("role", choices(&["owner", "admin", "member"]))
            .filter("status", choices(&["active", "archived"]))
            .filter("email", schema::any_text().eg("ada@example.com"))
            .filter("search", schema::any_text().eg("ada").says("Part of the name or address.")),
        Doc::read::<User>(&user),
        Doc::update::<User>(change).details(
            "An owner makes others owners by their session, and may then become something else: the last owner stays one.",
        ),
        Doc::delete::<User>().details("Their memberships and keys go with them. The last owner stays."),
    ]
}

#[derive(Serialize, Deserialize)]
struct User {
    id: Uuid,
    first_name: Option<String>,
    last_name: Option<String>,
    role: String,
    email: String,
    status: Status,
    /// Slugs; owners and admins are in every workspace.
    workspace_ids: Vec<String>,
    created_at: Time,
    last_updated_at: Time,
    /// The same time under the name that one client reads.
    updated_at: Time,
}

#[derive(Deserialize)]
struct UserChange {
    role: OrganisationRole,
    #[serde(default)]
    first_name: Field<String>,
    #[serde(default)]
    last_name: Field<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OrganisationRole {
    Owner,
    Admin,
    Member,
}

impl OrganisationRole {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

/// As which somebody is invited: nobody begins as an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Admin,
    Member,
}

impl Role {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

const OWNER: &str = "owner";

pub const NOT_AN_ADMIN: ApiError = ApiError::Forbidden(
    "An admin of the organisation is made by the session of an owner or admin, or by a key that holds every admin scope",
);

impl Resource for User {
    type Create = IgnoredAny;
    type Update = UserChange;
    const OBJECT: &'static str = "user";
    const PATH: &'static str = "/admin/users";
    const TABLE: Table = Table {
        name: "users",
        columns: SelectList::Sql(
            "id, first_name, last_name, role, email, status, created_at, last_updated_at,
                  last_updated_at AS updated_at,
                  (SELECT coalesce(array_agg(w.slug ORDER BY w.created_at, w.id), '{}') FROM workspaces w
                   WHERE w.organisation_id = users.organisation_id AND w.status = 'active' AND users.status = 'active'
                     AND (users.role IN ('owner', 'admin') OR EXISTS (SELECT FROM workspace_members m
                          WHERE m.workspace_id = w.id AND m.user_id = users.id))) AS workspace_ids",
        ),
        slug: None,
        tenancy: Tenancy::Organisation,
        on_delete: OnDelete::Archive,
    };
    const UNIQUE: &'static str = "e-mail address";

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    async fn create(_: &Action<'_>, _: IgnoredAny) -> Result<Columns, ApiError> {
        Err(ApiError::NotBuilt)
    }

    async fn update(action: &Action<'_>, current: &Self, body: UserChange) -> Result<Columns, ApiError> {
        let role = Some(body.role.as_str()).filter(|role| *role != current.role);
        // A directory makes and unmakes no owner, so owners hand over here wherever people come from.
        let is_about_owner = (body.role == OrganisationRole::Owner || current.role == OWNER) && role.is_some();
        if !is_about_owner || body.first_name.is_sent() || body.last_name.is_sent() {
            refuse_if_scim_only(&action.tx, action.organisation_id()).await?;
        }
        if body.role == OrganisationRole::Owner && role.is_some() {
            owners::may_change(&action.call.caller)?;
            owners::promote(action, current.id, &current.email).await?;
        } else if current.role == OWNER && role.is_some() {
            owners::demote(action, current.id, &current.email).await?;
        }
        if body.role == OrganisationRole::Admin && role.is_some() && !authority::may_make_admin(&action.call.caller) {
            return Err(NOT_AN_ADMIN);
        }
        let first_name = body.first_name.try_map(|name| text::sized("first_name", name, 0..=255))?;
        let last_name = body.last_name.try_map(|name| text::sized("last_name", name, 0..=255))?;
        Ok(Columns::default()
            .set_if("role", role)
            .set_if("first_name", first_name.sent().filter(|name| *name != current.first_name))
            .set_if("last_name", last_name.sent().filter(|name| *name != current.last_name)))
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let query = call.query();
        let mut filter = Filter::default();
        let roles = query.choices("role", &["owner", "admin", "member"])?;
        if !roles.is_empty() {
            filter = filter.one_of("role", roles);
        }
        let statuses = query.choices("status", &["active", "archived"])?;
        if !statuses.is_empty() {
            filter = filter.one_of("status", statuses);
        }
        if let Some(email) = query.text("email") {
            filter = filter.and("lower(email) = lower(?)", email.to_owned());
        }
        if let Some(text) = query.text("search") {
            const FOUND: &str = "(strpos(lower(email), lower(?)) > 0
                                  OR strpos(lower(concat_ws(' ', first_name, last_name)), lower(?)) > 0)";
            filter = filter.and(FOUND, text.to_owned());
        }
        Ok(filter)
    }

    fn may_change(&self, call: &Call) -> Result<(), ApiError> {
        if self.role == OWNER { owners::may_change(&call.caller) } else { Ok(()) }
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Delete {
            refuse_if_scim_only(&action.tx, action.organisation_id()).await?;
            if self.role == OWNER {
                owners::demote(action, self.id, &self.email).await?;
                owners::forget(action, self.id).await?;
            }
            leave(action, self.id).await?;
        }
        Ok(())
    }
}

/// What goes with a person who leaves: sessions, memberships, and the keys that acted for them.
pub async fn leave(action: &Action<'_>, user: Uuid) -> Result<(), ApiError> {
    sessions::end_all(&action.tx, action.organisation_id(), user).await?;
    const MEMBERSHIPS: &str = "DELETE FROM workspace_members WHERE user_id = $1";
    const KEYS: &str = "UPDATE api_keys SET status = 'archived', last_updated_at = now()
                        WHERE user_id = $1 AND status <> 'archived'";
    action.tx.execute(MEMBERSHIPS, &[&user]).await?;
    action.tx.execute(KEYS, &[&user]).await?;
    Ok(())
}
