//! What proxies hold of a workspace's prompts is bounded. What found no room is looked at again when some has come.

use crate::jobs::{admin_on, run};
use crate::service::Service;
use serde_json::json;

#[tokio::test]
async fn versions_that_found_no_room_are_served_once_there_is_some() {
    const FULL: &str = "INSERT INTO served_prompt_bytes (workspace_id, bytes) SELECT id, 32 << 20 FROM workspaces
        ON CONFLICT (workspace_id) DO UPDATE SET bytes = excluded.bytes";
    let service = Service::start().await;
    let client = service.administrator();
    service.sql(FULL).await;
    let partial = client.post("/prompts/partials", &json!({ "name": "Tone", "string": "be kind" })).await;
    assert_eq!(partial.status, 200, "{}", partial.text());
    let prompt = json!({ "name": "Greeting", "string": "Hello", "parameters": {}, "virtual_key": "any" });
    let prompt = client.post("/prompts", &prompt).await;
    assert_eq!(prompt.status, 200, "{}", prompt.text());
    let database = service.database.client().await;
    let served = async || {
        const SERVED: &str = "SELECT (SELECT count(*) FROM prompt_versions WHERE is_served),
            (SELECT count(*) FROM partial_versions WHERE is_served)";
        let row = database.query_one(SERVED, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    assert_eq!(served().await, (0, 0), "there is no room");
    let app = admin_on(&service.database).await;
    assert_eq!((run(&app, "serve_versions").await, served().await), (0, (0, 0)), "there is none yet");
    service.sql("UPDATE served_prompt_bytes SET bytes = 0").await;
    assert_eq!((run(&app, "serve_versions").await, served().await), (2, (1, 1)));
    assert_eq!(run(&app, "serve_versions").await, 0, "nothing is left");
    let held: i64 = database.query_one("SELECT sum(bytes)::bigint FROM served_prompt_bytes", &[]).await.unwrap().get(0);
    assert!(held > 0, "they are counted");
}
