//! Copies written and read in a temporary folder.

use super::*;
use shared::identity::api_key::KeyHash;
use shared::model::{AccessStatus, ApiKey, KeyKind, Status, Workspace};
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(86_400);

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn filled() -> Snapshot {
    let (organisation_id, workspace) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
    let keys = (0..50_u128).map(|n| ApiKey {
        id: Uuid::from_u128(100 + n).into(),
        organisation_id,
        workspace_id: Some(workspace),
        user_id: None,
        kind: KeyKind::WorkspaceService,
        hash: KeyHash::from_key(&n.to_be_bytes()),
        scopes: ["completions.write".into()].into(),
        status: AccessStatus::Active,
        expires_at: Some(noon()),
        previous: None,
        limits: None,
        defaults: None,
    });
    let workspace = Workspace {
        id: workspace,
        organisation_id,
        slug: "team\n end 0".into(),
        status: Status::Active,
        metadata: None,
        is_metrics_only: false,
        hides_costs: false,
        finds_plain_models: false,
        allows_own_credentials: false,
        limits: None,
        priority: 10,
        guardrails: Default::default(),
    };
    Snapshot::with_rows(keys.collect(), vec![workspace])
}

/// A folder whose copy was confirmed at noon.
fn written() -> (TempDir, Folder, Uuid) {
    let place = TempDir::new().unwrap();
    let folder = Folder::at(&place.path().join("snapshot"));
    let copy = folder.save(&filled().view(), noon()).unwrap().unwrap();
    (place, folder, copy)
}

fn load(folder: &Folder, now: DateTime<Utc>) -> (Snapshot, Result<Duration, UnusableCopy>) {
    let snapshot = Snapshot::empty();
    let loaded = folder.load(&snapshot, now, DAY);
    assert_eq!(snapshot.is_loaded(), loaded.is_ok());
    assert_eq!(snapshot.rows().map(|(_, rows)| rows).sum::<usize>(), if loaded.is_ok() { 51 } else { 0 });
    (snapshot, loaded)
}

#[test]
fn a_copy_brings_every_row_back_with_its_age() {
    let (_place, folder, _) = written();
    let (snapshot, loaded) = load(&folder, noon() + TimeDelta::seconds(90));
    assert_eq!(loaded.unwrap(), Duration::from_secs(90));
    let original = filled();
    for n in 0..50_u128 {
        let hash = KeyHash::from_key(&n.to_be_bytes());
        assert_eq!(snapshot.api_key(&hash), original.api_key(&hash));
    }
    let workspace = Uuid::from_u128(2).into();
    assert_eq!(snapshot.workspace(&workspace), original.workspace(&workspace));
    assert!(snapshot.age().unwrap() >= Duration::from_secs(90));
    assert_eq!(snapshot.progress().reads, 0);
}

#[test]
fn freshness_counts_from_the_confirmation_and_never_from_the_future() {
    for (seconds_ago, trusted) in [(0, true), (86_400, true), (86_401, false), (-60, true), (-61, false)] {
        let age = trusted_age(noon(), noon() + TimeDelta::seconds(seconds_ago), DAY);
        assert_eq!(age.is_ok(), trusted, "confirmed {seconds_ago} s ago: {age:?}");
    }
}

#[test]
fn a_copy_too_old_is_refused_until_postgres_confirmed_it_again() {
    let (_place, folder, copy) = written();
    let late = noon() + TimeDelta::hours(30);
    assert!(matches!(load(&folder, late).1, Err(UnusableCopy::TooOld { .. })));
    assert!(folder.confirm(copy, noon() + TimeDelta::hours(29)).unwrap());
    assert_eq!(load(&folder, late).1.unwrap(), Duration::from_secs(3600));
}

