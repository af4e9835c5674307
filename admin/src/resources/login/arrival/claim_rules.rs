//! Roles and workspaces from claims, by the organisation's rules (`claim_rules` of its auth settings), at every login.
//! Where rules give roles in the organisation, they decide; owners stay owners. A workspace that a rule gave is taken
//! away when no rule gives it any more; who was added by hand or by SCIM is left alone.

use super::{Arrival, Arrived, JoinedWorkspace, Refused};
use crate::identity::access::WorkspaceRole;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio_postgres::Transaction;
use uuid::Uuid;

#[derive(Debug, Deserialize)]
struct ClaimRule {
    /// The name of a claim, or the path to one with dots.
    claim: String,
    /// What the claim is, or has among its values.
    value: String,
    /// None for a role in the organisation.
    workspace_id: Option<Uuid>,
    role: String,
}

/// What claims give by all rules.
#[derive(Debug, Default, PartialEq, Eq)]
struct Given {
    /// None where no rule is about it.
    role: Option<&'static str>,
    workspaces: BTreeMap<Uuid, WorkspaceRole>,
}

pub async fn apply(tx: &Transaction<'_>, arrival: &Arrival, arrived: &mut Arrived) -> Result<(), Refused> {
    const RULES: &str = "SELECT auth_settings -> 'claim_rules' FROM organisations WHERE id = $1";
    let row = tx.query_one(RULES, &[&arrival.organisation_id]).await?;
    let rules = row.try_get::<_, Option<Value>>(0)?.unwrap_or_default();
    // Written from such values by the settings.
    let rules: Vec<ClaimRule> = serde_json::from_value(rules).unwrap_or_default();
    let given = given(&rules, &arrival.claims);
    if let Some(role) = given.role {
        const ROLE: &str = "UPDATE users SET role = $3, last_updated_at = now()
            WHERE id = $1 AND organisation_id = $2 AND role NOT IN ('owner', $3)";
        if tx.execute(ROLE, &[&arrived.user_id, &arrival.organisation_id, &role]).await? == 1 {
            arrived.new_role = Some(role);
        }
    }
    leave(tx, arrival.organisation_id, arrived, &given).await?;
    enter(tx, arrival.organisation_id, arrived, &given).await
}

/// Keys of a workspace end with the membership.
async fn leave(tx: &Transaction<'_>, organisation: Uuid, arrived: &mut Arrived, given: &Given) -> Result<(), Refused> {
    const LEAVE: &str = "WITH gone AS (
            DELETE FROM workspace_members
            WHERE organisation_id = $1 AND user_id = $2 AND is_from_claims AND NOT workspace_id = ANY($3)
            RETURNING workspace_id, user_id),
        ended AS (
            UPDATE api_keys k SET status = 'archived', last_updated_at = now() FROM gone
            WHERE k.workspace_id = gone.workspace_id AND k.user_id = gone.user_id AND k.status <> 'archived')
        SELECT workspace_id FROM gone";
    let granted: Vec<Uuid> = given.workspaces.keys().copied().collect();
    for row in tx.query(LEAVE, &[&organisation, &arrived.user_id, &granted]).await? {
        arrived.left.push(row.try_get("workspace_id")?);
    }
    Ok(())
}

async fn enter(tx: &Transaction<'_>, organisation: Uuid, arrived: &mut Arrived, given: &Given) -> Result<(), Refused> {
    const ENTER: &str = "INSERT INTO workspace_members (workspace_id, user_id, organisation_id, role, is_from_claims)
        SELECT id, $2::uuid, organisation_id, $4::text, true FROM workspaces
        WHERE id = $3 AND organisation_id = $1 AND status = 'active'
        ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role, last_updated_at = now()
        WHERE workspace_members.is_from_claims AND workspace_members.role <> excluded.role
        RETURNING (xmax = 0) AS is_new";
    for (workspace_id, role) in &given.workspaces {
        let row = tx.query_opt(ENTER, &[&organisation, &arrived.user_id, workspace_id, &role.as_str()]).await?;
        if row.map(|row| row.try_get("is_new")).transpose()?.unwrap_or(false) {
            arrived.joined.push(JoinedWorkspace { workspace_id: *workspace_id, promised_key: None });
        }
    }
    Ok(())
}

fn given(rules: &[ClaimRule], claims: &Value) -> Given {
    let mut given = Given::default();
    for rule in rules {
        let holds = claim(claims, &rule.claim).is_some_and(|found| has(found, &rule.value));
        match rule.workspace_id {
            None => {
                let is_admin = given.role == Some("admin") || (holds && rule.role == "admin");
                given.role = Some(if is_admin { "admin" } else { "member" });
            }
            Some(workspace) if holds => {
                let Some(role) = WorkspaceRole::parse(&rule.role) else { continue };
                let best = given.workspaces.entry(workspace).or_insert(role);
                *best = role.max(*best);
            }
            Some(_) => {}
        }
    }
    given
}

/// A claim by its whole name first: names with dots exist (`https://acme.test/groups`).
fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| name.split('.').try_fold(claims, |inside, part| inside.get(part)))
}

/// A text, or one of a list; true and numbers by how they are written.
fn has(found: &Value, value: &str) -> bool {
    match found {
        Value::String(text) => text == value,
        Value::Array(all) => all.iter().any(|one| !one.is_array() && has(one, value)),
        Value::Bool(flag) => value == if *flag { "true" } else { "false" },
        Value::Number(number) => value.parse().is_ok_and(|wanted: serde_json::Number| wanted == *number),
        Value::Null | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn by(rules: Value, claims: Value) -> Given {
        given(&serde_json::from_value::<Vec<ClaimRule>>(rules).unwrap(), &claims)
    }

    #[test]
    fn the_highest_role_of_all_rules_that_hold_counts() {
        let workspace = Uuid::new_v4();
        let rules = json!([
            { "claim": "groups", "value": "ops", "role": "admin" },
            { "claim": "groups", "value": "sales", "workspace_id": workspace, "role": "member" },
            { "claim": "realm.roles", "value": "lead", "workspace_id": workspace, "role": "manager" },
        ]);
        for (claims, role, place) in [
            (json!({}), "member", None),
            (json!({ "groups": ["ops"] }), "admin", None),
            (json!({ "groups": "ops" }), "admin", None),
            (json!({ "groups": ["ops ", "OPS"] }), "member", None),
            (json!({ "groups": ["sales"] }), "member", Some(WorkspaceRole::Member)),
            (json!({ "groups": ["sales"], "realm": { "roles": ["lead"] } }), "member", Some(WorkspaceRole::Manager)),
            (json!({ "realm.roles": ["lead"] }), "member", Some(WorkspaceRole::Manager)),
            (json!({ "groups": [["ops"]] }), "member", None),
        ] {
            let given = by(rules.clone(), claims.clone());
            assert_eq!((given.role, given.workspaces.get(&workspace).copied()), (Some(role), place), "{claims}");
        }
    }

    #[test]
    fn without_rules_about_it_the_role_is_nobodys_business() {
        assert_eq!(by(json!([]), json!({ "role": "admin" })), Given::default());
    }
}
