//! Where somebody acts by their session, and what they may do there: as a key of theirs in the workspace that they name,
//! as an admin key in the whole organisation, or in all of their workspaces at once, to look at what happened there.

use crate::http::ApiError;
use crate::identity::access::{self, Standing};
use crate::identity::caller::{OwnWorkspace, standing as standing_of};
use axum::http::HeaderMap;
use shared::headers::header_prefix::Aliases;
use shared::identity::scopes;
use shared::model::KeyKind;
use shared::routes::SessionReach;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// Where the person acts, by id or slug; after the prefix: `x-gateway-workspace`.
const WORKSPACE: &str = "workspace";
/// Instead of a workspace: the organisation with all of them.
const EVERYWHERE: &str = "*";
/// What somebody does in all their workspaces at once: look at what happened there.
const IN_OWN_WORKSPACES: [&str; 5] = ["audit_logs.list", "analytics.view", "logs.export", "logs.list", "logs.view"];
/// Workspaces that somebody can look at at once.
const MAX_WORKSPACES: i64 = 1000;
pub(super) const OVER: ApiError = ApiError::Unauthenticated("The session is over; sign in again");
const NO_SUCH_WORKSPACE: ApiError = ApiError::Forbidden("This person is in no such workspace (x-gateway-workspace)");
const NOT_FOR_ORGANISATION: ApiError =
    ApiError::Forbidden("Only owners and admins act for the whole organisation (x-gateway-workspace: *)");
const NOT_EVERYWHERE: ApiError =
    ApiError::Forbidden("This operation is about one workspace; name it (x-gateway-workspace)");

/// The workspace that a request names, as it names it.
pub fn named_workspace<'h>(headers: &'h HeaderMap, aliases: &Aliases) -> Option<&'h str> {
    let sent = aliases.prefixes().find_map(|prefix| headers.get(format!("{prefix}{WORKSPACE}")));
    sent.map(|value| value.to_str().unwrap_or("?"))
}

/// Whose session it is.
#[derive(Debug, Clone, Copy)]
pub struct SessionPerson {
    pub organisation_id: Uuid,
    pub user_id: Uuid,
}

/// What a session may do at one place.
pub(super) struct ActingRights {
    pub kind: KeyKind,
    pub workspace_id: Option<Uuid>,
    /// Where they act in all their workspaces.
    pub own_workspaces: Option<Vec<OwnWorkspace>>,
    pub scopes: Vec<&'static str>,
    pub standing: Standing,
}

impl ActingRights {
    /// Those of the scopes that count: in several workspaces those that count in one of them.
    pub fn effective_scopes(&self) -> Vec<String> {
        let held: Vec<String> = self.scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let Some(own) = &self.own_workspaces else { return access::effective_scopes(&held, &self.standing) };
        held.into_iter().filter(|scope| own.iter().any(|one| one.standing.allows(scope))).collect()
    }
}

