//! Files that the gateway keeps: they go with their time and their workspace, and what dead uploads left is swept.

use super::{admin_on, run};
use crate::service::Service;
use bytes::Bytes;
use shared::log_store::file_part;
use uuid::Uuid;

#[tokio::test]
async fn files_that_are_over_go_with_their_bytes() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let (organisation, home) = (service.home.organisation_id, service.home.workspace_id);
    let left = service.workspace("Left").await;
    let mut files = Vec::new();
    for (workspace, status, created, expires, is_over) in [
        (home, "processed", "now()", "NULL", false),
        (home, "processed", "now()", "now() + interval '1 hour'", false),
        (home, "processed", "now()", "now() - interval '1 minute'", true),
        (home, "uploading", "now() - interval '1 hour'", "NULL", false),
        (home, "uploading", "now() - interval '3 hours'", "NULL", true),
        (left, "processed", "now()", "NULL", true),
    ] {
        let id = Uuid::now_v7();
        let row = format!(
            "INSERT INTO managed_files (id, organisation_id, workspace_id, status, part_bytes, created_at, expires_at)
             VALUES ('{id}', '{organisation}', '{workspace}', '{status}', 8, {created}, {expires})"
        );
        service.sql(&row).await;
        let part = file_part(organisation, workspace, id, 0);
        app.log_store.put(&part, Bytes::from_static(b"bytes")).await.unwrap();
        files.push((part, is_over));
    }
    service.sql(&format!("UPDATE workspaces SET status = 'archived' WHERE id = '{left}'")).await;
    assert_eq!((run(&app, "expire_files").await, run(&app, "expire_files").await), (3, 0));
    assert_eq!(run(&app, "delete_objects").await, 3);
    for (part, is_over) in files {
        let is_there = app.log_store.get(&part, 100).await.unwrap().is_some();
        assert_eq!(is_there, !is_over, "{part}");
    }
}
