//! `/scim/Groups`: groups and who is in them. A change reads and writes only the members that it names, and the
//! workspaces of just those follow.

use super::answer::{self, Done, Outcome};
use super::automatic::{self, GroupSettings};
use super::filter::{self, Filter, Literal, Operator};
use super::filter_sql::{Attribute, Column, condition};
use super::membership::reconcile;
use super::patch::{self as patching, PatchOperation, Verb};
use super::users::base;
use crate::app::App;
use crate::crud::{self, Action, Change};
use crate::http::{ApiError, Time, text};
use crate::identity::{Call, tenancy};
use crate::resources::workspaces::archive::archive_dependents;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";
const MOST_MEMBERS: usize = 50_000;

const ATTRIBUTES: &[Attribute] = &[
    Attribute { name: "id", column: Column::Exact("g.id::text") },
    Attribute { name: "displayName", column: Column::Text("g.display_name") },
    Attribute { name: "externalId", column: Column::Exact("g.external_id") },
    Attribute { name: "members", column: MEMBERS },
    Attribute { name: "members.value", column: MEMBERS },
    Attribute { name: "meta.created", column: Column::Time("g.created_at") },
    Attribute { name: "meta.lastModified", column: Column::Time("g.last_updated_at") },
];
const MEMBERS: Column =
    Column::Many { rows: "FROM scim_group_members gm WHERE gm.group_id = g.id", text: "gm.user_id::text" };

struct Group {
    id: Uuid,
    name: String,
    external_id: Option<String>,
    created_at: Time,
    last_updated_at: Time,
    /// None when they were not asked for.
    members: Option<Value>,
}

/// With the members, unless nobody wants them.
fn columns(with_members: bool) -> String {
    let members = match with_members {
        true => {
            "(SELECT coalesce(jsonb_agg(jsonb_build_object('value', u.id, 'display',
                coalesce(u.scim_user_name, u.email)) ORDER BY u.id), '[]')
              FROM scim_group_members m JOIN users u ON u.id = m.user_id WHERE m.group_id = g.id)"
        }
        false => "NULL::jsonb",
    };
    format!("g.id, g.display_name, g.external_id, g.created_at, g.last_updated_at, {members} AS members")
}

impl Group {
    fn from_row(row: &Row) -> Result<Self, ApiError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("display_name")?,
            external_id: row.try_get("external_id")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
            members: row.try_get("members")?,
        })
    }

    fn version(&self) -> String {
        answer::version(self.last_updated_at.0)
    }

    fn shown(&self, base: &str) -> Value {
        let mut shown = json!({
            "schemas": [GROUP],
            "id": self.id,
            "displayName": self.name,
            "meta": {
                "resourceType": "Group",
                "created": self.created_at,
                "lastModified": self.last_updated_at,
                "location": format!("{base}/Groups/{}", self.id),
                "version": self.version(),
            },
        });
        if let Some(id) = &self.external_id {
            shown["externalId"] = json!(id);
        }
        if let Some(Value::Array(members)) = &self.members {
            let member = |one: &Value| {
                let id = one["value"].as_str().unwrap_or_default();
                json!({ "value": id, "display": one["display"], "type": "User", "$ref": format!("{base}/Users/{id}") })
            };
            shown["members"] = members.iter().map(member).collect();
        }
        shown
    }
}

fn wants_members(call: &Call) -> bool {
    let query = call.query();
    let names = |list: Vec<String>| list.iter().any(|one| one.to_ascii_lowercase().starts_with("members"));
    let asked = query.list("attributes");
    (asked.is_empty() || names(asked))
        && !query.list("excludedAttributes").iter().any(|one| one.eq_ignore_ascii_case("members"))
}

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
    let counted = format!("SELECT count(*) FROM scim_groups g WHERE g.organisation_id = $1 AND {sql}");
    let total: i64 = db.query_one(&counted, &parameters).await?.try_get(0)?;
    let found = format!(
        "SELECT {} FROM scim_groups g WHERE g.organisation_id = $1 AND {sql}
         ORDER BY g.created_at, g.id LIMIT {count} OFFSET {}",
        columns(wants_members(&call)),
        start - 1
    );
    let base = base(&app);
    let rows = db.query(&found, &parameters).await?;
    let groups = rows.iter().map(|row| Ok(answer::chosen(Group::from_row(row)?.shown(&base), query)));
    Ok(answer::list(total, start, groups.collect::<Result<Vec<_>, ApiError>>()?))
}

