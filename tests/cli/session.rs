//! Who one is, where one is, and how commands end.

use crate::program::User;
use harness::Stack;
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn a_key_is_tried_saved_privately_and_forgotten() {
    let stack = Stack::start().await;
    let user = User::without_gateway();
    assert_eq!(user.run(&["whoami"]).await.code, 4, "nobody is signed in");
    let wrong = user.run_with_input(&["login", &stack.base_url, "--key-stdin"], "pk_wrong\n").await;
    assert_eq!(wrong.code, 4, "{}", wrong.stderr);
    assert!(!user.path(".config/portcullis/config.toml").exists());

    let login = ["login", &stack.base_url, "--key-stdin", "--name", "here"];
    let done = user.run_with_input(&login, &format!("{}\n", stack.home.admin_key)).await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!done.all().contains(&stack.home.admin_key));
    let file = user.path(".config/portcullis/config.toml");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(user.ok(&["whoami"]).await.contains("type\torganisation-service"));
    assert_eq!(user.ok(&["context", "list", "-o", "name"]).await, "here\n");

    // The environment wins, and a saved key never goes to another address.
    let stranger = user.run(&["whoami", "--url", "http://127.0.0.1:1"]).await;
    assert_eq!(stranger.code, 4, "{}", stranger.stderr);
    user.ok(&["whoami", "--url", &stack.base_url]).await;
    // A context that is named means its own address and key.
    let user = user.with("PORTCULLIS_URL", "http://127.0.0.1:1").with("PORTCULLIS_API_KEY", "pk_other");
    assert_eq!(user.run(&["whoami"]).await.code, 1);
    user.ok(&["whoami", "--context", "here"]).await;
    let elsewhere = user.run(&["whoami", "--context", "here", "--url", "http://127.0.0.1:1"]).await;
    assert_eq!(elsewhere.code, 4, "{}", elsewhere.stderr);
    let user = user.with("PORTCULLIS_URL", "").with("PORTCULLIS_API_KEY", "");
    user.ok(&["context", "rm", "here"]).await;
    assert_eq!(user.run(&["whoami"]).await.code, 4);
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&stack.home.admin_key));
}

#[tokio::test]
async fn each_refusal_ends_with_its_number() {
    let stack = Stack::start().await;
    let user = User::administrator(&stack);
    let reader = stack.key(&["configs.list"]).await;
    let reader = User::new(&stack.base_url, &reader);
    let workspace = stack.home.workspace_id.to_string();
    user.ok(&["create", "config", "main", "-w", &workspace, "-F", r#"config={"provider":"@p"}"#]).await;
    for (who, arguments, code, word) in [
        (&user, &["list", "configs"][..], 0, ""),
        (&user, &["list", "planets"], 1, "planets"),
        (&user, &["no-such-command"], 1, ""),
        (&user, &["get", "config", "none", "-w", &workspace], 1, "404"),
        (&reader, &["delete", "config", "main", "--yes"], 5, "configs.read"),
        (&user, &["create", "config", "main", "-w", &workspace, "-F", r#"config={"provider":"@p"}"#], 6, "409"),
        (&user, &["delete", "config", "main", "-w", &workspace], 1, "--yes"),
        (&user, &["whoami", "--url", "http://127.0.0.1:1"], 1, "cannot reach"),
    ] {
        let ended = who.run(arguments).await;
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.all());
        assert!(ended.stderr.contains(word), "{arguments:?}: {}", ended.stderr);
    }
    assert!(user.run(&["--help"]).await.code == 0 && user.run(&["--version"]).await.code == 0);
}

#[tokio::test]
async fn data_is_written_as_it_is_asked_for() {
    let stack = Stack::start().await;
    let user = User::administrator(&stack).with("PORTCULLIS_WORKSPACE", &stack.home.workspace_id.to_string());
    let name = "tab\there \u{1b}[31m\"quoted\", comma";
    user.ok(&[
        "create",
        "guardrail",
        name,
        "-F",
        r#"checks=[{"id":"default.contains","parameters":{"operator":"none","words":["x"]}}]"#,
        "-F",
        "actions={\"deny\":true}",
    ])
    .await;
    let list = |format: &'static str| {
        let user = &user;
        async move { user.ok(&["list", "guardrails", "-o", format]).await }
    };
    let plain = "tab here  [31m\"quoted\", comma";
    assert!(
        user.ok(&["list", "guardrails"]).await.contains(&format!("\t{plain}\tactive\n")),
        "a pipe gets tab-separated values"
    );
    assert!(list("table").await.starts_with("SLUG") && list("wide").await.contains("CHANGED"));
    assert!(list("csv").await.contains("\"tab here  [31m\"\"quoted\"\", comma\""));
    assert_eq!(list("jsonl").await.lines().count(), 1);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&list("json").await).unwrap()[0]["name"], name);
    assert!(list("yaml").await.contains(r#"name: "tab\there \u001b[31m\"quoted\", comma""#));
    assert!(list("name").await.starts_with("pg-"));
}

#[tokio::test]
async fn a_call_is_shown_and_not_made_and_holds_no_secret() {
    let stack = Stack::start().await;
    let user = User::administrator(&stack).with("SECRET", "sk-canary-0123456789");
    let create =
        ["create", "integration", "openai", "-F", "ai_provider_id=openai", "-F", "key=env:SECRET", "--as-curl"];
    let shown = user.run(&create).await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.starts_with("curl -sS -X POST ") && shown.stdout.contains("$PORTCULLIS_API_KEY"));
    assert!(!shown.all().contains("canary") && !shown.all().contains(&stack.home.admin_key));
    assert_eq!(user.json(&["list", "integrations"]).await, serde_json::json!([]));
}

#[tokio::test]
async fn any_operation_can_be_called() {
    let stack = Stack::start().await;
    let user = User::administrator(&stack);
    let workspace = format!("workspace_id={}", stack.home.workspace_id);
    for n in 0..3 {
        user.ok(&["api", "POST", "/labels", "-F", &format!("name=l{n}"), "-F", &workspace]).await;
    }
    let rows = user.ok(&["api", "GET", "/labels", "-F", &workspace, "--paginate"]).await;
    assert_eq!(rows.lines().filter(|row| row.contains("\"name\":\"l")).count(), 3, "{rows}");
    let made = user.json(&["api", "GET", "/labels?search=l1"]).await;
    let path = format!("/labels/{}", made["data"][0]["id"].as_str().unwrap());
    let stale = user.run(&["api", "PUT", &path, "-F", "description=x", "--if-match", "\"stale\""]).await;
    assert_eq!(stale.code, 6, "{}", stale.stderr);
    let document = User::without_gateway().with("PORTCULLIS_URL", &stack.base_url).ok(&["openapi"]).await;
    assert!(document.contains("\"openapi\": \"3"));
}
