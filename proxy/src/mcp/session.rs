//! Sessions: the id that a server gave one, sealed for the key, the server and the workspace that opened it. Any proxy can
//! read it again and nobody else's key can; nothing of a session is kept in a process.

use crate::identity::identify::Principal;
use crate::snapshot::Snapshot;
use http::HeaderValue;
use shared::secrets::seal;
use shared::secrets::seal::Sealer;
use std::sync::Arc;
use uuid::Uuid;

/// The longest id that a server may give; and of all servers of a workspace together.
const MAX_ID: usize = 3 << 10;

pub struct Sessions {
    pub snapshot: Arc<Snapshot>,
    pub sealer: Arc<Sealer>,
}

/// Whose a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOwner {
    organisation: Uuid,
    workspace: Uuid,
    /// The key, or what stands for the tokens of one subject.
    key: Uuid,
    /// The server, or the workspace for all of its servers.
    server: Uuid,
}

impl SessionOwner {
    pub fn new(caller: &Principal, server: Uuid) -> Self {
        Self {
            organisation: caller.workspace.organisation_id.uuid(),
            workspace: caller.workspace.id.uuid(),
            key: caller.key.id.uuid(),
            server,
        }
    }

    fn place(&self) -> Vec<u8> {
        let ids = [self.workspace, self.key, self.server];
        ids.iter().fold(b"mcp session\0".to_vec(), |place, id| [&place[..], id.as_bytes()].concat())
    }
}

impl Sessions {
    /// The id that the client gets. None for one that no server should give, and without a key to seal with.
    pub fn seal(&self, owner: &SessionOwner, id: &[u8]) -> Option<HeaderValue> {
        let data_key = self.snapshot.sealing_key(owner.organisation).filter(|_| id.len() <= MAX_ID)?;
        match self.sealer.seal_elsewhere(&data_key, &owner.place(), id) {
            Ok(sealed) => HeaderValue::try_from(hex::encode(sealed)).ok(),
            Err(error) => {
                tracing::error!(%error, "an MCP session cannot be sealed");
                None
            }
        }
    }

    /// The server's own id; none for what is not this owner's, was altered, or is of no form that we give.
    pub fn open(&self, owner: &SessionOwner, sent: &HeaderValue) -> Option<Vec<u8>> {
        let sealed = hex::decode(sent.as_bytes()).ok()?;
        let data_key = self.snapshot.data_key(&seal::data_key_id(&sealed).ok()?)?;
        if data_key.organisation_id != owner.organisation {
            return None;
        }
        let opened = self.sealer.open_elsewhere(&data_key, &owner.place(), &sealed).ok()?;
        Some(opened.expose().to_vec())
    }
}
