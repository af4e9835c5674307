//! Who may be given a key's secret. Whoever has it can do all that the key can, so it is shown only to those who could
//! do as much before: they hold every scope of it that counts, and their role is not below that of its owner.

use crate::crud::Action;
use crate::http::ApiError;
use crate::identity::Caller;
use crate::identity::access::{Standing, WorkspaceRole, effective_scopes};
use crate::identity::caller;
use crate::log_data::view;
use shared::identity::scopes;
use shared::model::KeyKind;
use uuid::Uuid;

/// What a key is able to do.
#[derive(Clone, Copy)]
pub struct KeyPower<'k> {
    pub kind: KeyKind,
    pub scopes: &'k [String],
    pub workspace: Option<Uuid>,
    /// The person it acts for; service keys act for nobody.
    pub owner: Option<Uuid>,
}

/// Whether the secret of such a key may be shown to the caller.
pub async fn may_hold(action: &Action<'_>, power: KeyPower<'_>) -> Result<bool, ApiError> {
    let owner = match power.owner {
        Some(user) => Some((user, standing(action, user, power.workspace).await?)),
        None => None,
    };
    let caller = &action.call.caller;
    Ok(has_rank(caller, owner.as_ref()) && holds_scopes(caller, power, owner.as_ref().map(|(_, standing)| standing)))
}

/// The person's roles in the workspace; those of nobody when they are gone.
pub async fn standing(action: &Action<'_>, user: Uuid, workspace: Option<Uuid>) -> Result<Standing, ApiError> {
    const FIND: &str = "SELECT CASE WHEN u.status = 'active' THEN u.role END AS organisation_role,
               CASE WHEN u.status = 'active' THEN m.role END AS member_role,
               w.security_settings AS workspace_settings, o.security_settings AS organisation_settings,
               o.settings -> 'workspace_overrides' AS overrides
        FROM organisations o
        LEFT JOIN users u ON u.organisation_id = o.id AND u.id = $2
        LEFT JOIN workspaces w ON w.organisation_id = o.id AND w.id = $3
        LEFT JOIN workspace_members m ON m.workspace_id = w.id AND m.user_id = u.id
        WHERE o.id = $1";
    let row = action.tx.query_one(FIND, &[&action.organisation_id(), &user, &workspace]).await?;
    Ok(caller::standing(&row)?)
}

/// Whether the caller stands as high as the person behind a key. Service keys act for the workspace itself, or for the
/// whole organisation, and are bound by scopes alone; but what acts for an owner of the organisation comes from owners.
pub fn has_rank(caller: &Caller, owner: Option<&(Uuid, Standing)>) -> bool {
    match (&caller.standing, owner) {
        (_, None) => true,
        (None, Some((_, theirs))) => theirs.organisation_role != "owner" || caller.may_act_as_owner(),
        (Some(_), Some((user, _))) if caller.user_id() == Some(*user) => true,
        (Some(own), Some((_, theirs))) => {
            own.role > Some(WorkspaceRole::Member)
                && theirs.role <= own.role
                && organisation_rank(theirs) <= organisation_rank(own)
        }
    }
}

/// Whether a person may do something to another. Keys that act for nobody are bound by scopes alone.
pub fn has_rank_over(caller: &Caller, person: Uuid, theirs: &Standing) -> bool {
    caller.standing.is_none() || has_rank(caller, Some(&(person, theirs.clone())))
}

/// The same for the person behind a key, for changes that show no secret.
pub async fn may_change(action: &Action<'_>, power: KeyPower<'_>) -> Result<bool, ApiError> {
    let Some(owner) = power.owner else { return Ok(true) };
    Ok(has_rank_over(&action.call.caller, owner, &standing(action, owner, power.workspace).await?))
}

fn organisation_rank(standing: &Standing) -> u8 {
    match standing.organisation_role.as_str() {
        "owner" => 2,
        "admin" => 1,
        _ => 0,
    }
}

