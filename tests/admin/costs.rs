//! `gateway-admin costs compare` as a process: a bill against logs in a real Postgres.

use chrono::{DateTime, Utc};
use harness::{Database, Process};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use uuid::Uuid;

const BILL: &str = "start_time,end_time,amount_value,amount_currency,line_item,project_id
1767225600,1767312000,0.10,usd,\"gpt-4o-2024-08-06, input\",proj_a
1767225600,1767312000,0.20,usd,\"gpt-4o-2024-08-06, output\",proj_a
1767312000,1767398400,1,usd,\"o3-2025-04-16, output\",proj_a
";

async fn log(database: &Database, workspace: Uuid, at: &str, provider: &str, model: &str, cents: Option<&str>) {
    const INSERT: &str =
        "INSERT INTO request_logs (id, created_at, organisation_id, workspace_id, ai_org, ai_model, cost,
        request_url, request_method, response_status_code, response_time, trace_id, internal_trace_id)
        VALUES ($1, $2, $3, $3, $4, $5, $6::text::numeric, '/v1/chat/completions', 'POST', 200, 1, 't', $1)";
    let (client, at): (_, DateTime<Utc>) = (database.client().await, at.parse().unwrap());
    client.execute("SELECT request_logs_day($1)", &[&at.date_naive()]).await.unwrap();
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&Uuid::now_v7(), &at, &workspace, &provider, &model, &cents];
    client.execute(INSERT, &values).await.unwrap();
}

async fn compare(database: &Database, folder: &Path, bill: &str, more: &[&str]) -> (Option<i32>, String) {
    let file = folder.join("bill.csv");
    std::fs::write(&file, bill).unwrap();
    let path = file.display().to_string();
    let environment = [("DATABASE_URL".to_owned(), database.url())];
    let arguments = [&["costs", "compare", &path], more].concat();
    let mut process = Process::start("gateway-admin", &arguments, &environment, folder);
    let status = process.ended_within(Duration::from_secs(60)).await;
    (status.code(), process.log())
}

/// The words of a line that begins with a day and a model.
fn line<'a>(printed: &'a str, day: &str, model: &str) -> Vec<&'a str> {
    let words = |line: &'a str| line.split_whitespace().collect::<Vec<_>>();
    printed
        .lines()
        .map(words)
        .find(|words| words.starts_with(&[day, model]))
        .unwrap_or_else(|| panic!("{model} in {printed}"))
}

#[tokio::test]
async fn a_bill_is_compared_with_the_logs_of_its_provider_by_day_and_model() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    for (workspace, at, provider, model, cents) in [
        (one, "2026-01-01T00:00:00Z", "openai", "gpt-4o-2024-08-06", Some("10.0000000001")),
        (other, "2026-01-01T23:59:59.999Z", "openai", "gpt-4o", Some("20")),
        (one, "2026-01-01T12:00:00Z", "openai", "gpt-4o", None),
        (one, "2026-01-02T00:00:00Z", "openai", "gpt-4.1", Some("5")),
        // Of another provider, and of days that the bill is not about.
        (one, "2026-01-01T12:00:00Z", "azure-openai", "gpt-4o", Some("99")),
        (one, "2025-12-31T23:59:59.999Z", "openai", "gpt-4o", Some("99")),
        (one, "2026-01-03T00:00:00Z", "openai", "gpt-4o", Some("99")),
    ] {
        log(&database, workspace, at, provider, model, cents).await;
    }
    let (code, printed) = compare(&database, folder.path(), BILL, &[]).await;
    assert_eq!(code, Some(0), "{printed}");
    let expected = [
        "2026-01-01",
        "gpt-4o",
        "0.300000000001",
        "0.3",
        "0.000000000001",
        "0",
        "%",
        "1",
        "call",
        "of",
        "unknown",
        "price",
    ];
    assert_eq!(line(&printed, "2026-01-01", "gpt-4o"), expected);
    assert_eq!(line(&printed, "2026-01-02", "gpt-4.1")[2..], ["0.05", "none", "0.05", "-"]);
    assert_eq!(line(&printed, "2026-01-02", "o3")[2..], ["none", "1", "-1", "-100", "%"]);
    assert_eq!(line(&printed, "total", "openai")[2..6], ["0.350000000001", "1.3", "-0.949999999999", "-73.1"]);
    assert!(!printed.contains("2025-12-31") && !printed.contains("2026-01-03"), "{printed}");

    let workspace = other.to_string();
    let (code, printed) = compare(&database, folder.path(), BILL, &["--workspace", &workspace, "--json"]).await;
    assert_eq!(code, Some(0), "{printed}");
    let json = printed.lines().find(|line| line.starts_with("{\"provider\"")).unwrap_or_else(|| panic!("{printed}"));
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!((&json["rows"][0]["ours"], &json["total"]["ours"]), (&"0.2".into(), &"0.2".into()), "{json}");
    assert_eq!(json["rows"].as_array().unwrap().len(), 2, "{json}");
}

#[tokio::test]
async fn a_bad_row_is_reported_with_its_line_and_a_file_of_another_kind_with_what_it_lacks() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let (code, printed) = compare(&database, folder.path(), &format!("{BILL}1767225600,1,much,usd,o3,p\n"), &[]).await;
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("line 5 is left out: `much` is no amount"), "{printed}");
    assert_eq!(line(&printed, "total", "openai")[2..], ["none", "1.3", "-1.3", "-100", "%"]);
    let (code, printed) = compare(&database, folder.path(), "a,b\n1,2\n", &[]).await;
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("Anthropic's export of costs lacks `usage_date_utc` and `cost_usd`"), "{printed}");
}
