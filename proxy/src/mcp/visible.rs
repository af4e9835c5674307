//! Which servers a caller has, and what of them it may see. What is not the caller's does not exist, whoever else has it.

use super::client_message::Asked;
use super::json_rpc::{Fault, INVALID_PARAMS, RESOURCE_NOT_FOUND};
use crate::identity::identify::Principal;
use crate::snapshot::{Pins, Snapshot, SwitchedOff};
use serde_json::Value;
use shared::mcp::{Capability, Kind};
use shared::model::id::UserId;
use shared::model::{McpIntegration, McpServer};
use std::sync::Arc;

/// A server that a caller may use, and what stands behind it.
#[derive(Debug, Clone)]
pub struct McpTarget {
    pub server: Arc<McpServer>,
    pub integration: Arc<McpIntegration>,
    pub visible: Visible,
}

impl McpTarget {
    /// None for a server that does not exist, is another workspace's, is switched off for it, or closed to this person.
    pub fn find(snapshot: &Snapshot, caller: &Principal, user: Option<UserId>, slug: &str) -> Option<Self> {
        let server = snapshot.mcp_server(caller.workspace.organisation_id, slug)?;
        Self::of_server(snapshot, caller, user, server)
    }

    /// All servers of the caller's workspace that it may use, by their slugs.
    pub fn all(snapshot: &Snapshot, caller: &Principal, user: Option<UserId>) -> Vec<Self> {
        let servers = snapshot.mcp_servers_of(caller.workspace.id).into_iter();
        servers.filter_map(|server| Self::of_server(snapshot, caller, user, server)).collect()
    }

    /// Whether both lead to the same address with the same settings, and the same of it may be seen.
    pub fn is_same(&self, other: &Self) -> bool {
        let place = |target: &Self| (target.server.id, target.integration.id, target.integration.url.clone());
        place(self) == place(other)
            && self.integration.configurations == other.integration.configurations
            && self.visible.is_same(&other.visible)
    }

    fn of_server(
        snapshot: &Snapshot,
        caller: &Principal,
        user: Option<UserId>,
        server: Arc<McpServer>,
    ) -> Option<Self> {
        if server.workspace_id != caller.workspace.id {
            return None;
        }
        // Keys that are no person's are given by the workspace itself.
        if user.is_some_and(|user| !snapshot.has_mcp_access(&server, user)) {
            return None;
        }
        let integration = snapshot.mcp_integration(&server)?;
        let visible = Visible { off: snapshot.mcp_switched_off(&server), pins: snapshot.mcp_pins(&server) };
        Some(Self { server, integration, visible })
    }
}

/// The person that a caller is, if it is one: the owner of its key, or whom its token names.
pub fn person(snapshot: &Snapshot, caller: &Principal) -> Option<UserId> {
    let named = || caller.token.as_ref().and_then(|token| token.person.as_deref());
    caller.key.user_id.or_else(|| snapshot.person_of(caller.workspace.organisation_id, named()?))
}

/// What of a server may be seen and called: everything but what its integration or itself switches off. What its lists tell
/// otherwise than it was approved is not seen either.
#[derive(Debug, Clone, Default)]
pub struct Visible {
    off: [Option<Arc<SwitchedOff>>; 2],
    pins: Option<Arc<Pins>>,
}

impl Visible {
    /// Whether the same may be seen.
    pub fn is_same(&self, other: &Self) -> bool {
        let are_pinned_alike = match (&self.pins, &other.pins) {
            (Some(own), Some(other)) => own.is_same(other),
            (own, other) => own.is_none() && other.is_none(),
        };
        are_pinned_alike && self.off == other.off
    }

    /// Whether lists may be passed on unread.
    pub fn is_everything(&self) -> bool {
        self.off.iter().all(Option::is_none) && self.pins.is_none()
    }

    /// Whether an entry of a list tells what was approved.
    pub fn allows(&self, kind: Kind, entry: &Value) -> bool {
        self.pins.as_ref().is_none_or(|pins| Capability::is_plain(entry) && pins.allow(kind, entry))
    }

    /// What lists told otherwise than it was approved, for the first to ask.
    pub fn take_changes(&self) -> Option<Vec<Capability>> {
        self.pins.as_ref().and_then(|pins| pins.take_changes())
    }

    /// Whether something of this name may be called or read about: it is there, and was last told as it was approved.
    fn may_call(&self, kind: Kind, name: &str) -> bool {
        self.has(kind, name) && !self.pins.as_ref().is_some_and(|pins| pins.is_changed(kind, name))
    }

    pub fn has(&self, kind: Kind, name: &str) -> bool {
        !self.off.iter().flatten().any(|off| off.has(kind, name))
    }

    pub fn has_uri(&self, uri: &str) -> bool {
        !self.off.iter().flatten().any(|off| off.has_uri(uri))
    }

    /// As the server itself would answer for something that it does not have.
    pub fn judge(&self, asked: &Asked) -> Result<(), Fault> {
        let unknown = |what: &str, name: &str| Err(Fault::new(INVALID_PARAMS, format!("Unknown {what}: {name}")));
        match asked {
            Asked::Invalid(why) => Err(Fault::new(INVALID_PARAMS, why.clone())),
            Asked::Tool(name) if !self.may_call(Kind::Tool, name) => unknown("tool", name),
            Asked::Prompt(name) | Asked::About(Kind::Prompt, name) if !self.may_call(Kind::Prompt, name) => {
                unknown("prompt", name)
            }
            Asked::Resource(uri) | Asked::About(Kind::Resource | Kind::ResourceTemplate, uri) if !self.has_uri(uri) => {
                Err(Fault::new(RESOURCE_NOT_FOUND, format!("Resource not found: {uri}")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) fn without(off: SwitchedOff) -> Visible {
    Visible { off: [Some(Arc::new(off)), None], pins: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_off_is_answered_as_if_it_did_not_exist() {
        let mut off = SwitchedOff::default();
        off.push(Kind::Tool, "delete", None);
        off.push(Kind::Resource, "secret", Some("a://secret"));
        let visible = without(off);
        for (asked, code) in [
            (Asked::Tool("delete".into()), Some(INVALID_PARAMS)),
            (Asked::Tool("echo".into()), None),
            (Asked::Prompt("delete".into()), None),
            (Asked::Resource("a://secret".into()), Some(RESOURCE_NOT_FOUND)),
            (Asked::About(Kind::Resource, "a://secret".into()), Some(RESOURCE_NOT_FOUND)),
            (Asked::Other, None),
        ] {
            assert_eq!(visible.judge(&asked).err().map(|fault| fault.code), code, "{asked:?}");
        }
    }
}
