//! The caller of a request: the API key looked up in the database, or a 401 that says why it was refused.

use crate::http::ApiError;
use crate::identity::access::{self, Standing, security};
use crate::identity::cookies::CallerSession;
use chrono::{DateTime, Utc};
use serde_json::Value;
use shared::identity::api_key::KeyHash;
use shared::identity::jwt::VerifiedToken;
use shared::identity::scopes;
use shared::model::id::Id;
use shared::model::{ApiKey, DeadKey, KeyKind};
use std::sync::Arc;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    pub key: Arc<ApiKey>,
    /// The person behind the key; service keys act for nobody.
    pub standing: Option<Arc<Standing>>,
    /// What the token says, if the caller came with one instead of a key.
    pub token: Option<Arc<VerifiedToken>>,
    /// The session of a person who came with a cookie; `key` is then what the session stands for, and stored nowhere.
    pub session: Option<Arc<CallerSession>>,
    /// The workspaces of a person who acts in all of theirs at once: no workspace is named then, and the person does not
    /// act for the organisation.
    pub own_workspaces: Option<Arc<[OwnWorkspace]>>,
    /// The scopes that count: those of the key, for a person's key narrowed by role and security settings.
    pub scopes: Arc<[String]>,
}

/// A workspace of a person, and what they are there.
#[derive(Debug, Clone)]
pub struct OwnWorkspace {
    pub id: Uuid,
    pub standing: Standing,
}

impl Caller {
    pub fn new(key: ApiKey, standing: Option<Standing>) -> Self {
        let scopes = match &standing {
            Some(standing) => access::effective_scopes(&key.scopes, standing),
            None => key.scopes.to_vec(),
        };
        Self {
            key: Arc::new(key),
            standing: standing.map(Arc::new),
            token: None,
            session: None,
            own_workspaces: None,
            scopes: scopes.into(),
        }
    }

    /// Nothing but what the key itself holds, whatever its person's role says, and of that nothing that changes or shows
    /// something here: a session's key calls models, which the proxy lets it.
    fn without_rights_of_role(self) -> Self {
        const OF_CALLS: [&str; 2] = ["completions.write", "mcp.invoke"];
        let held = |scope: &&String| self.key.scopes.contains(scope) && !OF_CALLS.contains(&scope.as_str());
        let held = self.scopes.iter().filter(held).cloned().collect();
        Self { scopes: held, ..self }
    }

    pub fn organisation_id(&self) -> Uuid {
        self.key.organisation_id.uuid()
    }

    /// The workspace that the caller is bound to; none for admin keys, and for `own_workspaces`.
    pub fn workspace_id(&self) -> Option<Uuid> {
        self.key.workspace_id.map(Id::uuid)
    }

    pub fn user_id(&self) -> Option<Uuid> {
        self.key.user_id.map(Id::uuid)
    }

    /// What the audit trail and `created_by` call the caller: the person, else the key.
    pub fn actor_id(&self) -> Uuid {
        self.key.user_id.map_or(self.key.id.uuid(), Id::uuid)
    }

    pub fn holds(&self, scope: &str) -> bool {
        self.scopes.iter().any(|one| one == scope)
    }

    /// An owner of the organisation; never a service key.
    pub fn is_owner(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.organisation_role == "owner")
    }

    /// For what a session that was left open, or stolen, must not be enough for; keys are as good as ever.
    pub fn require_recent_sign_in(&self) -> Result<(), ApiError> {
        match &self.session {
            Some(session) if !session.is_recent => Err(ApiError::Reauthenticate),
            _ => Ok(()),
        }
    }

    /// An owner who came by their session, and not with a key or token.
    pub fn is_signed_in_owner(&self) -> bool {
        self.session.is_some() && self.is_owner()
    }

    /// Whether what belongs to owners is theirs: to owners by their session (no key or token of theirs does it), and to
    /// keys of the organisation that may do all that one can.
    pub fn may_act_as_owner(&self) -> bool {
        match &self.standing {
            Some(_) => self.is_signed_in_owner(),
            None => scopes::is_every_admin_scope(self.key.kind, &self.scopes),
        }
    }

    /// Bound to no workspace: admin keys, and sessions that act for the organisation.
    pub fn acts_for_organisation(&self) -> bool {
        self.key.kind == KeyKind::OrganisationService
    }

    /// Admin keys, and people who are owner or admin of the organisation.
    pub fn is_organisation_admin(&self) -> bool {
        match &self.standing {
            Some(standing) => standing.is_organisation_admin(),
            None => self.workspace_id().is_none(),
        }
    }

    /// Of a person who acts in all their workspaces: which these are.
    pub fn own_workspace_ids(&self) -> Option<Vec<Uuid>> {
        self.own_workspaces.as_deref().map(|own| own.iter().map(|one| one.id).collect())
    }

    /// Those of them where a scope counts.
    pub fn own_workspaces_with(&self, scope: &str) -> Option<Vec<Uuid>> {
        let own = self.own_workspaces.as_deref()?.iter();
        Some(own.filter(|one| one.standing.allows(scope)).map(|one| one.id).collect())
    }
}

/// Why nobody was found, and whose key it was, if it is known: the audit trail names its organisation.
#[derive(Debug)]
pub struct AuthFailure {
    pub refused: ApiError,
    pub key: Option<ApiKey>,
    /// The organisation that a rejected token is for.
    pub organisation_id: Option<Uuid>,
    /// The session whose replaced token was sent, and which has to end.
    pub replayed: Option<ReplayedSession>,
}

