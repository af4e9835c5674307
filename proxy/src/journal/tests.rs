//! The journal on a real disk, without Postgres.

use super::reader::Reader;
use super::*;
use crate::journal::logged_body::captured::CapturedBody;
use crate::runtime::tenant_share::Tenant;
use bytes::Bytes;
use shared::settings::journal::Journal as Settings;
use std::path::Path;
use tempfile::TempDir;

fn settings(folder: &Path) -> Settings {
    Settings {
        journal: true,
        journal_dir: folder.join("journal"),
        journal_fsync: Fsync::Interval,
        journal_fsync_ms: 1000,
        journal_segment_bytes: 1 << 20,
        journal_max_bytes: 1 << 30,
        journal_when_full: WhenFull::Drop,
        journal_ship_ms: 100,
    }
}

fn open(settings: Settings) -> Arc<Journal> {
    let meters = JournalMeters::new(&prometheus::Registry::new()).unwrap();
    Journal::open(settings, 2, Arc::new(meters)).unwrap()
}

fn record(number: u128) -> Record<'static> {
    Record { id: Uuid::from_u128(number), url: "/v1/chat/completions", ..Record::default() }
}

/// Everything that waits for Postgres, in the order of the files.
fn ids(journal: &Journal) -> Vec<u128> {
    let mut ids = Vec::new();
    for held in journal.closed.lock().iter() {
        let records = held.reader(0).unwrap().records(usize::MAX, usize::MAX).unwrap();
        ids.extend(records.iter().map(|frame| Record::decode(frame).unwrap().id.as_u128()));
    }
    ids
}

#[test]
fn what_a_dead_process_left_is_adopted_with_all_its_whole_records() {
    let folder = TempDir::new().unwrap();
    let dead = open(settings(folder.path()));
    let mut file = None;
    for number in 0..100 {
        dead.append(&record(number));
        // Nothing waits in memory: each is in the file when `append` returns.
        let path = segment::found(&folder.path().join("journal")).unwrap().remove(0);
        let bytes = std::fs::read(&path).unwrap();
        let mut reader = Reader::new(&bytes[..], 0, bytes.len() as u64);
        assert_eq!(u128::from(reader.count(FrameKind::Record).unwrap()), number + 1);
        file = Some(path);
    }
    // Killed in the middle of a write.
    let file = file.unwrap();
    let length = std::fs::metadata(&file).unwrap().len();
    File::options().write(true).open(&file).unwrap().set_len(length - 3).unwrap();
    let next = open(settings(folder.path()));
    next.adopt();
    assert_eq!(ids(&next), Vec::<u128>::new(), "its writer lives");
    drop(dead);
    next.adopt();
    assert_eq!(ids(&next), (0..99).collect::<Vec<_>>());
}

#[test]
fn a_file_that_was_left_to_a_later_version_is_free_for_it_and_not_taken_again() {
    let folder = TempDir::new().unwrap();
    let journal = open(settings(folder.path()));
    journal.append(&record(1));
    journal.harvest(Duration::ZERO);
    let held = journal.closed.lock().pop_front().unwrap();
    let path = held.path().to_owned();
    journal.leave(held);
    journal.adopt();
    assert_eq!((ids(&journal).len(), journal.meters.left.get()), (0, 1));
    assert!(ClosedSegment::adopt(&path).unwrap().is_some(), "whoever can read it may");
    std::fs::remove_file(path).unwrap();
    journal.adopt();
    assert!(journal.left.lock().is_empty(), "what is gone is forgotten");
}

#[test]
fn a_record_that_no_reader_would_take_is_counted_and_costs_no_other() {
    let folder = TempDir::new().unwrap();
    let journal = open(settings(folder.path()));
    journal.append(&record(1));
    let url = "/".repeat(frame::MAX_RECORD);
    journal.append(&Record { url: &url, ..record(2) });
    journal.append(&record(3));
    journal.harvest(Duration::ZERO);
    assert_eq!(ids(&journal), [1, 3]);
    assert_eq!((journal.meters.too_long.get(), journal.meters.lost.get()), (1, 1));
}

#[test]
fn a_file_is_closed_at_its_size_and_order_is_kept() {
    let folder = TempDir::new().unwrap();
    let journal = open(Settings { journal_segment_bytes: 1000, ..settings(folder.path()) });
    for number in 0..50 {
        journal.append(&record(number));
    }
    assert!(journal.closed.lock().len() > 3);
    journal.harvest(Duration::ZERO);
    assert_eq!(ids(&journal), (0..50).collect::<Vec<_>>());
}

