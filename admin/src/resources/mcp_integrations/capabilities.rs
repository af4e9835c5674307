//! What an integration's server offers, what of it is switched off, and what waits for approval because the server tells
//! it otherwise than it was approved (see `pins`).

use super::docs::KINDS;
use super::list;
use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, Field, FieldFault, PageSizes, Time};
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use rust_decimal::Decimal;
use rust_decimal::prelude::{FromPrimitive as _, ToPrimitive as _};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::mcp::{INSTRUCTIONS, Kind};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

const SIZES: PageSizes = PageSizes { default: 100, most: 500 };
pub const MAX_CAPABILITIES: usize = 1000;
/// The highest price of a call, in US cents.
const DEAREST: f64 = 1_000_000.0;

/// `approved` accepts what the server tells now. Enabling alone does not: tools that keep everything enabled would
/// approve whatever comes.
#[derive(Deserialize)]
struct CapabilityChange {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    enabled: Option<bool>,
    approved: Option<bool>,
    /// What is approved, as the list showed it: another one that came meanwhile is not.
    definition_hash: Option<String>,
    /// Of a call, in US cents.
    #[serde(default)]
    price: Field<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CapabilitiesChange {
    capabilities: Option<Vec<CapabilityChange>>,
}

pub async fn list(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const LIST: &str = "SELECT type, name, is_usable AS enabled, definition, created_at, last_updated_at, pin_state,
               encode(pinned_hash, 'hex') AS pinned_hash, encode(definition_hash, 'hex') AS definition_hash, price
        FROM mcp_capabilities
        WHERE integration_id = $1 AND organisation_id = $2 AND ($3::text IS NULL OR type = $3) AND vanished_at IS NULL
        ORDER BY type, name LIMIT $4 OFFSET $5";
    const COUNT: &str = "SELECT type, count(*) AS total, count(*) FILTER (WHERE is_usable) AS enabled
        FROM mcp_capabilities WHERE integration_id = $1 AND organisation_id = $2 AND vanished_at IS NULL GROUP BY type";
    let kind = call.query().text("type").map(kind_of).transpose()?.map(Kind::as_str);
    let (size, offset) = pages(&call)?;
    let db = app.db.get().await?;
    let found = list::readable(&*db, &call, &name).await?;
    let organisation = call.caller.organisation_id();
    let rows = db.query(LIST, &[&found.id, &organisation, &kind, &size, &offset]).await?;
    let data = rows.iter().map(shown).collect::<Result<Vec<_>, ApiError>>()?;
    let counted = db.query(COUNT, &[&found.id, &organisation]).await?;
    Ok(Json(listed(data, &counted, kind, offset)?))
}

/// A page, with the counts of each type from rows of `type, total, enabled`.
pub fn listed(data: Vec<Value>, counted: &[Row], kind: Option<&str>, offset: i64) -> Result<Value, ApiError> {
    let mut counts = json!({});
    let mut total = 0;
    for one in Kind::ALL {
        counts[format!("{}s", one.as_str())] = json!({ "total": 0, "enabled": 0 });
    }
    for row in counted {
        let (of, all, enabled): (&str, i64, i64) =
            (row.try_get("type")?, row.try_get("total")?, row.try_get("enabled")?);
        let name = if of == INSTRUCTIONS { of.to_owned() } else { format!("{of}s") };
        counts[name] = json!({ "total": all, "enabled": enabled });
        total += if kind.is_none_or(|kind| kind == of) { all } else { 0 };
    }
    let has_more = offset.saturating_add(i64::try_from(data.len()).unwrap_or(0)) < total;
    Ok(json!({
        "object": "list", "capabilities": data, "data": data, "counts": counts, "total": total, "has_more": has_more,
    }))
}

/// What was not listed yet is remembered, so that it can be switched off before the first sync.
pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let found = list::held(&mut action, &name).await?;
    let sent = call.body::<CapabilitiesChange>()?.capabilities.unwrap_or_default();
    if sent.is_empty() || sent.len() > MAX_CAPABILITIES {
        return Err(ApiError::field("capabilities", format!("must list 1 to {MAX_CAPABILITIES}")));
    }
    let mut after = Vec::new();
    for (n, one) in sent.iter().enumerate() {
        let changed = change(&action, found.id, one).await;
        after.push(changed.map_err(|error| error.under(&format!("capabilities[{n}]")))?);
    }
    let change =
        Change { resource_id: found.id.to_string(), before: None, after: Some(json!({ "capabilities": after })) };
    action.commit(change).await?;
    Ok(Json(json!({ "success": true })))
}

