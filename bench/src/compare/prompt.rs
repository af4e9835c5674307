//! A stored prompt that becomes the measured chat: what running it costs beside the chat itself.

use super::request::Request;
use serde_json::{Value, json};

/// Its name in the table.
pub const ROW: &str = "prompt";
const PATH: &str = "/v1/prompts/pp-bench/completions";
const VARIABLE: &str = "text";

/// With its one version, in the default collection of a workspace. The provider that it names is never asked for: requests
/// name theirs.
pub const INSERT: &str = r#"
    WITH made AS (
        INSERT INTO prompts (organisation_id, workspace_id, collection_id, slug, name, version_id, latest_version_id)
        SELECT c.organisation_id, c.workspace_id, c.id, 'pp-bench', 'Bench', v, v
        FROM collections c, gen_random_uuid() AS v WHERE c.workspace_id = $1 AND c.is_default
        RETURNING id, organisation_id, version_id)
    INSERT INTO prompt_versions (id, organisation_id, prompt_id, number, template, parameters, model, virtual_key)
    SELECT version_id, organisation_id, id, 1, $2::text, '{"temperature": 0.7}'::json, 'gpt-4o-mini', 'main' FROM made"#;

/// The messages of a chat, with a variable in place of what is said last.
pub fn template(chat: &str) -> anyhow::Result<String> {
    let mut messages = messages(chat)?;
    if let Some(last) = messages.last_mut() {
        last["content"] = format!("{{{{{VARIABLE}}}}}").into();
    }
    Ok(Value::from(messages).to_string())
}

/// The run that asks the provider for the same chat.
pub fn request(engine: &Request) -> anyhow::Result<Request> {
    let content = messages(&engine.body)?.last().map_or(Value::Null, |last| last["content"].clone());
    let body = json!({ "variables": { VARIABLE: content } });
    Ok(Request { path: PATH, body: body.to_string().into(), ..engine.clone() })
}

fn messages(chat: &str) -> anyhow::Result<Vec<Value>> {
    let chat: Value = serde_json::from_str(chat)?;
    Ok(serde_json::from_value(chat["messages"].clone())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::request::body;

    #[test]
    fn the_prompt_becomes_the_chat_that_it_is_held_against() {
        let chat = body();
        let engine = Request {
            address: ([127, 0, 0, 1], 1).into(),
            path: "/v1/chat/completions",
            headers: Vec::new(),
            body: chat.as_str().into(),
        };
        let run: Value = serde_json::from_str(&request(&engine).unwrap().body).unwrap();
        let content = run["variables"][VARIABLE].as_str().unwrap();
        let rendered = template(&chat).unwrap().replace("{{text}}", content);
        assert_eq!(messages(&chat).unwrap(), serde_json::from_str::<Vec<Value>>(&rendered).unwrap());
    }
}
