//! `get`, `list`, `create` and `delete` of any kind, by the table of kinds.

use super::api;
use crate::http::Call;
use crate::kinds::{self, Home, Kind};
use crate::objects::{self, object_query, path_of};
use crate::outcome::{Exit, Failure};
use crate::output::printable;
use crate::session::Session;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};

/// Show one object, or list all of a kind.
#[derive(clap::Args)]
pub struct Get {
    /// As config, provider, integration, api-key, workspace.
    kind: String,
    /// Slug, id or name.
    name: Option<String>,
}

/// List the objects of a kind.
#[derive(clap::Args)]
pub struct List {
    /// As configs, providers, integrations, api-keys, workspaces.
    kind: String,
}

/// Make an object. What it is called and what it says are the API's words.
#[derive(clap::Args)]
pub struct Create {
    /// As config, provider, integration, workspace.
    kind: String,
    /// Its slug, or its name where the server makes the slug.
    name: String,
    /// A field. A value that is JSON is taken as such; @FILE, env:NAME, file:PATH and - (stdin) are read.
    #[arg(short = 'F', long = "field", value_name = "NAME=VALUE")]
    fields: Vec<String>,
    /// The fields, from a file of JSON or YAML, or from stdin (-).
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<String>,
}

/// Delete an object. On a terminal it asks first; elsewhere it needs --yes.
#[derive(clap::Args)]
pub struct Delete {
    kind: String,
    /// Slug, id or name.
    name: String,
    /// Delete what others still use, where the kind allows it.
    #[arg(long)]
    force: bool,
}

pub async fn get(session: &Session, get: &Get) -> Result<Exit, Failure> {
    let kind = kinds::find(&get.kind)?;
    let Some(name) = &get.name else { return rows(session, kind).await };
    let id = objects::id_for(session, kind, name).await?;
    let call = Call::get(path_of(kind, &id)).query(object_query(session, kind));
    session.output.object(&session.client.call(call).await?)?;
    session.output.hint(&format!("portcullis edit {} {}", kind.name, printable(name)));
    Ok(Exit::Fine)
}

pub async fn list(session: &Session, list: &List) -> Result<Exit, Failure> {
    rows(session, kinds::find(&list.kind)?).await
}

async fn rows(session: &Session, kind: &'static Kind) -> Result<Exit, Failure> {
    if session.client.is_shown() {
        session.client.list(kind.path, &object_query(session, kind)).await?;
    }
    session.output.rows(&objects::list(session, kind).await?, kind.columns)?;
    session.output.hint(&format!("portcullis get {} NAME", kind.name));
    Ok(Exit::Fine)
}

pub async fn create(session: &Session, create: &Create) -> Result<Exit, Failure> {
    let kind = kinds::find(&create.kind)?;
    let mut body = Map::new();
    if let Some(file) = &create.file {
        match api::body(file)? {
            Value::Object(fields) => body.extend(fields),
            _ => return Err(Failure::new(format!("{file} holds no object"))),
        }
    }
    body.extend(api::fields(&create.fields)?);
    body.insert(kind.identity_field().to_owned(), create.name.clone().into());
    body.entry("name").or_insert_with(|| create.name.clone().into());
    if let (Some(workspace), true) = (&session.workspace, kind.home != Home::Organisation) {
        body.entry("workspace_id").or_insert_with(|| workspace.clone().into());
    }
    let mut call = Call::new(Method::POST, kind.create_path()).body(Value::Object(body));
    call.hidden = api::secret_fields(&create.fields);
    call.is_body_from_stdin = create.file.as_deref() == Some("-");
    let made = session.client.call(call).await?;
    session.output.object(&made)?;
    session.output.hint(&format!("portcullis get {} {}", kind.name, printable(&create.name)));
    Ok(Exit::Fine)
}

pub async fn delete(session: &Session, delete: &Delete) -> Result<Exit, Failure> {
    let kind = kinds::find(&delete.kind)?;
    let found = objects::find(session, kind, &delete.name).await?;
    confirm(session, &format!("Delete {} {}?", kind.name, printable(&delete.name)))?;
    let id = found.body["id"].as_str().unwrap_or(&delete.name);
    let mut call = Call::new(Method::DELETE, path_of(kind, id)).query(object_query(session, kind));
    if delete.force {
        call = call.query([("force".to_owned(), "true".to_owned())]);
    }
    if kind.name == "workspace" {
        // The API wants the name repeated, so that nobody deletes a workspace by a slip of an id.
        call = call.body(json!({ "name": found.body["name"] }));
    }
    session.client.call(call.only_as_read(&found.etag)).await?;
    eprintln!("Deleted {} {}.", kind.name, printable(&delete.name));
    session.output.hint(&format!("portcullis list {}", kind.name));
    Ok(Exit::Fine)
}

/// Asks on a terminal. Without one there is nobody to ask, and only `--yes` will do.
pub fn confirm(session: &Session, question: &str) -> Result<(), Failure> {
    if session.is_sure || session.client.is_shown() {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(format!("{question} There is no terminal to ask on: say --yes")));
    }
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new("nothing was changed")),
    }
}
