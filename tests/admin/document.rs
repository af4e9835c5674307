//! The OpenAPI document against what is really answered: every answer has a documented status, fits its schema, and has
//! no field that the schema does not know.

#[path = "../../admin/src/openapi/tests/fits.rs"]
mod fits;

use crate::configs;
use crate::samples::{Sample, numbered, samples};
use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::routes::{self, Access, Lookup};
use std::collections::BTreeSet;

/// The document with every object closed, so that a field that is not described is a fault.
pub struct Document(Value);

impl Document {
    pub async fn of(service: &Service) -> Self {
        let mut document = service.client().get("/openapi.json").await.json();
        close(&mut document);
        Self(document)
    }

    /// The operation that a method and path reach.
    pub fn operation(&self, method: &Method, path: &str) -> &Value {
        let path = path.split('?').next().unwrap_or_default();
        let Lookup::Operation(found) = routes::find(method.as_str(), path) else { panic!("no operation {path}") };
        &self.0["paths"][found.path.replace("{*", "{")][method.as_str().to_ascii_lowercase()]
    }

    /// Whether an operation answers with an `ETag`, as the document says.
    pub fn sends_tag(&self, method: &Method, path: &str) -> bool {
        self.operation(method, path)["responses"]["200"]["headers"].get("ETag").is_some()
    }

    /// Whether it reads `If-Match`, as the document says.
    pub fn reads_condition(&self, method: &Method, path: &str) -> bool {
        let parameters = self.operation(method, path)["parameters"].as_array().unwrap();
        let is_named = parameters.iter().any(|one| one["name"] == "If-Match" && one["in"] == "header");
        let is_refused = !self.operation(method, path)["responses"]["412"].is_null();
        assert_eq!(is_named, is_refused, "{method} {path}: 412 is of those that read If-Match alone");
        is_named
    }

    /// What in an answer differs from what is documented.
    pub fn faults(&self, method: &Method, path: &str, answer: &Answer) -> Vec<String> {
        let response = &self.operation(method, path)["responses"][answer.status.as_str()];
        let response = match response["$ref"].as_str() {
            Some(reference) => self.0.pointer(&reference[1..]).unwrap(),
            None => response,
        };
        match response["content"]["application/json"].get("schema") {
            None => vec![format!("{} is not documented", answer.status)],
            Some(schema) => fits::faults(&self.0, schema, &answer.json()),
        }
    }

    /// Operations, as `POST /labels`, that change something and whose answer may have one of these fields.
    pub fn answering_with(&self, fields: &[&str]) -> BTreeSet<String> {
        let resolved = |schema: &Value| match schema["$ref"].as_str() {
            Some(reference) => self.0.pointer(&reference[1..]).unwrap().clone(),
            None => schema.clone(),
        };
        let answers = |operation: &Value| {
            let answer = resolved(&operation["responses"]["200"]["content"]["application/json"]["schema"]);
            let forms = answer["anyOf"].as_array().cloned().unwrap_or_else(|| vec![answer]);
            let has = |form: &Value, name: &str| {
                let field = &resolved(form)["properties"][name];
                !field.is_null() && field.get("const").is_none()
            };
            fields.iter().any(|name| forms.iter().any(|form| has(form, name)))
        };
        let mut found = BTreeSet::new();
        for (path, item) in self.0["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap().iter().filter(|(method, _)| *method != "get") {
                let is_ours = matches!(routes::find(&method.to_ascii_uppercase(), path), Lookup::Operation(_));
                if is_ours && answers(operation) {
                    found.insert(format!("{} {path}", method.to_ascii_uppercase()));
                }
            }
        }
        found
    }

    /// Each parameter of the lists whose values are closed.
    pub fn closed_filters(&self) -> Vec<(String, String)> {
        let is_closed = |path: &str, name: &str| {
            let parameters = self.0["paths"][path]["get"]["parameters"].as_array().unwrap();
            parameters.iter().any(|one| one["name"] == name && is_closed(&one["schema"]))
        };
        let lists = self.lists().into_iter();
        let filters = lists.flat_map(|(path, names)| names.into_iter().map(move |name| (path.clone(), name)));
        filters.filter(|(path, name)| is_closed(path, name)).collect()
    }

    /// Each parameter of the lists of which every text is a value, as far as the document says.
    pub fn open_filters(&self) -> Vec<(String, String)> {
        let closed = self.closed_filters();
        let lists = self.lists().into_iter();
        let all = lists.flat_map(|(path, names)| names.into_iter().map(move |name| (path.clone(), name)));
        all.filter(|one| !closed.contains(one)).collect()
    }

    /// Everything that admin lists, with the parameters of its query. The document also describes what the proxy serves.
    pub fn lists(&self) -> Vec<(String, Vec<String>)> {
        let paths = self.0["paths"].as_object().unwrap().iter();
        let lists = paths.filter_map(|(path, item)| {
            let parameters = item["get"]["parameters"].as_array()?;
            let names = parameters.iter().filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
            let names: Vec<String> = names.map(str::to_owned).collect();
            let is_ours =
                matches!(routes::find("GET", path), Lookup::Operation(one) if one.access != Access::ScimToken);
            // Its filters are those of the list, and it never ends.
            let is_stream = path == "/logs/tail";
            (is_ours && !is_stream && !names.is_empty() && !path.contains('{')).then(|| (path.clone(), names))
        });
        lists.collect()
    }
}

