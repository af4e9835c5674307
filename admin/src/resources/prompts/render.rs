//! A prompt filled in and not sent: the body that running it would send to a model.

use super::partial_set::{load, refused};
use super::version::PromptVersion;
use super::{Asked, find_version};
use crate::app::App;
use crate::crud::{Answer, text_of};
use crate::http::ApiError;
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use serde_json::{Map, Value, json};
use shared::headers::header_prefix::Aliases;
use shared::prompt::{PartialSet, PromptBody, PromptParts, RenderRequest, render};

/// Templates of strangers take their time, so no connection and no thread that others wait for is held meanwhile.
pub async fn render_prompt(State(app): State<App>, call: Call, Path(reference): Path<String>) -> Answer {
    let mut sent = call.object()?;
    let asked = text_of(&sent, "workspace_id")?;
    sent.shift_remove("workspace_id");
    let request = RenderRequest::parse(sent).map_err(refused)?;
    let who = user_or_trace(&call.origin.headers, &app.aliases, request.overrides.get("user"));
    let db = app.db.get().await?;
    let asked = Asked { workspace: asked.as_deref(), user_or_trace: who.as_deref() };
    let (prompt, version) = find_version(&*db, &call, &reference, asked).await?;
    drop(db);
    let (version, body, components) = blocking(move || {
        let body = version.body()?;
        let components = body.components();
        Ok((version, body, components))
    })
    .await?;
    let partials = load(&app, prompt.prompt_owning_workspace_id, &components).await?;
    let data = blocking(move || filled(&version, &body, request, &partials)).await?;
    Ok(Json(json!({ "success": true, "data": data })))
}

fn filled(
    version: &PromptVersion,
    body: &PromptBody,
    request: RenderRequest,
    partials: &PartialSet,
) -> Result<Map<String, Value>, ApiError> {
    let parts = PromptParts {
        body,
        parameters: &version.parameters,
        model: version.model.as_deref(),
        functions: version.functions.as_ref(),
        tools: version.tools.as_ref(),
        tool_choice: version.tool_choice.as_ref(),
        declared: version.declared_variables.as_deref().unwrap_or_default(),
    };
    render(&parts, request, partials).map_err(refused)
}

/// Whom a split chooses a version for, as it does when the prompt is run: `_user` of the metadata, the body's `user`, else
/// the trace.
fn user_or_trace(headers: &HeaderMap, aliases: &Aliases, user: Option<&Value>) -> Option<String> {
    let header = |suffix: &str| {
        let mut names = aliases.prefixes().map(|prefix| format!("{prefix}{suffix}"));
        names.find_map(|name| headers.get(name)?.to_str().ok())
    };
    let metadata = header("metadata").and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    let named = metadata.and_then(|metadata| metadata.get("_user")?.as_str().map(str::to_owned));
    let named = named.or_else(|| user?.as_str().map(str::to_owned)).filter(|who| !who.is_empty());
    named.or_else(|| header("trace-id").map(str::to_owned)).filter(|who| !who.is_empty())
}

/// On a thread that nobody else waits for.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::Internal)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    #[test]
    fn a_split_sticks_to_the_user_and_else_to_the_trace() {
        let aliases = Aliases::new(&["x-other-".to_owned()]).unwrap();
        for (sent, expected) in [
            (vec![], None),
            (vec![("x-gateway-trace-id", "t")], Some("t")),
            (vec![("x-gateway-trace-id", "t"), ("x-gateway-metadata", r#"{"_user":"ada"}"#)], Some("ada")),
            (vec![("x-gateway-trace-id", "t"), ("x-gateway-metadata", r#"{"team":"red"}"#)], Some("t")),
            (vec![("x-gateway-trace-id", "t"), ("x-gateway-metadata", "no json")], Some("t")),
            (vec![("x-other-metadata", r#"{"_user":"ada"}"#)], Some("ada")),
            (vec![("x-gateway-metadata", r#"{"_user":7}"#)], None),
        ] {
            let headers: HeaderMap = sent
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            assert_eq!(user_or_trace(&headers, &aliases, None).as_deref(), expected, "{sent:?}");
            let named = expected.filter(|who| *who == "ada").unwrap_or("bob");
            assert_eq!(user_or_trace(&headers, &aliases, Some(&json!("bob"))).as_deref(), Some(named), "{sent:?}");
        }
    }
}
