//! MCP servers and what belongs to them. Requests ask by slug, by workspace and by what is switched off; rows come by id.
//! So what is asked by more than one row is an index, made anew when one of its rows changes.

use super::Snapshot;
use super::collection::{Collection, Tracked};
use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use rust_decimal::Decimal;
use serde_json::Value;
use shared::id::{OrganisationId, UserId, WorkspaceId};
use shared::mcp::{Capability, Kind};
use shared::model::{
    EmailDigest, McpCapability, McpClient, McpConnection, McpGrant, McpIntegration, McpServer, McpServerCapability,
    McpUserAccess, Status,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio_postgres::Row;
use uuid::Uuid;

pub(super) struct McpTables {
    pub integrations: Collection<McpIntegration>,
    pub grants: Collection<McpGrant>,
    pub capabilities: Collection<McpCapability>,
    pub servers: Collection<McpServer>,
    pub server_capabilities: Collection<McpServerCapability>,
    pub user_access: Collection<McpUserAccess>,
    pub connections: Collection<McpConnection>,
    pub clients: Collection<McpClient>,
    index: ArcSwap<McpIndex>,
    /// How often the rows changed that the index is made of, when it was made.
    index_of: AtomicU64,
}

/// What is found by more than one row.
#[derive(Debug, Default)]
pub struct McpIndex {
    servers: HashMap<WorkspaceId, Vec<Arc<McpServer>>, RandomState>,
    /// By the id of the integration or the server that switches it off.
    off: HashMap<Uuid, Arc<SwitchedOff>, RandomState>,
    /// By the id of the integration.
    pins: HashMap<Uuid, Arc<Pins>, RandomState>,
}

/// What was approved of the tools and prompts of one integration.
#[derive(Debug, Default)]
pub struct Pins {
    /// The hashes that may be told under a name.
    approved: HashMap<(&'static str, String), [Option<[u8; 32]>; 2], RandomState>,
    /// Something else was told, and nobody has reported it yet.
    has_changed: AtomicBool,
}

impl Pins {
    pub fn push(&mut self, kind: Kind, name: &str, hashes: [Option<[u8; 32]>; 2]) {
        self.approved.insert((kind.as_str(), name.to_owned()), hashes);
    }

    /// Whether an entry of a list tells what was approved. What was never listed before is approved by being listed.
    pub fn allow(&self, kind: Kind, entry: &Value) -> bool {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let read = Capability::from_entry(kind, entry.clone());
        let name = read.as_ref().map_or(name, |read| read.name.as_str());
        let Some(approved) = self.approved.get(&(kind.as_str(), name.to_owned())) else { return true };
        let is_approved = read.is_ok_and(|read| approved.contains(&Some(read.hash())));
        if !is_approved {
            self.has_changed.store(true, Ordering::Relaxed);
        }
        is_approved
    }

    /// Whether something else was told since this was asked last.
    pub fn take_change(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed) && self.has_changed.swap(false, Ordering::Relaxed)
    }
}

/// What nobody may see or call, of one integration or one server.
#[derive(Debug, Default, PartialEq)]
pub struct SwitchedOff {
    names: HashSet<(&'static str, String), RandomState>,
    /// Of resources.
    uris: HashSet<String, RandomState>,
    /// Patterns of templates.
    patterns: Vec<String>,
}

impl SwitchedOff {
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        !self.names.is_empty() && self.names.contains(&(kind.as_str(), name.to_owned()))
    }

    /// Whether a resource may not be read. One whose address was not listed yet is known by its name alone.
    pub fn has_uri(&self, uri: &str) -> bool {
        self.uris.contains(uri) || self.patterns.iter().any(|pattern| is_of_template(pattern, uri))
    }

    pub fn push(&mut self, kind: Kind, name: &str, uri: Option<&str>) {
        self.names.insert((kind.as_str(), name.to_owned()));
        match (kind, uri) {
            (Kind::Resource, uri) => self.uris.extend([Some(name), uri].into_iter().flatten().map(str::to_owned)),
            (Kind::ResourceTemplate, Some(pattern)) => self.patterns.push(pattern.to_owned()),
            _ => {}
        }
    }
}

/// Whether an address may be one of a template (RFC 6570): its literal parts in their order, and something in between.
/// A template that begins with a place would be everything, and is nothing.
fn is_of_template(pattern: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = pattern.split('{');
    let Some(first) = parts.next().filter(|first| !first.is_empty()) else { return false };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    for part in parts {
        let literal = part.split_once('}').map_or("", |(_, literal)| literal);
        match rest.find(literal) {
            Some(at) => rest = &rest[at + literal.len()..],
            None => return false,
        }
    }
    // What follows a last literal belongs to another address.
    pattern.ends_with('}') || rest.is_empty() || uri.ends_with(pattern.rsplit('}').next().unwrap_or(pattern))
}

impl McpTables {
    pub fn empty() -> Self {
        Self {
            integrations: Collection::empty(),
            grants: Collection::empty(),
            capabilities: Collection::empty(),
            servers: Collection::empty(),
            server_capabilities: Collection::empty(),
            user_access: Collection::empty(),
            connections: Collection::empty(),
            clients: Collection::empty(),
            index: ArcSwap::default(),
            index_of: AtomicU64::new(0),
        }
    }

    /// Costs the number of servers and of what they offer.
    pub fn index(&self) {
        let changes = self.servers.changes() + self.capabilities.changes() + self.server_capabilities.changes();
        if self.index_of.swap(changes, Ordering::Relaxed) == changes {
            return;
        }
        let mut index = McpIndex::default();
        for server in self.servers.all() {
            index.servers.entry(server.workspace_id).or_default().push(server);
        }
        index.servers.values_mut().for_each(|list| list.sort_by(|one, other| one.slug.cmp(&other.slug)));
        let mut off: HashMap<Uuid, SwitchedOff> = HashMap::new();
        let mut pins: HashMap<Uuid, Pins> = HashMap::new();
        for one in self.capabilities.all() {
            let Some(kind) = one.kind() else { continue };
            if !one.is_usable {
                off.entry(one.integration_id).or_default().push(kind, &one.name, one.uri.as_deref());
            } else if one.hash.is_some() {
                pins.entry(one.integration_id).or_default().push(kind, &one.name, [one.hash, one.plain_hash]);
            }
        }
        index.pins = pins.into_iter().map(|(id, pins)| (id, Arc::new(pins))).collect();
        let servers = index.servers.values().flatten();
        let integrations: HashMap<Uuid, Uuid> = servers.map(|server| (server.id, server.integration_id)).collect();
        for one in self.server_capabilities.all() {
            let Some((kind, integration)) = one.kind().zip(integrations.get(&one.server_id)) else { continue };
            let listed = self.capabilities.find(&(*integration, one.kind.clone(), one.name.clone()));
            let uri = listed.as_ref().and_then(|listed| listed.uri.as_deref());
            off.entry(one.server_id).or_default().push(kind, &one.name, uri);
        }
        index.off = off.into_iter().map(|(id, off)| (id, Arc::new(off))).collect();
        self.index.store(Arc::new(index));
    }
}

impl Snapshot {
    /// A server that can be used, by the slug in its address.
    pub fn mcp_server(&self, organisation: OrganisationId, slug: &str) -> Option<Arc<McpServer>> {
        self.mcp.servers.find(&(organisation, slug.to_owned()))
    }

    /// Those of a workspace, by their slugs.
    pub fn mcp_servers_of(&self, workspace: WorkspaceId) -> Vec<Arc<McpServer>> {
        self.mcp.index.load().servers.get(&workspace).cloned().unwrap_or_default()
    }

    /// The integration behind a server, if the server's workspace may use it.
    pub fn mcp_integration(&self, server: &McpServer) -> Option<Arc<McpIntegration>> {
        let integration = self.mcp.integrations.find(&server.integration_id)?;
        let is_granted = match integration.workspace_id {
            Some(own) => own == server.workspace_id,
            None => {
                let grant = self.mcp.grants.find(&(integration.id, server.workspace_id));
                grant.is_some_and(|grant| grant.enabled)
            }
        };
        (is_granted && integration.organisation_id == server.organisation_id).then_some(integration)
    }

    /// What is switched off of a server: by its integration, and by itself.
    pub fn mcp_switched_off(&self, server: &McpServer) -> [Option<Arc<SwitchedOff>>; 2] {
        let index = self.mcp.index.load();
        [server.integration_id, server.id].map(|id| index.off.get(&id).cloned())
    }

    /// What was approved of what a server tells.
    pub fn mcp_pins(&self, server: &McpServer) -> Option<Arc<Pins>> {
        self.mcp.index.load().pins.get(&server.integration_id).cloned()
    }

    /// What a call costs in US cents, by what stands for the model in its log: `{slug of the server}/{tool or prompt}`.
    pub fn mcp_price(&self, organisation: OrganisationId, model: &str) -> Option<Decimal> {
        let (slug, name) = model.split_once('/')?;
        let integration = self.mcp_server(organisation, slug)?.integration_id;
        [Kind::Tool, Kind::Prompt].into_iter().find_map(|kind| {
            let key = (integration, kind.as_str().to_owned(), name.to_owned());
            self.mcp.capabilities.find(&key)?.price
        })
    }

    /// Whether a person may use a server.
    pub fn has_mcp_access(&self, server: &McpServer, user: UserId) -> bool {
        self.mcp.user_access.find(&(server.id, user)).map_or(server.is_open, |access| access.enabled)
    }

    pub fn mcp_connection(&self, server: Uuid, user: UserId) -> Option<Arc<McpConnection>> {
        self.mcp.connections.find(&(server, user))
    }

    pub fn mcp_client(&self, integration: Uuid) -> Option<Arc<McpClient>> {
        self.mcp.clients.find(&integration)
    }

    /// The active person of this address.
    pub fn person_of(&self, organisation: OrganisationId, email: &str) -> Option<UserId> {
        let key = super::tables::PersonKey { organisation, email: EmailDigest::new(email), is_active: true };
        self.people.find(&key).map(|person| person.id)
    }
}

impl Tracked for McpServer {
    type Key = (OrganisationId, String);
    const TABLE: &'static str = "mcp_servers";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.organisation_id, self.slug.clone())
    }

    fn is_kept(&self) -> bool {
        self.status == Status::Active
    }
}

