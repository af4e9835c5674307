//! Objects of every kind, keys, calls and their logs.

use crate::program::User;
use harness::{Stack, until};
use serde_json::json;

#[tokio::test]
async fn a_kind_is_made_listed_shown_and_deleted_by_its_name() {
    let stack = Stack::start().await;
    let workspace = stack.home.workspace_id.to_string();
    let user =
        User::administrator(&stack).with("PORTCULLIS_WORKSPACE", &workspace).with("SECRET", "sk-canary-0123456789");
    user.ok(&[
        "create",
        "integration",
        "openai",
        "-F",
        "ai_provider_id=openai",
        "-F",
        "key=env:SECRET",
        "-F",
        "create_default_provider=false",
    ])
    .await;
    user.ok(&["create", "provider", "eu", "-F", "integration_id=openai"]).await;
    user.ok(&["create", "config", "main", "-F", r#"config={"provider":"@eu"}"#]).await;
    user.ok(&["create", "label", "blue-sky", "-F", "color_code=#00f"]).await;
    user.ok(&[
        "create",
        "policy-rate-limits",
        "ten",
        "-F",
        "type=requests",
        "-F",
        "unit=rpm",
        "-F",
        "value=10",
        "-F",
        r#"conditions=[{"key":"metadata._user","value":"*"}]"#,
        "-F",
        r#"group_by=[{"key":"metadata._user"}]"#,
    ])
    .await;
    for (kind, name) in [
        ("integration", "openai"),
        ("provider", "eu"),
        ("config", "main"),
        ("label", "blue-sky"),
        ("policy-rate-limits", "ten"),
    ] {
        let shown = user.json(&["get", kind, name]).await;
        let listed = user.json(&["list", kind]).await;
        assert!(listed.as_array().unwrap().iter().any(|row| row["id"] == shown["id"]), "{kind}");
        assert!(!shown.to_string().contains("canary"), "{kind}");
    }
    for (kind, name) in [
        ("config", "main"),
        ("provider", "eu"),
        ("integration", "openai"),
        ("label", "blue-sky"),
        ("policy-rate-limits", "ten"),
    ] {
        user.ok(&["delete", kind, name, "--yes"]).await;
        assert_eq!(user.run(&["get", kind, name]).await.code, 1, "{kind}");
    }
    user.ok(&["create", "workspace", "short-lived"]).await;
    user.ok(&["delete", "workspace", "short-lived", "--yes"]).await;
}

#[tokio::test]
async fn an_edit_sends_only_what_was_changed() {
    let stack = Stack::start().await;
    let workspace = stack.home.workspace_id.to_string();
    let editor = "sed -i -e s/gpt-4o/gpt-5/";
    let user = User::administrator(&stack).with("PORTCULLIS_WORKSPACE", &workspace).with("EDITOR", editor);
    user.ok(&["create", "config", "main", "-F", r#"config={"provider":"@p","override_params":{"model":"gpt-4o"}}"#])
        .await;
    let ended = user.run(&["edit", "config", "main", "--yes"]).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("-    model: gpt-4o") && ended.stderr.contains("+    model: gpt-5"),
        "{}",
        ended.stderr
    );
    assert_eq!(user.json(&["get", "config", "main"]).await["data"]["config"]["override_params"]["model"], "gpt-5");
    let again = user.run(&["edit", "config", "main", "--yes"]).await;
    assert!(again.code == 0 && again.stderr.contains("Nothing was changed"), "{}", again.stderr);
    assert_eq!(user.with("EDITOR", "false").run(&["edit", "config", "main", "--yes"]).await.code, 1);
}

#[tokio::test]
async fn a_key_is_made_used_rotated_suspended_and_deleted() {
    let stack = Stack::start().await;
    let workspace = stack.home.workspace_id.to_string();
    let user = User::administrator(&stack).with("PORTCULLIS_WORKSPACE", &workspace);
    let create = ["keys", "create", "checkout", "--rpm", "600", "--budget", "50/month", "--expires", "90d"];
    let secret = user.ok(&create).await.trim().to_owned();
    let made = user.json(&["get", "api-key", "checkout"]).await;
    assert_eq!(made["scopes"], json!(["completions.write", "models.list"]));
    assert_eq!(made["rate_limits"], json!([{ "type": "requests", "unit": "rpm", "value": 600 }]));
    assert_eq!(
        (&made["usage_limits"]["credit_limit"], &made["usage_limits"]["periodic_reset"]),
        (&json!(50), &json!("monthly"))
    );
    stack.until_known(&secret).await;

    user.ok(&["keys", "rotate", "checkout", "--secret-out", "new"]).await;
    let renewed = std::fs::read_to_string(user.path("new")).unwrap().trim().to_owned();
    assert_ne!(renewed, secret);
    stack.until_known(&renewed).await;
    let old = User::new(&stack.base_url, &secret);
    until("the old secret is refused", async || old.run(&["models"]).await.code == 4).await;
    user.ok(&["keys", "suspend", "checkout"]).await;
    let suspended = User::new(&stack.base_url, &renewed);
    until("the key is switched off", async || suspended.run(&["models"]).await.code != 0).await;
    user.ok(&["keys", "resume", "checkout"]).await;
    until("the key is switched on", async || suspended.run(&["models"]).await.code == 0).await;
    let found = user.ok(&["keys", "find", &renewed[renewed.len() - 3..], "-o", "name"]).await;
    assert_eq!(found, "checkout\n");
    user.ok(&["keys", "delete", "checkout", "--yes"]).await;
    assert_eq!(user.ok(&["keys", "list", "-o", "name"]).await, "Test key\n");
}

#[tokio::test]
async fn a_call_is_made_found_followed_and_explained() {
    let stack = Stack::start().await;
    let user = User::new(&stack.base_url, &stack.home.workspace_key);
    let host = format!("x-gateway-custom-host: {}", stack.mock.url());
    let way = ["-H", "x-gateway-provider: openai", "-H", "authorization: Bearer sk-mock", "-H", &host];
    let mut tail = user.command(&["logs", "tail", "-n", "1", "-o", "jsonl"]).spawn().unwrap();
    let ended = user.run(&[&["try", "Hello", "-m", "gpt-4o-mini"][..], &way].concat()).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.contains("mock provider") && ended.stderr.contains("openai by config, 1 tries"),
        "{}",
        ended.all()
    );
    let id = ended.stderr.rsplit(' ').next().unwrap().trim().to_owned();
    let streamed = user.run(&[&["try", "Hello", "-m", "gpt-4o-mini", "--stream"][..], &way].concat()).await;
    assert_eq!(streamed.stdout, ended.stdout, "a stream says the same");

    let admin = User::administrator(&stack);
    until("the call is logged", async || admin.ok(&["logs", "list", "-o", "name"]).await.contains(&id)).await;
    assert!(admin.ok(&["logs", "list", "--status", "4xx,5xx", "-o", "name"]).await.is_empty());
    let found = admin
        .ok(&[
            "logs",
            "list",
            "--status",
            "ok",
            "--model",
            "gpt-4o-mini",
            "-q",
            "tokens>1,cost<1$",
            "--last",
            "1h",
            "-o",
            "name",
        ])
        .await;
    assert!(found.contains(&id));
    assert_eq!(admin.json(&["logs", "show", &id]).await["id"], id);
    let why = admin.ok(&["logs", "why", &id]).await;
    assert!(why.contains("→ config  openai gpt-4o-mini") && why.contains("end       HTTP 200"), "{why}");
    // The follower may have come after the first calls.
    while tail.try_wait().unwrap().is_none() {
        user.run(&[&["try", "Hello", "-m", "gpt-4o-mini"][..], &way].concat()).await;
    }
    let followed = tail.wait_with_output().await.unwrap();
    assert!(String::from_utf8_lossy(&followed.stdout).contains("\"ai_model\":\"gpt-4o-mini\""));

    let usage = admin.ok(&["usage", "--by", "model,api_key", "--last", "1h"]).await;
    assert!(usage.starts_with("gpt-4o-mini\t"), "{usage}");
    let teams = admin.ok(&["usage", "--by", "metadata/team,model", "--last", "1h"]).await;
    assert!(teams.starts_with("\tgpt-4o-mini\t"), "calls without a team: {teams}");
    assert!(admin.ok(&["audit", "list", "-o", "table"]).await.starts_with("TIME"));
    admin.ok(&["budgets"]).await;
}

#[tokio::test]
async fn a_request_is_explained_before_it_is_sent_also_with_a_config_that_is_not_saved() {
    let stack = Stack::start().await;
    let user = User::administrator(&stack).with("PORTCULLIS_WORKSPACE", &stack.home.workspace_id.to_string());
    std::fs::write(user.path("request.yaml"), "model: gpt-4o-mini\nmessages:\n  - { role: user, content: Hi }\n")
        .unwrap();
    std::fs::write(user.path("config.yaml"), "provider: openai\napi_key: sk-x\noverride_params: { model: gpt-9 }\n")
        .unwrap();
    let ended = user.run(&["explain", "-f", "request.yaml", "--config", "config.yaml"]).await;
    assert!(ended.code == 0 && ended.stdout.contains("gpt-9"), "{}", ended.all());
    assert_eq!(user.run(&["explain", "-f", "none.yaml"]).await.code, 1);
}

#[tokio::test]
async fn a_doctor_says_what_is_wrong() {
    let stack = Stack::start().await;
    let user = User::administrator(&stack);
    let well = user.run(&["doctor"]).await;
    assert!(well.code == 0 && well.stdout.contains("ok\tthe key is good"), "{}", well.all());
    let workspace = stack.home.workspace_id.to_string();
    user.ok(&["keys", "create", "short", "-w", &workspace, "--expires", "1d"]).await;
    let found = user.ok(&["doctor"]).await;
    assert!(found.contains("warn\tthe key short ends in"), "{found}");
    user.ok(&[
        "create",
        "integration",
        "nobody",
        "-w",
        &workspace,
        "-F",
        "ai_provider_id=openai",
        "-F",
        "key=sk-1234567890",
        "-F",
        r#"configurations={"custom_host":"http://127.0.0.1:1/v1"}"#,
    ])
    .await;
    assert_eq!(user.run(&["doctor"]).await.code, 0, "providers are asked only on demand");
    let asked = user.run(&["doctor", "--providers"]).await;
    assert!(asked.code == 3 && asked.stdout.contains("fail\tnobody: "), "{}", asked.all());
    assert_eq!(user.with("PORTCULLIS_API_KEY", "pk_wrong").run(&["doctor"]).await.code, 3);
}
