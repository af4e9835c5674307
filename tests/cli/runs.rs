//! Runs that meet trouble: interrupted ones, two at once, changes by others, deletions.

use crate::files::{administrator, write_tree};
use crate::program::User;
use harness::Stack;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const CONFIG: &str = "kind: config\nworkspace: default\nname: main\nspec:\n  name: Main\n  config: { provider: \"@p\", retry: { attempts: 2 } }\n";

async fn prepared(stack: &Stack) -> (User, String) {
    let organisation = stack.organisation().await;
    let user = administrator(stack, &organisation);
    std::fs::create_dir(user.path("tree")).unwrap();
    std::fs::write(user.path("tree/config.yaml"), CONFIG).unwrap();
    user.ok(&["apply", "-f", "tree"]).await;
    (user.with("PORTCULLIS_WORKSPACE", &organisation.workspace_id.to_string()), organisation.admin_key)
}

#[tokio::test]
async fn a_change_in_the_file_is_made_and_one_by_others_is_a_conflict() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    std::fs::write(user.path("tree/config.yaml"), CONFIG.replace("attempts: 2", "attempts: 3")).unwrap();
    let planned = user.run(&["plan", "-f", "tree"]).await;
    assert!(planned.code == 2 && planned.stdout.contains("config.retry.attempts  2 → 3"), "{}", planned.all());
    assert_eq!(user.run(&["diff", "config/default/main", "-f", "tree"]).await.code, 2);
    user.ok(&["apply", "-f", "tree"]).await;
    assert_eq!(user.run(&["drift", "-f", "tree"]).await.code, 0);

    user.ok(&[
        "api",
        "PUT",
        "/configs/main",
        "-F",
        r#"config={"provider":"@other"}"#,
        "-F",
        &workspace_field(&user).await,
    ])
    .await;
    let drifted = user.run(&["drift", "-f", "tree"]).await;
    assert_eq!(drifted.code, 2, "{}", drifted.all());
    assert!(drifted.stdout.starts_with("config/default/main\tconfig\t"), "{}", drifted.stdout);
    assert!(!drifted.stdout.contains("\t?\t"), "the trail names who: {}", drifted.stdout);
    let refused = user.run(&["apply", "-f", "tree"]).await;
    assert!(refused.code == 6 && refused.stdout.contains("≠ config/default/main"), "{}", refused.all());
    user.ok(&["apply", "-f", "tree", "--take-over"]).await;
    assert_eq!(user.json(&["get", "config", "main"]).await["data"]["config"]["retry"]["attempts"], 3);
    assert_eq!(user.run(&["plan", "-f", "tree"]).await.code, 0);
}

