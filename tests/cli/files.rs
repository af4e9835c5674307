//! Files and a gateway: what is found wrong in them, and that a gateway and its export are one.

use crate::program::{User, contents};
use harness::Stack;
use harness::stack::Organisation;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

pub const CANARIES: [(&str, &str); 4] = [
    ("OPENAI_KEY", "sk-canary-openai-0123456789"),
    ("VAULT_TOKEN", "hvs.canary-vault-0123456789"),
    ("MCP_HEADER", "canary-mcp-0123456789"),
    ("AZURE_KEY", "canary-azure-0123456789"),
];

/// One object of each kind, which refer to each other in all ways.
pub const TREE: &str = r##"
kind: workspace
name: market
spec: { name: Market, description: "Where ${env:WHAT} is sold", usage_limits: [{ credit_limit: 500, periodic_reset: monthly }] }
---
kind: secret-reference
name: vault
spec:
  name: Vault
  manager_type: hashicorp_vault
  secret_path: secret/data/app
  auth_config: { vault_auth_type: token, vault_addr: https://vault.test, vault_token: "${env:VAULT_TOKEN}" }
---
kind: integration
name: openai
spec: { name: OpenAI, ai_provider_id: openai, key: "${env:OPENAI_KEY}" }
---
kind: integration
workspace: market
name: own
spec: { name: Own, ai_provider_id: openai, key: "${env:AZURE_KEY}", configurations: { custom_host: "https://own.example.com/v1" } }
---
kind: provider
workspace: market
name: eu
spec:
  name: Europe
  integration_id: own
  note: "costs $5, not ${name}"
  rate_limits: [{ type: requests, unit: rpm, value: 60 }]
---
kind: guardrail
workspace: market
name: No secrets
spec:
  actions: { deny: true }
  checks: [{ id: default.contains, parameters: { operator: none, words: [secret, "no", "1"] } }]
---
kind: config
workspace: market
name: main
spec:
  name: Main
  isDefault: 1
  config: !include main.json
---
kind: label
workspace: market
name: candidate
spec: { color_code: "#00ff00" }
---
kind: collection
workspace: market
name: Texts
---
kind: collection
workspace: market
name: Short texts
spec: { parent_collection_id: "${collection:Texts}" }
---
kind: partial
workspace: market
name: tone
spec: { string: "Be kind.\nBe brief.\n", collection_id: "${collection:Texts}" }
---
kind: prompt
workspace: market
name: greeting
spec:
  collection_id: "${collection:Short texts}"
  string: "{{>${partial:tone}}} Greet {{name}} for $${env:NOTHING}."
  parameters: { model: gpt-4o, temperature: 0.5 }
  virtual_key: eu
---
kind: api-key
workspace: market
name: checkout
spec:
  scopes: [completions.write, models.list]
  usage_limits: { credit_limit: 50, periodic_reset: monthly }
  defaults: { config_id: main }
---
kind: policy-rate-limits
workspace: market
name: ten a minute
spec: { type: requests, unit: rpm, value: 10, conditions: [{ key: metadata._user, value: "*" }], group_by: [{ key: metadata._user }] }
---
kind: policy-usage-limits
workspace: market
name: ten dollars
spec: { type: cost, credit_limit: 10, periodic_reset: monthly, conditions: [{ key: metadata._user, value: "*" }], group_by: [{ key: metadata._user }] }
---
kind: mcp-integration
workspace: market
name: search
spec:
  name: Search
  url: https://mcp.example.com/mcp
  auth_type: headers
  transport: http
  configurations: { custom_headers: { x-key: "${env:MCP_HEADER}" } }
---
kind: mcp-server
workspace: market
name: search-market
spec: { name: Search for the market, mcp_integration_id: search }
---
kind: deployment
name: edge
spec: { name: Edge, type: production }
"##;

pub fn write_tree(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("all.yaml"), TREE).unwrap();
    let config = r#"{"provider": "@eu", "retry": {"attempts": 2}, "input_guardrails": ["${guardrail:No secrets}"]}"#;
    std::fs::write(folder.join("main.json"), config).unwrap();
}