#[test]
fn threads_write_files_of_their_own_and_nothing_is_mixed_up() {
    let folder = TempDir::new().unwrap();
    let journal = open(settings(folder.path()));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = &journal;
            scope.spawn(move || (0..500).for_each(|number| journal.append(&record(thread * 1000 + number))));
        }
    });
    assert_eq!(journal.closed.lock().len(), 0);
    journal.harvest(Duration::ZERO);
    assert_eq!(journal.closed.lock().len(), 2);
    let mut found = ids(&journal);
    found.sort_unstable();
    assert_eq!(found, (0..4).flat_map(|thread| thread * 1000..thread * 1000 + 500).collect::<Vec<_>>());
}

#[test]
fn a_disk_that_refuses_costs_nothing_once_it_is_back() {
    let folder = TempDir::new().unwrap();
    let journal = open(settings(folder.path()));
    std::fs::remove_dir_all(folder.path().join("journal")).unwrap();
    (0..10).for_each(|number| journal.append(&record(number)));
    journal.harvest(Duration::ZERO);
    assert_eq!((ids(&journal).len(), journal.meters.lost.get()), (0, 0));
    assert!(journal.meters.write_failures.get() >= 10 && journal.is_failing.load(Relaxed));
    std::fs::create_dir(folder.path().join("journal")).unwrap();
    journal.append(&record(10));
    journal.harvest(Duration::ZERO);
    assert_eq!(ids(&journal), (0..=10).collect::<Vec<_>>());
    assert!(!journal.is_failing.load(Relaxed));
}

#[test]
fn an_idle_proxy_that_refuses_calls_takes_them_again_once_the_disk_is_back() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("journal");
    let journal = open(Settings { journal_when_full: WhenFull::Refuse, ..settings(folder.path()) });
    std::fs::rename(&place, folder.path().join("away")).unwrap();
    // Nothing is written, and yet something fails.
    journal.adopt();
    journal.probe();
    journal.bound();
    assert!(journal.is_refusing());
    std::fs::rename(folder.path().join("away"), &place).unwrap();
    journal.probe();
    journal.bound();
    assert!(!journal.is_refusing());
}

#[test]
fn with_fsync_always_everything_is_synced_when_its_file_is_closed() {
    for (fsync, is_synced) in [(Fsync::Always, true), (Fsync::Never, false)] {
        let folder = TempDir::new().unwrap();
        let limits = Settings { journal_fsync: fsync, journal_segment_bytes: 1000, ..settings(folder.path()) };
        let journal = open(limits);
        (0..20).for_each(|number| journal.append(&record(number)));
        // What waited in memory is no exception.
        let place = folder.path().join("journal");
        journal.harvest(Duration::ZERO);
        std::fs::rename(&place, folder.path().join("away")).unwrap();
        journal.append(&record(20));
        std::fs::rename(folder.path().join("away"), &place).unwrap();
        journal.harvest(Duration::ZERO);
        let closed = journal.closed.lock();
        assert!(closed.len() > 2 && closed.iter().all(|held| held.is_synced() == is_synced), "{fsync:?}");
    }
}

#[test]
fn what_waits_to_be_synced_is_synced_once_whether_it_is_closed_or_not() {
    let folder = TempDir::new().unwrap();
    let journal = open(Settings { journal_segment_bytes: 1, ..settings(folder.path()) });
    (0..3).for_each(|number| journal.append(&record(number)));
    assert_eq!((journal.handles().len(), journal.handles().len()), (3, 0));
}

#[test]
fn what_is_known_to_be_shipped_ends_before_the_oldest_record_that_is_not() {
    let folder = TempDir::new().unwrap();
    let journal = open(Settings { journal_segment_bytes: 1, ..settings(folder.path()) });
    let shipped = || journal.note_shipped();
    let until = || journal.shipped_until.lock().unwrap();
    shipped();
    let (nothing, before) = (until(), Instant::now());
    assert!(nothing < before);
    (0..3).for_each(|number| journal.append(&record(number)));
    shipped();
    assert!((nothing..).contains(&until()) && until() < Instant::now());
    let mut known = until();
    let next = || journal.closed.lock().pop_front();
    while let Some(held) = next() {
        assert!(until() <= held.created().unwrap());
        shipped();
        assert!(until() > known, "although others wait");
        known = until();
    }
    // What waits in memory is not shipped.
    let place = folder.path().join("journal");
    std::fs::rename(&place, folder.path().join("away")).unwrap();
    let before = Instant::now();
    journal.append(&record(9));
    let after = Instant::now();
    shipped();
    assert!((before..after).contains(&until()));
    std::fs::rename(folder.path().join("away"), &place).unwrap();
    journal.harvest(Duration::ZERO);
    shipped();
    assert!((before..after).contains(&until()), "although its file is younger");
}