/// Whether a service's key with the scope could do more than the person who gives it: such keys see everybody's data,
/// whatever the giver may see, and no role keeps them from people above the giver.
pub fn exceeds_role(caller: &Caller, kind: KeyKind, scope: &str) -> bool {
    let is_of_service = matches!(kind, KeyKind::OrganisationService | KeyKind::WorkspaceService);
    let Some(standing) = caller.standing.as_deref().filter(|_| is_of_service) else { return false };
    let (family, verb) = scope.rsplit_once('.').unwrap_or((scope, ""));
    match (family, verb) {
        (_, "read" | "list") if !matches!(family, "logs" | "analytics") => false,
        ("workspace_users", _) => standing.role < Some(WorkspaceRole::Admin),
        ("workspace_user_api_keys", _) => !standing.is_organisation_admin(),
        ("logs", "list" | "view" | "export") => !view::sees_everything(standing, "ViewLogs"),
        ("analytics", _) => !view::sees_everything(standing, "ViewAnalytics"),
        _ => false,
    }
}

/// Whether the caller is an admin key that makes keys of this kind: those get any scope from it.
pub fn may_make_any(caller: &Caller, kind: KeyKind) -> bool {
    let creating = match kind {
        KeyKind::OrganisationService => return false,
        KeyKind::WorkspaceService => "workspace_service_api_keys.create",
        KeyKind::WorkspaceUser | KeyKind::Jwt => "workspace_user_api_keys.create",
    };
    caller.workspace_id().is_none() && caller.holds(creating)
}

/// Whether the caller may promise a key with these scopes to somebody who is yet to come.
pub fn may_promise(caller: &Caller, scopes: &[String]) -> bool {
    holds_scopes(caller, KeyPower { kind: KeyKind::WorkspaceUser, scopes, workspace: None, owner: None }, None)
}

/// Whether the caller may make somebody an admin of the organisation. Admins hold every scope of admin keys by their session,
/// and whoever chooses an address may read its mail, so a key with fewer scopes would become one by way of a person.
pub fn may_make_admin(caller: &Caller) -> bool {
    caller.standing.as_deref().map_or_else(|| caller.may_act_as_owner(), Standing::is_organisation_admin)
}

/// Whether the caller may seat somebody who is yet to come in a workspace, in this role. Members have what an invitation is
/// for; the other roles are given by those who may give them to people who are there.
pub fn may_seat(caller: &Caller, role: WorkspaceRole) -> bool {
    role == WorkspaceRole::Member || may_make_admin(caller) || caller.holds("workspace_users.create")
}

