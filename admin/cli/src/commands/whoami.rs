//! `whoami`: the key of the session.

use crate::http::Call;
use crate::outcome::{Exit, Failure};
use crate::session::Session;
use serde_json::{Value, json};

pub async fn run(session: &Session) -> Result<Exit, Failure> {
    let own = session.client.call(Call::get("/api-keys/self")).await?;
    if session.output.is_structured() {
        session.output.object(&own)?;
    } else {
        let scopes = own["scopes"].as_array().map_or(0, Vec::len);
        let mut shown = json!({ "gateway": session.url });
        for field in ["name", "id", "type", "status", "organisation_id", "workspace_slug", "user_id", "expires_at"] {
            if !own[field].is_null() {
                shown[field] = own[field].clone();
            }
        }
        shown["scopes"] = Value::from(format!("{scopes} (all: -o json)"));
        session.output.object(&shown)?;
    }
    session.output.hint("portcullis list workspaces");
    Ok(Exit::Fine)
}