#[test]
fn what_finds_no_room_in_memory_either_is_counted_as_lost() {
    let folder = TempDir::new().unwrap();
    let journal = open(settings(folder.path()));
    std::fs::remove_dir_all(folder.path().join("journal")).unwrap();
    let url = "/".repeat(500 << 10);
    (0..10).for_each(|number| journal.append(&Record { url: url.as_str(), ..record(number) }));
    assert_eq!(journal.meters.lost.get(), 2);
}

#[test]
fn beyond_its_size_the_oldest_are_dropped_and_counted_or_new_calls_are_refused() {
    for (when_full, lost, is_refusing) in [(WhenFull::Drop, true, false), (WhenFull::Refuse, false, true)] {
        let folder = TempDir::new().unwrap();
        let journal = open(Settings {
            journal_segment_bytes: 1000,
            journal_max_bytes: 4000,
            journal_when_full: when_full,
            ..settings(folder.path())
        });
        (0..100).for_each(|number| journal.append(&record(number)));
        journal.bound();
        journal.harvest(Duration::ZERO);
        let kept = ids(&journal);
        assert_eq!(journal.meters.lost.get(), 100 - kept.len() as u64);
        assert_eq!((journal.meters.lost.get() > 0, journal.is_refusing()), (lost, is_refusing));
        assert_eq!(kept.last(), Some(&99));
        journal.closed.lock().clear();
        journal.bound();
        assert!(!journal.is_refusing());
    }
}

/// Notes a call with a body of a thousand bytes.
fn append_with_body(journal: &Journal, number: u128) {
    let (request, response) =
        (CapturedBody::whole(&Bytes::from(vec![b'x'; 1000]), usize::MAX), CapturedBody::default());
    let parts = Parts {
        heads: b"",
        asked_end: 0,
        sent_end: 0,
        request: &request,
        sent: b"",
        asks_usage: false,
        is_debug: true,
        response: &response,
    };
    journal.append_with(&record(number), Some(&parts));
}

#[test]
fn when_room_runs_out_bodies_go_before_records() {
    let folder = TempDir::new().unwrap();
    let limits = Settings { journal_segment_bytes: 1, journal_max_bytes: 9000, ..settings(folder.path()) };
    let journal = open(limits);
    (0..10).for_each(|number| append_with_body(&journal, number));
    // The records of the first five are in Postgres.
    for _ in 0..5 {
        let mut held = journal.closed.lock().pop_front().unwrap();
        held.keep_for_bodies().unwrap();
        journal.keep_for_bodies(held);
    }
    journal.bound();
    let left = journal.bodies.lock().len();
    assert!((1..5).contains(&left), "{left}");
    assert_eq!((journal.meters.lost.get(), journal.meters.bodies_lost.get()), (0, 5 - left as u64));
    assert!(journal.backlog().0 + journal.bodies_backlog() <= 9000);
    assert_eq!(ids(&journal), (5..10).collect::<Vec<_>>());
}

#[test]
fn a_disk_that_refuses_costs_a_body_and_no_record() {
    let folder = TempDir::new().unwrap();
    let journal = open(settings(folder.path()));
    std::fs::remove_dir_all(folder.path().join("journal")).unwrap();
    append_with_body(&journal, 1);
    std::fs::create_dir(folder.path().join("journal")).unwrap();
    append_with_body(&journal, 2);
    journal.harvest(Duration::ZERO);
    assert_eq!(ids(&journal), [1, 2]);
    assert_eq!((journal.meters.lost.get(), journal.meters.bodies_lost.get()), (0, 1));
    assert_eq!(journal.closed.lock()[0].reader(0).unwrap().count(FrameKind::Body).unwrap(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_stops_the_start() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("journal"), "a file").unwrap();
    let meters = Arc::new(JournalMeters::new(&prometheus::Registry::new()).unwrap());
    let error = Journal::open(settings(folder.path()), 1, meters).err().unwrap();
    assert!(error.to_string().contains("JOURNAL_DIR"), "{error}");
}

/// A promise to a call under a strict budget.
fn intent(number: u128) -> Intent<'static> {
    let sort = crate::limits::CounterKind::from_words("policy", "cost", "total").unwrap();
    let charge = Charge { sort, scope_id: "p", starts_at: 5, lease: None };
    Intent {
        boot: Uuid::from_u128(1),
        request_id: Uuid::from_u128(number),
        attempt: 1,
        organisation_id: Uuid::from_u128(9).into(),
        charges: [charge].into_iter().collect(),
        amounts: vec![7],
    }
}

