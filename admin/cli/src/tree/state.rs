//! What a gateway holds now: the rows of the kinds in question, and a directory between ids and names.
//!
//! Lists leave contents out, so objects are read one by one, some at a time.

use super::address::Address;
use super::live::with_masks;
use super::template::{self, Part};
use crate::http::{Call, segment};
use crate::kinds::{self, Home, Identity, Kind, Listing};
use crate::outcome::Failure;
use crate::session::Session;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

pub const READS_AT_ONCE: usize = 8;
/// What the organisation's first workspace is called in files: its slug is made by the server.
pub const DEFAULT_WORKSPACE: &str = "default";

#[derive(Debug, Clone)]
pub struct Row {
    pub id: String,
    /// What other objects name it by.
    pub handle: String,
}

#[derive(Debug, Clone)]
pub struct Live {
    pub etag: String,
    /// Templates, with masks.
    pub fields: Map<String, Value>,
    pub changed_at: String,
}

pub struct State<'a> {
    session: &'a Session,
    pub organisation: String,
    /// Id and slug of each workspace, to what files call it.
    workspaces: BTreeMap<String, String>,
    rows: BTreeMap<Address, Row>,
    ambiguous: BTreeSet<Address>,
    /// Ids of objects that every workspace has: what names them says nothing.
    made_by_server: Vec<Value>,
}

