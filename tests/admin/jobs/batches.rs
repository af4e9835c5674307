//! Batches are forgotten when they have long been over, and with their workspace.

use super::{admin_on, run};
use crate::service::Service;
use uuid::Uuid;

#[tokio::test]
async fn batches_that_have_long_been_over_are_forgotten() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let (organisation, home) = (service.home.organisation_id, service.home.workspace_id);
    let left = service.workspace("Left").await;
    for (workspace, mode, status, age) in [
        (home, "immediate", "completed", "89 days"),
        (home, "immediate", "completed", "91 days"),
        (home, "immediate", "in_progress", "91 days"),
        (left, "immediate", "in_progress", "1 hour"),
        (left, "24h", "in_progress", "1 hour"),
        (left, "24h", "completed", "1 hour"),
    ] {
        let id = Uuid::now_v7();
        service
            .sql(&format!(
                "INSERT INTO batches (id, organisation_id, workspace_id, api_key_id, mode, endpoint, completion_window,
                     input_file_id, status, created_at, expires_at)
                 VALUES ('{id}', '{organisation}', '{workspace}', '{id}', '{mode}', '/v1/embeddings', '{mode}', '{id}',
                     '{status}', now() - interval '{age}', now())"
            ))
            .await;
        service
            .sql(&format!(
                "INSERT INTO batch_rows (batch_id, row_no, organisation_id, workspace_id, custom_id, at, bytes)
                 VALUES ('{id}', 1, '{organisation}', '{workspace}', 'a', 0, 1)"
            ))
            .await;
    }
    service.sql(&format!("UPDATE workspaces SET status = 'archived' WHERE id = '{left}'")).await;
    assert_eq!((run(&app, "expire_batches").await, run(&app, "expire_batches").await), (4, 0));
    let client = service.database.client().await;
    let rows: i64 = client.query_one("SELECT count(*) FROM batch_rows", &[]).await.unwrap().get(0);
    assert_eq!(rows, 3);
    const STOPPING: &str = "SELECT count(*) FROM batches WHERE status = 'cancelling' AND next_step_at <= now()";
    let stopping: i64 = client.query_one(STOPPING, &[]).await.unwrap().get(0);
    assert_eq!(stopping, 1, "what a provider may run is stopped there before it is forgotten");
    service.sql("UPDATE batches SET cancelling_at = now() - interval '2 days' WHERE status = 'cancelling'").await;
    assert_eq!(run(&app, "expire_batches").await, 1);
}
