//! Guardrails that run on every request of the organisation, but of workspaces that are excluded. They are stored by id
//! and slug; one of a workspace cannot be named, since others could not see it.

use super::{Organisation, current, merge};
use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, Field};
use crate::identity::Call;
use crate::resources::guardrails::named;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Default, Deserialize)]
#[serde(default)]
struct DefaultsChange {
    input_guardrails: Field<Vec<String>>,
    output_guardrails: Field<Vec<String>>,
}

pub async fn read_defaults(State(app): State<App>, call: Call) -> Answer {
    Ok(Json(shown(&current(&app, &call).await?.defaults)))
}

pub async fn update(State(app): State<App>, call: Call) -> Answer {
    const UPDATE: &str = "UPDATE organisations SET defaults = $2, last_updated_at = now() WHERE id = $1";
    let change: DefaultsChange = call.body()?;
    if !change.input_guardrails.is_sent() && !change.output_guardrails.is_sent() {
        return Err(ApiError::invalid("Nothing to update"));
    }
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let id = action.organisation_id();
    // Guardrails are held before the organisation: whoever deletes one holds it, and then needs the organisation's row.
    let input = found(&action, "input_guardrails", change.input_guardrails).await?;
    let output = found(&action, "output_guardrails", change.output_guardrails).await?;
    let before = Organisation::hold(&action).await?.defaults;
    let mut stored = before.as_object().cloned().unwrap_or_default();
    merge(&mut stored, "input_guardrails", input);
    merge(&mut stored, "output_guardrails", output);
    let after = Value::Object(stored);
    action.tx.execute(UPDATE, &[&id, &after]).await?;
    let (before, after) = (shown(&before), shown(&after));
    action.commit(Change { resource_id: id.to_string(), before: Some(before), after: Some(after.clone()) }).await?;
    Ok(Json(after))
}

/// The guardrails of these names, as they are stored.
async fn found(action: &Action<'_>, side: &str, sent: Field<Vec<String>>) -> Result<Field<Vec<Value>>, ApiError> {
    let names = match sent {
        Field::Absent => return Ok(Field::Absent),
        Field::Null => return Ok(Field::Null),
        Field::Value(names) => names,
    };
    let found = named::find(action, None, side, &names).await?;
    Ok(Field::Value(found.into_iter().map(|one| json!({ "id": one.id, "slug": one.slug })).collect()))
}

fn shown(stored: &Value) -> Value {
    let list = |side: &str| stored[side].as_array().cloned().unwrap_or_default();
    json!({ "input_guardrails": list("input_guardrails"), "output_guardrails": list("output_guardrails") })
}
