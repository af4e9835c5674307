//! A backup is what can be restored: the steps of docs/operations.md, with the tools that it names.

use crate::families::{KEY, integrate};
use harness::{Database, Process, Stack, chat};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
    // The arguments hold a password.
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_restored_dump_opens_with_its_keyring_and_serves_the_same_keys() {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    let asking = |stack: &Stack, key: &str| stack.anonymous().with_key(key).with("x-gateway-provider", "@prod");
    let key = stack.home.workspace_key.clone();
    let body = chat("Hello");
    assert_eq!(asking(&stack, &key).post("/chat/completions", &body).await.status, 200);
    let client = stack.database.client().await;
    let logs = async |client: &tokio_postgres::Client| -> i64 {
        client.query_one("SELECT count(*) FROM request_logs", &[]).await.unwrap().get(0)
    };
    stack.until("the call is logged", async || logs(&client).await > 0).await;

    // What is backed up: the database, and apart from it the keyring.
    let safe = tempfile::tempdir().unwrap();
    let logged_before = logs(&client).await;
    let (dump, keyring) = (safe.path().join("gateway.dump"), safe.path().join("keyring"));
    run("pg_dump", &["--format=custom", "--no-owner", "--file", &text(&dump), &stack.database.url()]);
    std::fs::copy(stack.folder.path().join("keyring"), &keyring).unwrap();
    let logged_after = logs(&client).await;

    let restored = Database::blank().await;
    run("pg_restore", &["--no-owner", "--exit-on-error", "--dbname", &restored.url(), &text(&dump)]);
    let kept = logs(&restored.client().await).await;
    assert!((logged_before..=logged_after).contains(&kept), "{logged_before} {kept} {logged_after}");
    let environment = [
        ("DATABASE_URL".to_owned(), restored.url()),
        ("GATEWAY_MASTER_KEY_FILE".to_owned(), text(&keyring)),
        ("LOG_STORE_URL".to_owned(), "file://logs".to_owned()),
    ];
    let mut verify = Process::start("gateway-admin", &["keys", "verify"], &environment, safe.path());
    let verified = verify.ended_within(Duration::from_secs(30)).await;
    assert!(verified.success(), "{}", verify.log());

    // With another keyring nothing opens, and that is said.
    let other = tempfile::tempdir().unwrap();
    let wrong = other.path().join("keyring");
    std::fs::write(&wrong, shared::secrets::seal::Keyring::generate("other").unwrap()).unwrap();
    let environment =
        [environment[0].clone(), ("GATEWAY_MASTER_KEY_FILE".to_owned(), text(&wrong)), environment[2].clone()];
    let mut verify = Process::start("gateway-admin", &["keys", "verify"], &environment, other.path());
    assert!(!verify.ended_within(Duration::from_secs(30)).await.success(), "{}", verify.log());

    // Both processes on the copy: the same key is served with the same stored credential.
    let settings = |builder: harness::stack::Builder| {
        let builder = builder.proxy("DATABASE_URL", restored.url()).admin("DATABASE_URL", restored.url());
        let keyring = text(&keyring);
        builder.proxy("GATEWAY_MASTER_KEY_FILE", &*keyring).admin("GATEWAY_MASTER_KEY_FILE", &*keyring)
    };
    let again = settings(Stack::builder()).start().await;
    stack.mock.reset();
    let answer = asking(&again, &key).post("/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = stack.mock.requests();
    assert!(format!("{seen:?}").contains(KEY), "the provider was asked with the stored credential: {seen:?}");
    let owner = again.anonymous().with_key(&stack.home.admin_key).get("/integrations").await;
    assert_eq!(owner.status, 200, "{}", owner.text());
}