async fn workspace_field(user: &User) -> String {
    let workspaces = user.json(&["list", "workspaces"]).await;
    format!("workspace_id={}", workspaces[0]["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_saved_plan_is_refused_when_somebody_was_faster() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    std::fs::write(user.path("tree/config.yaml"), CONFIG.replace("attempts: 2", "attempts: 4")).unwrap();
    user.run(&["plan", "-f", "tree", "--out", "plan.json"]).await;
    std::fs::copy(user.path("tree/portcullis.lock.json"), user.path("portcullis.lock.json")).unwrap();
    // Two that start from the same plan, at once: one of them has not seen what it would overwrite.
    let (one, other) = tokio::join!(user.run(&["apply", "-f", "plan.json"]), user.run(&["apply", "-f", "plan.json"]));
    let mut codes = [one.code, other.code];
    codes.sort_unstable();
    assert_eq!(codes, [0, 6], "{}\n{}", one.all(), other.all());
    assert_eq!(user.json(&["get", "config", "main"]).await["data"]["config"]["retry"]["attempts"], 4);
}

#[tokio::test]
async fn nothing_is_deleted_that_is_not_ours_or_not_asked_for() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    let workspace = workspace_field(&user).await;
    user.ok(&[
        "api",
        "POST",
        "/configs",
        "-F",
        "name=Theirs",
        "-F",
        "slug=theirs",
        "-F",
        r#"config={"provider":"@p"}"#,
        "-F",
        &workspace,
    ])
    .await;
    std::fs::write(user.path("tree/config.yaml"), "").unwrap();
    let planned = user.run(&["plan", "-f", "tree"]).await;
    assert!(
        planned.code == 2
            && planned.stdout.contains("- config/default/main")
            && planned.stdout.contains("(1 held back)"),
        "{}",
        planned.all()
    );
    user.ok(&["apply", "-f", "tree"]).await;
    user.ok(&["get", "config", "main"]).await;
    user.ok(&["apply", "-f", "tree", "--prune", "--max-deletes", "0"]).await;
    user.ok(&["get", "config", "main"]).await;
    user.ok(&["apply", "-f", "tree", "--prune"]).await;
    assert_eq!(user.run(&["get", "config", "main"]).await.code, 1);
    user.ok(&["get", "config", "theirs"]).await;
    assert_eq!(user.run(&["plan", "-f", "tree"]).await.code, 0);
}

/// A key's defaults are completed by the server: what a file does not say of them is nobody's change.
#[tokio::test]
async fn parts_of_a_field_that_others_set_are_neither_drift_nor_conflict() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    let key = "kind: api-key\nworkspace: default\nname: app\nspec: { scopes: [completions.write], defaults: { metadata: { team: search } } }\n";
    std::fs::write(user.path("tree/key.yaml"), key).unwrap();
    user.ok(&["apply", "-f", "tree", "--secrets-out", "keys"]).await;
    let id = user.json(&["get", "api-key", "app"]).await["id"].as_str().unwrap().to_owned();
    let set = |defaults: &'static str| {
        let (user, path) = (&user, format!("/api-keys/{id}"));
        async move { user.ok(&["api", "PUT", &path, "-F", &format!("defaults={defaults}")]).await }
    };
    set(r#"{"metadata":{"team":"search"},"cost_in_answers":false}"#).await;
    assert_eq!(user.run(&["drift", "-f", "tree"]).await.code, 0);
    assert_eq!(user.run(&["plan", "-f", "tree"]).await.code, 0);
    let defaults = async || user.json(&["get", "api-key", "app"]).await["defaults"].clone();
    assert_eq!(defaults().await["cost_in_answers"], json!(false));
    std::fs::write(user.path("tree/key.yaml"), key.replace("search", "found")).unwrap();
    user.ok(&["apply", "-f", "tree"]).await;
    assert_eq!(defaults().await["metadata"], json!({ "team": "found" }));
    assert_eq!(defaults().await["cost_in_answers"], json!(false), "a part that is not ours stays");
    set(r#"{"metadata":{"team":"other"}}"#).await;
    assert!(user.run(&["drift", "-f", "tree"]).await.stdout.starts_with("api-key/default/app\tdefaults.metadata\t"));
    assert_eq!(user.run(&["apply", "-f", "tree"]).await.code, 6);
}

/// The program is killed after each of its first writes in turn; running it again always comes to the same end.
#[tokio::test]
async fn a_run_that_was_killed_at_any_write_is_finished_by_the_next() {
    let stack = Stack::start().await;
    for writes in 1..=6 {
        let organisation = stack.organisation().await;
        let user = administrator(&stack, &organisation);
        write_tree(&user.path("tree"));
        let kill = ["apply", "-f", "tree", "--secrets-out", "keys", "--parallel", "1"];
        let mut child = user.command(&kill).spawn().unwrap();
        let lock = user.path("tree/portcullis.lock.json");
        let written = || {
            let text = std::fs::read_to_string(&lock).unwrap_or_default();
            text.matches("applied_at").count()
        };
        while written() < writes * 3 - 2 && child.try_wait().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        child.kill().await.unwrap();
        let again = user.run(&["apply", "-f", "tree", "--secrets-out", "keys"]).await;
        assert_eq!(again.code, 0, "after {writes}: {}", again.all());
        let planned = user.run(&["plan", "-f", "tree"]).await;
        assert_eq!(planned.code, 0, "after {writes}: {}", planned.all());
        let listed = user.json(&["list", "guardrails"]).await;
        assert_eq!(listed.as_array().unwrap().len(), 1, "nothing is made twice");
    }
}

#[tokio::test]
async fn only_what_is_managed_is_changed_and_what_cannot_be_done_leaves_the_rest() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    let workspace = workspace_field(&user).await;
    let policy = r#"kind: policy-rate-limits
workspace: default
name: ten
manage: [value]
spec: { type: requests, unit: rpm, value: 10, conditions: [{ key: metadata._user, value: "*" }], group_by: [{ key: metadata._user }] }
"#;
    std::fs::write(user.path("tree/policy.yaml"), policy).unwrap();
    user.ok(&["apply", "-f", "tree"]).await;
    let id = user.json(&["get", "policy-rate-limits", "ten"]).await["id"].as_str().unwrap().to_owned();
    let path = format!("/policies/rate-limits/{id}");
    user.ok(&["api", "PUT", &path, "-F", "unit=rph"]).await;
    assert_eq!(user.run(&["plan", "-f", "tree"]).await.code, 0, "the unit is not ours");

    let broken = "---\nkind: provider\nworkspace: default\nname: lost\nspec: { name: Lost, integration_id: none }\n---\nkind: label\nworkspace: default\nname: fine\n";
    std::fs::write(user.path("tree/more.yaml"), broken).unwrap();
    let ended = user.run(&["apply", "-f", "tree"]).await;
    assert_eq!(ended.code, 1, "{}", ended.all());
    assert!(ended.stderr.contains("provider/default/lost: "), "{}", ended.stderr);
    assert_eq!(user.json(&["get", "label", "fine"]).await["name"], json!("fine"));
    let _ = workspace;
}

