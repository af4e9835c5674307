//! `gateway-admin prices import` as a process beside a service on the same Postgres: what it prints, what it stores and records, what
//! becomes of calls before and after it, and that a bad list changes nothing.

use crate::service::Service;
use harness::{Database, Process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

struct Machine {
    service: Service,
    folder: TempDir,
}

/// The folder of prices within the machine's.
fn prices(folder: &Path) -> PathBuf {
    folder.join("prices")
}

fn setting(folder: &Path) -> String {
    format!("--model-configs-pricing-local-path={}", prices(folder).display())
}

async fn import_at(database_url: String, folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let environment = [
        ("DATABASE_URL".to_owned(), database_url),
        ("MODEL_CONFIGS_PRICING_LOCAL_PATH".to_owned(), prices(folder).display().to_string()),
    ];
    let arguments = [&["prices", "import"], arguments].concat();
    let mut process = Process::start("gateway-admin", &arguments, &environment, folder);
    let status = process.ended_within(Duration::from_secs(60)).await;
    (status.code(), process.log())
}

impl Machine {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { service: Service::start_with(&[&setting(folder.path())]).await, folder }
    }

    /// With another service on the same database, which has read no prices yet.
    async fn restarted(self) -> Self {
        let Self { service, folder } = self;
        let Service { database, .. } = service;
        let url = database.url();
        Self { service: Service::start_on(database, &url, &[&setting(folder.path())]).await, folder }
    }

    fn file(&self, provider: &str) -> PathBuf {
        prices(self.folder.path()).join(format!("{provider}.json"))
    }

    async fn import(&self, arguments: &[&str]) -> (Option<i32>, String) {
        import_at(self.service.database.url(), self.folder.path(), arguments).await
    }

    /// The same of an import that succeeds.
    async fn imported(&self, arguments: &[&str]) -> String {
        let (code, printed) = self.import(arguments).await;
        assert_eq!(code, Some(0), "{printed}");
        printed
    }

    fn list(&self, name: &str, list: &Value) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, list.to_string()).unwrap();
        path.display().to_string()
    }

    /// Every import in the trails, of one organisation after the other.
    async fn recorded(&self) -> Vec<Value> {
        const IMPORTS: &str =
            "SELECT to_jsonb(a) FROM audit_logs a WHERE resource_type = 'prices' AND action = 'import'
            ORDER BY organisation_id, created_at, id";
        let rows = self.service.database.client().await.query(IMPORTS, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// What the log of a call keeps of its price.
    async fn logged(&self, id: &str) -> Value {
        const PRICED: &str =
            "SELECT jsonb_build_object('cost', trim_scale(cost)::text, 'version', price_version, 'prices', unit_prices)
            FROM request_logs WHERE id = $1::text::uuid";
        self.service.database.client().await.query_one(PRICED, &[&id]).await.unwrap().get(0)
    }
}

/// Reports a call of a hundred tokens that are read and ten that are written.
async fn reported(service: &Service, model: &str) -> String {
    let client = service.workspace_client(service.home.workspace_id).await;
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": 10 });
    let call = json!({
        "request": { "url": "https://api.openai.com/v1/chat/completions", "provider": "openai",
            "body": { "model": model, "messages": [{ "role": "user", "content": "Hello" }] } },
        "response": { "status": 200, "body": { "model": model, "choices": [], "usage": usage }, "time": 1 },
    });
    let answer = client.post("/logs", &call).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["log_ids"][0].as_str().unwrap().to_owned()
}

fn rate(file: &Path, model: &str) -> Value {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    file[model]["pricing_config"]["pay_as_you_go"]["request_token"]["price"].clone()
}

/// A row of LiteLLM's list about a chat model.
fn listed(read: f64, written: f64) -> Value {
    json!({ "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": read, "output_cost_per_token": written })
}

#[tokio::test]
async fn a_plan_stores_nothing_an_import_does_and_the_file_it_replaces_stays() {
    let machine = Machine::start().await;
    let list = |dollars: f64| json!({ "gpt-new": listed(dollars, 4e-6), "fallback_generalizations": { "rules": [] } });
    let first = machine.list("first.json", &list(1e-6));
    let printed = machine.imported(&[&first, "--from", "litellm", "--plan"]).await;
    assert!(printed.contains("new gpt-new: request_token 0.0001"), "{printed}");
    assert!(printed.contains("refused of the list, no model: fallback_generalizations"), "{printed}");
    assert!(!prices(machine.folder.path()).exists());
    assert_eq!(machine.recorded().await, Vec::<Value>::new(), "a plan changes nothing");

    let printed = machine.imported(&[&first, "--from", "litellm"]).await;
    assert!(printed.contains("1 files stored"), "{printed}");
    let file = machine.file("openai");
    assert_eq!((rate(&file, "gpt-new"), rate(&file, "gpt-4o")), (json!("0.0001"), json!("0.00025")));
    let printed = machine.imported(&[&first]).await;
    assert!(printed.contains("nothing changes"), "{printed}");
    let recorded = machine.recorded().await;
    assert_eq!(recorded.len(), 1, "what changes nothing is not recorded: {recorded:?}");
    let after = &recorded[0]["after"];
    let counts = &after["providers"]["openai"];
    assert_eq!(
        (&after["source"], &counts["new"], &counts["changed"]),
        (&json!("first.json"), &json!(1), &json!(0)),
        "the name of the file, and not where it is: {after}"
    );

    let printed = machine.imported(&[&machine.list("second.json", &list(2e-6))]).await;
    assert!(printed.contains("changed gpt-new: request_token 0.0001 → 0.0002"), "{printed}");
    assert_eq!(rate(&file, "gpt-new"), json!("0.0002"));
    let editions = prices(machine.folder.path()).join("editions");
    let editions: Vec<_> = std::fs::read_dir(editions).unwrap().map(Result::unwrap).collect();
    assert_eq!(editions.len(), 1);
    assert_eq!(rate(&editions[0].path().join("openai.json"), "gpt-new"), json!("0.0001"));
    let recorded = machine.recorded().await;
    let last = &recorded.last().unwrap()["after"];
    assert_eq!(last["edition"], editions[0].file_name().to_str().unwrap(), "{last}");
    assert_eq!(last["providers"]["openai"]["changed"], 1, "{last}");
}

#[tokio::test]
async fn new_changed_gone_and_refused_rows_are_named_with_the_reason() {
    let machine = Machine::start().await;
    let ours = |models: Value| machine.list("openai.json", &models);
    let row = |cents: &str| json!({ "pricing_config": { "pay_as_you_go": { "request_token": { "price": cents } } } });
    machine
        .imported(&[&ours(
            json!({ "same": row("0.001"), "other": row("0.001"), "old": row("0.001"), "gpt-4o": row("0.00025") }),
        )])
        .await;
    let second = ours(
        json!({ "same": row("0.001"), "other": row("0.002"), "more": row("0.003"), "dear": row("1"), "gpt-4o": row("0.0251"),
        "odd": { "pricing_config": { "pay_as_you_go": { "request_token": { "price": "0.001" }, "cache_read_input_token": { "price": "0.01" } } } } }),
    );
    let plan = machine.imported(&[&second, "--plan"]).await;
    for line in [
        "openai: 1 new, 1 changed, 1 gone, 1 unchanged",
        "  new more: request_token 0.003",
        "  changed other: request_token 0.001 → 0.002",
        "  gone old",
        "refused of openai, usual: request_token is more than a dollar for a thousand: dear",
        "refused of openai, usual: cache_read_input_token is dearer than request_token: odd",
    ] {
        assert!(plan.lines().any(|printed| printed == line), "{line} is not in {plan}");
    }
    assert!(plan.contains("request_token is more than 20 times apart from the 0.00025 of"), "{plan}");
    let printed = machine.imported(&[&second]).await;
    let mut said = plan.lines().filter(|line| line.starts_with("  ") || line.starts_with("refused"));
    assert!(said.all(|line| printed.contains(line)), "the import does what the plan says: {printed}");
    let file = machine.file("openai");
    for (model, cents) in [
        ("same", json!("0.001")),
        ("other", json!("0.002")),
        ("more", json!("0.003")),
        ("old", Value::Null),
        ("dear", Value::Null),
        ("odd", Value::Null),
        // It keeps the price that it has.
        ("gpt-4o", json!("0.00025")),
    ] {
        assert_eq!(rate(&file, model), cents, "{model}");
    }
    let recorded = machine.recorded().await;
    let counts = json!({ "new": 1, "changed": 1, "gone": 1, "unchanged": 1, "refused": 3 });
    assert_eq!(recorded.last().unwrap()["after"]["providers"]["openai"], counts);
    assert!(machine.imported(&[&second]).await.contains("nothing changes"));
}

#[tokio::test]
async fn calls_before_an_import_keep_their_price_and_calls_after_it_have_the_new_one() {
    let machine = Machine::start().await;
    let first = machine.list("first.json", &json!({ "gpt-new": listed(1e-6, 4e-6) }));
    machine.imported(&[&first]).await;
    let before = reported(&machine.service, "gpt-new").await;
    let was = machine.logged(&before).await;
    // 100 × 0.0001 + 10 × 0.0004 cents.
    assert_eq!(was["cost"], "0.014", "{was}");

    machine.imported(&[&machine.list("second.json", &json!({ "gpt-new": listed(2e-6, 4e-6) }))]).await;
    let machine = machine.restarted().await;
    let after = reported(&machine.service, "gpt-new").await;
    let is = machine.logged(&after).await;
    assert_eq!((&is["cost"], &is["prices"]["request_token"]), (&json!("0.024"), &json!("0.0002")), "{is}");
    assert_eq!(machine.logged(&before).await, was, "what was logged stays as it was");
    assert_eq!(was["prices"]["request_token"], "0.0001", "{was}");
    let edition = |log: &Value| log["version"].as_str().unwrap().to_owned();
    assert_ne!(edition(&was), edition(&is));
    for log in [&was, &is] {
        let date = edition(log).split_once('.').map(|(date, _)| date.to_owned()).unwrap();
        assert!(date.parse::<chrono::NaiveDate>().is_ok(), "an edition begins with its day: {log}");
    }
}

#[tokio::test]
async fn every_organisation_has_the_import_in_its_trail_and_finds_it() {
    let machine = Machine::start().await;
    let other = machine.service.organisation().await;
    let list = machine.list("first.json", &json!({ "gpt-new": listed(1e-6, 4e-6) }));
    machine.imported(&[&list]).await;
    let mut organisations: Vec<_> = machine.recorded().await.iter().map(|row| row["organisation_id"].clone()).collect();
    organisations.sort_by_key(Value::to_string);
    let mut expected = [json!(machine.service.home.organisation_id), json!(other.organisation_id)];
    expected.sort_by_key(Value::to_string);
    assert_eq!(organisations, expected);
    let found = machine.service.administrator().get("/audit-logs?resource_type=prices&action=import").await;
    assert_eq!((found.status.as_u16(), &found.json()["total"]), (200, &json!(1)), "{}", found.text());
    let record = &found.json()["records"][0];
    assert_eq!((&record["user_type"], &record["response_status_code"]), (&json!("system"), &json!(200)), "{record}");
}

#[tokio::test]
async fn a_list_of_models_dev_changes_what_it_knows() {
    let machine = Machine::start().await;
    let list = |input: f64| {
        json!({ "openai": { "id": "openai", "models": {
            "gpt-new": { "id": "gpt-new", "cost": { "input": input, "output": 4, "cache_read": 0.5 } },
            "gpt-odd": { "id": "gpt-odd", "cost": { "input": -1 } } } } })
    };
    let first = machine.list("api.json", &list(1.0));
    let printed = machine.imported(&[&first, "--from", "models.dev", "--plan"]).await;
    assert!(printed.contains("new gpt-new: cache_read_input_token 0.00005, request_token 0.0001"), "{printed}");
    assert!(printed.contains("refused of openai, input: -1 is negative: gpt-odd"), "{printed}");
    machine.imported(&[&first, "--from", "models.dev"]).await;
    assert_eq!(rate(&machine.file("openai"), "gpt-new"), json!("0.0001"));
    assert!(machine.imported(&[&first, "--from", "models.dev"]).await.contains("nothing changes"));
    let printed = machine.imported(&[&machine.list("later.json", &list(2.0)), "--from", "models.dev"]).await;
    assert!(printed.contains("changed gpt-new: request_token 0.0001 → 0.0002"), "{printed}");
}

#[tokio::test]
async fn a_broken_list_says_what_is_wrong_and_changes_nothing() {
    let machine = Machine::start().await;
    let list = machine.list("first.json", &json!({ "gpt-new": listed(2e-6, 4e-6) }));
    machine.imported(&[&list]).await;
    let file = machine.file("openai");
    for (name, text, arguments, problem) in [
        ("short.json", r#"{"gpt-new": {"#, &[][..], "not a JSON object of rows"),
        (
            "nan.json",
            r#"{"gpt-new": {"litellm_provider": "openai", "input_cost_per_token": NaN}}"#,
            &[],
            "not a JSON object",
        ),
        ("deep.json", &format!("{{\"a\": {}", "[".repeat(100)), &[], "nested deeper"),
        ("other.json", r#"{"gpt-new": {"price": 1}}"#, &[], "neither LiteLLM's format"),
        ("nobody.json", r#"{"gpt-new": {"pricing_config": {}}}"#, &[], "`nobody` is no provider"),
        ("empty.json", "{}", &["--from", "litellm"], "litellm"),
    ] {
        let path = machine.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let (code, printed) = machine.import(&[&[path.to_str().unwrap()], arguments].concat()).await;
        assert_eq!(code, Some(1), "{name}: {printed}");
        assert!(printed.contains(problem), "{name}: {printed}");
        assert_eq!(rate(&file, "gpt-new"), json!("0.0002"), "{name}");
    }
    let (code, printed) = machine.import(&[]).await;
    assert_eq!(code, Some(1));
    assert!(printed.contains("MODEL_CONFIGS_PROXY_URL"), "{printed}");
    assert_eq!(machine.recorded().await.len(), 1, "the first alone");
}

#[tokio::test]
async fn an_import_that_could_not_be_recorded_stores_nothing() {
    let (database, folder) = (Database::blank().await, tempfile::tempdir().unwrap());
    let list = folder.path().join("list.json");
    std::fs::write(&list, json!({ "gpt-new": listed(1e-6, 4e-6) }).to_string()).unwrap();
    let list = list.display().to_string();
    let (code, printed) = import_at(database.url(), folder.path(), &[&list]).await;
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("imports are recorded in the audit trail"), "{printed}");
    assert!(!prices(folder.path()).exists());
    let (code, printed) = import_at(database.url(), folder.path(), &[&list, "--plan"]).await;
    assert_eq!(code, Some(0), "a plan needs no database: {printed}");
}
