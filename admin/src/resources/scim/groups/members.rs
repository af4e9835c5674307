//! Who is in a group. Only rows of people whom a change names are written, and it says whom it touched, so that just
//! their workspaces follow.

use super::super::automatic::{self, GroupSettings};
use super::super::membership::reconcile;
use super::change::MemberChange;
use super::group::insert;
use crate::crud::{self, Action};
use crate::http::{ApiError, text};
use serde_json::Value;
use uuid::Uuid;

pub async fn members_of(action: &Action<'_>, group: Uuid) -> Result<Vec<Uuid>, ApiError> {
    const MEMBERS: &str = "SELECT user_id FROM scim_group_members WHERE group_id = $1 AND organisation_id = $2";
    let rows = action.tx.query(MEMBERS, &[&group, &action.organisation_id()]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Changes who is in a group; answers with everybody whom that touched.
pub async fn change_members(
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
        WHERE organisation_id = $1 AND id = ANY($2) AND is_deactivated RETURNING id";
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
    let mut touched = Vec::new();
    if settings.provisions {
        // Also who was in the group all along: what they lost when they were deactivated comes back.
        touched.extend(action.tx.query(REVIVE, &[&organisation, &people]).await?);
    }
    touched.extend(action.tx.query(ADD, &[&group, &organisation, &people]).await?);
    touched.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Puts a person into just these groups, each named by id or by name; a name that nobody has makes a group.
pub async fn of_person(action: &Action<'_>, user: Uuid, sent: &[Value]) -> Result<(), ApiError> {
    const FIND: &str =
        "SELECT id FROM scim_groups WHERE organisation_id = $1 AND (id::text = $2 OR lower(display_name) = lower($2))";
    const SET: &str = "WITH gone AS (DELETE FROM scim_group_members
            WHERE user_id = $1 AND organisation_id = $2 AND NOT group_id = ANY($3))
        INSERT INTO scim_group_members (group_id, user_id, organisation_id)
        SELECT unnest($3::uuid[]), $1, $2 ON CONFLICT DO NOTHING";
    const MAX_MEMBERS: usize = 1000;
    if sent.len() > MAX_MEMBERS {
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