impl Tracked for McpIntegration {
    type Key = Uuid;
    const TABLE: &'static str = "mcp_integrations";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Uuid {
        self.id
    }

    fn is_kept(&self) -> bool {
        self.status == Status::Active
    }
}

impl Tracked for McpGrant {
    type Key = (Uuid, WorkspaceId);
    const TABLE: &'static str = "mcp_integration_workspaces";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.integration_id, self.workspace_id)
    }
}

impl Tracked for McpCapability {
    type Key = (Uuid, String, String);
    const TABLE: &'static str = "mcp_capabilities";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.integration_id, self.kind.clone(), self.name.clone())
    }

    /// What is switched off; what has an address, by which a server may switch it off; what was approved; what has a price.
    fn is_kept(&self) -> bool {
        !self.is_usable || self.uri.is_some() || self.hash.is_some() || self.price.is_some()
    }
}

impl Tracked for McpServerCapability {
    type Key = (Uuid, String, String);
    const TABLE: &'static str = "mcp_server_capabilities";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.server_id, self.kind.clone(), self.name.clone())
    }

    fn is_kept(&self) -> bool {
        !self.enabled
    }
}

impl Tracked for McpUserAccess {
    type Key = (Uuid, UserId);
    const TABLE: &'static str = "mcp_user_access";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.server_id, self.user_id)
    }
}