pub async fn get(State(app): State<App>, call: Call, Path(id): Path<String>) -> Outcome {
    let db = app.db.get().await?;
    let group = found(&*db, call.caller.organisation_id(), &id, wants_members(&call), "").await?;
    Ok(Done::read(&call, group.shown(&base(&app))).chosen(call.query()))
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

async fn found(
    db: &impl GenericClient,
    organisation: Uuid,
    id: &str,
    with_members: bool,
    lock: &str,
) -> Result<Group, ApiError> {
    let missing = || ApiError::NotFound("group");
    let id = tenancy::id(id).ok_or_else(missing)?;
    let sql = format!(
        "SELECT {} FROM scim_groups g WHERE g.organisation_id = $1 AND g.id = $2 {lock}",
        columns(with_members)
    );
    Group::from_row(&db.query_opt(&sql, &[&organisation, &id]).await?.ok_or_else(missing)?)
}

/// What is to become of a group.
#[derive(Debug, Default)]
struct GroupChange {
    name: Option<String>,
    external_id: Option<Option<String>>,
    members: Vec<MemberChange>,
}

#[derive(Debug, PartialEq)]
enum MemberChange {
    Add(Vec<Uuid>),
    Remove(Vec<Uuid>),
    Set(Vec<Uuid>),
}

impl GroupChange {
    /// Of a whole group.
    fn whole(sent: &Map<String, Value>) -> Result<Self, ApiError> {
        let mut change = Self::default();
        for (name, value) in sent {
            change.set(Verb::Replace, name, value)?;
        }
        if change.name.is_none() {
            return Err(ApiError::field("displayName", "is required"));
        }
        Ok(change)
    }

    fn parts(operations: Vec<PatchOperation>) -> Result<Self, ApiError> {
        let mut change = Self::default();
        for PatchOperation { verb, path, value } in operations {
            match path {
                Some(path) if path.which.is_some() => {
                    let is_members = path.attribute.eq_ignore_ascii_case("members");
                    let ids = path.which.as_ref().and_then(named);
                    match (is_members, verb, ids) {
                        (true, Verb::Remove, Some(ids)) => change.members.push(MemberChange::Remove(ids)),
                        (true, _, Some(ids)) => change.members.push(MemberChange::Add(ids)),
                        _ => return Err(invalid_path()),
                    }
                }
                Some(path) => change.set(verb, &path.attribute, &value)?,
                None => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        change.set(verb, name, value)?;
                    }
                }
            }
        }
        Ok(change)
    }

    fn set(&mut self, verb: Verb, name: &str, value: &Value) -> Result<(), ApiError> {
        match (name.to_ascii_lowercase().as_str(), verb) {
            ("displayname", Verb::Remove) => return Err(ApiError::field("displayName", "is required")),
            ("displayname", _) => {
                let name = value.as_str().ok_or_else(|| ApiError::field("displayName", "must be a text"))?;
                self.name = Some(text::sized("displayName", name.to_owned(), 1..=512)?);
            }
            ("externalid", Verb::Remove) => self.external_id = Some(None),
            ("externalid", _) => {
                let id = value
                    .as_str()
                    .filter(|id| !id.is_empty())
                    .map(|id| text::sized("externalId", id.to_owned(), 1..=255));
                self.external_id = Some(id.transpose()?);
            }
            ("members", Verb::Remove) if value.is_null() => self.members.push(MemberChange::Set(Vec::new())),
            ("members", Verb::Remove) => self.members.push(MemberChange::Remove(ids(value)?)),
            ("members", Verb::Add) => self.members.push(MemberChange::Add(ids(value)?)),
            ("members", Verb::Replace) => self.members.push(MemberChange::Set(ids(value)?)),
            _ => {}
        }
        Ok(())
    }
}