/// An admin key cannot hold all scopes of a workspace's keys. It may see the secret of such a key if it could make one.
fn holds_scopes(caller: &Caller, power: KeyPower<'_>, owner: Option<&Standing>) -> bool {
    let exceeds = power.scopes.iter().any(|scope| exceeds_role(caller, power.kind, scope));
    let is_an_owners = scopes::is_every_admin_scope(power.kind, power.scopes) && !caller.may_act_as_owner();
    if exceeds || is_an_owners {
        return false;
    }
    if may_make_any(caller, power.kind) {
        return true;
    }
    let holds = |scope: &String| caller.holds(scope);
    match owner {
        Some(owner) => effective_scopes(power.scopes, owner).iter().all(holds),
        None => power.scopes.iter().all(holds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::access::SecuritySettings;
    use KeyKind::{OrganisationService, WorkspaceService, WorkspaceUser};
    use shared::identity::api_key::KeyHash;
    use shared::model::{AccessStatus, ApiKey};

    fn caller(kind: KeyKind, scopes: &[&str], standing: Option<Standing>) -> Caller {
        let key = ApiKey {
            id: Uuid::nil().into(),
            organisation_id: Uuid::nil().into(),
            workspace_id: (kind != OrganisationService).then(|| Uuid::nil().into()),
            user_id: standing.as_ref().map(|_| Uuid::from_u128(1).into()),
            kind,
            hash: KeyHash([0; 32]),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            status: AccessStatus::Active,
            expires_at: None,
            previous: None,
            limits: None,
            defaults: None,
        };
        Caller::new(key, standing)
    }

    fn person(organisation_role: &str, role: Option<&str>) -> Standing {
        Standing::new(organisation_role, role, SecuritySettings::default())
    }

    #[test]
    fn nobody_is_shown_the_key_of_somebody_above_them() {
        let own = |organisation: &str, role: Option<&str>| caller(WorkspaceUser, &[], Some(person(organisation, role)));
        for (by, owner, has) in [
            (own("member", Some("manager")), person("member", Some("member")), true),
            (own("member", Some("manager")), person("member", Some("manager")), true),
            (own("member", Some("manager")), person("member", Some("admin")), false),
            (own("member", Some("manager")), person("owner", Some("member")), false),
            (own("member", Some("admin")), person("owner", Some("member")), false),
            (own("member", Some("admin")), person("admin", None), false),
            (own("admin", None), person("owner", None), false),
            (own("admin", None), person("admin", None), true),
            (own("owner", None), person("owner", None), true),
            (own("member", Some("member")), person("member", Some("member")), false),
            (own("member", None), person("member", None), false),
            (caller(WorkspaceService, &[], None), person("owner", None), false),
            (caller(OrganisationService, &["workspace_user_api_keys.create"], None), person("owner", None), false),
            (caller(OrganisationService, &scopes::all_for(OrganisationService), None), person("owner", None), true),
            (caller(WorkspaceService, &[], None), person("admin", None), true),
        ] {
            let found = has_rank(&by, Some(&(Uuid::from_u128(2), owner.clone())));
            assert_eq!(found, has, "{:?} for {owner:?}", by.standing);
        }
        let member = own("member", Some("member"));
        assert!(has_rank(&member, Some(&(Uuid::from_u128(1), person("member", Some("member"))))), "one's own");
        assert!(has_rank(&member, None));
    }

    #[test]
    fn a_secret_is_shown_to_those_who_hold_all_its_scopes_or_could_make_such_a_key() {
        let service = |scopes: &[&str]| caller(WorkspaceService, scopes, None);
        let admin = |scopes: &[&str]| caller(OrganisationService, scopes, None);
        let rotate = "workspace_service_api_keys.rotate";
        let create = "workspace_service_api_keys.create";
        for (by, kind, scopes, shown) in [
            (service(&[rotate, "completions.write"]), WorkspaceService, vec!["completions.write"], true),
            (service(&[rotate, "completions.write"]), WorkspaceService, vec!["completions.write", "logs.list"], false),
            (service(&[rotate, create]), WorkspaceService, vec!["completions.write"], false),
            (admin(&[rotate]), WorkspaceService, vec!["completions.write"], false),
            (admin(&[rotate, create]), WorkspaceService, vec!["completions.write"], true),
            (admin(&[rotate, create]), WorkspaceUser, vec!["completions.write"], false),
            (admin(&[rotate, create]), OrganisationService, vec!["audit_logs.list"], false),
            (admin(&["audit_logs.list"]), OrganisationService, vec!["audit_logs.list"], true),
        ] {
            let scopes: Vec<String> = scopes.into_iter().map(str::to_owned).collect();
            let power = KeyPower { kind, scopes: &scopes, workspace: None, owner: None };
            assert_eq!(holds_scopes(&by, power, None), shown, "{kind:?} {scopes:?} by {:?}", by.scopes);
        }
        // What the owner's role does not allow, the key cannot do.
        let scopes = ["prompts.update".to_owned(), "completions.write".to_owned()];
        let power = KeyPower { kind: WorkspaceUser, scopes: &scopes, workspace: None, owner: None };
        let by = service(&["completions.write"]);
        assert!(holds_scopes(&by, power, Some(&person("member", Some("member")))));
        assert!(!holds_scopes(&by, power, Some(&person("member", Some("manager")))));
    }
}