/// Whether not every text is a value of it.
fn is_closed(schema: &Value) -> bool {
    match schema["anyOf"].as_array() {
        Some(forms) => forms.iter().all(is_closed),
        None => {
            let is_text = schema["type"] == "string";
            let narrows = ["enum", "const", "format", "pattern"].iter().any(|rule| schema.get(*rule).is_some());
            narrows || !is_text
        }
    }
}

fn close(part: &mut Value) {
    match part {
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Object(fields) => {
            fields.iter_mut().filter(|(name, _)| *name != "example").for_each(|(_, field)| close(field));
            let has_fields = fields.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
            if has_fields && fields.contains_key("required") {
                fields.entry("additionalProperties").or_insert(false.into());
            }
        }
        _ => {}
    }
}

async fn send(client: &Client, document: &Document, method: Method, path: &str, body: Option<&Value>) -> Answer {
    let request = client.request(method.clone(), path);
    let answer = whole(body.into_iter().fold(request, |request, body| request.json(body))).await;
    let faults = document.faults(&method, path, &answer);
    assert!(faults.is_empty(), "{method} {path}: {faults:?} in {}", answer.text());
    answer
}

async fn walk(service: &Service, document: &Document, sample: &Sample, n: usize) {
    let client = service.administrator();
    sample.prepare(service).await;
    let list = sample.list_path(service, "");
    let mut body = numbered(&sample.body, n);
    if sample.is_in_workspace {
        body["workspace_id"] = json!(service.home.workspace_id);
    }
    let made = send(&client, document, Method::POST, sample.create_path(), Some(&body)).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let path = format!("{}/{}", sample.path, made.json()["id"].as_str().unwrap());
    for (method, path, body, status) in [
        (Method::GET, path.as_str(), None, 200),
        (Method::GET, list.as_str(), None, 200),
        (Method::PUT, path.as_str(), Some(numbered(&sample.change, n)), 200),
        (Method::PUT, path.as_str(), Some(sample.wrong.0.clone()), 400),
        (Method::DELETE, path.as_str(), Some(numbered(&sample.delete, n)), 200),
        (Method::GET, path.as_str(), None, 404),
    ] {
        let answer = send(&client, document, method, path, body.as_ref()).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn what_every_resource_answers_is_what_the_document_says() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    for (n, sample) in samples().iter().enumerate() {
        walk(&service, &document, sample, n).await;
    }
    let client = service.administrator();
    for path in [
        "/admin/organisation",
        "/admin/organisation/defaults",
        "/admin/organisation/security-settings",
        "/admin/organisation/auth-settings",
        "/admin/users",
        "/admin/users/invites",
        "/api-keys/self",
        "/audit-logs",
        "/logs",
    ] {
        assert_eq!(send(&client, &document, Method::GET, path, None).await.status, 200, "{path}");
    }
    let list = client.get("/labels").await;
    assert!(document.faults(&Method::GET, "/labels", &list).is_empty());
    assert!(!document.faults(&Method::GET, "/audit-logs", &list).is_empty(), "another list's answer is a fault");
}

/// The body that the document shows can be sent as it is.
#[tokio::test]
async fn examples_of_what_is_created_are_accepted() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let client = service.administrator();
    let config = configs::create(&client, "c", json!({ "provider": "@a" })).await["slug"].clone();
    for path in [
        "/labels",
        "/api-keys/organisation/service",
        "/api-keys/workspace/service",
        "/api-keys/workspace/user",
        "/admin/users/invites",
        "/admin/workspaces",
        "/deployments",
        "/guardrails",
        "/guardrails/test",
        "/plugins",
        "/policies/rate-limits",
        "/policies/usage-limits",
    ] {
        let operation = document.operation(&Method::POST, path);
        let mut body = operation["requestBody"]["content"]["application/json"]["example"].clone();
        // Ids in examples are nobody's.
        let fields = body.as_object_mut().unwrap();
        for name in ["organisation_id", "workspaces", "users"] {
            fields.shift_remove(name);
        }
        for (name, id) in [("workspace_id", service.home.workspace_id), ("user_id", service.home.owner_id)] {
            fields.entry(name).and_modify(|field| *field = json!(id));
        }
        if let Some(named) = body.pointer_mut("/defaults/config_id") {
            *named = config.clone();
        }
        let answer = send(&client, &document, Method::POST, path, Some(&body)).await;
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    }
}

#[tokio::test]
async fn the_page_is_offline_and_reads_the_document_beside_it() {
    let service = Service::start().await;
    let root = Client::new(&service.origin);
    let page = root.get("/docs").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(page.text().contains("fetch(\"v1/openapi.json\")"));
    assert_eq!(root.get("/openapi.json").await.json(), root.get("/v1/openapi.json").await.json());
}
