//! `edit`: an object in a person's editor, and only what they changed is sent.

use super::resources::confirm;
use crate::http::Call;
use crate::kinds;
use crate::objects::{self, path_of};
use crate::outcome::{Exit, Failure, at_path};
use crate::output::{printable, yaml};
use crate::session::Session;
use crate::tree;
use reqwest::Method;
use serde_json::{Map, Value};
use std::io::Write;
use std::process::Command;

/// Change an object in $EDITOR. Shows the difference before it is sent, and refuses when somebody else was faster.
#[derive(clap::Args)]
pub struct Edit {
    kind: String,
    /// Slug, id or name.
    name: String,
}

pub async fn run(session: &Session, edit: &Edit) -> Result<Exit, Failure> {
    let kind = kinds::find(&edit.kind)?;
    let found = objects::find(session, kind, &edit.name).await?;
    let before = found.body.as_object().map(|live| tree::live::editable(kind, live)).unwrap_or_default();
    let after = edited(&yaml::text(&Value::Object(before.clone())))?;
    let mut changes: Map<String, Value> = after
        .iter()
        .filter(|(field, value)| before.get(*field) != Some(value))
        .map(|(f, v)| (f.clone(), v.clone()))
        .collect();
    // A field that was taken out is cleared.
    changes.extend(before.keys().filter(|field| !after.contains_key(*field)).map(|field| (field.clone(), Value::Null)));
    if changes.is_empty() {
        eprintln!("Nothing was changed.");
        return Ok(Exit::Fine);
    }
    let difference = tree::text_diff(&yaml::text(&Value::Object(before)), &yaml::text(&Value::Object(after)));
    eprint!("{difference}");
    confirm(session, "Send this?")?;
    let id = found.body["id"].as_str().unwrap_or(&edit.name).to_owned();
    let call = Call::new(Method::PUT, path_of(kind, &id)).body(Value::Object(changes));
    tree::write::update(session, kind, &id, call.only_as_read(&found.etag)).await?;
    eprintln!("Changed {} {}.", kind.name, printable(&edit.name));
    session.output.hint(&format!("portcullis get {} {}", kind.name, printable(&edit.name)));
    Ok(Exit::Fine)
}

fn edited(text: &str) -> Result<Map<String, Value>, Failure> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).ok_or_else(|| Failure::new("EDITOR is not set"))?;
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    file.write_all(text.as_bytes())?;
    // By a shell, as git does it: the variable may hold options.
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file.path()).status()?;
    if !status.success() {
        return Err(Failure::new("the editor failed; nothing was changed"));
    }
    let text = at_path(file.path(), std::fs::read_to_string(file.path()))?;
    match tree::yaml::one(&text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Failure::new("what was edited is no object any more")),
        Err(fault) => Err(Failure::new(format!("line {fault}"))),
    }
}
