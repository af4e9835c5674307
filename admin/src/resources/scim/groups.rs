//! `/scim/Groups`: groups and who is in them. A change reads and writes only the members that it names, and the
//! workspaces of just those follow.

mod change;
mod group;
mod members;

pub use group::{GROUP, insert};
pub use members::of_person;

use super::answer::{self, Done, Outcome, base};
use super::automatic::{self, GroupSettings};
use super::filter;
use super::filter_sql::{Attribute, Column, condition};
use super::membership::reconcile;
use super::patch as patching;
use crate::app::App;
use crate::crud::{self, Action, Change};
use crate::http::ApiError;
use crate::identity::Call;
use crate::resources::workspaces::archive::archive_dependents;
use axum::extract::{Path, State};
use change::{GroupChange, MemberChange, spoken};
use group::{Group, columns, found, taken};
use members::{change_members, members_of};
use serde_json::{Map, Value, json};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

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
    let found = page(&sql, start, count, wants_members(&call));
    let base = base(&app);
    let rows = db.query(&found, &parameters).await?;
    let groups = rows.iter().map(|row| Ok(answer::chosen(Group::from_row(row)?.shown(&base), query)));
    Ok(answer::list(total, start, groups.collect::<Result<Vec<_>, ApiError>>()?))
}

/// One page of groups. Where members are shown, it ends before the group with which there would be too many of them, and
/// says in `itemsPerPage` how many groups it has: the protocol lets a page be shorter than was asked for. A group that is
/// larger by itself stands alone on its page.
fn page(condition: &str, start: i64, count: i64, with_members: bool) -> String {
    /// About 4 MB of JSON.
    const MAX_MEMBERS: u32 = 20_000;
    let page = format!(
        "SELECT g.* FROM scim_groups g WHERE g.organisation_id = $1 AND {condition}
         ORDER BY g.created_at, g.id LIMIT {count} OFFSET {}",
        start - 1
    );
    let columns = columns(with_members);
    match with_members {
        false => format!("SELECT {columns} FROM ({page}) g ORDER BY g.created_at, g.id"),
        true => format!(
            "SELECT {columns} FROM (SELECT p.*, row_number() OVER so_far AS place,
                     sum((SELECT count(*) FROM scim_group_members m WHERE m.group_id = p.id)) OVER so_far AS members_so_far
                 FROM ({page}) p WINDOW so_far AS (ORDER BY p.created_at, p.id)) g
             WHERE g.place = 1 OR g.members_so_far <= {MAX_MEMBERS} ORDER BY g.created_at, g.id"
        ),
    }
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
