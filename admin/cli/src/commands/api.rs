//! `api`: any operation of the control plane, for what has no command of its own.

use super::secret_input;
use crate::global::Global;
use crate::http::{Call, Client, header};
use crate::outcome::{Exit, Failure, at_path};
use crate::output;
use crate::session::{Session, named_url, origin};
use reqwest::Method;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// Call any operation: portcullis api GET /configs
#[derive(clap::Args)]
pub struct Api {
    /// GET, POST, PUT, PATCH or DELETE.
    #[arg(value_parser = method)]
    method: Method,
    /// The path below /v1, with its query.
    path: String,
    /// A field: of the body, or of the query of a GET. A value that is JSON is taken as such; @FILE, env:NAME and - (stdin) are read.
    #[arg(short = 'F', long = "field", value_name = "NAME=VALUE")]
    fields: Vec<String>,
    /// The body, from a file of JSON or YAML, or from stdin (-).
    #[arg(long, value_name = "FILE", conflicts_with = "fields")]
    body: Option<String>,
    /// All pages of a list, one object a line.
    #[arg(long)]
    paginate: bool,
    /// The tag of the object as it was read; the call is refused when it has changed since.
    #[arg(long, value_name = "ETAG")]
    if_match: Option<String>,
}

fn method(text: &str) -> Result<Method, String> {
    match text.to_ascii_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        _ => Err("it is one of GET, POST, PUT, PATCH, DELETE".to_owned()),
    }
}

pub async fn run(session: &Session, api: &Api) -> Result<Exit, Failure> {
    let path = format!("/{}", api.path.trim_start_matches('/').trim_start_matches("v1/"));
    let hidden = secret_fields(&api.fields);
    let fields = fields(&api.fields)?;
    if api.paginate {
        let query: Vec<(String, String)> = fields.into_iter().map(|(name, value)| (name, plain(value))).collect();
        for row in session.client.list(&path, &query).await? {
            output::write(&format!("{row}\n"))?;
        }
        return Ok(Exit::Fine);
    }
    let mut call = Call::new(api.method.clone(), path);
    call.is_stream = true;
    call.hidden = hidden;
    call.is_body_from_stdin = api.body.as_deref() == Some("-");
    if let Some(tag) = &api.if_match {
        call = call.only_as_read(tag);
    }
    if let Some(file) = &api.body {
        call = call.body(body(file)?);
    } else if api.method == Method::GET {
        call = call.query(fields.into_iter().map(|(name, value)| (name, plain(value))));
    } else if !fields.is_empty() {
        call = call.body(Value::Object(fields));
    }
    let mut response = session.client.stream(call).await?;
    if header(&response, "content-type").starts_with("application/json") {
        let body: Value = response.json().await.map_err(|error| Failure::new(error.to_string()))?;
        let is_for_people = !session.output.is_structured();
        if is_for_people {
            output::write(&(output::pretty(&body) + "\n"))?
        } else {
            session.output.object(&body)?
        }
        return Ok(Exit::Fine);
    }
    while let Some(chunk) = response.chunk().await.map_err(|error| Failure::new(error.to_string()))? {
        if output::is_closed() {
            break;
        }
        output::write(&String::from_utf8_lossy(&chunk))?;
    }
    Ok(Exit::Fine)
}

fn plain(value: Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Names of the fields that are read from where secrets are kept, which `--as-curl` does not show.
pub fn secret_fields(pairs: &[String]) -> BTreeSet<String> {
    let is_source = |text: &str| text == "-" || text.starts_with("env:") || text.starts_with("file:");
    let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
    pairs.filter(|(_, text)| is_source(text)).map(|(name, _)| name.to_owned()).collect()
}

/// `name=value` pairs as an object. What is JSON is taken as such, so that numbers and lists can be given.
pub fn fields(pairs: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut fields = Map::new();
    for pair in pairs {
        let Some((name, text)) = pair.split_once('=') else {
            return Err(Failure::new(format!("`{pair}` is not NAME=VALUE")));
        };
        let value = if let Some(path) = text.strip_prefix('@') {
            at_path(Path::new(path), std::fs::read_to_string(path))?.into()
        } else if text == "-" || text.starts_with("env:") || text.starts_with("file:") {
            secret_input::from_source(text)?.into()
        } else {
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
        };
        fields.insert(name.to_owned(), value);
    }
    Ok(fields)
}

/// A document of JSON or YAML.
pub fn body(file: &str) -> Result<Value, Failure> {
    let text = match file {
        "-" => std::io::read_to_string(std::io::stdin())?,
        path => at_path(Path::new(path), std::fs::read_to_string(path))?,
    };
    crate::tree::yaml::one(&text).map_err(|fault| Failure::new(format!("{file}:{fault}")))
}

/// The document is public: no key is needed, only an address.
pub async fn openapi(global: &Global) -> Result<Exit, Failure> {
    let client = match named_url(global) {
        Some(url) => Client::new(&origin(&url)?, None, global.as_curl)?,
        None => Session::open(global)?.client,
    };
    let document = client.call(Call::get("/openapi.json")).await?;
    output::write(&(output::pretty(&document) + "\n"))?;
    Ok(Exit::Fine)
}
