//! `/scim/Users`: people made, changed, deactivated and brought back by the identity provider. Whoever is deactivated
//! loses memberships and keys in the same transaction, of which every replica hears by the change feed.

use super::answer::{self, Done, Outcome, base};
use super::filter_sql::{Attribute, Column, condition};
use super::membership::reconcile;
use super::patch as patching;
use super::person::{COLUMNS, Person, SEVERAL, Wanted};
use super::{filter, groups};
use crate::app::App;
use crate::crud::{self, Action, Change};
use crate::http::ApiError;
use crate::identity::{Call, tenancy};
use crate::resources::login::domains;
use crate::resources::users::leave;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Map, Value};
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

const VISIBLE: &str = "u.organisation_id = $1 AND (u.status = 'active' OR u.is_deactivated)";

const ATTRIBUTES: &[Attribute] = &[
    Attribute { name: "id", column: Column::Exact("u.id::text") },
    Attribute { name: "userName", column: Column::Text("coalesce(u.scim_user_name, u.email)") },
    Attribute { name: "externalId", column: Column::Exact("u.scim_external_id") },
    Attribute { name: "active", column: Column::Bool("(u.status = 'active')") },
    Attribute { name: "name.givenName", column: Column::Text("u.first_name") },
    Attribute { name: "name.familyName", column: Column::Text("u.last_name") },
    Attribute { name: "displayName", column: Column::Text("(u.scim_attributes ->> 'displayName')") },
    Attribute { name: "emails", column: EMAILS },
    Attribute { name: "emails.value", column: EMAILS },
    Attribute { name: "emails.type", column: Column::Many { rows: EMAIL_ROWS, text: "(e.item ->> 'type')" } },
    Attribute { name: "roles.value", column: Column::Text("u.role") },
    Attribute { name: "groups", column: GROUPS },
    Attribute { name: "groups.value", column: GROUPS },
    Attribute { name: "meta.created", column: Column::Time("u.created_at") },
    Attribute { name: "meta.lastModified", column: Column::Time("u.last_updated_at") },
];
const EMAIL_ROWS: &str = "FROM jsonb_array_elements(coalesce(u.scim_attributes -> 'emails', '[]')
    || jsonb_build_array(jsonb_build_object('value', u.email, 'type', 'work'))) AS e(item) WHERE true";
const EMAILS: Column = Column::Many { rows: EMAIL_ROWS, text: "(e.item ->> 'value')" };
const GROUPS: Column =
    Column::Many { rows: "FROM scim_group_members gm WHERE gm.user_id = u.id", text: "gm.group_id::text" };

pub async fn list(State(app): State<App>, call: Call) -> Outcome {
    let query = call.query();
    let (start, count) = answer::page(query)?;
    let asked = query.text("filter").map(filter::parse).transpose()?;
    let asked = asked.map(|filter| condition(&filter, ATTRIBUTES, 2)).transpose()?;
    let (sql, values) = asked.map_or(("true".to_owned(), Vec::new()), |asked| (asked.sql, asked.values));
    let organisation = call.caller.organisation_id();
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&organisation];
    parameters.extend(values.iter().map(|value| value as &(dyn ToSql + Sync)));
    let db = app.db.get().await?;
    let counted = format!("SELECT count(*) FROM users u WHERE {VISIBLE} AND {sql}");
    let total: i64 = db.query_one(&counted, &parameters).await?.try_get(0)?;
    let found = format!(
        "SELECT {COLUMNS} FROM users u WHERE {VISIBLE} AND {sql} ORDER BY u.created_at, u.id LIMIT {count} OFFSET {}",
        start - 1
    );
    let base = base(&app);
    let rows = db.query(&found, &parameters).await?;
    let people = rows.iter().map(|row| Ok(answer::chosen(Person::from_row(row)?.shown(&base), query)));
    Ok(answer::list(total, start, people.collect::<Result<Vec<_>, ApiError>>()?))
}

pub async fn get(State(app): State<App>, call: Call, Path(id): Path<String>) -> Outcome {
    let db = app.db.get().await?;
    let person = found(&*db, call.caller.organisation_id(), &id, "").await?;
    Ok(Done::read(&call, person.shown(&base(&app))).chosen(call.query()))
}

pub async fn post(State(app): State<App>, call: Call) -> Outcome {
    Ok(create(&app, &call, call.object()?).await?.chosen(call.query()))
}

