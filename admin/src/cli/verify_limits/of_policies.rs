//! What the logs of a policy's groups add up to: every row of its workspace is judged by its rule, as the proxy judged the call.

use super::cause::Cause;
use super::counter::Counter;
use super::logged::Span;
use crate::log_data::charged;
use axum::http::Method;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::{Map, Value};
use shared::mcp;
use shared::model::policy::{Facts, PolicyKey, PolicyTarget, UsageLimitsPolicy, names_model};
use shared::providers::Family;
use std::borrow::Cow;
use std::collections::HashMap;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

/// Rows that are read at a time.
const ROWS: i32 = 2000;

pub async fn add_up(
    tx: &Transaction<'_>,
    counters: &[Counter],
    span: Span,
    found: &mut [Result<Decimal, Cause>],
) -> anyhow::Result<()> {
    let mut policies: HashMap<(Uuid, Uuid), Vec<usize>> = HashMap::new();
    for (place, counter) in counters.iter().enumerate().filter(|(_, counter)| counter.scope == "policy") {
        match counter.parts().0.parse() {
            Ok(policy) => policies.entry((counter.organisation_id, policy)).or_default().push(place),
            Err(_) => found[place] = Err(Cause::NoPolicy),
        }
    }
    for ((organisation, policy), places) in policies {
        let select = format!(
            "SELECT {}, (SELECT slug FROM workspaces w WHERE w.id = workspace_id) AS workspace_slug
             FROM usage_limits_policies WHERE organisation_id = $1 AND id = $2",
            UsageLimitsPolicy::COLUMNS
        );
        let row = tx.query_opt(&select, &[&organisation, &policy]).await?;
        let policy = row.as_ref().map(UsageLimitsPolicy::from_row).transpose()?;
        let unverifiable = match &policy {
            None => Some(Cause::NoPolicy),
            Some(policy) if policy.rule.trusted_metadata => Some(Cause::TrustedMetadata),
            Some(_) => None,
        };
        match (unverifiable, policy, row) {
            (None, Some(policy), Some(row)) => {
                let slug: Option<String> = row.try_get("workspace_slug")?;
                add_up_policy(tx, &policy, &slug.unwrap_or_default(), counters, &places, span, found).await?;
            }
            (cause, ..) => {
                for place in places {
                    found[place] = Err(cause.clone().unwrap_or(Cause::NoPolicy));
                }
            }
        }
    }
    Ok(())
}

async fn add_up_policy(
    tx: &Transaction<'_>,
    policy: &UsageLimitsPolicy,
    workspace_slug: &str,
    counters: &[Counter],
    places: &[usize],
    span: Span,
    found: &mut [Result<Decimal, Cause>],
) -> anyhow::Result<()> {
    let groups: HashMap<&str, usize> =
        places.iter().map(|place| (counters[*place].scope_id.as_str(), *place)).collect();
    let bounds = places.iter().map(|place| span.bounds(&counters[*place]));
    let since: Option<DateTime<Utc>> = bounds.clone().map(|(since, _)| since).min();
    let until: Option<DateTime<Utc>> = bounds.map(|(_, until)| until).max();
    let select = charged::rows_of_workspace(span.condition());
    let (organisation, workspace) = (policy.organisation_id.uuid(), policy.workspace_id.uuid());
    let portal = tx.bind(&select, &[&organisation, &workspace, &since, &until]).await?;
    let (prefix, is_of_target) = (policy.scope_prefix(), policy.rule.is_per_attempt());
    loop {
        let rows = tx.query_portal(&portal, ROWS).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for row in &rows {
            let facts = LoggedFacts::read(row, policy, workspace_slug)?;
            let mut name = prefix.clone();
            if !policy.rule.matches(&facts) || !policy.rule.push_value_key(&mut name, &facts) {
                continue;
            }
            let Some(place) = groups.get(name.as_str()) else { continue };
            let (since, until) = span.bounds(&counters[*place]);
            let at: DateTime<Utc> = row.try_get("created_at")?;
            if (since..until).contains(&at) {
                let amount = amount(row, policy.kind.as_str(), is_of_target)?;
                if let Ok(sum) = &mut found[*place] {
                    *sum += amount;
                }
            }
        }
    }
}

/// What a row adds, as for other budgets.
fn amount(row: &Row, unit: &str, is_of_target: bool) -> Result<Decimal, tokio_postgres::Error> {
    let is = |name: &str| row.try_get::<_, bool>(name);
    // Vectors are asked for beside the targets.
    if is_of_target && is("is_vector")? {
        return Ok(Decimal::ZERO);
    }
    if unit == "requests" {
        let is_counted = if is_of_target { !is("is_hit")? } else { is("is_last")? };
        return Ok(if is_counted && !is("is_refused")? && !is("is_vector")? { Decimal::ONE } else { Decimal::ZERO });
    }
    if is("is_hit")? || is("is_operators")? {
        return Ok(Decimal::ZERO);
    }
    row.try_get(if unit == "tokens" { "tokens" } else { "cost" })
}

