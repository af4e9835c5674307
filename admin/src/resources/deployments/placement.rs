//! Where a deployment stands and whom it serves: its kind and how many of one there may be, its address, its workspaces.

use crate::crud::Action;
use crate::http::ApiError;
use crate::identity::tenancy;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Production,
    NonProduction,
}

impl Kind {
    pub const ALL: [&str; 2] = ["production", "non-production"];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::NonProduction => "non-production",
        }
    }
}

/// A switch that is written as 0 or 1; clients also send booleans.
#[derive(Debug, Clone, Copy)]
pub struct DeploymentSwitch(pub bool);

impl<'de> Deserialize<'de> for DeploymentSwitch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(flag) => Ok(Self(flag)),
            Value::Number(number) if number.as_u64() == Some(0) => Ok(Self(false)),
            Value::Number(number) if number.as_u64() == Some(1) => Ok(Self(true)),
            _ => Err(de::Error::custom("expected 0 or 1")),
        }
    }
}

pub fn checked_url(text: String) -> Result<String, ApiError> {
    let parsed = url::Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match parsed {
        Some(_) if text.len() <= 2048 => Ok(text),
        _ => Err(ApiError::field("url", "must be an http or https URL of at most 2048 characters")),
    }
}

/// Whether all workspaces are served, or else which; none when nothing was sent about it.
pub async fn allowed(
    action: &Action<'_>,
    all: Option<bool>,
    some: Option<Vec<String>>,
) -> Result<Option<(bool, Vec<Uuid>)>, ApiError> {
    let names = match (all, some) {
        (None, None) => return Ok(None),
        (Some(true), None) => return Ok(Some((true, Vec::new()))),
        (Some(true), Some(_)) => {
            return Err(ApiError::field("workspaces", "must be left out when all workspaces are allowed"));
        }
        (Some(false), None) => return Err(ApiError::field("workspaces", "is required when not all are allowed")),
        (_, Some(names)) if names.is_empty() => {
            return Err(ApiError::field("workspaces", "must name at least one workspace"));
        }
        (_, Some(names)) => names,
    };
    let mut ids = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let found = tenancy::find_workspace(&action.tx, action.organisation_id(), name).await?;
        let id = found.ok_or_else(|| ApiError::field(format!("workspaces[{n}]"), "is not a workspace in use"))?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(Some((false, ids)))
}

/// Refuses one deployment too many of a kind. Those who ask at once wait for each other, so that the last place is
/// given once.
pub async fn room_for(action: &Action<'_>, kind: Kind, except: Option<Uuid>) -> Result<(), ApiError> {
    const WAIT: &str = "SELECT FROM organisations WHERE id = $1 FOR NO KEY UPDATE";
    const COUNT: &str = "SELECT count(*) FROM deployments
                         WHERE organisation_id = $1 AND type = $2 AND status = 'active' AND id IS DISTINCT FROM $3";
    let limits = &action.app.deployment_limits;
    let (most, setting) = match kind {
        Kind::Production => (limits.max_production_deployments, "MAX_PRODUCTION_DEPLOYMENTS"),
        Kind::NonProduction => (limits.max_non_production_deployments, "MAX_NON_PRODUCTION_DEPLOYMENTS"),
    };
    if most < 0 {
        return Ok(());
    }
    let organisation = action.organisation_id();
    action.tx.query_opt(WAIT, &[&organisation]).await?;
    let row = action.tx.query_one(COUNT, &[&organisation, &kind.as_str(), &except]).await?;
    if row.try_get::<_, i64>(0)? >= most {
        let message = format!("There may be {most} {} deployments at most", kind.as_str());
        return Err(ApiError::LimitReached { message, setting });
    }
    Ok(())
}

/// Makes room for another default.
pub async fn unset_default(action: &Action<'_>) -> Result<(), ApiError> {
    const UNSET: &str = "UPDATE deployments SET is_default = false
                         WHERE organisation_id = $1 AND is_default AND status = 'active'";
    action.tx.execute(UNSET, &[&action.organisation_id()]).await?;
    Ok(())
}
