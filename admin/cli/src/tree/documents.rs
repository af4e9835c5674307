//! The files of a folder as objects, and every fault that can be found without a gateway, with its file and line.

use super::address::Address;
use super::template::{self, Part};
use super::yaml::{self, Content, Field, Node};
use crate::kinds::{self, Home, Kind};
use crate::outcome::Failure;
use crate::secrets::Place;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Object {
    pub address: Address,
    pub file: PathBuf,
    pub line: usize,
    /// Templates. Variables are filled, except where secrets stand.
    pub fields: Map<String, Value>,
    pub lines: BTreeMap<String, usize>,
    /// The only fields that are compared and changed, where the file says so.
    pub managed: Option<BTreeSet<String>>,
}

impl Object {
    pub fn is_managed(&self, field: &str) -> bool {
        self.managed.as_ref().is_none_or(|managed| managed.contains(field))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    pub file: PathBuf,
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

#[derive(Debug, Default)]
pub struct Tree {
    pub folder: PathBuf,
    /// Whether these are all files of the folder: one file does not say what is gone.
    pub is_whole: bool,
    pub objects: BTreeMap<Address, Object>,
    pub faults: Vec<Fault>,
}

/// Stands beside the files and is none of them.
pub const LOCK_FILE: &str = "portcullis.lock.json";
const HEAD: &[&str] = &["kind", "workspace", "name", "spec", "manage"];

impl Tree {
    /// Reads a folder, or one file. Whatever is wrong is collected, so that one run shows all of it.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let is_file = path.is_file();
        let folder = if is_file { folder_of(path) } else { path };
        let mut tree = Self { folder: folder.to_owned(), is_whole: !is_file, ..Self::default() };
        let files = if is_file { vec![path.to_owned()] } else { files_under(path)? };
        for file in files {
            tree.read_file(&file)?;
        }
        if is_file && tree.objects.is_empty() && tree.faults.is_empty() {
            return Err(Failure::new(format!("{} holds neither an object nor a plan", path.display())));
        }
        tree.check_references();
        tree.faults.sort();
        Ok(tree)
    }

    fn fault(&mut self, file: &Path, line: usize, message: impl Into<String>) {
        self.faults.push(Fault { file: file.to_owned(), line, message: message.into() });
    }

    fn read_file(&mut self, file: &Path) -> Result<(), Failure> {
        let text = crate::outcome::at_path(file, std::fs::read_to_string(file))?;
        match yaml::documents(&text) {
            // What has no kind is somebody else's, as a file that is included.
            Ok(found) => found.iter().filter(|node| has_kind(node)).for_each(|node| self.add(file, node)),
            Err((line, message)) => self.fault(file, line, message),
        }
        Ok(())
    }

    fn add(&mut self, file: &Path, node: &Node) {
        let Content::Fields(head) = &node.content else { return };
        for field in head.iter().filter(|field| !HEAD.contains(&field.name.as_str())) {
            self.fault(file, field.line, format!("`{}` is none of {}", field.name, HEAD.join(", ")));
        }
        let find = |name: &str| head.iter().find(|field| field.name == name);
        let text = |name: &str| find(name).and_then(|field| field.value.text()).map(str::to_owned);
        let kind = match kinds::KINDS.iter().find(|kind| text("kind").as_deref() == Some(kind.name)) {
            Some(kind) => kind,
            None => {
                let names: Vec<&str> = kinds::KINDS.iter().map(|kind| kind.name).collect();
                return self.fault(file, node.line, format!("`kind` is none of {}", names.join(", ")));
            }
        };
        let Some(name) = text("name").filter(|name| !name.is_empty() && !name.contains('}')) else {
            return self.fault(file, node.line, "`name` is missing, or no text");
        };
        let workspace = text("workspace");
        match (kind.home, &workspace) {
            (Home::Organisation, Some(_)) => self.fault(file, node.line, format!("a {} is in no workspace", kind.name)),
            (Home::Workspace, None) => self.fault(file, node.line, format!("a {} needs a `workspace`", kind.name)),
            _ => {}
        }
        let spec = match find("spec").map(|field| &field.value.content) {
            Some(Content::Fields(fields)) => fields.as_slice(),
            None => &[],
            Some(_) => return self.fault(file, node.line, "`spec` holds no fields"),
        };
        let address = Address { kind: kind.name, workspace, name };
        let managed = find("manage").map(|field| names_of(&field.value));
        let mut object = Object {
            address: address.clone(),
            file: file.to_owned(),
            line: node.line,
            fields: Map::new(),
            lines: spec.iter().map(|field| (field.name.clone(), field.line)).collect(),
            managed,
        };
        self.fill(&mut object, kind, spec);
        if let Some(first) = self.objects.get(&address) {
            let first = format!("{}:{}", first.file.display(), first.line);
            return self.fault(file, node.line, format!("{address} stands at {first} too"));
        }
        self.objects.insert(address, object);
    }

    fn fill(&mut self, object: &mut Object, kind: &Kind, spec: &[Field]) {
        let file = object.file.clone();
        for field in spec {
            if !kind.fields.contains(&field.name.as_str()) {
                let message =
                    format!("a {} has no field `{}`; it has {}", kind.name, field.name, kind.fields.join(", "));
                self.fault(&file, field.line, message);
                continue;
            }
            let value = self.value(&file, &field.value, Place::of_field(&field.name));
            object.fields.insert(field.name.clone(), value);
        }
        if !object.fields.contains_key("name") {
            // What people call it is what the file calls it, unless it says otherwise.
            object.fields.insert("name".to_owned(), template::escaped(&object.address.name).into());
        }
        for field in kind.required.iter().filter(|field| !object.fields.contains_key(**field)) {
            if object.managed.is_none() {
                self.fault(&file, object.line, format!("a {} needs the field `{field}`", kind.name));
            }
        }
        for field in object.managed.clone().into_iter().flatten() {
            if !object.fields.contains_key(&field) {
                self.fault(&file, object.line, format!("`manage` names `{field}`, and `spec` does not have it"));
            }
        }
        if kind.identity == kinds::Identity::Name && object.fields["name"] != template::escaped(&object.address.name) {
            self.fault(
                &file,
                object.line,
                format!("a {} is known by its name: `name` and `spec.name` differ", kind.name),
            );
        }
    }

    /// A value with its includes, and with its variables unless it is secret.
    fn value(&mut self, file: &Path, node: &Node, place: Place) -> Value {
        match &node.content {
            Content::Scalar(Value::String(text)) if !place.is_secret() => {
                let folder = self.folder.clone();
                match template::with_variables(text, &folder) {
                    Ok(text) => text.into(),
                    Err(message) => {
                        self.fault(file, node.line, message);
                        Value::Null
                    }
                }
            }
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(|item| self.value(file, item, place)).collect(),
            Content::Fields(fields) => {
                let pairs = fields
                    .iter()
                    .map(|field| (field.name.clone(), self.value(file, &field.value, place.inside(&field.name))));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
            Content::Include(path) => self.included(file, node.line, path, place),
        }
    }

    fn included(&mut self, file: &Path, line: usize, path: &str, place: Place) -> Value {
        let folder = file.parent().unwrap_or(Path::new("."));
        let found = folder.join(path).canonicalize();
        let root = self.folder.canonicalize();
        let (Ok(found), Ok(root)) = (found, root) else {
            self.fault(file, line, format!("{path} cannot be read"));
            return Value::Null;
        };
        if !found.starts_with(&root) {
            self.fault(file, line, format!("{path} is outside of the folder"));
            return Value::Null;
        }
        let text = std::fs::read_to_string(&found).unwrap_or_default();
        match yaml::documents(&text) {
            Ok(nodes) if nodes.len() == 1 && !contains_include(&nodes[0]) => self.value(&found, &nodes[0], place),
            Ok(nodes) if nodes.len() == 1 => {
                self.fault(&found, 1, "what is included includes nothing itself");
                Value::Null
            }
            Ok(_) => {
                self.fault(&found, 1, "what is included is one document");
                Value::Null
            }
            Err((line, message)) => {
                self.fault(&found, line, message);
                Value::Null
            }
        }
    }

    /// `${kind:name}` must be in the tree; circles cannot be made in any order.
    fn check_references(&mut self) {
        let mut faults = Vec::new();
        for object in self.objects.values() {
            for (kind, name) in references(&object.fields) {
                let found = template::candidates(kind, &name, object.address.workspace.as_deref());
                if !found.iter().any(|address| self.objects.contains_key(address)) {
                    let line = object.lines.values().min().copied().unwrap_or(object.line);
                    faults.push((object.file.clone(), line, format!("{kind} `{name}` is not in these files")));
                }
            }
            if self.is_in_circle(&object.address) {
                faults.push((
                    object.file.clone(),
                    object.line,
                    format!("{} refers to itself in a circle", object.address),
                ));
            }
        }
        for (file, line, message) in faults {
            self.fault(&file, line, message);
        }
    }

    fn is_in_circle(&self, from: &Address) -> bool {
        let mut pending = self.dependencies(from);
        let mut seen = BTreeSet::new();
        while let Some(address) = pending.pop() {
            if address == *from {
                return true;
            }
            if seen.insert(address.clone()) {
                pending.extend(self.dependencies(&address));
            }
        }
        false
    }

    /// The objects of the tree that an object names, by reference or by slug.
    pub fn dependencies(&self, address: &Address) -> Vec<Address> {
        let Some(object) = self.objects.get(address) else { return Vec::new() };
        let workspace = address.workspace.as_deref();
        let mut found: Vec<Address> = references(&object.fields)
            .into_iter()
            .flat_map(|(kind, name)| template::candidates(kind, &name, workspace))
            .collect();
        let mut texts = BTreeSet::new();
        object.fields.values().for_each(|value| {
            template::each_text(value, &mut |text| {
                texts.insert(text.trim_start_matches('@').split('/').next().unwrap_or_default().to_owned());
            });
        });
        let by_slug = |kind: &&Kind| kind.identity == kinds::Identity::Slug && kind.rank < address.kind().rank;
        for kind in kinds::KINDS.iter().filter(by_slug) {
            found.extend(texts.iter().flat_map(|text| template::candidates(kind.name, text, workspace)));
        }
        found.extend(workspace.map(|name| Address { kind: "workspace", workspace: None, name: name.to_owned() }));
        found.retain(|found| self.objects.contains_key(found));
        found
    }
}

/// A bare file name stands in the current folder.
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn references(fields: &Map<String, Value>) -> BTreeSet<(&'static str, String)> {
    let mut found = BTreeSet::new();
    for value in fields.values() {
        template::each_text(value, &mut |text| {
            found.extend(template::parts(text).into_iter().filter_map(|part| match part {
                Part::Reference(kind, name) => Some((kind, name)),
                _ => None,
            }));
        });
    }
    found
}

fn has_kind(node: &Node) -> bool {
    matches!(&node.content, Content::Fields(fields) if fields.iter().any(|field| field.name == "kind"))
}

fn contains_include(node: &Node) -> bool {
    match &node.content {
        Content::Include(_) => true,
        Content::List(items) => items.iter().any(contains_include),
        Content::Fields(fields) => fields.iter().any(|field| contains_include(&field.value)),
        Content::Scalar(_) => false,
    }
}

fn names_of(node: &Node) -> BTreeSet<String> {
    match &node.content {
        Content::List(items) => items.iter().filter_map(Node::text).map(str::to_owned).collect(),
        _ => BTreeSet::new(),
    }
}

/// Files of YAML and JSON, except hidden ones and the lock, in a stable order.
fn files_under(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in crate::outcome::at_path(&folder, std::fs::read_dir(&folder))? {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name == LOCK_FILE {
                continue;
            }
            if entry.file_type()?.is_dir() {
                pending.push(path);
            } else if [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let tree = Tree::read(folder.path()).unwrap();
        let root = format!("{}/", folder.path().display());
        tree.faults.iter().map(|fault| fault.to_string().replace(&root, "")).collect()
    }

    #[test]
    fn every_fault_is_found_with_its_file_and_line() {
        let text = "kind: config\nworkspace: w\nname: a\nspec:\n  name: A\n  colour: red\n---\nkind: planet\nname: x\n---\nkind: provider\nname: p\nspec: { name: P, integration_id: '${env:NOT_SET_ANYWHERE}' }\n";
        assert_eq!(
            faults(&[("a.yaml", text)]),
            [
                "a.yaml:1: a config needs the field `config`",
                "a.yaml:6: a config has no field `colour`; it has name, config, isDefault",
                &format!(
                    "a.yaml:8: `kind` is none of {}",
                    kinds::KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
                ),
                "a.yaml:11: a provider needs a `workspace`",
                "a.yaml:13: NOT_SET_ANYWHERE is not set",
            ]
        );
    }

    #[test]
    fn references_must_lead_somewhere_and_not_in_a_circle() {
        let child = |name: &str, parent: &str| {
            format!(
                "---\nkind: collection\nworkspace: w\nname: {name}\nspec: {{ parent_collection_id: '${{collection:{parent}}}' }}\n"
            )
        };
        let text = child("a", "b") + &child("b", "a") + &child("c", "none");
        let found = faults(&[("c.yaml", &text)]);
        assert_eq!(
            found,
            [
                "c.yaml:2: collection/w/a refers to itself in a circle",
                "c.yaml:7: collection/w/b refers to itself in a circle",
                "c.yaml:15: collection `none` is not in these files",
            ]
        );
    }

    #[test]
    fn variables_stay_where_secrets_stand_and_one_file_is_not_the_whole() {
        let text = "kind: config\nworkspace: w\nname: a\nspec:\n  config: { targets: [{ api_key: '${env:NOT_SET_ANYWHERE}' }] }\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, text).unwrap();
        let (tree, one) = (Tree::read(folder.path()).unwrap(), Tree::read(&file).unwrap());
        assert!(tree.faults.is_empty(), "{:?}", tree.faults);
        let object = tree.objects.values().next().unwrap();
        assert_eq!(object.fields["config"]["targets"][0]["api_key"], "${env:NOT_SET_ANYWHERE}");
        assert!(tree.is_whole && !one.is_whole && one.folder == folder.path());
        assert_eq!(folder_of(Path::new("a.yaml")), Path::new("."));
        std::fs::write(&file, "other: 1\n").unwrap();
        assert!(Tree::read(&file).is_err() && Tree::read(folder.path()).is_ok());
    }

    #[test]
    fn an_include_stays_in_the_folder() {
        let text = "kind: config\nworkspace: w\nname: a\nspec:\n  config: !include x.json\n";
        assert!(faults(&[("a.yaml", text), ("x.json", "{\"provider\": \"@p\"}")]).is_empty());
        let outside = text.replace("x.json", "../../../../etc/hostname");
        assert_eq!(faults(&[("a.yaml", &outside)]).len(), 1);
    }
}
