//! That objects come back as they were put, and that a folder is gone when it is deleted.

use super::*;
use crate::settings;

fn settings(url: &str) -> settings::LogStoreSettings {
    settings::LogStoreSettings {
        log_store_url: url.into(),
        log_bodies: true,
        log_body_bytes: 1 << 20,
        log_pack_seconds: 10,
        log_pack_bytes: 8 << 20,
    }
}

pub fn store_in(folder: &std::path::Path) -> LogStore {
    LogStore::open(&settings(&format!("file://{}/logs", folder.display()))).unwrap()
}

fn store() -> (LogStore, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (store_in(folder.path()), folder)
}

#[tokio::test]
async fn what_was_put_is_what_is_read_until_it_is_deleted() {
    let (store, _folder) = store();
    for bytes in [&b"one"[..], b"", b"another"] {
        store.put("bodies/a/b", Bytes::from_static(bytes)).await.unwrap();
        assert_eq!(store.get("bodies/a/b", 100).await.unwrap().unwrap(), bytes);
        let (length, pieces) = store.read("bodies/a/b").await.unwrap().unwrap();
        let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
        assert_eq!((length, &*pieces.concat()), (bytes.len() as u64, bytes));
    }
    store.delete("bodies/a/b").await.unwrap();
    store.delete("bodies/a/b").await.unwrap();
    assert_eq!(store.get("bodies/a/b", 100).await, Ok(None));
    assert!(store.read("bodies/a/b").await.unwrap().is_none());
}

#[tokio::test]
async fn an_object_longer_than_asked_for_is_not_read() {
    let (store, _folder) = store();
    store.put("a", Bytes::from_static(b"12345")).await.unwrap();
    assert_eq!(store.get("a", 4).await, Err(Error::TooLong));
    assert!(store.get("a", 5).await.is_ok());
}

#[tokio::test]
async fn a_prefix_takes_its_tenants_day_and_nothing_else() {
    let (store, _folder) = store();
    let (organisation, other, workspace) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
    let noon: DateTime<Utc> = "2026-11-15T12:00:00Z".parse().unwrap();
    let evening: DateTime<Utc> = "2026-11-15T23:59:59.999Z".parse().unwrap();
    let tomorrow: DateTime<Utc> = "2026-11-16T00:00:00Z".parse().unwrap();
    let paths = [(organisation, noon), (organisation, evening), (organisation, tomorrow), (other, noon)];
    let paths = paths.map(|(tenant, time)| body_path(tenant, workspace, time, Uuid::from_u128(9)));
    for path in &paths {
        store.put(path, Bytes::from_static(b"x")).await.unwrap();
    }
    assert_eq!(store.delete_prefix(&day_prefix(organisation, workspace, noon.date_naive())).await, Ok(2));
    assert_eq!(store.delete_prefix(&day_prefix(organisation, workspace, noon.date_naive())).await, Ok(0));
    for (path, is_left) in paths.iter().zip([false, false, true, true]) {
        assert_eq!(store.get(path, 10).await.unwrap().is_some(), is_left, "{path}");
    }
    assert_eq!(store.delete_prefix("").await, Err(Error::Path), "the whole store is no prefix");
}

#[tokio::test]
async fn a_name_cannot_leave_the_store() {
    let (store, folder) = store();
    std::fs::write(folder.path().join("outside"), "x").unwrap();
    for path in ["../outside", "a/../../outside", "/../outside", "a//b", "."] {
        assert!(store.get(path, 10).await.is_err(), "{path}");
        assert!(store.put(path, Bytes::new()).await.is_err(), "{path}");
        assert!(store.delete(path).await.is_err(), "{path}");
    }
    assert!(folder.path().join("outside").exists());
}

#[tokio::test]
async fn an_object_is_written_in_pieces_and_exists_once_it_is_finished() {
    let (store, _folder) = store();
    for pieces in [0, 1, 13] {
        let path = format!("exports/{pieces}");
        let mut writer = store.writer(&path).unwrap();
        for _ in 0..pieces {
            writer.write(Bytes::from(vec![b'x'; 1 << 20])).await.unwrap();
        }
        assert_eq!(store.get(&path, 1).await, Ok(None));
        assert_eq!(writer.written(), pieces << 20);
        writer.finish().await.unwrap();
        assert_eq!(store.get(&path, 1 << 25).await.unwrap().unwrap().len(), (pieces << 20) as usize);
    }
    let mut writer = store.writer("exports/never").unwrap();
    writer.write(Bytes::from(vec![b'x'; 6 << 20])).await.unwrap();
    writer.abort().await.unwrap();
    assert_eq!(store.get("exports/never", 1).await, Ok(None));
}

#[test]
fn what_is_packed_comes_back_and_never_grows_beyond_its_bound() {
    let json = br#"{"a":"b"}"#.repeat(10_000);
    let packed = pack(&json).unwrap();
    assert!(packed.len() < json.len() / 10);
    assert_eq!(unpack(&packed, json.len()).unwrap(), json);
    assert_eq!(unpack(&packed, json.len() - 1), Err(Error::TooLong));
    assert_eq!(unpack(b"no such thing", 100), Err(Error::Damaged));
    assert_eq!(unpack(&packed[..packed.len() / 2], 1 << 20), Err(Error::Damaged));
}

#[test]
fn a_url_that_cannot_be_meant_is_refused_in_words_without_secrets() {
    for (url, says) in [
        ("", "file://"),
        ("logs", "file://"),
        ("file://", "must name a folder"),
        ("ftp://host/x", "`ftp://` is not known"),
        ("s3://", "must name a bucket"),
        ("s3://key:hunter2@bucket/x", "must name a bucket"),
        ("s3://bucket/a/../b", "its folder"),
        ("az://container/x?sig=hunter2", "environment"),
    ] {
        let error = format!("{:#}", LogStore::open(&settings(url)).unwrap_err());
        assert!(error.contains(says) && error.starts_with("LOG_STORE_URL"), "{url}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