/// A call, as its log has it.
struct LoggedFacts<'r> {
    organisation: Uuid,
    workspace: Uuid,
    workspace_slug: &'r str,
    api_key: Option<Uuid>,
    metadata: Map<String, Value>,
    config: Option<&'r str>,
    config_id: Option<Uuid>,
    family: Option<Family>,
    provider: Option<&'r str>,
    provider_id: Option<Uuid>,
    service: &'r str,
    model: Option<&'r str>,
}

impl<'r> LoggedFacts<'r> {
    fn read(row: &'r Row, policy: &UsageLimitsPolicy, workspace_slug: &'r str) -> Result<Self, tokio_postgres::Error> {
        let metadata = match row.try_get::<_, Value>("metadata")? {
            Value::Object(metadata) => metadata,
            _ => Map::new(),
        };
        let method = Method::from_bytes(row.try_get::<_, &str>("request_method")?.as_bytes()).unwrap_or(Method::POST);
        let path: &str = row.try_get("request_url")?;
        let path = path.strip_prefix("/v1").unwrap_or(path);
        Ok(Self {
            organisation: policy.organisation_id.uuid(),
            workspace: policy.workspace_id.uuid(),
            workspace_slug,
            api_key: row.try_get("api_key_id")?,
            metadata,
            // One that came with the call has no name.
            config: row.try_get::<_, Option<&str>>("config")?.filter(|slug| *slug != "inline"),
            config_id: row.try_get("config_id")?,
            family: Family::from_path(&method, path).map(|(family, _)| family),
            provider: row.try_get("virtual_key")?,
            provider_id: row.try_get("provider_id")?,
            service: row.try_get("ai_org")?,
            model: row.try_get("model")?,
        })
    }

    fn mcp(&self) -> Option<(&str, &str)> {
        self.model.filter(|_| self.service == mcp::SERVICE)?.split_once('/')
    }
}

impl Facts for LoggedFacts<'_> {
    fn target(&self) -> PolicyTarget {
        if self.service == mcp::SERVICE { PolicyTarget::McpTools } else { PolicyTarget::Llm }
    }

    fn value(&self, key: &PolicyKey) -> Option<Cow<'_, str>> {
        let id = |id: Uuid| Some(Cow::Owned(id.to_string()));
        match key {
            PolicyKey::ApiKey => id(self.api_key?),
            PolicyKey::OrganisationId => id(self.organisation),
            PolicyKey::WorkspaceId => id(self.workspace),
            PolicyKey::Metadata(field) => match self.metadata.get(field)? {
                Value::String(text) => Some(Cow::Borrowed(text)),
                Value::Null => None,
                other => Some(Cow::Owned(other.to_string())),
            },
            PolicyKey::Config => self.config.map(Cow::Borrowed),
            PolicyKey::Prompt => None,
            PolicyKey::EndpointType => Some(Cow::Borrowed(self.family?.name())),
            PolicyKey::VirtualKey => self.provider.map(Cow::Borrowed),
            PolicyKey::Provider => Some(Cow::Borrowed(self.service)),
            PolicyKey::Model => self.model.map(Cow::Borrowed),
            PolicyKey::McpServer => self.mcp().map(|(server, _)| Cow::Borrowed(server)),
            PolicyKey::McpTool => self.mcp().map(|(_, tool)| Cow::Borrowed(tool)),
        }
    }

    fn is(&self, key: &PolicyKey, wanted: &str) -> bool {
        let is_id = |id: Option<Uuid>| id.is_some() && wanted.parse().ok() == id;
        let slug = wanted.strip_prefix('@').unwrap_or(wanted);
        match key {
            PolicyKey::ApiKey => is_id(self.api_key),
            PolicyKey::OrganisationId => is_id(Some(self.organisation)),
            PolicyKey::WorkspaceId => wanted == self.workspace_slug || is_id(Some(self.workspace)),
            PolicyKey::Config => self.config == Some(wanted) || is_id(self.config_id),
            PolicyKey::VirtualKey => self.provider == Some(slug) || is_id(self.provider_id),
            PolicyKey::Provider => wanted == self.service || self.provider == Some(slug),
            PolicyKey::Model => self.model.is_some_and(|model| names_model(wanted, self.provider, model)),
            PolicyKey::Metadata(_)
            | PolicyKey::Prompt
            | PolicyKey::EndpointType
            | PolicyKey::McpServer
            | PolicyKey::McpTool => self.value(key).is_some_and(|value| value == wanted),
        }
    }
}