fn invalid_path() -> ApiError {
    ApiError::Scim {
        status: StatusCode::BAD_REQUEST,
        kind: "invalidPath",
        detail: "Only members[value eq \"…\"] can be chosen by a filter".into(),
    }
}

/// The ids in `members[value eq "a" or value eq "b"]`.
fn named(which: &Filter) -> Option<Vec<Uuid>> {
    match which {
        Filter::Compare { attribute, operator: Operator::Equal, value: Literal::Text(id) }
            if attribute.eq_ignore_ascii_case("value") =>
        {
            // What is no id is nobody.
            Some(tenancy::id(id).into_iter().collect())
        }
        Filter::Or(left, right) => {
            let mut all = named(left)?;
            all.extend(named(right)?);
            Some(all)
        }
        _ => None,
    }
}

fn ids(value: &Value) -> Result<Vec<Uuid>, ApiError> {
    let one = std::slice::from_ref(value);
    let items = match value {
        Value::Array(items) => items.as_slice(),
        Value::Null => &[],
        _ => one,
    };
    if items.len() > MOST_MEMBERS {
        return Err(ApiError::field("members", "has too many values"));
    }
    let id = |item: &Value| item["value"].as_str().or(item.as_str()).and_then(tenancy::id);
    items
        .iter()
        .map(|item| id(item).ok_or_else(|| ApiError::field("members", "must name users by their ids")))
        .collect()
}

pub async fn create(app: &App, call: &Call, sent: Map<String, Value>) -> Outcome {
    let change = GroupChange::whole(&sent)?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, app, call).await?;
    let name = change.name.clone().unwrap_or_default();
    let id = insert(&action, &name, change.external_id.clone().flatten()).await?;
    let settings = GroupSettings::load(&action).await?;
    automatic::map(&action, &settings, id, &name).await?;
    let touched = change_members(&action, &settings, id, change.members).await?;
    reconcile(&action, &touched).await?;
    let shown = found(&action.tx, action.organisation_id(), &id.to_string(), true, "").await?.shown(&base(app));
    action.commit(Change { resource_id: id.to_string(), before: None, after: Some(shown.clone()) }).await?;
    Ok(Done::created(shown))
}

pub async fn insert(action: &Action<'_>, name: &str, external_id: Option<String>) -> Result<Uuid, ApiError> {
    const INSERT: &str =
        "INSERT INTO scim_groups (organisation_id, display_name, external_id) VALUES ($1, $2, $3) RETURNING id";
    let organisation = action.organisation_id();
    let values: [&(dyn ToSql + Sync); 3] = [&organisation, &name, &external_id];
    crud::id_of(&action.tx.query_one(INSERT, &values).await.map_err(taken)?)
}

pub async fn replace(app: &App, call: &Call, id: &str, sent: Map<String, Value>) -> Outcome {
    let mut change = GroupChange::whole(&sent)?;
    // What a whole group does not have is none.
    change.external_id.get_or_insert(None);
    if change.members.is_empty() {
        change.members.push(MemberChange::Set(Vec::new()));
    }
    update(app, call, id, change).await
}

pub async fn modify(app: &App, call: &Call, id: &str, sent: Map<String, Value>) -> Outcome {
    update(app, call, id, GroupChange::parts(patching::operations(&sent)?)?).await
}