#[test]
fn a_confirmation_of_another_copy_makes_nothing_younger() {
    let (_place, folder, first) = written();
    assert!(folder.confirm(first, noon() + TimeDelta::hours(29)).unwrap());
    folder.save(&filled().view(), noon()).unwrap().unwrap();
    assert!(!folder.confirm(first, noon() + TimeDelta::hours(29)).unwrap());
    assert!(matches!(load(&folder, noon() + TimeDelta::hours(30)).1, Err(UnusableCopy::TooOld { .. })));
}

#[test]
fn a_missing_copy_is_missing_and_cannot_be_confirmed() {
    let place = TempDir::new().unwrap();
    let folder = Folder::at(&place.path().join("snapshot"));
    assert!(matches!(load(&folder, noon()).1, Err(UnusableCopy::Missing)));
    assert!(!folder.confirm(Uuid::from_u128(1), noon()).unwrap());
}

#[test]
fn a_copy_cut_at_any_line_or_inside_one_is_refused_whole() {
    let (_place, folder, _) = written();
    let whole = std::fs::read(folder.copy_path()).unwrap();
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let (last, rest) = ends.split_last().unwrap();
    assert_eq!(*last, whole.len());
    for cut in rest.iter().flat_map(|end| [*end, end - 7]).chain([0, 1, whole.len() - 2]) {
        std::fs::write(folder.copy_path(), &whole[..cut]).unwrap();
        assert!(matches!(load(&folder, noon()).1, Err(UnusableCopy::Damaged(_))), "cut at {cut}");
    }
}

#[test]
fn a_copy_with_a_broken_or_strange_line_is_refused_whole() {
    let (_place, folder, _) = written();
    let whole = std::fs::read_to_string(folder.copy_path()).unwrap();
    for (from, to) in [("api_keys {", "api_keys ["), ("api_keys {", "strangers {"), ("end 51", "end 50")] {
        std::fs::write(folder.copy_path(), whole.replacen(from, to, 1)).unwrap();
        assert!(matches!(load(&folder, noon()).1, Err(UnusableCopy::Damaged(_))), "{from} to {to}");
    }
}

#[test]
fn a_copy_of_another_version_or_with_other_tables_is_foreign() {
    let (_place, folder, _) = written();
    let whole = std::fs::read_to_string(folder.copy_path()).unwrap();
    let (header, rows) = whole.split_once('\n').unwrap();
    let list = header.split_once(r#""tables":"#).and_then(|(_, rest)| rest.split_inclusive(']').next());
    let tables = list.unwrap_or_else(|| panic!("{header}"));
    assert!(tables.starts_with(r#"["organisations","workspaces","api_keys""#), "{header}");
    for other in [
        header.replacen(r#""version":2"#, r#""version":3"#, 1),
        r#"{"version":3,"sealed":"…"}"#.to_owned(),
        header.replacen(tables, r#"["organisations","workspaces"]"#, 1),
        header.replacen(tables, &tables.replace(']', r#","policies"]"#), 1),
    ] {
        std::fs::write(folder.copy_path(), format!("{other}\n{rows}")).unwrap();
        let refused = load(&folder, noon()).1.unwrap_err();
        assert!(matches!(refused, UnusableCopy::Foreign), "{other}: {refused}");
    }
}

#[test]
fn nobody_else_may_read_the_copy() {
    let (_place, folder, copy) = written();
    folder.confirm(copy, noon()).unwrap();
    for (path, mode) in [(folder.0.clone(), 0o700), (folder.copy_path(), 0o600), (folder.confirmation_path(), 0o600)] {
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
}

#[test]
fn while_another_process_writes_nothing_is_written() {
    let (_place, folder, copy) = written();
    let held = folder.lock().unwrap().unwrap();
    assert!(folder.save(&filled().view(), noon()).unwrap().is_none());
    drop(held);
    assert_eq!(
        read_header(&mut BufReader::new(File::open(folder.copy_path()).unwrap()), &mut String::new()).unwrap().copy,
        copy
    );
    assert!(folder.save(&filled().view(), noon()).unwrap().is_some());
}
