//! Objects of every kind that can be made from the examples in the OpenAPI document of the running admin.

use crate::prove::client::{Caller, empty};
use anyhow::{Context as _, ensure};
use http::Method;
use serde_json::Value;

/// Fewer means that examples no longer make objects.
const MIN_KINDS: usize = 5;

/// One that was made, by the address it is read at.
#[derive(Debug)]
pub struct Object {
    path: String,
}

impl Object {
    /// The collection that it stands in.
    pub fn kind(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(collection, _)| collection)
    }
}

/// Makes one object of each collection whose example needs nothing that is not there.
pub async fn create(administrator: &Caller) -> anyhow::Result<Vec<Object>> {
    let (status, text) = administrator.answer(administrator.request(Method::GET, "/openapi.json", empty())).await?;
    ensure!(status == 200, "the document: {status}");
    let document: Value = serde_json::from_str(&text)?;
    let mut made = Vec::new();
    for (path, operations) in document["paths"].as_object().context("the document has no paths")? {
        let example = &operations["post"]["requestBody"]["content"]["application/json"]["example"];
        let is_collection = !path.contains('{') && example.is_object() && operations["get"].is_object();
        if is_collection && let Some(object) = create_one(administrator, &document, path, example).await? {
            made.push(object);
        }
    }
    ensure!(made.len() >= MIN_KINDS, "only {} kinds of objects could be made", made.len());
    Ok(made)
}

async fn create_one(
    administrator: &Caller,
    document: &Value,
    path: &str,
    example: &Value,
) -> anyhow::Result<Option<Object>> {
    let path = served(document, path);
    let (status, text) = administrator.answer(administrator.post_json(&path, example)).await?;
    if !status.is_success() {
        return Ok(None);
    }
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    for name in ["id", "slug"] {
        let id = [&answer[name], &answer["data"][name]].into_iter().find_map(Value::as_str);
        let Some(id) = id else { continue };
        let object = Object { path: format!("{path}/{id}") };
        if is_there(administrator, &object).await? {
            return Ok(Some(object));
        }
    }
    Ok(None)
}

/// Paths of the document follow the address of its server.
fn served(document: &Value, path: &str) -> String {
    let server = document["servers"][0]["url"].as_str().unwrap_or_default();
    let base = server.find("/v1").map_or("", |_| "/v1");
    if path.starts_with("/v1") { path.to_owned() } else { format!("{base}{path}") }
}

/// Those that are no longer answered.
pub async fn missing<'o>(administrator: &Caller, objects: &'o [Object]) -> anyhow::Result<Vec<&'o str>> {
    let mut missing = Vec::new();
    for object in objects {
        if !is_there(administrator, object).await? {
            missing.push(object.path.as_str());
        }
    }
    Ok(missing)
}

async fn is_there(administrator: &Caller, object: &Object) -> anyhow::Result<bool> {
    Ok(administrator.status_of(&object.path).await?.is_success())
}