async fn update(app: &App, call: &Call, id: &str, change: GroupChange) -> Outcome {
    const UPDATE: &str =
        "UPDATE scim_groups SET display_name = $3, external_id = $4, last_updated_at = clock_timestamp()
        WHERE id = $1 AND organisation_id = $2";
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, app, call).await?;
    let organisation = action.organisation_id();
    let current = found(&action.tx, organisation, id, false, "FOR UPDATE").await?;
    answer::matches(call, &current.version())?;
    let name = change.name.unwrap_or_else(|| current.name.clone());
    let external_id = change.external_id.unwrap_or_else(|| current.external_id.clone());
    action.tx.execute(UPDATE, &[&current.id, &organisation, &name, &external_id]).await.map_err(taken)?;
    let settings = GroupSettings::load(&action).await?;
    let recorded = json!({ "displayName": name, "externalId": external_id, "members": spoken(&change.members) });
    // Where groups come with people, what a group says of its members is passed over.
    let is_by_person = app.features.scim_membership_user_mode;
    let members = if is_by_person { Vec::new() } else { change.members };
    let mut touched = change_members(&action, &settings, current.id, members).await?;
    if name != current.name {
        automatic::map(&action, &settings, current.id, &name).await?;
        touched.extend(members_of(&action, current.id).await?);
    }
    reconcile(&action, &touched).await?;
    let shown = found(&action.tx, organisation, id, wants_members(call), "").await?.shown(&base(app));
    let before = Some(json!({ "displayName": current.name, "externalId": current.external_id }));
    action.commit(Change { resource_id: current.id.to_string(), before, after: Some(recorded) }).await?;
    Ok(Done::ok(shown))
}

/// What was asked of the members, for the audit trail.
fn spoken(members: &[MemberChange]) -> Value {
    let one = |change: &MemberChange| match change {
        MemberChange::Add(ids) => json!({ "added": ids }),
        MemberChange::Remove(ids) => json!({ "removed": ids }),
        MemberChange::Set(ids) => json!({ "set": ids }),
    };
    members.iter().map(one).collect()
}

