//! Guardrails that run on every request of the organisation. There are no guardrails yet, so a list that names one
//! names nothing; the empty list and null are all that can be set.

use super::current;
use crate::action::{Action, Change};
use crate::app::App;
use crate::call::Call;
use crate::crud::Answer;
use crate::error::ApiError;
use crate::http::Field;
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

pub async fn read(State(app): State<App>, call: Call) -> Answer {
    current(&app, &call).await?;
    Ok(Json(shown()))
}

pub async fn update(State(app): State<App>, call: Call) -> Answer {
    let change: DefaultsChange = call.body()?;
    if !change.input_guardrails.is_sent() && !change.output_guardrails.is_sent() {
        return Err(ApiError::invalid("Nothing to update"));
    }
    let named = [change.input_guardrails, change.output_guardrails].into_iter().filter_map(Field::value);
    if named.flatten().next().is_some() {
        return Err(ApiError::NotFound("guardrail"));
    }
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let resource_id = action.organisation_id().to_string();
    action.commit(Change { resource_id, before: Some(shown()), after: Some(shown()) }).await?;
    Ok(Json(shown()))
}

fn shown() -> Value {
    json!({ "input_guardrails": [], "output_guardrails": [] })
}