/// The promises of everything that waits for Postgres.
fn promised(journal: &Journal) -> Vec<u128> {
    let mut found = Vec::new();
    for held in journal.closed.lock().iter() {
        let records = held.reader(held.shipped).unwrap().records(usize::MAX, usize::MAX).unwrap();
        found.extend(records.intents().map(|frame| Intent::decode(frame).unwrap().request_id.as_u128()));
    }
    found.sort_unstable();
    found
}

#[test]
fn promises_are_kept_whatever_is_dropped() {
    let folder = TempDir::new().unwrap();
    let full = Settings { journal_segment_bytes: 1000, journal_max_bytes: 2000, ..settings(folder.path()) };
    let journal = open(full.clone());
    for number in 0..100 {
        if number % 10 == 0 {
            assert!(journal.promise(&intent(number)));
        }
        journal.append(&record(number));
    }
    journal.harvest(Duration::ZERO);
    let all: Vec<u128> = (0..100).step_by(10).collect();
    for _ in 0..3 {
        journal.bound();
        assert_eq!(promised(&journal), all);
    }
    let kept = ids(&journal).len() as u64;
    assert!(kept < 100);
    assert_eq!(journal.meters.lost.get(), 100 - kept, "no record is counted twice");
    // Another process finds them as well.
    drop(journal);
    let next = open(full);
    next.adopt();
    assert_eq!(promised(&next), all);
}

/// Hooks of a call whose service never answers.
struct Hangs;

impl LateWork for Hangs {
    fn tenant(&self) -> Tenant {
        Tenant::test(1, 1)
    }

    fn weight(&self) -> usize {
        1
    }

    fn skipped(&self) -> HookLists {
        HookLists::default()
    }

    fn run(self: Box<Self>) -> futures::future::BoxFuture<'static, HookLists> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_file_waits_for_hooks_of_its_calls_and_no_other_waits_with_it() {
    let folder = TempDir::new().unwrap();
    let journal = open(settings(folder.path()));
    let close = |number: u128| {
        journal.append(&record(number));
        journal.harvest(Duration::ZERO);
    };
    close(1);
    journal.late(Uuid::from_u128(2), Box::new(Hangs));
    close(2);
    assert_eq!(journal.closed.lock().len(), 2);
    let ready = journal.take_ready_for_test().expect("it was closed before");
    assert_eq!(ready, 0);
    // What is left waits for the hooks, and is sent without them in the end.
    journal.closed.lock().pop_front();
    assert_eq!(journal.take_ready_for_test(), None);
    for held in journal.closed.lock().iter_mut() {
        held.closed = held.closed.and_then(|closed| closed.checked_sub(Duration::from_secs(60)));
    }
    assert_eq!(journal.take_ready_for_test(), Some(0));
}

#[test]
fn a_file_that_panics_each_time_is_set_aside_and_what_stands_behind_it_is_not() {
    let folder = TempDir::new().unwrap();
    let journal = open(Settings { journal_segment_bytes: 1, ..settings(folder.path()) });
    journal.append(&record(1));
    journal.append(&record(2));
    for round in 1..=segment::MAX_PANICS {
        let shipping =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| journal.panic_while_shipping_for_test()));
        assert!(shipping.is_err());
        let left = if round < segment::MAX_PANICS { vec![1, 2] } else { vec![2] };
        assert_eq!(ids(&journal), left, "round {round}");
    }
    assert_eq!((journal.meters.lost.get(), journal.meters.rejected.get()), (1, 1));
    journal.adopt();
    assert_eq!(ids(&journal), [2]);
}

#[test]
fn lag_is_measured_when_it_is_asked_for() {
    let folder = TempDir::new().unwrap();
    let journal = open(settings(folder.path()));
    journal.append(&record(1));
    assert_eq!(journal.meters.backlog_bytes.get(), 0, "no task runs");
    journal.measure();
    assert!(journal.meters.backlog_bytes.get() > 0 && journal.meters.lag_seconds.get() >= 0.0);
}