impl<'a> State<'a> {
    /// Lists the workspaces and these kinds.
    pub async fn load(
        session: &'a Session,
        kinds: impl IntoIterator<Item = &'static Kind>,
    ) -> Result<State<'a>, Failure> {
        let own = session.client.look_up(Call::get("/api-keys/self")).await?.body;
        let organisation = own["organisation_id"].as_str().unwrap_or_default().to_owned();
        let (workspaces, rows) = (BTreeMap::new(), BTreeMap::new());
        let mut state =
            Self { session, organisation, workspaces, rows, ambiguous: BTreeSet::new(), made_by_server: Vec::new() };
        let found = session.client.look_up_list("/admin/workspaces", &[]).await?;
        for row in &found {
            let slug = text(row, "slug");
            let name = match () {
                () if row["is_default"] == 1 => DEFAULT_WORKSPACE.to_owned(),
                // Another workspace with this slug is known by its id alone.
                () if slug == DEFAULT_WORKSPACE => text(row, "id"),
                () => slug.clone(),
            };
            state.workspaces.insert(text(row, "id"), name.clone());
            if row["is_default"] == 1 || slug != DEFAULT_WORKSPACE {
                state.workspaces.insert(slug.clone(), name.clone());
            }
            state.rows.insert(
                Address { kind: "workspace", workspace: None, name },
                Row { id: text(row, "id"), handle: slug },
            );
        }
        let ids: BTreeSet<String> = found.iter().map(|row| text(row, "id")).collect();
        // A workspace's key sees nothing that is the organisation's alone.
        let is_of_workspace = own["workspace_id"].is_string();
        let is_seen =
            |kind: &&'static Kind| kind.name != "workspace" && !(is_of_workspace && kind.home == Home::Organisation);
        for kind in kinds.into_iter().filter(is_seen) {
            state.list(kind, &ids).await?;
        }
        Ok(state)
    }

    async fn list(&mut self, kind: &'static Kind, workspaces: &BTreeSet<String>) -> Result<(), Failure> {
        let client = &self.session.client;
        let mut rows = Vec::new();
        if kind.listing == Listing::OneWorkspace {
            for workspace in workspaces {
                rows.extend(client.look_up_list(kind.path, &[("workspace_id".to_owned(), workspace.clone())]).await?);
            }
        } else {
            rows = client.look_up_list(kind.path, &[]).await?;
        }
        // Keys of people and of the organisation are nobody's to write into a file.
        rows.retain(|row| kind.name != "api-key" || row["type"] == "workspace-service");
        // Labels that every workspace has are the server's, and so is the collection that each workspace begins with.
        let is_servers =
            |row: &Value| row["is_universal"] == true || (kind.name == "collection" && row["is_default"] == 1);
        self.made_by_server.extend(rows.iter().filter(|row| is_servers(row)).map(|row| row["id"].clone()));
        rows.retain(|row| !is_servers(row));
        for row in rows {
            let workspace =
                ["workspace_id", "prompt_owning_workspace_id"].iter().find_map(|field| row[*field].as_str());
            let workspace = workspace.map(|id| self.workspaces.get(id).cloned().unwrap_or_else(|| id.to_owned()));
            let address = Address { kind: kind.name, workspace, name: text(&row, kind.identity_field()) };
            let handle = if row["slug"].is_string() { text(&row, "slug") } else { text(&row, "id") };
            if self.rows.insert(address.clone(), Row { id: text(&row, "id"), handle }).is_some() {
                self.ambiguous.insert(address);
            }
        }
        Ok(())
    }

    /// What files call the workspace that a person named by slug or id.
    pub fn workspace_name(&self, named: &str) -> Option<&str> {
        let is_name = self.workspaces.values().find(|name| *name == named);
        self.workspaces.get(named).or(is_name).map(String::as_str)
    }

    pub fn find(&self, address: &Address) -> Result<Option<&Row>, Failure> {
        if self.ambiguous.contains(address) {
            return Err(Failure::new(format!("several objects are called {address}: rename all but one")));
        }
        Ok(self.rows.get(&self.canonical(address)))
    }

    /// The address with the workspace's name in files, whatever it was called by.
    pub fn canonical(&self, address: &Address) -> Address {
        let mut address = address.clone();
        if let Some(name) = address.workspace.as_deref().and_then(|named| self.workspace_name(named)) {
            address.workspace = Some(name.to_owned());
        }
        if address.kind == "workspace"
            && let Some(name) = self.workspace_name(&address.name)
        {
            address.name = name.to_owned();
        }
        address
    }

    pub fn insert(&mut self, address: Address, row: Row) {
        self.rows.insert(address, row);
    }

    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.rows.keys()
    }

    pub fn is_ambiguous(&self, address: &Address) -> bool {
        self.ambiguous.contains(address)
    }

    /// Reads objects, some at a time. What is gone by now is left out.
    pub async fn read(&self, addresses: Vec<Address>) -> Result<BTreeMap<Address, Live>, Failure> {
        let reads = addresses.into_iter().filter_map(|address| {
            let row = self.rows.get(&self.canonical(&address))?.clone();
            Some(async move {
                let kind = address.kind();
                let call = Call::get(format!("{}/{}", kind.path, segment(&row.id)));
                let Some(found) = self.session.client.look_up_if_there(call).await? else { return Ok(None) };
                let live = self.template(kind, &address, &found.body);
                Ok::<_, Failure>(Some((address, Live { etag: found.etag, ..live })))
            })
        });
        let found: Vec<Option<(Address, Live)>> =
            stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// An object as the API shows it, with names in place of ids.
    fn template(&self, kind: &Kind, address: &Address, body: &Value) -> Live {
        let fields = body.as_object().map(|live| with_masks(kind, live)).unwrap_or_default();
        let own = fields.into_iter().filter(|(_, value)| !self.made_by_server.contains(value));
        let named = own.map(|(field, value)| (field, self.named(&value, address, true))).collect();
        Live { etag: String::new(), fields: named, changed_at: text(body, "last_updated_at") }
    }

    /// Ids, and slugs that the server made, as references; everything else stands for itself.
    pub fn named(&self, value: &Value, address: &Address, is_plain: bool) -> Value {
        let mut change = |text: &str| {
            let escaped = if is_plain { template::escaped(text) } else { text.to_owned() };
            Ok::<String, ()>(self.with_references(&escaped, address))
        };
        template::map_texts(value, &mut change).unwrap_or_default()
    }

    fn with_references(&self, text: &str, address: &Address) -> String {
        // Ids are long, and generated slugs have a hyphen: short texts name nothing.
        if text.len() < 5 || !text.contains('-') {
            return text.to_owned();
        }
        let mut changed = text.to_owned();
        for (found, row) in &self.rows {
            let is_near = found.workspace.is_none() || found.workspace == address.workspace;
            if found == address || !is_near || found.name.contains('}') || self.ambiguous.contains(found) {
                continue;
            }
            let reference = || format!("${{{}:{}}}", found.kind, found.name);
            if changed == row.id {
                return reference();
            }
            if found.kind().identity == Identity::Name && row.handle != row.id && changed.contains(&row.handle) {
                changed = changed.replace(&row.handle, &reference());
            }
        }
        changed
    }

    /// Fills references, and variables of secret fields. The answer is what is sent.
    pub fn filled(&self, value: &Value, address: &Address, folder: &std::path::Path) -> Result<Value, Failure> {
        let mut fill = |text: &str| {
            let fill_part = |part: Part| match &part {
                Part::Reference(kind, name) => {
                    let found = template::candidates(kind, name, address.workspace.as_deref());
                    let row = found.iter().find_map(|address| self.rows.get(address));
                    row.map(|row| row.handle.clone())
                        .ok_or_else(|| Failure::new(format!("{address}: there is no {kind} `{name}`")))
                }
                part => template::variable_value(part, folder).map_err(|why| Failure::new(format!("{address}: {why}"))),
            };
            template::parts(text).into_iter().map(fill_part).collect::<Result<String, Failure>>()
        };
        template::map_texts(value, &mut fill)
    }

    /// Id of the workspace that files call so.
    pub fn workspace_id(&self, name: &str) -> Option<&str> {
        let address = Address { kind: "workspace", workspace: None, name: name.to_owned() };
        self.rows.get(&address).map(|row| row.id.as_str())
    }
}

fn text(row: &Value, field: &str) -> String {
    row[field].as_str().unwrap_or_default().to_owned()
}

/// All kinds of files.
pub fn all_kinds() -> impl Iterator<Item = &'static Kind> {
    kinds::KINDS.iter()
}
