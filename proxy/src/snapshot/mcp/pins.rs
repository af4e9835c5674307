//! What was approved of tools and prompts, by which lists are judged as they pass.

use foldhash::fast::RandomState;
use serde_json::Value;
use shared::mcp::{Capability, Kind};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

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
}
