//! Vectors in a Postgres with pgvector, which the one from PyPI has: found as in memory, and
//! misses while it is away.

use crate::cache_semantic::{ASKED, NEAR_MISS, REWORDED, ask, semantic, status};
use bench::postgres::{Options, Purpose, Server};
use harness::{Stack, chat, embedder_folder, until};
use std::path::Path;
use uuid::Uuid;

#[tokio::test]
async fn questions_are_found_in_postgres_and_it_may_go_away() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.run/pgvector");
    let options = Options { is_fetched: true, ..Options::new(folder, Purpose::Test) };
    let server = tokio::task::spawn_blocking(move || Server::start(&options)).await.unwrap().unwrap();
    let name = format!("semantic_{}", Uuid::new_v4().simple());
    server.create_database(&name).await.unwrap();
    let url = server.url(&name);
    let (database, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let stack = Stack::builder()
        .proxy("SEMANTIC_CACHE_EMBEDDING_PROVIDER", "local")
        .proxy("SEMANTIC_CACHE_EMBEDDER_DIR", embedder_folder().to_str().unwrap())
        .proxy("SEMANTIC_CACHE_INDEX_URL", &url)
        .proxy("SEMANTIC_CACHE_WAIT_MS", "10000")
        .start()
        .await;
    let is_made = async || {
        const MADE: &str = "SELECT to_regclass('semantic_cache_vectors') IS NOT NULL";
        database.query_one(MADE, &[]).await.unwrap().get::<_, bool>(0)
    };
    until("the table is made", is_made).await;
    let client = semantic(&stack);
    let rows = async || {
        const ROWS: &str = "SELECT count(*) FROM semantic_cache_vectors";
        database.query_one(ROWS, &[]).await.unwrap().get::<_, i64>(0)
    };
    let first = ask(&client, &chat(ASKED)).await;
    assert_eq!(status(&first), "SEMANTIC MISS");
    until("the question is stored", async || rows().await == 1).await;
    let found = ask(&client, &chat(REWORDED)).await;
    assert_eq!((status(&found), &found.json()["id"]), ("SEMANTIC HIT", &first.json()["id"]));
    assert_eq!(status(&ask(&client, &chat(NEAR_MISS)).await), "SEMANTIC MISS");
    let other = stack.organisation().await;
    let stranger = stack.as_application(&other.workspace_key).with("x-gateway-cache", "semantic");
    assert_eq!(status(&ask(&stranger, &chat(REWORDED)).await), "SEMANTIC MISS");
    tokio::task::spawn_blocking(move || server.stop()).await.unwrap().unwrap();
    assert_eq!(status(&ask(&client, &chat("Where is my invoice?")).await), "SEMANTIC MISS");
    assert_eq!(status(&ask(&client, &chat(ASKED)).await), "HIT");
}
