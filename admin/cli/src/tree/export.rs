//! Writes what a gateway holds as files that `apply` takes: names in place of ids, variables in place of secrets.

use super::address::Address;
use super::live::MASK;
use super::state::{Live, State};
use crate::kinds::{Identity, Kind, SECRET_FIELDS};
use crate::output::yaml;
use crate::secrets;
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
            let open = if is_secret { with_variables(value, address) } else { without_secrets(field, value, address) };
            spec.insert((*field).to_owned(), open);
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

/// Credentials inside of a field as variables that are named after their places.
fn without_secrets(field: &str, value: &Value, address: &Address) -> Value {
    secrets::replaced(field, value, &mut |path| variable(address, &path.join("_")).into())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Home, KINDS};
    use crate::tree::compare::differences;
    use crate::tree::documents::Tree;
    use crate::tree::live::with_masks;
    use crate::tree::template::{escaped, map_texts};
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![any::<String>(), "[ -~\n]{0,12}", "(\\$)?\\$\\{(env|file|config|x):[a-z]{0,3}\\}"];
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 3, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..3)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_exported_of_any_kind_says_what_is_there(
            at in 0..KINDS.len(), name in "[a-zA-Z0-9 _.:#-]{1,12}", given in prop::collection::vec(values(), 16),
        ) {
            let kind = &KINDS[at];
            // A mask instead of a secret, as the API shows it, or a credential within.
            let shown = |field: &str, value: Value| match field {
                field if SECRET_FIELDS.contains(&field) => json!({ "open": "x", "masked_token": "ab*****yz" }),
                "config" => json!({ "api_key": "ab*****yz", "targets": [{ "apiKey": "ab*****yz", "more": value }] }),
                "checks" => json!([{ "id": "a", "parameters": { "headers": { "x-key": "canary" }, "more": value } }]),
                _ => value,
            };
            let body: Map<String, Value> = kind.fields.iter().zip(given)
                .map(|(field, value)| (kind.shown_name(field).to_owned(), shown(field, value)))
                .collect();
            let mut fields: Map<String, Value> = with_masks(kind, &body).into_iter()
                .map(|(field, value)| (field, map_texts(&value, &mut |text| Ok::<_, ()>(escaped(text))).unwrap()))
                .collect();
            fields.insert("name".to_owned(), escaped(&name).into());
            let workspace = (kind.home != Home::Organisation).then(|| "w".to_owned());
            let address = Address { kind: kind.name, workspace, name };
            let live = Live { etag: String::new(), fields, changed_at: String::new() };

            let folder = tempfile::tempdir().unwrap();
            let text = yaml::text(&document(&address, &live));
            prop_assert!(!text.contains("canary") && !text.contains("*****"), "{}", text);
            std::fs::write(folder.path().join("object.yaml"), text).unwrap();
            let tree = Tree::read(folder.path()).unwrap();
            let faults: Vec<_> = tree.faults.iter().map(|fault| &fault.message).filter(|fault| !fault.contains("needs the field")).collect();
            prop_assert!(faults.is_empty(), "{:?}", faults);
            let found = differences(kind, &tree.objects[&address].fields, &live.fields);
            prop_assert!(found.is_empty(), "{:?}", found);
        }
    }
}
