//! `gateway-admin prices import` as a process: what it prints, what it stores, and that a bad list changes nothing.

use harness::{Database, Process};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

struct Machine {
    database: Database,
    folder: tempfile::TempDir,
}

impl Machine {
    async fn start() -> Self {
        Self { database: Database::blank().await, folder: tempfile::tempdir().unwrap() }
    }

    fn prices(&self) -> std::path::PathBuf {
        self.folder.path().join("prices")
    }

    async fn import(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let environment = [
            ("DATABASE_URL".to_owned(), self.database.url()),
            ("MODEL_CONFIGS_PRICING_LOCAL_PATH".to_owned(), self.prices().display().to_string()),
        ];
        let arguments = [&["prices", "import"], arguments].concat();
        let mut process = Process::start("gateway-admin", &arguments, &environment, self.folder.path());
        let status = process.ended_within(Duration::from_secs(60)).await;
        (status.code(), process.log())
    }

    fn list(&self, name: &str, list: &Value) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, list.to_string()).unwrap();
        path.display().to_string()
    }
}

fn rate(file: &Path, model: &str) -> Value {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    file[model]["pricing_config"]["pay_as_you_go"]["request_token"]["price"].clone()
}

#[tokio::test]
async fn a_plan_stores_nothing_an_import_does_and_the_file_it_replaces_stays() {
    let machine = Machine::start().await;
    let list = |dollars: f64| {
        json!({ "gpt-new": { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": dollars },
            "fallback_generalizations": { "rules": [] } })
    };
    let first = machine.list("first.json", &list(1e-6));
    let (code, printed) = machine.import(&[&first, "--plan"]).await;
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("new gpt-new: request_token 0.0001"), "{printed}");
    assert!(printed.contains("refused of the list, no model: fallback_generalizations"), "{printed}");
    assert!(!machine.prices().exists());

    let (code, printed) = machine.import(&[&first, "--from", "litellm"]).await;
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("1 files stored"), "{printed}");
    let file = machine.prices().join("openai.json");
    assert_eq!((rate(&file, "gpt-new"), rate(&file, "gpt-4o")), (json!("0.0001"), json!("0.00025")));
    let (_, printed) = machine.import(&[&first]).await;
    assert!(printed.contains("nothing changes"), "{printed}");

    let (code, printed) = machine.import(&[&machine.list("second.json", &list(2e-6))]).await;
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("changed gpt-new: request_token 0.0001 → 0.0002"), "{printed}");
    assert_eq!(rate(&file, "gpt-new"), json!("0.0002"));
    let editions: Vec<_> = std::fs::read_dir(machine.prices().join("editions")).unwrap().map(Result::unwrap).collect();
    assert_eq!(editions.len(), 1);
    assert_eq!(rate(&editions[0].path().join("openai.json"), "gpt-new"), json!("0.0001"));

    for (name, text, problem) in [
        ("short.json", r#"{"gpt-new": {"#, "not a JSON object of rows"),
        (
            "nan.json",
            r#"{"gpt-new": {"litellm_provider": "openai", "input_cost_per_token": NaN}}"#,
            "not a JSON object",
        ),
        ("deep.json", &format!("{{\"a\": {}", "[".repeat(100)), "nested deeper"),
        ("other.json", r#"{"gpt-new": {"price": 1}}"#, "neither LiteLLM's format"),
        ("nobody.json", r#"{"gpt-new": {"pricing_config": {}}}"#, "`nobody` is no provider"),
    ] {
        let path = machine.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let (code, printed) = machine.import(&[&path.display().to_string()]).await;
        assert_eq!(code, Some(1), "{name}: {printed}");
        assert!(printed.contains(problem), "{name}: {printed}");
        assert_eq!(rate(&file, "gpt-new"), json!("0.0002"), "{name}");
    }
    let (code, printed) = machine.import(&[]).await;
    assert_eq!(code, Some(1));
    assert!(printed.contains("MODEL_CONFIGS_PROXY_URL"), "{printed}");
}
