//! What managers and members may do, for the whole organisation. Workspaces have values of their own in categories
//! that the organisation opened for override; opening one starts from the organisation's values everywhere.

use super::{Organisation, current};
use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::ApiError;
use crate::identity::Call;
use crate::identity::access::security;
use axum::Json;
use axum::extract::State;
use serde_json::Value;

pub async fn read_security_settings(State(app): State<App>, call: Call) -> Answer {
    Ok(Json(shown(&current(&app, &call).await?.security_settings)))
}

pub async fn update(State(app): State<App>, call: Call) -> Answer {
    const UPDATE: &str = "UPDATE organisations SET security_settings = $2, last_updated_at = now() WHERE id = $1";
    let sent = call.object()?;
    if sent.is_empty() {
        return Err(ApiError::invalid("Nothing to update"));
    }
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let id = action.organisation_id();
    let before = Organisation::hold(&action).await?.security_settings;
    let after = security::changed(&before, &sent)?;
    let effective = |stored: &Value| security::effective(stored, &Value::Null, &Value::Null);
    security::may_change(call.caller.may_act_as_owner(), &effective(&before), &effective(&after))?;
    action.tx.execute(UPDATE, &[&id, &after]).await?;
    let (before, after) = (shown(&before), shown(&after));
    action.commit(Change { resource_id: id.to_string(), before: Some(before), after: Some(after.clone()) }).await?;
    Ok(Json(after))
}

/// After a change of the organisation's settings: categories that were closed and are open now start, in every
/// workspace, with the values that held until now.
pub async fn copy_opened(action: &Action<'_>, before: &Organisation, settings: &Value) -> Result<(), ApiError> {
    const COPY: &str = "UPDATE workspaces SET security_settings = security_settings || $2, last_updated_at = now()
                        WHERE organisation_id = $1";
    let values = security::opened(
        &before.security_settings,
        &before.settings["workspace_overrides"],
        &settings["workspace_overrides"],
    );
    if values.as_object().is_some_and(|values| !values.is_empty()) {
        action.tx.execute(COPY, &[&before.id, &values]).await?;
    }
    Ok(())
}

fn shown(stored: &Value) -> Value {
    Value::Object(security::effective(stored, &Value::Null, &Value::Null).shown())
}