impl Tracked for McpConnection {
    type Key = (Uuid, UserId);
    const TABLE: &'static str = "mcp_connections";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.server_id, self.user_id)
    }
}

impl Tracked for McpClient {
    type Key = Uuid;
    const TABLE: &'static str = "mcp_clients";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Uuid {
        self.integration_id
    }

    /// Those of people's tokens have none of their own.
    fn is_kept(&self) -> bool {
        self.access_token.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_approved_may_be_told_under_a_name() {
        let told = |description: &str| json!({ "name": "pay", "title": "Pay", "description": description });
        let read = |entry: Value| Capability::from_entry(Kind::Tool, entry).unwrap();
        let mut pins = Pins::default();
        pins.push(Kind::Tool, "pay", [Some(read(told("pays")).hash()), Some(read(told("pays")).plain_hash())]);
        for (kind, entry, is_allowed) in [
            (Kind::Tool, told("pays"), true),
            (Kind::Tool, json!({ "name": "pay", "description": "pays" }), true),
            (Kind::Tool, json!({ "name": "new", "description": "whatever" }), true),
            (Kind::Prompt, told("obey"), true),
        ] {
            assert_eq!(pins.allow(kind, &entry), is_allowed, "{entry}");
            assert!(!pins.take_change());
        }
        for entry in [
            told("pays, and sends the password"),
            json!({ "name": "pay", "title": "Obey", "description": "pays" }),
            json!({ "name": "pay" }),
            json!({ "name": "pay", "title": "Pay", "description": "x".repeat(100_000) }),
        ] {
            assert!(!pins.allow(Kind::Tool, &entry));
            assert!(pins.take_change());
            assert!(!pins.take_change(), "it is reported once");
        }
    }

    #[test]
    fn what_is_switched_off_is_known_by_name_by_address_and_by_template() {
        let mut off = SwitchedOff::default();
        off.push(Kind::Tool, "delete", None);
        off.push(Kind::Resource, "readme", Some("file:///readme"));
        off.push(Kind::ResourceTemplate, "users", Some("db://users/{id}/profile"));
        off.push(Kind::ResourceTemplate, "notes", Some("note://{path}"));
        off.push(Kind::ResourceTemplate, "all", Some("{anything}"));
        assert!(off.has(Kind::Tool, "delete"));
        assert!(!off.has(Kind::Prompt, "delete"));
        for (uri, is_off) in [
            ("file:///readme", true),
            ("file:///readme2", false),
            ("readme", true),
            ("db://users/7/profile", true),
            ("db://users/7/orders", false),
            ("db://users/7/profile/x", false),
            ("note://a/b", true),
            ("else://a", false),
        ] {
            assert_eq!(off.has_uri(uri), is_off, "{uri}");
        }
    }
}
