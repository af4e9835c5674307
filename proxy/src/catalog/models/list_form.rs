//! The forms in which providers list their models, and how each becomes OpenAI's. A form is data: where the list is, what
//! a model is called in it, and how the next page is asked for.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

#[derive(Debug)]
pub struct ListForm {
    pub name: &'static str,
    /// Where the models are, unless the answer is a bare list.
    list: &'static str,
    /// What a model is called by, and by whom it was made.
    id: &'static str,
    owner: &'static str,
    pub pages: Option<Pages>,
    /// Takes the caller's own query.
    pub takes_query: bool,
}

/// Where an answer says how to go on, and under which name that is asked for.
#[derive(Debug)]
pub struct Pages {
    token: &'static str,
    pub parameter: &'static str,
}

const PLAIN: ListForm =
    ListForm { name: "openai", list: "data", id: "id", owner: "owned_by", pages: None, takes_query: true };
const GOOGLE: Option<Pages> = Some(Pages { token: "nextPageToken", parameter: "pageToken" });

static FORMS: [ListForm; 10] = [
    PLAIN,
    ListForm { name: "anthropic", pages: Some(Pages { token: "last_id", parameter: "after_id" }), ..PLAIN },
    ListForm { name: "gemini", list: "models", id: "name", owner: "", pages: GOOGLE, takes_query: false },
    ListForm { name: "vertex", list: "publisherModels", id: "name", owner: "", pages: GOOGLE, takes_query: false },
    ListForm {
        name: "bedrock",
        list: "modelSummaries",
        id: "modelId",
        owner: "providerName",
        pages: None,
        takes_query: false,
    },
    ListForm {
        name: "cohere",
        list: "models",
        id: "name",
        owner: "",
        pages: Some(Pages { token: "next_page_token", parameter: "page_token" }),
        takes_query: false,
    },
    ListForm { name: "workers_ai", list: "result", id: "name", owner: "", pages: None, takes_query: false },
    ListForm { name: "databricks", list: "endpoints", id: "name", owner: "creator", pages: None, takes_query: false },
    ListForm { name: "pinecone", list: "models", id: "model", owner: "vendor_name", pages: None, takes_query: false },
    ListForm { name: "github", list: "data", id: "name", owner: "publisher", pages: None, takes_query: false },
];

pub fn by_name(name: &str) -> Option<&'static ListForm> {
    FORMS.iter().find(|form| form.name == name)
}

/// One answer of a provider.
#[derive(Debug, Default, PartialEq)]
pub struct ListPage {
    /// In OpenAI's form; what else the provider says of a model stands beside.
    pub models: Vec<Value>,
    /// What the next page is asked for by.
    pub next: Option<String>,
}

impl ListForm {
    /// None for what is no list of this form.
    pub fn read(&self, body: &[u8], provider: &str) -> Option<ListPage> {
        let reply: Value = serde_json::from_slice(body).ok()?;
        let next = self.pages.as_ref().and_then(|pages| self.next(&reply, pages));
        let list = match reply {
            Value::Array(list) => list,
            Value::Object(mut object) => match object.remove(self.list)? {
                Value::Array(list) => list,
                _ => return None,
            },
            _ => return None,
        };
        let models = list.into_iter().filter_map(|model| match model {
            Value::Object(model) => self.model(model, provider),
            _ => None,
        });
        Some(ListPage { models: models.collect(), next })
    }

    fn next(&self, reply: &Value, pages: &Pages) -> Option<String> {
        let is_last = reply.get("has_more") == Some(&Value::Bool(false));
        let token = reply.get(pages.token).and_then(Value::as_str);
        token.filter(|token| !token.is_empty() && !is_last).map(str::to_owned)
    }

    fn model(&self, reply: Map<String, Value>, provider: &str) -> Option<Value> {
        let named = reply.get(self.id).or_else(|| reply.get("id")).and_then(Value::as_str)?;
        let (id, publisher) = self.plain(named);
        let owner = reply.get(self.owner).and_then(Value::as_str).map(str::to_owned);
        let owner = owner.or(publisher).unwrap_or_else(|| provider.to_owned());
        let created = created(&reply);
        let mut model = Map::new();
        for (name, value) in [
            ("id", Value::from(id)),
            ("object", "model".into()),
            ("created", created.into()),
            ("owned_by", owner.into()),
        ] {
            model.insert(name.to_owned(), value);
        }
        for (name, value) in reply {
            model.entry(name).or_insert(value);
        }
        Some(Value::Object(model))
    }

    /// The name that requests take, and the publisher if the listed one has it.
    fn plain(&self, named: &str) -> (String, Option<String>) {
        match self.name {
            "gemini" => (named.strip_prefix("models/").unwrap_or(named).to_owned(), None),
            "vertex" => {
                let parts: Vec<&str> = named.split('/').collect();
                match parts[..] {
                    ["publishers", "google", "models", model] => (model.to_owned(), Some("google".to_owned())),
                    ["publishers", publisher, "models", model] => {
                        ([publisher, ".", model].concat(), Some(publisher.to_owned()))
                    }
                    _ => (named.to_owned(), None),
                }
            }
            _ => (named.to_owned(), None),
        }
    }
}

