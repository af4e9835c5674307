//! Bodies that are stored together: compressed one by one, put behind each other by workspace and hour. Held in memory, so
//! whoever fills it stops at `is_full`; a pack is stored by one request, of which a store shows all or nothing.

use chrono::{DateTime, Timelike as _, Utc};
use shared::db::request_logs::bodies::MovedBodies;
use shared::log_store::{body_path, pack_path, packed_key};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use uuid::Uuid;

/// Calls of one set, however short they are: what is said about each of them takes memory too.
const MAX_CALLS: usize = 10_000;

/// Whose calls of which hour lie together: one prefix of the store.
type PackOwner = (Uuid, Uuid, DateTime<Utc>);

#[derive(Debug, Default)]
pub struct PackSet {
    packs: BTreeMap<PackOwner, Pack>,
    bytes: usize,
    calls: usize,
}

#[derive(Debug, Default)]
struct Pack {
    frames: Vec<u8>,
    calls: Vec<PackedCall>,
}

#[derive(Debug, Clone)]
struct PackedCall {
    id: Uuid,
    created_at: DateTime<Utc>,
    range: Range<usize>,
}

/// A pack under its name.
#[derive(Debug)]
pub struct NamedPack {
    pub path: String,
    pub frames: Vec<u8>,
    pub calls: usize,
}

impl PackSet {
    /// Adds a call's compressed body. The same call twice (a file may hold it twice after a failed write) counts once.
    pub fn add(&mut self, organisation: Uuid, workspace: Uuid, created_at: DateTime<Utc>, id: Uuid, frame: &[u8]) {
        let pack = self.packs.entry((organisation, workspace, hour(created_at))).or_default();
        let start = pack.frames.len();
        pack.frames.extend_from_slice(frame);
        pack.calls.push(PackedCall { id, created_at, range: start..pack.frames.len() });
        self.bytes += frame.len();
        self.calls += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.calls == 0
    }

    pub fn is_full(&self, most_bytes: usize) -> bool {
        self.bytes >= most_bytes || self.calls >= MAX_CALLS
    }

    /// What the rows of all its calls say while their bodies are nowhere.
    pub fn waiting(&self) -> MovedBodies {
        let mut keys = MovedBodies::default();
        for ((organisation, workspace, _), call) in self.all_calls() {
            keys.times.push(call.created_at);
            keys.ids.push(call.id);
            keys.old.push(body_path(*organisation, *workspace, call.created_at, call.id));
        }
        keys
    }

    /// The packs of those calls whose rows wait for them, under new names, and what the rows are to say then.
    pub fn named(&self, waiting: &HashSet<Uuid>, mut name: impl FnMut() -> Uuid) -> (Vec<NamedPack>, MovedBodies) {
        let (mut named, mut keys, mut seen) = (Vec::new(), MovedBodies::default(), HashSet::new());
        for ((organisation, workspace, hour), pack) in &self.packs {
            let path = pack_path(*organisation, *workspace, *hour, name());
            let mut written = NamedPack { path, frames: Vec::with_capacity(pack.frames.len()), calls: 0 };
            for call in pack.calls.iter().filter(|call| waiting.contains(&call.id)) {
                if !seen.insert(call.id) {
                    continue;
                }
                let start = written.frames.len() as u64;
                written.frames.extend_from_slice(pack.frames.get(call.range.clone()).unwrap_or_default());
                let range = start..written.frames.len() as u64;
                keys.times.push(call.created_at);
                keys.ids.push(call.id);
                keys.old.push(body_path(*organisation, *workspace, call.created_at, call.id));
                keys.new.push(packed_key(&written.path, &range));
                written.calls += 1;
            }
            if written.calls > 0 {
                named.push(written);
            }
        }
        (named, keys)
    }

    fn all_calls(&self) -> impl Iterator<Item = (&PackOwner, &PackedCall)> {
        self.packs.iter().flat_map(|(owner, pack)| pack.calls.iter().map(move |call| (owner, call)))
    }
}