/// Somebody who may administer an organisation and has the secrets in their environment.
pub fn administrator(stack: &Stack, organisation: &Organisation) -> User {
    let user = User::new(&stack.base_url, &organisation.admin_key).with("WHAT", "fruit");
    CANARIES.iter().fold(user, |user, (name, value)| user.with(name, value))
}

pub fn assert_no_secret(texts: impl IntoIterator<Item = String>) {
    for text in texts {
        for (_, canary) in CANARIES {
            assert!(!text.contains(canary), "{canary} stands in: {text}");
        }
    }
}

/// The variables that an export names, with values.
fn filled(user: User, files: &BTreeMap<String, String>) -> User {
    let mut user = user;
    for text in files.values() {
        for part in text.split("${env:").skip(1) {
            user = user.with(part.split('}').next().unwrap(), "secret-0123456789");
        }
    }
    user
}

#[tokio::test]
async fn files_are_checked_without_a_gateway() {
    let user = User::without_gateway().with("WHAT", "fruit");
    write_tree(&user.path("tree"));
    let well = user.run(&["validate", "-f", "tree"]).await;
    assert_eq!((well.code, well.stdout.as_str()), (0, ""), "{}", well.stderr);
    std::fs::write(
        user.path("tree/z.yaml"),
        "kind: label\nworkspace: market\nname: x\nspec:\n  colour: red\n---\na: [\n",
    )
    .unwrap();
    let faulty = user.run(&["validate", "-f", "tree"]).await;
    assert_eq!(faulty.code, 3);
    assert!(faulty.stdout.contains("tree/z.yaml:"), "{}", faulty.stdout);
    std::fs::write(user.path("tree/z.yaml"), "kind: label\nworkspace: market\nname: x\nspec:\n  colour: red\n")
        .unwrap();
    let faulty = user.run(&["validate", "-f", "tree"]).await;
    assert!(faulty.stdout.starts_with("tree/z.yaml:5: a label has no field `colour`"), "{}", faulty.stdout);
}

#[tokio::test]
async fn what_is_exported_and_applied_elsewhere_is_exported_the_same() {
    let stack = Stack::start().await;
    let (first, second) = (stack.organisation().await, stack.organisation().await);
    let user = administrator(&stack, &first);
    write_tree(&user.path("tree"));
    let planned = user.run(&["plan", "-f", "tree"]).await;
    assert_eq!(planned.code, 2, "{}", planned.all());
    assert!(planned.stdout.contains("18 to add, 0 to change, 0 to delete"), "{}", planned.stdout);
    assert_eq!(user.run(&["apply", "-f", "tree", "--as-curl", "--secrets-out", "keys"]).await.code, 1);
    let refused = user.run(&["apply", "-f", "tree"]).await;
    assert!(refused.code == 1 && refused.stderr.contains("--secrets-out"), "{}", refused.all());
    let applied = user.run(&["apply", "-f", "tree", "--secrets-out", "keys"]).await;
    assert_eq!(applied.code, 0, "{}", applied.all());
    let keys = std::fs::read_to_string(user.path("keys")).unwrap();
    assert!(keys.contains("api-key/market/checkout\tpk_") && keys.contains("deployment/edge\tgwd_"), "{keys}");

    // Nothing is left to do, by the lock and without it.
    let again = user.run(&["apply", "-f", "tree"]).await;
    assert!(again.code == 0 && again.stderr.contains("0 objects written, 18 unchanged"), "{}", again.stderr);
    std::fs::rename(user.path("tree/portcullis.lock.json"), user.path("lock.json")).unwrap();
    let anew = user.run(&["plan", "-f", "tree"]).await;
    assert_eq!(anew.code, 0, "{}", anew.all());
    std::fs::rename(user.path("lock.json"), user.path("tree/portcullis.lock.json")).unwrap();

    let exported = user.run(&["export", "-f", "exported"]).await;
    assert_eq!(exported.code, 0, "{}", exported.all());
    let before = contents(&user.path("exported"));
    let user = filled(administrator(&stack, &second), &before);
    copy(&before, &user.path("tree"));
    let applied = user.run(&["apply", "-f", "tree", "--secrets-out", "keys"]).await;
    assert_eq!(applied.code, 0, "{}", applied.all());
    user.ok(&["export", "-f", "exported"]).await;
    let after = contents(&user.path("exported"));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (path, text) in &before {
        assert_eq!(text, &after[path], "{path}");
    }
    assert_eq!(user.run(&["plan", "-f", "exported"]).await.code, 0);
    assert_no_secret(before.into_values().chain([planned.all(), refused.all(), again.all(), exported.all()]));
}

