//! Callers that come with a token (JWT) instead of a key. A token is verified once and then remembered for minutes, so
//! that a client's next requests cost a look into a map; organisation, workspace and person are looked up in the
//! snapshot each time, so that changed settings, archived workspaces and removed people count at once.

pub mod fetch;
pub mod trail;
mod verified;

use crate::identity::identify::{INFERENCE, Principal, has_one};
use crate::net::dial::Dialer;
use crate::snapshot::Snapshot;
use chrono::{DateTime, Utc};
use serde_json::Value;
use shared::identity::api_key::KeyHash;
use shared::identity::jwt::{KeyRing, Rejection, Unverified, VerifiedToken};
use shared::model::id::WorkspaceId;
use shared::model::{AccessStatus, ApiKey, EmailDigest, KeyDefaults, KeyKind, Organisation, Status, Workspace};
use shared::settings;
use std::sync::Arc;
use std::time::Instant;
use trail::Trail;
use uuid::Uuid;
use verified::{Memory, Verified};

pub struct Tokens {
    settings: settings::Jwt,
    ring: KeyRing,
    memory: Memory,
    pub trail: Trail,
}

/// Why a token was refused, and whose audit trail should know.
#[derive(Debug)]
pub struct RefusedToken {
    pub rejection: Rejection,
    pub organisation_id: Option<Uuid>,
}

impl Tokens {
    pub fn new(settings: &settings::Jwt, dialer: Arc<Dialer>, trail: Trail) -> Self {
        Self { settings: settings.clone(), ring: KeyRing::new(fetch::through(dialer)), memory: Memory::new(), trail }
    }

    /// Who is behind the token. Waits only when its keys must be fetched first.
    pub async fn identify(
        &self,
        text: &[u8],
        hash: KeyHash,
        snapshot: &Snapshot,
        scopes: &[&str],
        now: DateTime<Utc>,
    ) -> Result<Principal, RefusedToken> {
        if let Some(known) = self.memory.find(&hash, snapshot, now) {
            return known.principal(snapshot, scopes).map_err(|rejection| known.refused(rejection));
        }
        let (unverified, organisation) = self.parse(text, snapshot).map_err(|rejection| {
            // Where there is one organisation, a token that names none can only have meant it.
            RefusedToken { rejection, organisation_id: snapshot.only_organisation().map(|one| one.id.uuid()) }
        })?;
        let verified = self.verify(&unverified, &organisation, hash, snapshot, now).await;
        let organisation_id = Some(organisation.id.uuid());
        let verified = verified.map_err(|rejection| RefusedToken { rejection, organisation_id })?;
        let principal = verified.principal(snapshot, scopes);
        self.memory.keep(hash, verified, now);
        principal.map_err(|rejection| RefusedToken { rejection, organisation_id })
    }

    /// Who began something with a token that may have expired since: what it allowed then it allows to the end of that, as long
    /// as its organisation accepts tokens, the workspace is active and the person is not removed.
    pub fn holder(
        &self,
        token: VerifiedToken,
        workspace: WorkspaceId,
        snapshot: &Snapshot,
        scopes: &[&str],
    ) -> Result<Principal, Rejection> {
        if !self.settings.jwt_enabled {
            return Err(Rejection::SwitchedOff);
        }
        let organisation = snapshot.organisation(&token.organisation_id.into());
        organisation.ok_or(Rejection::UnknownOrganisation)?.token_keys.as_ref().ok_or(Rejection::NoKeySet)?;
        let unavailable = Rejection::Workspace(token.workspace.clone());
        let holder = former_holder(token, workspace, snapshot).ok_or(unavailable)?;
        let person = holder.token.as_ref().and_then(|token| token.person.as_deref()).map(EmailDigest::new);
        match &holder.token {
            Some(token) => check_standing(&holder.key, token, person, Some(&holder.workspace), snapshot, scopes)?,
            None => return Err(Rejection::Malformed),
        }
        Ok(holder)
    }

    /// Whether a token is for this gateway, by what it says of itself: of an organisation whose tokens are accepted, from its
    /// issuer and for its audience. Whether it is signed and valid now is not asked.
    pub fn are_meant(&self, text: &[u8], snapshot: &Snapshot) -> bool {
        self.parse(text, snapshot).is_ok_and(|(token, organisation)| {
            organisation.token_keys.is_some() && token.agrees_with(&organisation.token_rules)
        })
    }

