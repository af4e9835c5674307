//! What an integration's server offers, and what of it is switched off.

use super::list;
use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, FieldFault, PageSizes, Time};
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::mcp::Kind;
use tokio_postgres::Row;

const SIZES: PageSizes = PageSizes { default: 100, most: 500 };
const MOST: usize = 1000;

#[derive(Deserialize)]
struct CapabilityChange {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    enabled: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CapabilitiesChange {
    capabilities: Option<Vec<CapabilityChange>>,
}

pub async fn list(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const LIST: &str = "SELECT type, name, enabled, definition, created_at, last_updated_at FROM mcp_capabilities
        WHERE integration_id = $1 AND organisation_id = $2 AND ($3::text IS NULL OR type = $3)
        ORDER BY type, name LIMIT $4 OFFSET $5";
    const COUNT: &str = "SELECT type, count(*) AS total, count(*) FILTER (WHERE enabled) AS enabled
        FROM mcp_capabilities WHERE integration_id = $1 AND organisation_id = $2 GROUP BY type";
    let kind = call.query().text("type").map(kind_of).transpose()?.map(Kind::as_str);
    let (size, offset) = pages(&call)?;
    let db = app.db.get().await?;
    let found = list::readable(&*db, &call, &name).await?;
    let organisation = call.caller.organisation_id();
    let rows = db.query(LIST, &[&found.id, &organisation, &kind, &size, &offset]).await?;
    let data = rows.iter().map(shown).collect::<Result<Vec<_>, ApiError>>()?;
    let mut counts = json!({});
    let mut total = 0;
    for one in Kind::ALL {
        counts[format!("{}s", one.as_str())] = json!({ "total": 0, "enabled": 0 });
    }
    for row in db.query(COUNT, &[&found.id, &organisation]).await? {
        let (of, all, enabled): (&str, i64, i64) =
            (row.try_get("type")?, row.try_get("total")?, row.try_get("enabled")?);
        counts[format!("{of}s")] = json!({ "total": all, "enabled": enabled });
        total += if kind.is_none_or(|kind| kind == of) { all } else { 0 };
    }
    let has_more = offset.saturating_add(i64::try_from(data.len()).unwrap_or(0)) < total;
    Ok(Json(json!({
        "object": "list", "capabilities": data, "data": data, "counts": counts, "total": total, "has_more": has_more,
    })))
}

/// What was not listed yet is remembered, so that it can be switched off before the first sync.
pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const PUT: &str = "INSERT INTO mcp_capabilities (organisation_id, integration_id, type, name, enabled)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (integration_id, type, name) DO UPDATE SET enabled = EXCLUDED.enabled, last_updated_at = now()";
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let found = list::held(&mut action, &name).await?;
    let sent = call.body::<CapabilitiesChange>()?.capabilities.unwrap_or_default();
    if sent.is_empty() || sent.len() > MOST {
        return Err(ApiError::field("capabilities", format!("must list 1 to {MOST}")));
    }
    let mut after = Vec::new();
    for (n, one) in sent.iter().enumerate() {
        let at = |error: ApiError| error.under(&format!("capabilities[{n}]"));
        let kind = kind_of(&one.kind).map_err(at)?;
        crate::http::text::sized("name", one.name.clone(), 1..=512).map_err(at)?;
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&action.organisation_id(), &found.id, &kind.as_str(), &one.name, &one.enabled];
        action.tx.execute(PUT, &values).await?;
        after.push(json!({ "type": kind.as_str(), "name": one.name, "enabled": one.enabled }));
    }
    let change =
        Change { resource_id: found.id.to_string(), before: None, after: Some(json!({ "capabilities": after })) };
    action.commit(change).await?;
    Ok(Json(json!({ "success": true })))
}

fn kind_of(text: &str) -> Result<Kind, ApiError> {
    let allowed = Kind::ALL.map(Kind::as_str);
    Kind::parse(text).ok_or_else(|| ApiError::Faults(vec![FieldFault::not_among("type", text, &allowed)]))
}

/// Size and offset; here the first page is 1.
fn pages(call: &Call) -> Result<(i64, i64), ApiError> {
    let (size, _) = call.query().page(SIZES)?;
    let page = match call.query().text("page").map(str::parse::<i64>) {
        None => 1,
        Some(Ok(page)) if page >= 1 => page,
        Some(_) => return Err(ApiError::field("page", "must be a whole number of at least 1")),
    };
    Ok((size, (page - 1).saturating_mul(size)))
}

fn shown(row: &Row) -> Result<Value, ApiError> {
    const FIELDS: [(&str, &str); 13] = [
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
    let definition = row.try_get::<_, Option<Value>>("definition")?.unwrap_or_default();
    let mut shown = json!({
        "name": row.try_get::<_, &str>("name")?,
        "type": row.try_get::<_, &str>("type")?,
        "enabled": row.try_get::<_, bool>("enabled")?,
        "created_at": row.try_get::<_, Time>("created_at")?,
        "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
    });
    for (name, source) in FIELDS {
        shown[name] = definition.get(source).cloned().unwrap_or_default();
    }
    Ok(shown)
}