pub async fn put(State(app): State<App>, call: Call, Path(id): Path<String>) -> Outcome {
    Ok(replace(&app, &call, &id, call.object()?).await?.chosen(call.query()))
}

pub async fn patch(State(app): State<App>, call: Call, Path(id): Path<String>) -> Outcome {
    Ok(modify(&app, &call, &id, call.object()?).await?.chosen(call.query()))
}

pub async fn delete(State(app): State<App>, call: Call, Path(id): Path<String>) -> Outcome {
    remove(&app, &call, &id).await
}

async fn found(db: &impl GenericClient, organisation: Uuid, id: &str, lock: &str) -> Result<Person, ApiError> {
    let missing = || ApiError::NotFound("user");
    let id = tenancy::id(id).ok_or_else(missing)?;
    let sql = format!("SELECT {COLUMNS} FROM users u WHERE {VISIBLE} AND u.id = $2 {lock}");
    Person::from_row(&db.query_opt(&sql, &[&organisation, &id]).await?.ok_or_else(missing)?)
}

pub async fn create(app: &App, call: &Call, sent: Map<String, Value>) -> Outcome {
    const INSERT: &str =
        "INSERT INTO users (organisation_id, email, role, first_name, last_name, status, is_deactivated,
            scim_user_name, scim_external_id, scim_attributes)
        VALUES ($1, $2, $3, $4, $5, CASE WHEN $6 THEN 'active' ELSE 'archived' END, NOT $6, $7, $8, $9) RETURNING id";
    const ACCEPTED: &str = "UPDATE user_invites SET status = 'accepted', accepted_at = now(), last_updated_at = now(),
            user_id = $3
        WHERE organisation_id = $1 AND lower(email) = lower($2) AND status = 'pending'";
    let wanted = Wanted::parse(sent)?;
    let email = wanted
        .email
        .clone()
        .ok_or_else(|| ApiError::field("userName", "must be an e-mail address, or emails must have one"))?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, app, call).await?;
    let organisation = action.organisation_id();
    may_be_of(&action, &email).await?;
    let (role, is_active) = (wanted.role.unwrap_or("member"), wanted.is_active.unwrap_or(true));
    let values: [&(dyn ToSql + Sync); 9] = [
        &organisation,
        &email,
        &role,
        &wanted.first_name,
        &wanted.last_name,
        &is_active,
        &wanted.user_name,
        &wanted.external_id,
        &wanted.attributes,
    ];
    let id = crud::id_of(&action.tx.query_one(INSERT, &values).await.map_err(taken)?)?;
    if is_active {
        action.tx.execute(ACCEPTED, &[&organisation, &email, &id]).await?;
    }
    follow_groups(&action, id, wanted.groups).await?;
    let shown = found(&action.tx, organisation, &id.to_string(), "").await?.shown(&base(app));
    action.commit(Change { resource_id: id.to_string(), before: None, after: Some(shown.clone()) }).await?;
    Ok(Done::created(shown))
}

pub async fn replace(app: &App, call: &Call, id: &str, sent: Map<String, Value>) -> Outcome {
    change(app, call, id, |_| Ok(sent)).await
}

pub async fn modify(app: &App, call: &Call, id: &str, sent: Map<String, Value>) -> Outcome {
    let operations = patching::operations(&sent)?;
    change(app, call, id, |shown| {
        let had_roles = shown.contains_key("roles");
        let mut after = patching::apply(shown, operations, SEVERAL)?;
        if had_roles && !after.contains_key("roles") {
            after.insert("roles".into(), Value::Array(Vec::new()));
        }
        Ok(after)
    })
    .await
}