fn copy(files: &BTreeMap<String, String>, folder: &Path) {
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[tokio::test]
async fn a_saved_plan_holds_no_secret_and_neither_does_the_lock() {
    let stack = Stack::start().await;
    let organisation = stack.organisation().await;
    let user = administrator(&stack, &organisation);
    write_tree(&user.path("tree"));
    let planned = user.run(&["plan", "-f", "tree", "--out", "tree/plan.json"]).await;
    let applied = user.run(&["apply", "-f", "tree/plan.json", "--secrets-out", "keys"]).await;
    assert_eq!((planned.code, applied.code), (2, 0), "{}", applied.all());
    std::fs::remove_file(user.path("keys")).unwrap();
    let again = user.run(&["apply", "-f", "tree/plan.json", "--secrets-out", "keys"]).await;
    assert_eq!(again.code, 6, "the plan is older than the state: {}", again.all());
    let saved = std::fs::read_to_string(user.path("tree/plan.json")).unwrap();
    assert!(saved.contains("${env:OPENAI_KEY}"));
    std::fs::remove_file(user.path("tree/plan.json")).unwrap();
    assert_eq!(user.run(&["plan", "-f", "tree"]).await.code, 0);
    let mut texts: Vec<String> = contents(&user.path("tree")).into_values().collect();
    texts.extend([saved, planned.all(), applied.all(), again.all()]);
    assert_no_secret(texts);
    // It did arrive where it belongs: what masks show of it are its ends.
    let shown = user.json(&["get", "integration", "openai"]).await;
    assert_eq!(shown["masked_key"], json!("sk*****789"));
}

#[tokio::test]
async fn a_key_of_a_workspace_exports_and_changes_what_is_its_own() {
    let stack = Stack::start().await;
    let user = User::new(&stack.base_url, &stack.home.workspace_key);
    user.ok(&["create", "config", "main", "-F", r#"config={"provider":"@p"}"#]).await;
    user.ok(&["export", "-f", "tree"]).await;
    let files = contents(&user.path("tree"));
    assert!(files.contains_key("default/config.yaml"), "{:?}", files.keys());
    let text = files["default/config.yaml"].replace("\"@p\"", "\"@q\"");
    std::fs::create_dir(user.path("mine")).unwrap();
    std::fs::write(user.path("mine/config.yaml"), text).unwrap();
    user.ok(&["apply", "-f", "mine"]).await;
    assert_eq!(user.json(&["get", "config", "main"]).await["data"]["config"]["provider"], "@q");
    let secret = "kind: secret-reference\nname: v\nspec: { name: V, manager_type: hashicorp_vault, secret_path: p, auth_config: { vault_auth_type: token, vault_addr: https://vault.test, vault_token: t } }\n";
    std::fs::write(user.path("mine/secret.yaml"), secret).unwrap();
    let refused = user.run(&["apply", "-f", "mine"]).await;
    assert_eq!(refused.code, 5, "{}", refused.all());
}
