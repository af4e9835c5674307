//! Which scopes a key may get: those its kind can have, and of them those the giver may give. A workspace's key gives
//! what it holds; an admin key that makes a workspace's keys gives them anything, and further admin keys what it holds.
//! Keys of services know no role: a person gives them nothing with which they could do more than the person.

use super::authority;
use crate::http::{ApiError, FieldFault};
use crate::identity::Caller;
use shared::identity::scopes;
use shared::model::KeyKind;

/// What a key of a service gets that says nothing of its scopes: it calls models, and administers nothing.
const OF_APPLICATIONS: [&str; 2] = ["completions.write", "models.list"];

/// The scopes asked for, or what keys of this kind get otherwise: for services what applications need, for others all that
/// can be given. `held` are those the key has already: they need no giver.
pub fn granted(
    asked: Option<Vec<String>>,
    kind: KeyKind,
    caller: &Caller,
    held: &[String],
) -> Result<Vec<String>, ApiError> {
    let possible = scopes::all_for(kind);
    let may_give = |scope: &str| {
        let is_theirs = authority::may_make_any(caller, kind) || caller.holds(scope);
        is_theirs && !authority::exceeds_role(caller, kind, scope) || held.iter().any(|one| one == scope)
    };
    let Some(asked) = asked else {
        let is_usual = |scope: &&str| kind != KeyKind::WorkspaceService || OF_APPLICATIONS.contains(scope);
        let all: Vec<_> =
            possible.into_iter().filter(is_usual).filter(|scope| may_give(scope)).map(str::to_owned).collect();
        if all.is_empty() {
            return Err(ApiError::field(
                "scopes",
                "is required: what keys get without it, this credential cannot give",
            ));
        }
        return not_an_owners(all, kind, caller, held);
    };
    // Two families are also written with a colon.
    let asked: Vec<String> = asked.into_iter().map(|scope| scope.replace(':', ".")).collect();
    // What it has from before may be sent back.
    let retired = scopes::RETIRED.iter().filter(|scope| held.iter().any(|one| one == *scope));
    let possible: Vec<&str> = possible.into_iter().chain(retired.copied()).collect();
    let unknown: Vec<FieldFault> = unknown(&asked, &possible);
    if !unknown.is_empty() {
        return Err(ApiError::Faults(unknown));
    }
    let mut granted: Vec<String> = Vec::with_capacity(asked.len());
    for scope in asked {
        if !may_give(&scope) {
            return Err(ApiError::Forbidden("A scope that one does not hold cannot be given"));
        }
        if !granted.contains(&scope) {
            granted.push(scope);
        }
    }
    not_an_owners(granted, kind, caller, held)
}

/// A key of the organisation with every scope does what owners do, so it comes from those who may.
fn not_an_owners(
    granted: Vec<String>,
    kind: KeyKind,
    caller: &Caller,
    held: &[String],
) -> Result<Vec<String>, ApiError> {
    let becomes_one = scopes::is_every_admin_scope(kind, &granted) && !scopes::is_every_admin_scope(kind, held);
    if becomes_one && !caller.may_act_as_owner() {
        return Err(ApiError::Forbidden(
            "A key with every admin scope may do what owners do, and is made by them; name fewer scopes",
        ));
    }
    Ok(granted)
}

/// What is none of this kind's scopes, each with the one that was probably meant.
fn unknown(asked: &[String], possible: &[&str]) -> Vec<FieldFault> {
    const MAX_FAULTS: usize = 50;
    let unknown = asked.iter().enumerate().filter(|(_, scope)| !possible.contains(&scope.as_str()));
    let faults = unknown.take(MAX_FAULTS).map(|(n, scope)| {
        let shown = (scope.chars().count() <= 100).then(|| scope.as_str().into());
        let what = "a scope of this kind of key";
        FieldFault::unknown(format!("scopes[{n}]"), scope, what, possible.iter().copied()).sent(shown)
    });
    faults.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use KeyKind::{OrganisationService, WorkspaceService, WorkspaceUser};
    use shared::identity::api_key::KeyHash;
    use shared::model::{AccessStatus, ApiKey};
    use uuid::Uuid;

    fn caller(kind: KeyKind, held: &[&str]) -> Caller {
        let key = ApiKey {
            id: Uuid::nil().into(),
            organisation_id: Uuid::nil().into(),
            workspace_id: (kind != OrganisationService).then(|| Uuid::nil().into()),
            user_id: None,
            kind,
            hash: KeyHash([0; 32]),
            scopes: held.iter().map(|scope| (*scope).to_owned()).collect(),
            status: AccessStatus::Active,
            expires_at: None,
            previous: None,
            limits: None,
            defaults: None,
        };
        Caller::new(key, None)
    }

    #[test]
    fn nobody_gives_what_they_do_not_hold() {
        let makes = ["workspace_service_api_keys.create", "workspace_user_api_keys.create"];
        let admin = ["organisation_service_api_keys.create", "deployments.create", makes[0], makes[1]];
        let admin = caller(OrganisationService, &admin);
        let changing = caller(OrganisationService, &["workspace_service_api_keys.update"]);
        let service = caller(WorkspaceService, &["workspace_user_api_keys.create", "completions.write"]);
        for (caller, kind, scope, status) in [
            (&admin, OrganisationService, "deployments.create", None),
            (&admin, OrganisationService, "deployments:create", None),
            (&admin, OrganisationService, "audit_logs.list", Some(403)),
            (&admin, OrganisationService, "completions.write", Some(400)),
            (&admin, WorkspaceService, "completions.write", None),
            (&admin, WorkspaceUser, "workspace_user_api_keys.create", Some(400)),
            (&changing, WorkspaceService, "completions.write", Some(403)),
            (&service, WorkspaceUser, "completions.write", None),
            (&service, WorkspaceUser, "logs.write", Some(403)),
            (&service, WorkspaceService, "invented", Some(400)),
        ] {
            let outcome = granted(Some(vec![scope.into()]), kind, caller, &[]);
            assert_eq!(outcome.err().map(|error| error.status().as_u16()), status, "{kind:?} {scope}");
        }
        let kept = granted(Some(vec!["logs.write".into()]), WorkspaceUser, &service, &["logs.write".into()]);
        assert_eq!(kept.unwrap(), ["logs.write"], "what a key has already is not given anew");
        for retired in scopes::RETIRED {
            let sent = || Some(vec![(*retired).to_owned()]);
            let held = granted(sent(), WorkspaceUser, &service, &[(*retired).to_owned()]);
            assert_eq!(held.unwrap(), [*retired]);
            assert_eq!(granted(sent(), WorkspaceUser, &admin, &[]).unwrap_err().status().as_u16(), 400, "{retired}");
        }
    }

    #[test]
    fn without_a_wish_a_key_gets_all_that_can_be_given() {
        let service = caller(WorkspaceService, &["workspace_user_api_keys.create", "completions.write"]);
        assert_eq!(granted(None, WorkspaceUser, &service, &[]).unwrap(), ["completions.write"]);
        let admin = caller(OrganisationService, &["workspace_user_api_keys.create"]);
        assert_eq!(granted(None, WorkspaceUser, &admin, &[]).unwrap(), scopes::all_for(WorkspaceUser));
        let own = ["workspace_user_api_keys.create"];
        assert_eq!(granted(None, OrganisationService, &admin, &[]).unwrap(), own, "what it holds itself");
        let order = vec!["logs.list".to_owned(), "completions.write".into(), "logs.list".into()];
        assert_eq!(granted(Some(order), WorkspaceUser, &admin, &[]).unwrap(), ["logs.list", "completions.write"]);
    }
}