/// In seconds; 0 where nobody says.
fn created(model: &Map<String, Value>) -> i64 {
    let time = |name: &str| match model.get(name) {
        Some(Value::Number(seconds)) => seconds.as_i64(),
        Some(Value::String(text)) => text.parse::<DateTime<Utc>>().ok().map(|at| at.timestamp()),
        _ => None,
    };
    let in_millis = || model.get("creation_timestamp").and_then(Value::as_i64).map(|millis| millis / 1000);
    ["created", "created_at", "createTime"].into_iter().find_map(time).or_else(in_millis).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::providers::MODEL_LIST_FORMS;

    #[test]
    fn every_form_of_the_table_is_read() {
        let names: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
        assert_eq!(names, MODEL_LIST_FORMS);
        for (form, reply, expected, next) in [
            (
                "openai",
                json!({ "object": "list", "data": [{ "id": "m", "object": "model", "created": 7, "owned_by": "x", "more": 1 }] }),
                json!({ "id": "m", "object": "model", "created": 7, "owned_by": "x", "more": 1 }),
                None,
            ),
            (
                "openai",
                json!([{ "id": "a/b", "type": "chat" }]),
                json!({ "id": "a/b", "object": "model", "created": 0, "owned_by": "acme", "type": "chat" }),
                None,
            ),
            (
                "anthropic",
                json!({ "data": [{ "type": "model", "id": "claude-1", "display_name": "Claude", "created_at": "1970-01-02T00:00:00Z" }],
                "has_more": true, "last_id": "claude-1" }),
                json!({ "id": "claude-1", "object": "model", "created": 86400, "owned_by": "acme", "display_name": "Claude",
                 "type": "model", "created_at": "1970-01-02T00:00:00Z" }),
                Some("claude-1"),
            ),
            (
                "anthropic",
                json!({ "data": [{ "id": "c" }], "has_more": false, "last_id": "c" }),
                json!({ "id": "c", "object": "model", "created": 0, "owned_by": "acme" }),
                None,
            ),
            (
                "gemini",
                json!({ "models": [{ "name": "models/gemini-x", "inputTokenLimit": 5 }], "nextPageToken": "t" }),
                json!({ "id": "gemini-x", "object": "model", "created": 0, "owned_by": "acme", "name": "models/gemini-x", "inputTokenLimit": 5 }),
                Some("t"),
            ),
            (
                "vertex",
                json!({ "publisherModels": [{ "name": "publishers/google/models/gemini-x" }], "nextPageToken": "" }),
                json!({ "id": "gemini-x", "object": "model", "created": 0, "owned_by": "google", "name": "publishers/google/models/gemini-x" }),
                None,
            ),
            (
                "vertex",
                json!({ "publisherModels": [{ "name": "publishers/meta/models/llama" }] }),
                json!({ "id": "meta.llama", "object": "model", "created": 0, "owned_by": "meta", "name": "publishers/meta/models/llama" }),
                None,
            ),
            (
                "bedrock",
                json!({ "modelSummaries": [{ "modelId": "amazon.nova-v1:0", "providerName": "Amazon" }] }),
                json!({ "id": "amazon.nova-v1:0", "object": "model", "created": 0, "owned_by": "Amazon", "modelId": "amazon.nova-v1:0", "providerName": "Amazon" }),
                None,
            ),
            (
                "cohere",
                json!({ "models": [{ "name": "command-r", "endpoints": ["chat"] }], "next_page_token": "n" }),
                json!({ "id": "command-r", "object": "model", "created": 0, "owned_by": "acme", "name": "command-r", "endpoints": ["chat"] }),
                Some("n"),
            ),
            (
                "workers_ai",
                json!({ "result": [{ "id": "u-1", "name": "@cf/meta/llama" }], "success": true }),
                json!({ "id": "@cf/meta/llama", "object": "model", "created": 0, "owned_by": "acme", "name": "@cf/meta/llama" }),
                None,
            ),
            (
                "databricks",
                json!({ "endpoints": [{ "name": "e", "creator": "a@b", "creation_timestamp": 5000 }] }),
                json!({ "id": "e", "object": "model", "created": 5, "owned_by": "a@b", "name": "e", "creator": "a@b", "creation_timestamp": 5000 }),
                None,
            ),
            (
                "pinecone",
                json!({ "models": [{ "model": "e5", "vendor_name": "Microsoft" }] }),
                json!({ "id": "e5", "object": "model", "created": 0, "owned_by": "Microsoft", "model": "e5", "vendor_name": "Microsoft" }),
                None,
            ),
            (
                "github",
                json!([{ "id": "azureml://x", "name": "gpt-4o", "publisher": "OpenAI" }]),
                json!({ "id": "gpt-4o", "object": "model", "created": 0, "owned_by": "OpenAI", "name": "gpt-4o", "publisher": "OpenAI" }),
                None,
            ),
        ] {
            let page = by_name(form).unwrap().read(reply.to_string().as_bytes(), "acme").unwrap();
            assert_eq!((page.models, page.next.as_deref()), (vec![expected], next), "{form}");
        }
        for body in ["", "{}", "7", r#"{"error":{}}"#, r#"{"data":{}}"#] {
            assert_eq!(by_name("openai").unwrap().read(body.as_bytes(), "acme"), None, "{body}");
        }
    }
}
