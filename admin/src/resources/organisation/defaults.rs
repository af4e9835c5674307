//! Guardrails that run on every request of the organisation. They are stored by id and slug; there are none yet that could
//! be named, so for now only lists of none are accepted.

use super::{Organisation, current, merge};
use crate::app::App;
use crate::crud::{Action, Answer, Change, RowLock};
use crate::http::{ApiError, Field};
use crate::identity::Call;
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

const MOST_GUARDRAILS: usize = 100;

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
    let before = Organisation::load(&action.tx, id, RowLock::ForUpdate).await?.defaults;
    let mut stored = before.as_object().cloned().unwrap_or_default();
    for (side, named) in
        [("input_guardrails", change.input_guardrails), ("output_guardrails", change.output_guardrails)]
    {
        merge(&mut stored, side, named.try_map(|names| found(side, &names))?);
    }
    let after = Value::Object(stored);
    action.tx.execute(UPDATE, &[&id, &after]).await?;
    let (before, after) = (shown(&before), shown(&after));
    action.commit(Change { resource_id: id.to_string(), before: Some(before), after: Some(after.clone()) }).await?;
    Ok(Json(after))
}

/// The guardrails of these names, as they are stored.
fn found(side: &str, names: &[String]) -> Result<Vec<Value>, ApiError> {
    if names.len() > MOST_GUARDRAILS {
        return Err(ApiError::field(side, format!("must name at most {MOST_GUARDRAILS} guardrails")));
    }
    match names.is_empty() {
        true => Ok(Vec::new()),
        false => Err(ApiError::field(format!("{side}[0]"), "is not a guardrail of the organisation")),
    }
}

fn shown(stored: &Value) -> Value {
    let list = |side: &str| stored[side].as_array().cloned().unwrap_or_default();
    json!({ "input_guardrails": list("input_guardrails"), "output_guardrails": list("output_guardrails") })
}
