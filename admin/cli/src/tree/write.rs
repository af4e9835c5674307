//! Single writes: what creating, changing and deleting mean for each kind beyond the verb.

use super::address::Address;
use super::state::{Row, State};
use crate::http::{Call, segment};
use crate::kinds::{Home, Identity, Kind};
use crate::outcome::Failure;
use crate::session::Session;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// An object that was made, and the secret that only its maker sees.
pub struct Made {
    pub row: Row,
    pub secret: Option<String>,
}

pub async fn create(
    session: &Session,
    state: &State<'_>,
    address: &Address,
    mut body: Map<String, Value>,
) -> Result<Made, Failure> {
    let kind = address.kind();
    if kind.identity == Identity::Slug {
        body.insert("slug".to_owned(), address.name.clone().into());
    }
    if let (Some(workspace), true) = (&address.workspace, kind.home != Home::Organisation) {
        let id = state.workspace_id(workspace);
        let id = id.ok_or_else(|| Failure::new(format!("{address}: there is no workspace `{workspace}`")))?;
        body.insert("workspace_id".to_owned(), id.into());
    }
    if kind.name == "guardrail" && address.workspace.is_none() {
        body.insert("organisation_id".to_owned(), state.organisation.clone().into());
    }
    if kind.name == "integration" {
        // Files say which providers there are.
        body.entry("create_default_provider").or_insert(false.into());
    }
    body.retain(|_, value| !value.is_null());
    let made = session.client.call(Call::new(Method::POST, kind.create_path()).body(Value::Object(body))).await?;
    let id = made["id"].as_str().unwrap_or_default().to_owned();
    let handle = made["slug"].as_str().map_or_else(|| id.clone(), str::to_owned);
    let secret = ["key", "client_auth"].iter().find_map(|field| made[*field].as_str()).map(str::to_owned);
    Ok(Made { row: Row { id, handle }, secret })
}

/// A change; where it makes a version, that version is published.
pub async fn update(session: &Session, kind: &Kind, id: &str, mut call: Call) -> Result<(), Failure> {
    if kind.name == "prompt"
        && let Some(Value::Object(body)) = &mut call.body
    {
        // Without it, everything that is not sent would be cleared.
        body.insert("patch".to_owned(), true.into());
    }
    let answer = session.client.call(call).await?;
    if !kind.is_published {
        return Ok(());
    }
    let version = ["prompt_version_id", "version_id", "prompt_partial_version_id"]
        .iter()
        .find_map(|field| answer[*field].as_str());
    let Some(version) = version else { return Ok(()) };
    let path = format!("{}/{}", kind.path, segment(id));
    let versions = session.client.look_up_list(&format!("{path}/versions"), &[]).await?;
    let ids = ["id", "prompt_version_id", "prompt_partial_version_id", "version_id"];
    let made = versions.iter().find(|row| ids.iter().any(|field| row[*field] == version));
    let number = made.and_then(|row| ["version", "prompt_version"].iter().find_map(|field| row[*field].as_u64()));
    let Some(number) = number else { return Err(Failure::new(format!("{path}: the new version is not listed"))) };
    session
        .client
        .call(Call::new(Method::PUT, format!("{path}/makeDefault")).body(json!({ "version": number })))
        .await?;
    Ok(())
}
