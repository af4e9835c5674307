//! Writes what a gateway holds as files that `apply` takes: names in place of ids, variables in place of secrets.

use super::address::Address;
use super::live::MASK;
use super::state::{Live, State};
use crate::kinds::{Identity, Kind, SECRET_FIELDS};
use crate::output::yaml;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a workspace shows whether it says so itself or the organisation does: writing it back would be refused, or pin it.
const INHERITED: &[&str] = &["security_settings", "settings"];

/// The files by their path below the folder, one for each kind in each workspace.
pub fn files(live: &BTreeMap<Address, Live>) -> BTreeMap<PathBuf, String> {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (address, object) in live {
        let folder = address.workspace.as_deref().unwrap_or("organisation");
        let path = PathBuf::from(folder).join(format!("{}.yaml", address.kind));
        let text = files.entry(path).or_default();
        text.push_str("---\n");
        text.push_str(&yaml::text(&document(address, object)));
    }
    files
}

pub fn document(address: &Address, object: &Live) -> Value {
    let mut document = json!({ "kind": address.kind });
    if let Some(workspace) = &address.workspace {
        document["workspace"] = workspace.clone().into();
    }
    document["name"] = address.name.clone().into();
    document["spec"] = Value::Object(spec(address.kind(), address, object));
    document
}

fn spec(kind: &Kind, address: &Address, object: &Live) -> Map<String, Value> {
    let mut spec = Map::new();
    // Where the name is what an object is known by, the head has it already.
    let is_in_head = |field: &str| field == "name" && kind.identity == Identity::Name;
    for field in kind.fields.iter().filter(|field| !is_in_head(field) && !INHERITED.contains(field)) {
        if let Some(value) = object.fields.get(*field) {
            let is_secret = SECRET_FIELDS.contains(field);
            spec.insert((*field).to_owned(), if is_secret { with_variables(value, address) } else { value.clone() });
        }
    }
    if kind.name == "integration" && !spec.contains_key("secret_mappings") {
        spec.insert("key".to_owned(), variable(address, "key").into());
    }
    spec
}

/// `masked_token: ab*****yz` as `token: ${env:…}`, and the same of what is masked part by part.
fn with_variables(value: &Value, address: &Address) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let open = |(name, value): (&String, &Value)| match name.strip_prefix(MASK) {
        None => (name.clone(), value.clone()),
        Some(secret) => match value {
            Value::Object(parts) => {
                let parts = parts.keys().map(|part| (part.clone(), variable(address, part).into()));
                (secret.to_owned(), Value::Object(parts.collect()))
            }
            _ => (secret.to_owned(), variable(address, secret).into()),
        },
    };
    Value::Object(fields.iter().map(open).collect())
}

/// A name that is the same at every export and different for every secret.
fn variable(address: &Address, field: &str) -> String {
    let words = [address.workspace.as_deref().unwrap_or(""), &address.name, field].join("_");
    let name: String = words
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("${{env:{}}}", name.trim_start_matches('_'))
}

/// Addresses of the objects to export, and those that cannot be, because names do not tell them apart.
pub fn addresses(state: &State<'_>, kinds: &[&'static Kind], workspace: Option<&str>) -> (Vec<Address>, Vec<Address>) {
    let is_meant = |address: &&Address| {
        let home = workspace.is_none_or(|workspace| address.workspace.as_deref() == Some(workspace));
        home && kinds.iter().any(|kind| kind.name == address.kind)
    };
    state
        .addresses()
        .filter(is_meant)
        .cloned()
        .partition(|address| !state.is_ambiguous(address) && !address.name.contains('}'))
}