#[tokio::test]
async fn one_file_of_a_folder_says_nothing_about_what_stands_in_the_others() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    std::fs::write(user.path("tree/label.yaml"), "kind: label\nworkspace: default\nname: fine\n").unwrap();
    let pruned = user.run(&["apply", "-f", "tree/label.yaml", "--prune"]).await;
    assert!(pruned.code == 1 && pruned.stderr.contains("--prune"), "{}", pruned.all());
    user.ok(&["apply", "-f", "tree/label.yaml"]).await;
    assert_eq!(user.run(&["plan", "-f", "tree/label.yaml"]).await.code, 0);
    user.ok(&["get", "config", "main"]).await;
    std::fs::write(user.path("tree/empty.yaml"), "other: 1\n").unwrap();
    assert_eq!(user.run(&["plan", "-f", "tree/empty.yaml"]).await.code, 1);
}

#[tokio::test]
async fn a_field_that_cannot_be_changed_is_a_step_that_cannot_be_done() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    let secret = "kind: secret-reference\nname: v\nspec: { name: V, manager_type: hashicorp_vault, secret_path: secret/data/app, auth_config: { vault_auth_type: token, vault_addr: https://vault.test, vault_token: hvs.canary-0123456789 } }\n";
    std::fs::write(user.path("tree/secret.yaml"), secret).unwrap();
    user.ok(&["apply", "-f", "tree"]).await;
    let lock = std::fs::read_to_string(user.path("tree/portcullis.lock.json")).unwrap();
    std::fs::write(user.path("tree/secret.yaml"), secret.replace("hashicorp_vault", "aws_sm")).unwrap();
    let planned = user.run(&["plan", "-f", "tree"]).await;
    assert!(planned.code == 2 && planned.stdout.contains("! secret-reference/v"), "{}", planned.all());
    let applied = user.run(&["apply", "-f", "tree"]).await;
    assert!(applied.code == 1 && applied.stderr.contains("manager_type cannot be changed"), "{}", applied.all());
    assert_eq!(std::fs::read_to_string(user.path("tree/portcullis.lock.json")).unwrap(), lock);
}

#[tokio::test]
async fn nothing_is_made_where_its_secret_could_not_be_written() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    let key = "kind: api-key\nworkspace: default\nname: app\nspec: { scopes: [completions.write] }\n";
    std::fs::write(user.path("tree/key.yaml"), key).unwrap();
    std::fs::write(user.path("open"), "").unwrap();
    std::fs::set_permissions(user.path("open"), std::fs::Permissions::from_mode(0o644)).unwrap();
    for file in ["none/keys", "open"] {
        assert_eq!(user.run(&["apply", "-f", "tree", "--secrets-out", file]).await.code, 1);
        assert_eq!(user.run(&["keys", "create", "app", "--secret-out", file]).await.code, 1);
    }
    assert_eq!(user.run(&["get", "api-key", "app"]).await.code, 1, "no key was made");
}

#[tokio::test]
async fn a_reader_that_has_gone_does_not_change_how_a_command_ends() {
    let stack = Stack::start().await;
    let (user, _) = prepared(&stack).await;
    std::fs::write(user.path("tree/config.yaml"), CONFIG.replace("attempts: 2", "attempts: 3")).unwrap();
    let mut child = user.command(&["plan", "-f", "tree"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().await.unwrap().code(), Some(2));
}