async fn members_of(action: &Action<'_>, group: Uuid) -> Result<Vec<Uuid>, ApiError> {
    const MEMBERS: &str = "SELECT user_id FROM scim_group_members WHERE group_id = $1 AND organisation_id = $2";
    let rows = action.tx.query(MEMBERS, &[&group, &action.organisation_id()]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Changes who is in a group; answers with everybody whom that touched.
async fn change_members(
    action: &Action<'_>,
    settings: &GroupSettings,
    group: Uuid,
    changes: Vec<MemberChange>,
) -> Result<Vec<Uuid>, ApiError> {
    const REMOVE: &str = "DELETE FROM scim_group_members
        WHERE group_id = $1 AND organisation_id = $2 AND user_id = ANY($3) RETURNING user_id";
    const KEEP: &str = "DELETE FROM scim_group_members
        WHERE group_id = $1 AND organisation_id = $2 AND NOT user_id = ANY($3) RETURNING user_id";
    let organisation = action.organisation_id();
    let mut touched = Vec::new();
    for change in changes {
        let (gone, added) = match &change {
            MemberChange::Add(ids) => (Vec::new(), ids.as_slice()),
            MemberChange::Remove(ids) => (action.tx.query(REMOVE, &[&group, &organisation, ids]).await?, &[][..]),
            MemberChange::Set(ids) => (action.tx.query(KEEP, &[&group, &organisation, ids]).await?, ids.as_slice()),
        };
        for row in gone {
            touched.push(row.try_get(0)?);
        }
        touched.extend(add(action, settings, group, added).await?);
    }
    Ok(touched)
}

async fn add(
    action: &Action<'_>,
    settings: &GroupSettings,
    group: Uuid,
    people: &[Uuid],
) -> Result<Vec<Uuid>, ApiError> {
    const KNOWN: &str = "SELECT count(*) FROM users u WHERE u.organisation_id = $1 AND u.id = ANY($2)
        AND (u.status = 'active' OR u.is_deactivated)";
    const ADD: &str = "INSERT INTO scim_group_members (group_id, user_id, organisation_id)
        SELECT $1, u.id, $2 FROM users u WHERE u.organisation_id = $2 AND u.id = ANY($3)
        ON CONFLICT DO NOTHING RETURNING user_id";
    const REVIVE: &str = "UPDATE users SET status = 'active', is_deactivated = false, last_updated_at = now()
        WHERE organisation_id = $1 AND id = ANY($2) AND is_deactivated";
    if people.is_empty() {
        return Ok(Vec::new());
    }
    let organisation = action.organisation_id();
    let mut people = people.to_vec();
    people.sort_unstable();
    people.dedup();
    let known: i64 = action.tx.query_one(KNOWN, &[&organisation, &people]).await?.try_get(0)?;
    if known != people.len() as i64 {
        return Err(ApiError::field("members", "names a user who does not exist"));
    }
    if settings.provisions {
        action.tx.execute(REVIVE, &[&organisation, &people]).await?;
    }
    let rows = action.tx.query(ADD, &[&group, &organisation, &people]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

pub async fn remove(app: &App, call: &Call, id: &str) -> Outcome {
    const UNMAP: &str = "UPDATE scim_workspace_mappings SET status = 'archived', last_updated_at = now()
        WHERE group_id = $1 AND organisation_id = $2 AND status = 'active' RETURNING workspace_id";
    const DELETE: &str = "DELETE FROM scim_groups WHERE id = $1 AND organisation_id = $2";
    // Only what SCIM made goes with it: a workspace that people made is theirs.
    const LEFT: &str = "UPDATE workspaces w SET status = 'archived', last_updated_at = now()
        WHERE w.organisation_id = $1 AND w.id = ANY($2) AND w.status = 'active' AND NOT w.is_default
          AND w.creation_source = 'scim' AND NOT EXISTS (SELECT FROM scim_workspace_mappings m
              WHERE m.workspace_id = w.id AND m.status = 'active') RETURNING w.id";
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, app, call).await?;
    let organisation = action.organisation_id();
    let current = found(&action.tx, organisation, id, false, "FOR UPDATE").await?;
    answer::matches(call, &current.version())?;
    let people = members_of(&action, current.id).await?;
    let rows = action.tx.query(UNMAP, &[&current.id, &organisation]).await?;
    let workspaces = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Uuid>, _>>()?;
    action.tx.execute(DELETE, &[&current.id, &organisation]).await?;
    reconcile(&action, &people).await?;
    for row in action.tx.query(LEFT, &[&organisation, &workspaces]).await? {
        archive_dependents(&action, crud::id_of(&row)?).await?;
    }
    let before = Some(current.shown(&base(app)));
    action.commit(Change { resource_id: current.id.to_string(), before, after: None }).await?;
    Ok(Done::gone())
}

/// Puts a person into just these groups, each named by id or by name; a name that nobody has makes a group.
pub async fn of_person(action: &Action<'_>, user: Uuid, sent: &[Value]) -> Result<(), ApiError> {
    const FIND: &str =
        "SELECT id FROM scim_groups WHERE organisation_id = $1 AND (id::text = $2 OR lower(display_name) = lower($2))";
    const SET: &str = "WITH gone AS (DELETE FROM scim_group_members
            WHERE user_id = $1 AND organisation_id = $2 AND NOT group_id = ANY($3))
        INSERT INTO scim_group_members (group_id, user_id, organisation_id)
        SELECT unnest($3::uuid[]), $1, $2 ON CONFLICT DO NOTHING";
    const MOST: usize = 1000;
    if sent.len() > MOST {
        return Err(ApiError::field("groups", "has too many values"));
    }
    let settings = GroupSettings::load(action).await?;
    let mut all: Vec<Uuid> = Vec::new();
    for one in sent {
        let part = |name: &str| one[name].as_str().filter(|part| !part.is_empty());
        let name = part("value").or(part("display")).or(one.as_str());
        let name = name.ok_or_else(|| ApiError::field("groups", "must name groups by value or display"))?;
        let name = text::sized("groups", name.to_owned(), 1..=512)?;
        let id = match action.tx.query_opt(FIND, &[&action.organisation_id(), &name]).await? {
            Some(row) => crud::id_of(&row)?,
            None => {
                let id = insert(action, &name, None).await?;
                automatic::map(action, &settings, id, &name).await?;
                id
            }
        };
        all.push(id);
    }
    all.sort_unstable();
    all.dedup();
    action.tx.execute(SET, &[&user, &action.organisation_id(), &all]).await?;
    reconcile(action, &[user]).await
}

fn taken(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::Conflict(_) => ApiError::Scim {
            status: StatusCode::CONFLICT,
            kind: "uniqueness",
            detail: "There is a group with this displayName already".into(),
        },
        other => other,
    }
}