fn hour(time: DateTime<Utc>) -> DateTime<Utc> {
    let start = time.with_minute(0).and_then(|time| time.with_second(0)).and_then(|time| time.with_nanosecond(0));
    start.unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::log_store::{BodyKey, Packer, unpack};

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    /// Calls of two workspaces and two hours; each says its own number.
    fn filled() -> PackSet {
        let (mut set, mut packer) = (PackSet::default(), Packer::default());
        for n in 0..20_u128 {
            let time = at(if n < 15 { "2026-11-15T07:59:59.999Z" } else { "2026-11-15T08:00:00Z" });
            let frame = packer.pack(format!("{{\"n\":{n}}}").as_bytes()).unwrap();
            set.add(Uuid::from_u128(1), Uuid::from_u128(n % 2), time, Uuid::from_u128(n), &frame);
        }
        set
    }

    fn read(packs: &[NamedPack], key: &str) -> String {
        let Some(BodyKey::Packed { pack, range }) = BodyKey::parse(key) else { panic!("{key}") };
        let pack = packs.iter().find(|one| one.path == pack).unwrap();
        String::from_utf8(unpack(&pack.frames[range.start as usize..range.end as usize], 100).unwrap()).unwrap()
    }

    #[test]
    fn every_call_is_in_the_pack_of_its_workspace_and_hour_at_its_range() {
        let set = filled();
        let all: HashSet<Uuid> = set.waiting().ids.into_iter().collect();
        let mut names = 100_u128..;
        let (packs, keys) = set.named(&all, || Uuid::from_u128(names.next().unwrap()));
        assert_eq!((packs.len(), keys.ids.len()), (4, 20));
        assert_eq!(packs.iter().map(|pack| pack.calls).sum::<usize>(), 20);
        for ((id, key), old) in keys.ids.iter().zip(&keys.new).zip(&keys.old) {
            assert_eq!(read(&packs, key), format!("{{\"n\":{}}}", id.as_u128()));
            assert!(key.contains(&format!("/{}/2026-11-15/", Uuid::from_u128(id.as_u128() % 2))), "{key}");
            let folder = |path: &str| path.rsplit_once('/').unwrap().0.to_owned();
            assert_eq!(folder(key), folder(old), "retention finds both");
        }
    }

    #[test]
    fn what_no_row_waits_for_is_in_no_pack() {
        let set = filled();
        let some: HashSet<Uuid> = (0..20).filter(|n| n % 4 == 0).map(Uuid::from_u128).collect();
        let (packs, keys) = set.named(&some, Uuid::now_v7);
        assert_eq!(keys.ids.iter().copied().collect::<HashSet<_>>(), some);
        assert_eq!(packs.len(), 2, "none of the other workspace");
        for pack in &packs {
            let text = String::from_utf8(unpack(&pack.frames, 10_000).unwrap()).unwrap();
            assert!(!text.contains("\"n\":2}") && !text.contains("\"n\":7}"), "{text}");
        }
        assert!(set.named(&HashSet::new(), Uuid::now_v7).0.is_empty());
    }

    #[test]
    fn a_call_that_came_twice_is_stored_once() {
        let mut set = PackSet::default();
        for _ in 0..2 {
            set.add(Uuid::nil(), Uuid::nil(), at("2026-11-15T08:00:00Z"), Uuid::from_u128(1), b"frame");
        }
        let (packs, keys) = set.named(&HashSet::from([Uuid::from_u128(1)]), Uuid::now_v7);
        assert_eq!((packs[0].frames.as_slice(), keys.ids.len()), (&b"frame"[..], 1));
    }

    #[test]
    fn a_set_is_full_by_its_bytes_or_its_calls() {
        let mut set = PackSet::default();
        assert!(set.is_empty() && !set.is_full(1));
        for n in 0..MAX_CALLS {
            assert!(!set.is_full(1 << 20), "{n}");
            set.add(Uuid::nil(), Uuid::nil(), Utc::now(), Uuid::from_u128(n as u128), b"x");
        }
        assert!(set.is_full(1 << 20) && set.is_full(5));
    }
}
