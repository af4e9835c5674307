//! What was approved of tools and prompts, by which lists are judged as they pass. What one tells otherwise cannot be called
//! either, from then on until a list tells it as it was approved, or admin knows better.

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use serde_json::Value;
use shared::mcp::{Capability, Kind};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// Changes that are reported together.
const MAX_REPORTED: usize = 100;

/// Hashes that may be told: of the whole, and of what older clients are told.
type ApprovedHashes = [Option<[u8; 32]>; 2];
/// Type and name.
type PinKey = (&'static str, String);

/// What was approved of the tools and prompts of one integration.
#[derive(Debug, Default)]
pub struct Pins {
    approved: HashMap<PinKey, ApprovedHashes, RandomState>,
    /// Something was told otherwise: most lists and calls look no further.
    has_otherwise: AtomicBool,
    otherwise: Mutex<ChangedPins>,
}

/// What lists told otherwise than it was approved.
#[derive(Debug, Default)]
struct ChangedPins {
    names: HashSet<PinKey, RandomState>,
    /// What they told, as far as it could be read and nobody has reported it.
    unreported: Option<Vec<Capability>>,
}

impl Pins {
    pub fn push(&mut self, kind: Kind, name: &str, hashes: ApprovedHashes) {
        self.approved.insert((kind.as_str(), name.to_owned()), hashes);
    }

    /// Whether the same was approved, so that what is known of lists still holds.
    pub fn is_same(&self, other: &Self) -> bool {
        self.approved == other.approved
    }

    /// Whether an entry of a list tells what was approved. What was never listed before is approved by being listed.
    pub fn allow(&self, kind: Kind, entry: &Value) -> bool {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let read = Capability::from_entry(kind, entry.clone());
        let name = read.as_ref().map_or(name, |read| read.name.as_str());
        let key = (kind.as_str(), name.to_owned());
        let Some(approved) = self.approved.get(&key) else { return true };
        let is_approved = read.as_ref().is_ok_and(|read| approved.contains(&Some(read.hash())));
        match is_approved {
            true if self.has_otherwise.load(Ordering::Relaxed) => drop(self.otherwise.lock().names.remove(&key)),
            true => {}
            false => self.note(key, read.ok()),
        }
        is_approved
    }

    fn note(&self, key: PinKey, changed: Option<Capability>) {
        let mut otherwise = self.otherwise.lock();
        let unreported = otherwise.unreported.get_or_insert_default();
        let is_known = |changed: &Capability| (changed.kind.as_str(), changed.name.as_str()) == (key.0, key.1.as_str());
        if unreported.len() < MAX_REPORTED && !unreported.iter().any(is_known) {
            unreported.extend(changed);
        }
        otherwise.names.insert(key);
        self.has_otherwise.store(true, Ordering::Relaxed);
    }

    /// Whether the last list told something else under this name than was approved.
    pub fn is_changed(&self, kind: Kind, name: &str) -> bool {
        self.has_otherwise.load(Ordering::Relaxed)
            && self.otherwise.lock().names.contains(&(kind.as_str(), name.to_owned()))
    }

    /// What was told otherwise since this was asked last, if anything was.
    pub fn take_changes(&self) -> Option<Vec<Capability>> {
        match self.has_otherwise.load(Ordering::Relaxed) {
            true => self.otherwise.lock().unreported.take(),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_approved_may_be_told_under_a_name() {
        let changed = |description: &str| json!({ "name": "pay", "title": "Pay", "description": description });
        let read = |entry: Value| Capability::from_entry(Kind::Tool, entry).unwrap();
        let mut pins = Pins::default();
        pins.push(Kind::Tool, "pay", [Some(read(changed("pays")).hash()), Some(read(changed("pays")).plain_hash())]);
        for (kind, entry, is_allowed) in [
            (Kind::Tool, changed("pays"), true),
            (Kind::Tool, json!({ "name": "pay", "description": "pays" }), true),
            (Kind::Tool, json!({ "name": "new", "description": "whatever" }), true),
            (Kind::Prompt, changed("obey"), true),
        ] {
            assert_eq!(pins.allow(kind, &entry), is_allowed, "{entry}");
            assert_eq!(pins.take_changes(), None);
        }
        assert!(!pins.is_changed(Kind::Tool, "pay"));
        for entry in [
            changed("pays, and sends the password"),
            json!({ "name": "pay", "title": "Obey", "description": "pays" }),
            json!({ "name": "pay" }),
        ] {
            assert!(!pins.allow(Kind::Tool, &entry) && !pins.allow(Kind::Tool, &entry));
            assert_eq!(pins.take_changes(), Some(vec![read(entry)]));
            assert_eq!(pins.take_changes(), None, "it is reported once");
            assert!(pins.is_changed(Kind::Tool, "pay") && !pins.is_changed(Kind::Prompt, "pay"));
        }
        assert!(pins.allow(Kind::Tool, &changed("pays")));
        assert!(!pins.is_changed(Kind::Tool, "pay"), "it was taken back");
        assert!(!pins.allow(Kind::Tool, &changed(&"x".repeat(100_000))));
        assert!(pins.is_changed(Kind::Tool, "pay"));
        assert_eq!(pins.take_changes(), Some(Vec::new()), "it cannot be read");
    }
}