/// `after` makes the person as wanted of the person as shown.
async fn change(
    app: &App,
    call: &Call,
    id: &str,
    after: impl FnOnce(Map<String, Value>) -> Result<Map<String, Value>, ApiError>,
) -> Outcome {
    const UPDATE: &str = "UPDATE users SET email = $3, role = $4, first_name = $5, last_name = $6,
            status = CASE WHEN $7 THEN 'active' ELSE 'archived' END, is_deactivated = NOT $7, scim_user_name = $8,
            scim_external_id = $9, scim_attributes = $10, last_updated_at = clock_timestamp()
        WHERE id = $1 AND organisation_id = $2";
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, app, call).await?;
    let organisation = action.organisation_id();
    let current = found(&action.tx, organisation, id, "FOR UPDATE").await?;
    answer::matches(call, &current.version())?;
    let before = current.shown(&base(app));
    let shown = before.as_object().cloned().unwrap_or_default();
    let wanted = Wanted::parse(after(shown)?)?;
    let email = wanted.email.clone().unwrap_or_else(|| current.email.clone());
    let is_owner = current.role == "owner";
    if !email.eq_ignore_ascii_case(&current.email) {
        // Links to sign in by are sent there.
        if is_owner {
            return Err(ApiError::Forbidden("The address of an owner of the organisation cannot be changed by SCIM"));
        }
        may_be_of(&action, &email).await?;
    }
    let email = if is_owner { current.email.clone() } else { email };
    let is_active = wanted.is_active.unwrap_or(current.is_active);
    if is_owner && !is_active {
        return Err(ApiError::Forbidden("An owner of the organisation cannot be deactivated"));
    }
    let role = if is_owner { "owner" } else { wanted.role.unwrap_or(current.role.as_str()) };
    let values: [&(dyn ToSql + Sync); 10] = [
        &current.id,
        &organisation,
        &email,
        &role,
        &wanted.first_name,
        &wanted.last_name,
        &is_active,
        &wanted.user_name,
        &wanted.external_id,
        &wanted.attributes,
    ];
    action.tx.execute(UPDATE, &values).await.map_err(taken)?;
    follow_groups(&action, current.id, wanted.groups).await?;
    match (current.is_active, is_active) {
        (true, false) => leave(&action, current.id).await?,
        (false, true) => reconcile(&action, &[current.id]).await?,
        _ => {}
    }
    let shown = found(&action.tx, organisation, id, "").await?.shown(&base(app));
    let recorded = Change { resource_id: current.id.to_string(), before: Some(before), after: Some(shown.clone()) };
    action.commit(recorded).await?;
    Ok(Done::ok(shown))
}

pub async fn remove(app: &App, call: &Call, id: &str) -> Outcome {
    const ARCHIVE: &str = "UPDATE users SET status = 'archived', is_deactivated = false, last_updated_at = now()
        WHERE id = $1 AND organisation_id = $2";
    const GROUPS: &str = "DELETE FROM scim_group_members WHERE user_id = $1 AND organisation_id = $2";
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, app, call).await?;
    let organisation = action.organisation_id();
    let current = found(&action.tx, organisation, id, "FOR UPDATE").await?;
    answer::matches(call, &current.version())?;
    if current.role == "owner" {
        return Err(ApiError::Forbidden("An owner of the organisation cannot be removed"));
    }
    action.tx.execute(ARCHIVE, &[&current.id, &organisation]).await?;
    action.tx.execute(GROUPS, &[&current.id, &organisation]).await?;
    leave(&action, current.id).await?;
    let before = Some(current.shown(&base(app)));
    action.commit(Change { resource_id: current.id.to_string(), before, after: None }).await?;
    Ok(Done::gone())
}

/// Where groups come with the person (`SCIM_MEMBERSHIP_USER_MODE`), they are what was sent.
async fn follow_groups(action: &Action<'_>, user: Uuid, sent: Option<Vec<Value>>) -> Result<(), ApiError> {
    match sent {
        Some(sent) if action.app.features.scim_membership_user_mode => groups::of_person(action, user, &sent).await,
        _ => Ok(()),
    }
}

/// People of a domain that the organisation has proved are taken. People of a domain that nobody has proved are, as long
/// as the organisation names no domains; those of another organisation's never are.
async fn may_be_of(action: &Action<'_>, email: &str) -> Result<(), ApiError> {
    const NAMES_DOMAINS: &str = "SELECT auth_settings -> 'allowed_domains' <> '[]' OR EXISTS (
            SELECT FROM verified_domains d WHERE d.organisation_id = o.id) FROM organisations o WHERE o.id = $1";
    let organisation = action.organisation_id();
    let is_taken = match domains::owner(&action.tx, email).await? {
        Some(owner) => owner == organisation,
        None => {
            let row = action.tx.query_one(NAMES_DOMAINS, &[&organisation]).await?;
            !row.try_get::<_, Option<bool>>(0)?.unwrap_or(false)
        }
    };
    match is_taken {
        true => Ok(()),
        false => Err(ApiError::field("userName", "must be of a verified domain of this organisation (/admin/domains)")),
    }
}

fn taken(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::Conflict(_) => ApiError::Scim {
            status: StatusCode::CONFLICT,
            kind: "uniqueness",
            detail: "There is a user with this userName or e-mail address already".into(),
        },
        other => other,
    }
}