    fn parse<'t>(&self, text: &'t [u8], snapshot: &Snapshot) -> Result<(Unverified<'t>, Arc<Organisation>), Rejection> {
        if !self.settings.jwt_enabled {
            return Err(Rejection::SwitchedOff);
        }
        let token = Unverified::parse(text)?;
        let named = token.organisation_id(&self.settings)?;
        let organisation = snapshot.organisation(&named.into()).ok_or(Rejection::UnknownOrganisation)?;
        Ok((token, organisation))
    }

    async fn verify(
        &self,
        unverified: &Unverified<'_>,
        organisation: &Arc<Organisation>,
        hash: KeyHash,
        snapshot: &Snapshot,
        now: DateTime<Utc>,
    ) -> Result<Verified, Rejection> {
        let source = organisation.token_keys.as_ref().ok_or(Rejection::NoKeySet)?;
        let current = self.ring.keys(organisation.id.uuid(), source, unverified.kid(), Instant::now()).await?;
        let token = unverified.verify(&current.keys, &organisation.token_rules, &self.settings, now)?;
        let workspace = snapshot.workspace_named(organisation.id, &token.workspace);
        let workspace = workspace.ok_or_else(|| Rejection::Workspace(token.workspace.clone()))?;
        let key = Arc::new(acting_key(&token, &workspace, hash));
        Ok(Verified::new(organisation.clone(), key, Arc::new(token), current, now))
    }
}

/// The same, whatever became of the person and the workspace since; none of a workspace that is not known.
pub fn former_holder(token: VerifiedToken, workspace: WorkspaceId, snapshot: &Snapshot) -> Option<Principal> {
    /// Nobody sends what hashes to this.
    const NO_HASH: KeyHash = KeyHash([0; 32]);
    let workspace = snapshot.workspace(&workspace)?;
    (workspace.organisation_id.uuid() == token.organisation_id).then(|| {
        let key = Arc::new(acting_key(&token, &workspace, NO_HASH));
        Principal { key, workspace, token: Some(Arc::new(token)) }
    })
}

/// What must hold of whoever a token is for, whenever it was issued.
fn check_standing(
    key: &ApiKey,
    token: &VerifiedToken,
    person: Option<EmailDigest>,
    workspace: Option<&Workspace>,
    snapshot: &Snapshot,
    scopes: &[&str],
) -> Result<(), Rejection> {
    if workspace.is_none_or(|workspace| workspace.status != Status::Active) {
        return Err(Rejection::Workspace(token.workspace.clone()));
    }
    if person.is_some_and(|email| snapshot.is_removed(key.organisation_id, email)) {
        return Err(Rejection::Person(token.person.clone().unwrap_or_default()));
    }
    match has_one(&key.scopes, scopes) {
        true => Ok(()),
        false => Err(Rejection::MissingScope((*scopes.first().unwrap_or(&INFERENCE)).into())),
    }
}

/// The key that the token stands for.
fn acting_key(token: &VerifiedToken, workspace: &Workspace, hash: KeyHash) -> ApiKey {
    ApiKey {
        id: token.id.into(),
        organisation_id: token.organisation_id.into(),
        workspace_id: Some(workspace.id),
        user_id: None,
        kind: KeyKind::Jwt,
        hash,
        scopes: token.scopes.clone(),
        status: AccessStatus::Active,
        expires_at: Some(token.ends_at()),
        previous: None,
        limits: None,
        defaults: defaults(token),
    }
}

fn defaults(token: &VerifiedToken) -> Option<Arc<KeyDefaults>> {
    let metadata = token.metadata.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    let defaults =
        KeyDefaults { config: token.config_id.clone(), metadata, allow_config_override: None, cost_in_answers: None };
    (defaults != KeyDefaults::default()).then(|| Arc::new(defaults))
}

impl Verified {
    fn principal(&self, snapshot: &Snapshot, scopes: &[&str]) -> Result<Principal, Rejection> {
        let workspace = self.key.workspace_id.and_then(|id| snapshot.workspace(&id));
        check_standing(&self.key, &self.token, self.person, workspace.as_deref(), snapshot, scopes)?;
        let workspace = workspace.ok_or_else(|| Rejection::Workspace(self.token.workspace.clone()))?;
        Ok(Principal { key: self.key.clone(), workspace, token: Some(self.token.clone()) })
    }

    fn refused(&self, rejection: Rejection) -> RefusedToken {
        RefusedToken { rejection, organisation_id: Some(self.key.organisation_id.uuid()) }
    }
}