/// A session of which somebody sent a token that was replaced long before: two people have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayedSession {
    pub id: Uuid,
    pub organisation_id: Uuid,
    pub user_id: Uuid,
}

impl<E: Into<ApiError>> From<E> for AuthFailure {
    fn from(refused: E) -> Self {
        Self { refused: refused.into(), key: None, organisation_id: None, replayed: None }
    }
}

/// Finds the caller behind an API key; refuses what is unknown, archived, expired or belongs to an archived workspace.
pub async fn authenticate(key: &[u8], db: &impl GenericClient, now: DateTime<Utc>) -> Result<Caller, AuthFailure> {
    const FIND: &str = "SELECT k.id, k.organisation_id, k.workspace_id, k.user_id, k.kind, k.hash, k.scopes, k.status,
               k.suspended_at IS NOT NULL AS is_suspended, k.session_id IS NOT NULL AS is_of_session, k.expires_at, k.previous_hash, k.previous_expires_at, k.defaults, k.rate_limits, k.usage_limits, w.status AS workspace_status,
               w.security_settings AS workspace_settings,
               CASE WHEN u.status = 'active' THEN u.role END AS organisation_role, m.role AS member_role,
               o.security_settings AS organisation_settings, o.settings -> 'workspace_overrides' AS overrides
        FROM api_keys k
        LEFT JOIN workspaces w ON w.id = k.workspace_id
        LEFT JOIN users u ON u.id = k.user_id
        LEFT JOIN workspace_members m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id AND u.status = 'active'
        LEFT JOIN organisations o ON o.id = k.organisation_id AND k.user_id IS NOT NULL
        WHERE k.hash = $1 OR k.previous_hash = $1";
    let hash = KeyHash::from_key(key);
    let Some(row) = db.query_opt(FIND, &[&hash.0.as_slice()]).await? else {
        return Err(ApiError::Unauthenticated("The API key is not known").into());
    };
    let workspace: Option<&str> = row.try_get("workspace_status")?;
    let key = ApiKey::from_row(&row)?;
    let is_suspended: bool = row.try_get("is_suspended")?;
    let suspended = is_suspended.then_some("The API key is suspended");
    match refusal(&key, &hash, workspace, now).or(suspended) {
        Some(reason) => {
            let refused = ApiError::Unauthenticated(reason);
            Err(AuthFailure { key: Some(key), ..refused.into() })
        }
        None => {
            let standing = key.user_id.map(|_| standing(&row)).transpose()?;
            match row.try_get("is_of_session")? {
                true => Ok(Caller::new(key, standing).without_rights_of_role()),
                false => Ok(Caller::new(key, standing)),
            }
        }
    }
}

/// The person's roles and the settings that count, from a row that names them as `FIND` does.
pub fn standing(row: &Row) -> Result<Standing, tokio_postgres::Error> {
    let json = |name: &str| Ok::<_, tokio_postgres::Error>(row.try_get::<_, Option<Value>>(name)?.unwrap_or_default());
    let settings =
        security::effective(&json("organisation_settings")?, &json("workspace_settings")?, &json("overrides")?);
    let organisation_role: Option<&str> = row.try_get("organisation_role")?;
    Ok(Standing::new(organisation_role.unwrap_or_default(), row.try_get("member_role")?, settings))
}

/// Why a known key may not be used.
fn refusal(key: &ApiKey, hash: &KeyHash, workspace: Option<&str>, now: DateTime<Utc>) -> Option<&'static str> {
    match key.check(hash, now) {
        Err(DeadKey::Rotated) => Some("The API key was rotated, and its transition is over"),
        Err(DeadKey::Archived) => Some("The API key is archived"),
        Err(DeadKey::Expired) => Some("The API key has expired"),
        Ok(()) if key.workspace_id.is_some() && workspace != Some("active") => {
            Some("The workspace of this API key is archived")
        }
        Ok(()) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use shared::model::AccessStatus::{Active, Archived, Exhausted, Expired};
    use shared::model::KeyKind;
    use uuid::Uuid;

    #[test]
    fn only_live_keys_of_live_workspaces_are_callers() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let (past, future) = (now - TimeDelta::seconds(1), now + TimeDelta::seconds(1));
        let workspace = Some(Uuid::nil().into());
        for (status, expires_at, workspace_id, workspace_status, accepted) in [
            (Active, None, None, None, true),
            (Exhausted, None, None, None, true),
            (Archived, None, None, None, false),
            (Expired, None, None, None, false),
            (Active, Some(past), None, None, false),
            (Active, Some(now), None, None, false),
            (Active, Some(future), None, None, true),
            (Active, None, workspace, Some("active"), true),
            (Active, None, workspace, Some("archived"), false),
            (Active, None, workspace, None, false),
        ] {
            let key = ApiKey {
                id: Uuid::nil().into(),
                organisation_id: Uuid::nil().into(),
                workspace_id,
                user_id: None,
                kind: KeyKind::OrganisationService,
                hash: KeyHash([0; 32]),
                scopes: [].into(),
                status,
                expires_at,
                previous: None,
                limits: None,
                defaults: None,
            };
            let refused = refusal(&key, &key.hash, workspace_status, now);
            assert_eq!(refused.is_none(), accepted, "{status:?} {expires_at:?} {workspace_status:?}: {refused:?}");
        }
    }
}
