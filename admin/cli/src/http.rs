//! Calls of the control plane, and how its refusals become ends of commands.

pub use crate::call::{Call, segment};
use crate::curl;
use crate::outcome::Failure;
use reqwest::{Response, StatusCode};
use serde_json::Value;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The control plane answers in milliseconds; a test of a provider takes as long as the provider does.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
const PAGE_SIZE: usize = 100;
const MAX_PAGES: usize = 10_000;

pub struct Client {
    http: reqwest::Client,
    origin: String,
    key: Option<String>,
    is_shown: bool,
}

/// An object as it was read, with the tag that a later change must name.
#[derive(Debug, Clone)]
pub struct Tagged {
    pub body: Value,
    pub etag: String,
}

impl Client {
    pub fn new(origin: &str, key: Option<String>, is_shown: bool) -> Result<Self, Failure> {
        // A redirect could carry the key to another host.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .build();
        let http = http.map_err(|error| Failure::new(error.to_string()))?;
        Ok(Self { http, origin: origin.to_owned(), key, is_shown })
    }

    /// Makes the call that the command is about, or shows it.
    pub async fn call(&self, call: Call) -> Result<Value, Failure> {
        Ok(self.call_tagged(call).await?.body)
    }

    pub async fn call_tagged(&self, call: Call) -> Result<Tagged, Failure> {
        self.show(&call)?;
        self.look_up(call).await
    }

    /// The same for an answer that is read as it arrives.
    pub async fn stream(&self, call: Call) -> Result<Response, Failure> {
        self.show(&call)?;
        checked(self.send(call).await?).await
    }

    /// Makes a call that only prepares the one that the command is about; it is never shown.
    pub async fn look_up(&self, call: Call) -> Result<Tagged, Failure> {
        tagged(checked(self.send(call).await?).await?).await
    }

    /// The same for what may have been deleted.
    pub async fn look_up_if_there(&self, call: Call) -> Result<Option<Tagged>, Failure> {
        let response = self.send(call).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        Ok(Some(tagged(checked(response).await?).await?))
    }

    /// All rows of a list, page by page.
    pub async fn list(&self, path: &str, query: &[(String, String)]) -> Result<Vec<Value>, Failure> {
        self.show(&Call::get(path).query(query.to_vec()))?;
        self.look_up_list(path, query).await
    }

    pub async fn look_up_list(&self, path: &str, query: &[(String, String)]) -> Result<Vec<Value>, Failure> {
        let mut rows = Vec::new();
        for page in 0..MAX_PAGES {
            let paging =
                [("current_page".to_owned(), page.to_string()), ("page_size".to_owned(), PAGE_SIZE.to_string())];
            let call = Call::get(path).query(query.to_vec()).query(paging);
            let mut answer = self.look_up(call).await?.body;
            let field = ["data", "records"].into_iter().find(|field| answer[*field].is_array()).unwrap_or("data");
            let Some(Value::Array(found)) = answer.get_mut(field).map(Value::take) else {
                return Err(Failure::new(format!("{path} answers no list")));
            };
            let is_last = found.len() < PAGE_SIZE;
            rows.extend(found);
            if is_last || answer["total"].as_u64().is_some_and(|total| rows.len() as u64 >= total) {
                break;
            }
        }
        Ok(rows)
    }

    /// The key, for whoever has to hand it on.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Whether calls are printed in place of being made.
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    fn show(&self, call: &Call) -> Result<(), Failure> {
        if !self.is_shown {
            return Ok(());
        }
        crate::output::line(&curl::command(&self.origin, call));
        Err(Failure::CallIsShown)
    }

    /// Sends a call and returns whatever is answered.
    pub async fn send(&self, call: Call) -> Result<Response, Failure> {
        let url = format!("{}/v1{}", self.origin, call.path);
        let mut request = self.http.request(call.method, url).query(&call.query);
        if !call.is_stream {
            request = request.timeout(CALL_TIMEOUT);
        }
        if let Some(key) = &self.key {
            request = request.header("x-gateway-api-key", key);
        }
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        request.send().await.map_err(|error| Failure::new(format!("cannot reach {}: {}", self.origin, cause(&error))))
    }
}

/// The innermost cause: the others repeat the address.
fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

pub fn header(response: &Response, name: &str) -> String {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

async fn tagged(response: Response) -> Result<Tagged, Failure> {
    let etag = header(&response, "etag");
    let bytes = response.bytes().await.map_err(|error| Failure::new(format!("the answer broke off: {error}")))?;
    if bytes.is_empty() {
        return Ok(Tagged { body: Value::Null, etag });
    }
    match serde_json::from_slice(&bytes) {
        Ok(body) => Ok(Tagged { body, etag }),
        Err(_) => Err(Failure::new("the answer is no JSON: is this the address of a gateway?")),
    }
}

async fn checked(response: Response) -> Result<Response, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let request = header(&response, "x-gateway-request-id");
    let text = response.text().await.unwrap_or_default();
    Err(refusal(status, &request, &serde_json::from_str(&text).unwrap_or(Value::Null)))
}

fn refusal(status: StatusCode, request: &str, body: &Value) -> Failure {
    let mut text = body["message"].as_str().or(body["error"]["message"].as_str()).unwrap_or_default().to_owned();
    if text.is_empty() {
        text = "the answer has no message".to_owned();
    }
    for error in body["data"]["errors"].as_array().into_iter().flatten().skip(1) {
        text += &format!("\n  {}: {}", plain(&error["field"]), plain(&error["message"]));
    }
    let changed = &body["data"]["changed"];
    if changed.is_object() {
        let by = ["by_email", "by_name", "by", "by_id"].iter().find_map(|field| changed[*field].as_str());
        text += &format!("\n  changed by {}: {}", by.unwrap_or("somebody"), plain(&changed["fields"]));
    }
    for user in body["data"]["in_use_by"].as_array().into_iter().flatten() {
        text += &format!("\n  used by {}", plain(user));
    }
    let request = if request.is_empty() { String::new() } else { format!(", request {request}") };
    let text = format!("{text} (HTTP {}{request})", status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED => Failure::SignIn(text),
        StatusCode::FORBIDDEN => Failure::Refused(text),
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => Failure::Conflict(text),
        _ => Failure::Failed(text),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
