//! New MCP integrations and changes to them: the address is judged as the dialer will judge it, credentials are sealed,
//! and a change that leads them to another host has to bring them again.

use super::{McpIntegration, SLUGS, mapped_headers, place_of, require};
use crate::crud::Action;
use crate::http::{ApiError, Field, FieldFault, text};
use crate::mcp_oauth::configured::ConfiguredClient;
use crate::resources::integrations::{Fields, OpenedAccount, checked_headers, stored_mappings};
use chrono::Utc;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::db::table::Columns;
use shared::mcp::TokenRules;
use shared::outbound::Origin;
use uuid::Uuid;

pub const AUTH: [&str; 5] = ["none", "headers", "oauth_auto", "oauth", "oauth_client_credentials"];
pub const TRANSPORTS: [&str; 2] = ["http", "sse"];
const MAX_SIZE: usize = 256 << 10;

#[derive(Deserialize)]
pub struct NewMcpIntegration {
    name: String,
    url: String,
    auth_type: String,
    transport: String,
    slug: Option<String>,
    description: Option<String>,
    configurations: Option<Fields>,
    #[serde(default)]
    secret_mappings: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct McpIntegrationChange {
    name: Option<String>,
    url: Option<String>,
    auth_type: Option<String>,
    transport: Option<String>,
    description: Field<String>,
    configurations: Option<Fields>,
    secret_mappings: Field<Value>,
}

pub async fn created(action: &Action<'_>, body: NewMcpIntegration) -> Result<Columns, ApiError> {
    let id = Uuid::new_v4();
    let url = address(action, body.url)?;
    let columns = Columns::default()
        .set("name", text::name("name", body.name.clone())?)
        .set("description", body.description.map(described).transpose()?)
        .set("transport", transport(body.transport)?)
        .set("url", url.clone())
        .set("auth_type", auth_type(body.auth_type)?);
    let mut account = OpenedAccount::default();
    account.change(None, body.configurations, &Value::Null);
    judge(action, &account.configurations)?;
    judge_external(&account.configurations)?;
    let place = place_of(action.organisation_id(), id);
    let columns = columns.join(account.columns(action, &place, "configurations").await?);
    let mapped = mapped_headers::checked(action, body.secret_mappings, action.workspace_id, &url).await?;
    let columns = columns.set("secret_mappings", json!(mapped));
    require(action.call, action.workspace_id, "create")?;
    let slug = match body.slug {
        None => SLUGS.of_name(&action.tx, action.organisation_id(), &body.name).await?,
        Some(slug) => {
            let slug = text::slug("slug", slug)?;
            if !SLUGS.is_free(&action.tx, action.organisation_id(), &slug).await? {
                return Err(ApiError::Conflict("There is a mcp-integration with this slug already".into()));
            }
            slug
        }
    };
    Ok(columns.set("id", id).set("slug", slug).set("created_by", action.call.caller.actor_id()))
}

pub async fn changed(
    action: &Action<'_>,
    current: &McpIntegration,
    body: McpIntegrationChange,
) -> Result<Columns, ApiError> {
    let url = body.url.map(|url| address(action, url)).transpose()?;
    let leads_elsewhere = url.as_ref().is_some_and(|url| origin_text(url) != origin_text(&current.url));
    let is_mapped_anew = body.secret_mappings != Field::Absent;
    let asks_again =
        url.as_ref().is_some_and(|url| *url != current.url) || body.configurations.is_some() || is_mapped_anew;
    let goes_to = url.clone().unwrap_or_else(|| current.url.clone());
    let mut columns = Columns::default()
        .set_if("name", body.name.map(|name| text::name("name", name)).transpose()?)
        .set_if("description", body.description.try_map(described)?.sent())
        .set_if("transport", body.transport.map(transport).transpose()?)
        .set_if("auth_type", body.auth_type.map(auth_type).transpose()?)
        .set_if("url", url);
    if leads_elsewhere || body.configurations.is_some() {
        let place = current.place();
        let mut account = OpenedAccount::open(action, &place, &current.configurations, current.sealed.as_ref()).await?;
        let masks = &current.masks["configurations"];
        let sent = body.configurations.clone().unwrap_or_default();
        account.change(None, body.configurations, &current.masks);
        judge(action, &account.configurations)?;
        judge_external(&sent)?;
        if leads_elsewhere {
            let mut secrets = masks.as_object().into_iter().flatten();
            let masked = secrets.find(|(name, mask)| {
                let is_brought = sent.get(name.as_str()).is_some_and(|value| value != *mask);
                account.configurations.contains_key(name.as_str()) && !is_brought
            });
            if let Some((name, _)) = masked {
                let message = "must be sent again, because this change leads it to another host";
                return Err(ApiError::field(format!("configurations.{name}"), message));
            }
        }
        columns = columns.join(account.columns(action, &place, "configurations").await?);
    }
    if let Some(sent) = body.secret_mappings.sent() {
        let mapped = mapped_headers::checked(action, sent.unwrap_or_default(), current.workspace_id, &goes_to).await?;
        columns = columns.set("secret_mappings", json!(mapped));
    } else if leads_elsewhere {
        mapped_headers::may_go_to(action, &stored_mappings(&current.secret_mappings), &goes_to).await?;
    }
    if asks_again {
        columns = columns.set("sync_status", "pending").set("sync_due_at", Some(Utc::now()));
    }
    Ok(columns)
}

fn described(text: String) -> Result<String, ApiError> {
    text::sized("description", text, 0..=1024)
}

fn chosen(field: &str, sent: String, allowed: &[&str]) -> Result<String, ApiError> {
    if allowed.contains(&sent.as_str()) {
        return Ok(sent);
    }
    Err(ApiError::Faults(vec![FieldFault::not_among(field, &sent, allowed)]))
}

/// Nobody outside is asked for credentials, so that nobody may believe so.
const NOT_EXTERNAL: &str = "external authentication does not exist here; `headers` sends headers that are stored, \
                            `passthrough_headers` those of the caller, and the `oauth` kinds fetch tokens";

fn auth_type(sent: String) -> Result<String, ApiError> {
    match sent.as_str() {
        "external" => Err(ApiError::field("auth_type", NOT_EXTERNAL)),
        _ => chosen("auth_type", sent, &AUTH),
    }
}

/// Processes are never started: whoever may name a command could run anything on the gateway's machine.
fn transport(sent: String) -> Result<String, ApiError> {
    if sent == "stdio" {
        let message = "stdio servers are started as processes, which this gateway never does, because whoever names \
                       a command could run anything on its machine; run the server behind HTTP and register its URL";
        return Err(ApiError::field("transport", message));
    }
    chosen("transport", sent, &TRANSPORTS)
}

fn address(action: &Action<'_>, url: String) -> Result<String, ApiError> {
    let url = text::sized("url", url, 1..=2048)?;
    let judged = action.app.outbound.guard().custom_url(&url);
    judged.map_err(|rule| ApiError::field("url", format!("cannot be used: {rule}")))?;
    Ok(url)
}

fn judge(action: &Action<'_>, configurations: &Fields) -> Result<(), ApiError> {
    for name in ["custom_headers", "headers"] {
        if let Some(value) = configurations.get(name) {
            checked_headers(value).map_err(|error| error.under(&format!("configurations.{name}")))?;
        }
    }
    match configurations.get("oauth_metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(client)) => {
            ConfiguredClient::parse(action.app.outbound.guard(), client)
                .map_err(|bad| ApiError::field(format!("configurations.oauth_metadata.{}", bad.field), bad.message))?;
        }
        Some(_) => return Err(ApiError::field("configurations.oauth_metadata", "must be an object")),
    }
    if let Some(rules) = configurations.get("jwt_validation").filter(|rules| !rules.is_null()) {
        judge_token_rules(action, rules)?;
    }
    if json!(configurations).to_string().len() > MAX_SIZE {
        return Err(ApiError::field("configurations", format!("must have at most {MAX_SIZE} bytes")));
    }
    Ok(())
}

/// What is stored from before stays, and can be taken away.
fn judge_external(sent: &Fields) -> Result<(), ApiError> {
    match sent.get("external_auth_config").is_none_or(Value::is_null) {
        true => Ok(()),
        false => Err(ApiError::field("configurations.external_auth_config", NOT_EXTERNAL)),
    }
}

fn judge_token_rules(action: &Action<'_>, rules: &Value) -> Result<(), ApiError> {
    const AT: &str = "configurations.jwt_validation";
    if let Err(fault) = TokenRules::parse(rules) {
        let fault = fault.under(AT);
        return Err(ApiError::field(fault.path, fault.message));
    }
    for (place, address) in TokenRules::addresses(rules) {
        let judged = action.app.outbound.guard().custom_url(address);
        judged.map_err(|rule| ApiError::field(format!("{AT}.{place}"), format!("cannot be used: {rule}")))?;
    }
    Ok(())
}

fn origin_text(url: &str) -> String {
    Origin::parse(url).map_or_else(|_| url.to_owned(), |origin| origin.to_string())
}
