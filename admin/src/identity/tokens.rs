//! Callers that come with a token (JWT): whose it is, who signed it, and the person behind it. Keys are fetched while
//! no database connection is held, or a slow key server would use them all up.

use crate::http::ApiError;
use crate::http::backpressure::db_queue::DbQueue;
use crate::identity::Caller;
use crate::identity::caller::{AuthFailure, standing};
use crate::outbound::Outbound;
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use parking_lot::Mutex;
use shared::identity::api_key::KeyHash;
use shared::identity::jwt::{Failures, KeyRing, Rejection, Unverified, VerifiedToken, key_ring};
use shared::model::{AccessStatus, ApiKey, KeyKind, Organisation};
use shared::settings;
use std::sync::Arc;
use std::time::Instant;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub struct Tokens {
    settings: settings::Jwt,
    ring: KeyRing,
    /// Rejected ones that have no row in an audit trail yet.
    pub failures: Mutex<Failures>,
}

impl Tokens {
    pub fn new(settings: &settings::Jwt, outbound: Arc<Outbound>) -> Self {
        let fetch = move |url: String| {
            let outbound = outbound.clone();
            async move { outbound.get(&url, key_ring::MAX_SET).await }.boxed()
        };
        Self { settings: settings.clone(), ring: KeyRing::new(Box::new(fetch)), failures: Mutex::default() }
    }

    /// Finds the caller behind a token.
    pub async fn authenticate(&self, db: &DbQueue, text: &[u8], now: DateTime<Utc>) -> Result<Caller, AuthFailure> {
        if !self.settings.jwt_enabled {
            return Err(ApiError::from(Rejection::SwitchedOff).into());
        }
        let unverified = Unverified::parse(text).map_err(ApiError::from)?;
        let named = unverified.organisation_id(&self.settings).map_err(ApiError::from)?;
        let organisation = organisation(&*db.get().await?, named).await?;
        let Some(organisation) = organisation else {
            return Err(ApiError::from(Rejection::UnknownOrganisation).into());
        };
        let verified = self.verified(&unverified, &organisation, now).await;
        let found = match verified {
            Ok(token) => caller(&*db.get().await?, token, text).await,
            Err(rejection) => Err(rejection.into()),
        };
        found.map_err(|refused| AuthFailure { organisation_id: Some(organisation.id.uuid()), ..refused.into() })
    }

    async fn verified(
        &self,
        token: &Unverified<'_>,
        organisation: &Organisation,
        now: DateTime<Utc>,
    ) -> Result<VerifiedToken, Rejection> {
        let source = organisation.token_keys.as_ref().ok_or(Rejection::NoKeySet)?;
        let current = self.ring.keys(organisation.id.uuid(), source, token.kid(), Instant::now()).await?;
        token.verify(&current.keys, &organisation.token_rules, &self.settings, now)
    }
}

async fn organisation(db: &impl GenericClient, id: Uuid) -> Result<Option<Organisation>, ApiError> {
    let find = format!("SELECT {} FROM organisations WHERE id = $1", Organisation::COLUMNS);
    let row = db.query_opt(&find, &[&id]).await?;
    Ok(row.as_ref().map(Organisation::from_row).transpose()?)
}

/// The token's workspace, and the person if the organisation knows them by their e-mail address. Whoever was removed is
/// refused: a token that acts for nobody is bound by no role, so theirs would reach further than before.
async fn caller(db: &impl GenericClient, token: VerifiedToken, text: &[u8]) -> Result<Caller, ApiError> {
    const FIND: &str = "SELECT w.id AS workspace_id, w.security_settings AS workspace_settings, u.id AS user_id,
               u.status AS user_status, u.role AS organisation_role, m.role AS member_role, o.security_settings AS organisation_settings,
               o.settings -> 'workspace_overrides' AS overrides
        FROM organisations o
        JOIN workspaces w ON w.organisation_id = o.id AND w.status = 'active' AND (w.id = $3 OR w.slug = $2)
        LEFT JOIN LATERAL (SELECT id, role, status FROM users
            WHERE organisation_id = o.id AND lower(email) = lower($4)
            ORDER BY status = 'active' DESC LIMIT 1) u ON true
        LEFT JOIN workspace_members m ON m.workspace_id = w.id AND m.user_id = u.id
        WHERE o.id = $1
        ORDER BY w.id = $3 DESC NULLS LAST LIMIT 1";
    let id: Option<Uuid> = token.workspace.parse().ok();
    // Postgres takes no NUL, and no slug or address has one.
    let (slug, person) = (without_nul(&token.workspace), token.person.as_deref().map(without_nul));
    let row = db.query_opt(FIND, &[&token.organisation_id, &slug, &id, &person]).await?;
    let Some(row) = row else { return Err(Rejection::Workspace(token.workspace).into()) };
    let user_status: Option<&str> = row.try_get("user_status")?;
    if user_status.is_some_and(|status| status != "active") {
        return Err(Rejection::Person(token.person.unwrap_or_default()).into());
    }
    let key = acting_key(&token, &row, text)?;
    let standing = key.user_id.map(|_| standing(&row)).transpose()?;
    if standing.is_none() {
        tracing::debug!(organisation_id = %token.organisation_id, "a token of nobody we know");
    }
    Ok(Caller { token: Some(Arc::new(token)), ..Caller::new(key, standing) })
}

/// The key that the token stands for.
fn acting_key(token: &VerifiedToken, row: &Row, text: &[u8]) -> Result<ApiKey, tokio_postgres::Error> {
    Ok(ApiKey {
        id: token.id.into(),
        organisation_id: token.organisation_id.into(),
        workspace_id: row.try_get("workspace_id")?,
        user_id: row.try_get("user_id")?,
        kind: KeyKind::Jwt,
        hash: KeyHash::from_key(text),
        scopes: token.scopes.clone(),
        status: AccessStatus::Active,
        expires_at: Some(token.ends_at()),
        previous: None,
        limits: None,
        defaults: None,
    })
}

fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
