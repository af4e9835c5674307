//! MCP servers and what belongs to them. Requests ask by slug, by workspace and by what is switched off; rows come by id.
//! So what is asked by more than one row is an index, made anew when one of its rows changes.

mod pins;
mod rows;
mod switched_off;

pub use pins::Pins;
pub use switched_off::SwitchedOff;

use super::Snapshot;
use super::collection::Collection;
use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use rust_decimal::Decimal;
use shared::mcp::Kind;
use shared::model::id::{OrganisationId, UserId, WorkspaceId};
use shared::model::{
    EmailDigest, McpCapability, McpClient, McpConnection, McpGrant, McpIntegration, McpServer, McpServerCapability,
    McpUserAccess,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
        // What lists told otherwise stays known for as long as the same is approved.
        let before = self.index.load();
        let pins = pins.into_iter().map(|(id, pins)| match before.pins.get(&id).filter(|known| known.is_same(&pins)) {
            Some(known) => (id, known.clone()),
            None => (id, Arc::new(pins)),
        });
        index.pins = pins.collect();
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
