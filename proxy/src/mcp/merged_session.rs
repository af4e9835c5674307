//! The session of a merged server: the sessions of all servers behind it, by their slugs. It travels with the client, sealed
//! like any other, so that no process keeps it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MergedSession {
    /// None for a server that knows no sessions. One that is missing was away when the session was opened, or its id was
    /// too long to go along.
    servers: BTreeMap<String, Option<String>>,
}

impl MergedSession {
    /// Ids that together are longer than this many bytes do not go along.
    const ROOM: usize = 2 << 10;

    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn add(&mut self, slug: &str, id: Option<String>) {
        let length = |slug: &str, id: &Option<String>| slug.len() + id.as_ref().map_or(4, String::len) + 8;
        let used: usize = self.servers.iter().map(|(slug, id)| length(slug, id)).sum();
        if used + length(slug, &id) <= Self::ROOM {
            self.servers.insert(slug.to_owned(), id);
        }
    }

    /// The session at a server, if it was opened there; the inner none is a server without sessions.
    pub fn at(&self, slug: &str) -> Option<Option<&str>> {
        self.servers.get(slug).map(Option::as_deref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_stays_behind() {
        let mut session = MergedSession::default();
        session.add("a", Some("1".into()));
        session.add("b", None);
        session.add("long", Some("x".repeat(3000)));
        let read = MergedSession::read(&session.write()).unwrap();
        assert_eq!(
            (read.at("a"), read.at("b"), read.at("long"), read.at("c")),
            (Some(Some("1")), Some(None), None, None)
        );
        assert_eq!(MergedSession::read(b"rubbish"), None);
    }
}