async fn change(action: &Action<'_>, integration: Uuid, sent: &CapabilityChange) -> Result<Value, ApiError> {
    const FIND: &str = "SELECT encode(definition_hash, 'hex') AS definition_hash FROM mcp_capabilities
        WHERE integration_id = $1 AND organisation_id = $2 AND type = $3 AND name = $4 AND vanished_at IS NULL FOR UPDATE";
    const PUT: &str = "INSERT INTO mcp_capabilities AS c (organisation_id, integration_id, type, name, enabled, price)
        VALUES ($1, $2, $3, $4, coalesce($5, true), $8)
        ON CONFLICT (integration_id, type, name) DO UPDATE SET enabled = coalesce($5, c.enabled), last_updated_at = now(),
            price = CASE WHEN $7 THEN $8 ELSE c.price END,
            pinned_hash = CASE WHEN $6 THEN c.definition_hash ELSE c.pinned_hash END,
            pin_state = CASE WHEN $6 THEN 'approved' ELSE c.pin_state END";
    let kind = kind_of(&sent.kind)?;
    let price = price_of(kind, &sent.price)?;
    let kind = kind.as_str();
    crate::http::text::sized("name", sent.name.clone(), 1..=512)?;
    let is_approved = match (sent.approved, sent.enabled) {
        (Some(false), _) => return Err(ApiError::field("approved", "can only be true; disable it with `enabled`")),
        (None, None) if price.is_none() => {
            return Err(ApiError::field("enabled", "is required where nothing is approved and no price is set"));
        }
        (approved, _) => approved == Some(true),
    };
    let organisation = action.organisation_id();
    if is_approved {
        let row = action.tx.query_opt(FIND, &[&integration, &organisation, &kind, &sent.name]).await?;
        let listed = row.map(|row| row.try_get::<_, Option<String>>("definition_hash")).transpose()?.flatten();
        let Some(listed) = listed else {
            return Err(ApiError::field("approved", "the server lists nothing of this name that could be approved"));
        };
        if sent.definition_hash.as_ref().is_some_and(|seen| *seen != listed) {
            return Err(ApiError::Conflict("The server tells it otherwise by now than what is approved here".into()));
        }
    }
    let (is_priced, price) = (price.is_some(), price.flatten());
    let values: [&(dyn ToSql + Sync); 8] =
        [&organisation, &integration, &kind, &sent.name, &sent.enabled, &is_approved, &is_priced, &price];
    action.tx.execute(PUT, &values).await?;
    let mut changed = json!({ "type": kind, "name": sent.name, "enabled": sent.enabled, "approved": is_approved });
    if is_priced {
        changed["price"] = json!(price.and_then(|price| price.to_f64()));
    }
    Ok(changed)
}

/// None where nothing is said of it.
fn price_of(kind: Kind, sent: &Field<f64>) -> Result<Option<Option<Decimal>>, ApiError> {
    let cents = match sent {
        Field::Absent => return Ok(None),
        Field::Null => return Ok(Some(None)),
        Field::Value(cents) => *cents,
    };
    if !matches!(kind, Kind::Tool | Kind::Prompt) {
        return Err(ApiError::field("price", "is for tools and prompts alone"));
    }
    let price = Decimal::from_f64(cents).filter(|_| (0.0..=DEAREST).contains(&cents));
    let price = price.ok_or_else(|| ApiError::field("price", format!("must be 0 to {DEAREST} cents")))?;
    Ok(Some(Some(price.round_dp(9))))
}

pub fn kind_of(text: &str) -> Result<Kind, ApiError> {
    Kind::parse(text).ok_or_else(|| ApiError::Faults(vec![FieldFault::not_among("type", text, &KINDS)]))
}

/// Size and offset; here the first page is 1.
pub fn pages(call: &Call) -> Result<(i64, i64), ApiError> {
    let (size, _) = call.query().page(SIZES)?;
    let page = match call.query().text("page").map(str::parse::<i64>) {
        None => 1,
        Some(Ok(page)) if page >= 1 => page,
        Some(_) => return Err(ApiError::field("page", "must be a whole number of at least 1")),
    };
    Ok((size, (page - 1).saturating_mul(size)))
}

/// What is shown of a definition, under which name, and what servers call it.
pub const FIELDS: [(&str, &str); 13] = [
    ("title", "title"),
    ("description", "description"),
    ("icons", "icons"),
    ("input_schema", "inputSchema"),
    ("output_schema", "outputSchema"),
    ("execution", "execution"),
    ("annotations", "annotations"),
    ("arguments", "arguments"),
    ("uri", "uri"),
    ("uri_template", "uriTemplate"),
    ("mime_type", "mimeType"),
    ("size", "size"),
    ("_meta", "_meta"),
];

pub fn shown(row: &Row) -> Result<Value, ApiError> {
    let definition = row.try_get::<_, Option<Value>>("definition")?.unwrap_or_default();
    let mut shown = json!({
        "name": row.try_get::<_, &str>("name")?,
        "type": row.try_get::<_, &str>("type")?,
        "enabled": row.try_get::<_, bool>("enabled")?,
        "pin_state": row.try_get::<_, &str>("pin_state")?,
        "pinned_hash": row.try_get::<_, Option<&str>>("pinned_hash")?,
        "definition_hash": row.try_get::<_, Option<&str>>("definition_hash")?,
        "price": row.try_get::<_, Option<Decimal>>("price")?.and_then(|price| price.to_f64()),
        "created_at": row.try_get::<_, Time>("created_at")?,
        "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
    });
    for (name, source) in FIELDS {
        shown[name] = definition.get(source).cloned().unwrap_or_default();
    }
    Ok(shown)
}