/// What the session of a person may do where a request acts that names this workspace, or `*`: the workspace, and the
/// scopes that count there. None where the person may not act.
pub async fn effective_scopes(
    person: SessionPerson,
    workspace: Option<&str>,
    db: &impl GenericClient,
) -> Result<Option<(Option<Uuid>, Vec<String>)>, ApiError> {
    let reach = match workspace {
        Some(EVERYWHERE) => SessionReach::WorkspacesOrOrganisation,
        _ => SessionReach::WorkspaceOrOrganisation,
    };
    match rights(person, reach, workspace, db).await {
        Ok(rights) => Ok(Some((rights.workspace_id, rights.effective_scopes()))),
        Err(ApiError::Forbidden(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where and with which rights the person acts.
pub(super) async fn rights(
    person: SessionPerson,
    reach: SessionReach,
    workspace: Option<&str>,
    db: &impl GenericClient,
) -> Result<ActingRights, ApiError> {
    match (reach, workspace) {
        (SessionReach::Nowhere | SessionReach::Person, _) => Ok(of_person(in_organisation(person, db).await?)),
        (SessionReach::Organisation, _) => {
            let standing = in_organisation(person, db).await?;
            Ok(for_organisation(standing).unwrap_or_else(of_person))
        }
        (SessionReach::WorkspaceOrOrganisation, Some(EVERYWHERE)) => {
            for_organisation(in_organisation(person, db).await?).map_err(|_| NOT_FOR_ORGANISATION)
        }
        (SessionReach::WorkspacesOrOrganisation, None | Some(EVERYWHERE)) => {
            match for_organisation(in_organisation(person, db).await?) {
                Ok(rights) => Ok(rights),
                Err(standing) => in_own_workspaces(person, standing, db).await,
            }
        }
        (SessionReach::Workspace, Some(EVERYWHERE)) => Err(NOT_EVERYWHERE),
        (
            SessionReach::Workspace | SessionReach::WorkspaceOrOrganisation | SessionReach::WorkspacesOrOrganisation,
            name,
        ) => in_workspace(person, name, db).await,
    }
}

/// Of an admin key, for those who run the organisation; others get their standing back.
fn for_organisation(standing: Standing) -> Result<ActingRights, Standing> {
    if !standing.is_organisation_admin() {
        return Err(standing);
    }
    let kind = KeyKind::OrganisationService;
    Ok(ActingRights { kind, workspace_id: None, own_workspaces: None, scopes: scopes::all_for(kind), standing })
}

/// None: what is about the person alone asks for no scope, and what asks for one is not for them.
const fn of_person(standing: Standing) -> ActingRights {
    let kind = KeyKind::WorkspaceUser;
    ActingRights { kind, workspace_id: None, own_workspaces: None, scopes: Vec::new(), standing }
}

/// In all workspaces that the person is a member of, with what they may look at in each.
async fn in_own_workspaces(
    person: SessionPerson,
    standing: Standing,
    db: &impl GenericClient,
) -> Result<ActingRights, ApiError> {
    const FIND: &str = "SELECT w.id AS workspace_id, w.security_settings AS workspace_settings,
            u.role AS organisation_role, m.role AS member_role, o.security_settings AS organisation_settings,
            o.settings -> 'workspace_overrides' AS overrides
        FROM users u
        JOIN organisations o ON o.id = u.organisation_id
        JOIN workspace_members m ON m.user_id = u.id
        JOIN workspaces w ON w.id = m.workspace_id AND w.organisation_id = u.organisation_id AND w.status = 'active'
        WHERE u.id = $1 AND u.organisation_id = $2 AND u.status = 'active'
        ORDER BY w.is_default DESC, m.created_at, w.id LIMIT $3";
    let rows = db.query(FIND, &[&person.user_id, &person.organisation_id, &MAX_WORKSPACES]).await?;
    let own = |row: &Row| Ok(OwnWorkspace { id: row.try_get("workspace_id")?, standing: standing_of(row)? });
    let own = rows.iter().map(own).collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
    if own.is_empty() {
        return Err(NO_SUCH_WORKSPACE);
    }
    let kind = KeyKind::WorkspaceUser;
    let scopes = IN_OWN_WORKSPACES.to_vec();
    Ok(ActingRights { kind, workspace_id: None, own_workspaces: Some(own), scopes, standing })
}

/// In the workspace that is named, else in the default one, else in the one they joined first.
async fn in_workspace(
    person: SessionPerson,
    name: Option<&str>,
    db: &impl GenericClient,
) -> Result<ActingRights, ApiError> {
    const FIND: &str = "SELECT w.id AS workspace_id, w.security_settings AS workspace_settings,
            u.role AS organisation_role, m.role AS member_role, o.security_settings AS organisation_settings,
            o.settings -> 'workspace_overrides' AS overrides
        FROM users u
        JOIN organisations o ON o.id = u.organisation_id
        JOIN workspaces w ON w.organisation_id = u.organisation_id AND w.status = 'active'
        LEFT JOIN workspace_members m ON m.workspace_id = w.id AND m.user_id = u.id
        WHERE u.id = $1 AND u.organisation_id = $2 AND u.status = 'active'
          AND ($3::text IS NULL OR w.id::text = $3 OR w.slug = $3)
          AND (m.role IS NOT NULL OR u.role IN ('owner', 'admin'))
        ORDER BY w.id::text = $3 DESC, w.is_default DESC, m.created_at, w.created_at, w.id LIMIT 1";
    let row = db.query_opt(FIND, &[&person.user_id, &person.organisation_id, &name]).await?;
    let row = row.ok_or(NO_SUCH_WORKSPACE)?;
    let kind = KeyKind::WorkspaceUser;
    let workspace_id = Some(row.try_get("workspace_id")?);
    let (scopes, standing) = (scopes::all_for_session(), standing_of(&row)?);
    Ok(ActingRights { kind, workspace_id, own_workspaces: None, scopes, standing })
}

/// Their standing as it is now, by the organisation's own settings.
async fn in_organisation(person: SessionPerson, db: &impl GenericClient) -> Result<Standing, ApiError> {
    const FIND: &str = "SELECT NULL::jsonb AS workspace_settings, u.role AS organisation_role,
            NULL::text AS member_role, o.security_settings AS organisation_settings,
            o.settings -> 'workspace_overrides' AS overrides
        FROM users u JOIN organisations o ON o.id = u.organisation_id
        WHERE u.id = $1 AND u.organisation_id = $2 AND u.status = 'active'";
    let row = db.query_opt(FIND, &[&person.user_id, &person.organisation_id]).await?;
    Ok(standing_of(&row.ok_or(OVER)?)?)
}
