//! `gateway-dev run`, `gateway-dev test`.

use super::*;
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test]
async fn the_printed_commands_answer_when_pasted() {
    let desk = Desk::new();
    let supervisor = desk.start_ready().await;
    let commands = printed_commands(&supervisor.0.log());
    assert_eq!(commands.len(), 2, "{}", supervisor.0.log());
    let plain: serde_json::Value = serde_json::from_str(&shell(&commands[0])).unwrap();
    assert_eq!(plain["object"], "chat.completion");
    let stream = shell(&commands[1]);
    assert!(stream.starts_with("data: ") && stream.trim_end().ends_with("data: [DONE]"), "{stream}");
}

#[tokio::test]
async fn the_environment_file_is_private_and_everything_it_names_answers() {
    let desk = Desk::new();
    let _supervisor = desk.start_ready().await;
    for name in ["env", "keys"] {
        let mode = std::fs::metadata(desk.run_dir().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let environment = desk.environment();
    let mut names: Vec<_> = environment.keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = [
        "ADMIN_BASE_URL",
        "DATABASE_URL",
        "GATEWAY_ADMIN_KEY",
        "GATEWAY_BASE_URL",
        "GATEWAY_WORKSPACE_KEY",
        "METRICS_URL",
        "MOCK_PROVIDER_URL",
    ];
    assert_eq!(names, expected);
    for (name, path) in [("GATEWAY_BASE_URL", ""), ("METRICS_URL", "")] {
        let address = environment[name].trim_end_matches("/v1");
        assert_eq!(Client::new(address).get(path).await.status, 200, "{name}");
    }
    assert_eq!(desk.chat_status().await, 200);
    let admin = Client::new(&environment["ADMIN_BASE_URL"]);
    assert_eq!(admin.get("/admin/workspaces").await.status, 401);
    let known = admin.with_key(&environment["GATEWAY_ADMIN_KEY"]).get("/admin/workspaces").await;
    assert_ne!(known.status, 401, "{}", known.text());
}

#[tokio::test]
async fn an_interrupt_stops_everything_and_the_next_start_has_the_same_keys() {
    let desk = Desk::new();
    let mut first = desk.start_ready().await;
    let (programs, before) = (desk.programs(), desk.environment());
    assert_eq!(programs.len(), 3);
    first.0.signal(Signal::INT);
    let status = first.0.ended_within(Duration::from_secs(30)).await;
    assert!(status.success(), "{status}");
    assert!(programs.iter().all(|pid| !process::is_running(*pid)), "a program outlived its supervisor");
    assert!(!desk.run_dir().join("env").exists(), "scripts would find a stack that is gone");
    assert!(!desk.run_dir().join("postgres/data/postmaster.pid").exists(), "Postgres still runs");

    // Also from a shell that has read the environment file.
    let _second = desk.start_with(&[("DATABASE_URL", &before["DATABASE_URL"])]).await;
    assert!(desk.environment() == before, "keys or addresses changed");
    assert_eq!(desk.chat_status().await, 200);
}

#[tokio::test]
async fn whatever_ends_a_supervisor_politely_ends_its_postgres_too() {
    for signal in [Signal::TERM, Signal::HUP] {
        let desk = Desk::new();
        let mut early = desk.start();
        let pid = desk.run_dir().join("postgres/data/postmaster.pid");
        assert!(process::wait_until(Duration::from_secs(60), || pid.exists()), "{}", early.0.log());
        early.0.signal(signal);
        let status = early.0.ended_within(Duration::from_secs(60)).await;
        assert!(status.success(), "{signal:?} while starting: {status} {}", early.0.log());
        assert!(!pid.exists(), "{signal:?} while starting");
        let mut ready = desk.start_ready().await;
        let programs = desk.programs();
        ready.0.signal(signal);
        let status = ready.0.ended_within(Duration::from_secs(60)).await;
        assert!(status.success(), "{signal:?} when ready: {status} {}", ready.0.log());
        assert!(!pid.exists() && programs.iter().all(|pid| !process::is_running(*pid)), "{signal:?} when ready");
    }
}

#[tokio::test]
async fn the_workspace_key_can_report_a_call_make_a_policy_and_have_a_request_explained() {
    let desk = Desk::new();
    let _supervisor = desk.start_ready().await;
    let environment = desk.environment();
    let client = Client::new(&environment["GATEWAY_BASE_URL"]).with_key(&environment["GATEWAY_WORKSPACE_KEY"]);
    let log = serde_json::json!({ "request": { "url": "/x", "body": null }, "response": { "body": null } });
    let reported = client.post("/logs", &log).await;
    assert_eq!(reported.status, 200, "{}", reported.text());
    let policy = serde_json::json!({
        "type": "requests", "unit": "rpm", "value": 100, "group_by": [{ "key": "api_key" }],
        "conditions": [{ "key": "metadata._user", "value": "*" }],
    });
    let made = client.post("/policies/rate-limits", &policy).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let request = serde_json::json!({ "path": "/v1/chat/completions", "body": harness::chat("Hello") });
    let explained = client.post("/explain", &request).await;
    assert_eq!(explained.status, 200, "{}", explained.text());
    let (database, connection) =
        tokio_postgres::connect(&environment["DATABASE_URL"], tokio_postgres::NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    let kept = database.query_one("SELECT count(*) FROM rate_limits_policies", &[]).await.unwrap();
    assert_eq!(kept.get::<_, i64>(0), 1);
    drop(database);
    let _ = driver.await;
}

#[tokio::test]
async fn a_killed_supervisor_leaves_nothing_that_stops_the_next_one() {
    let desk = Desk::new();
    let mut first = desk.start_ready().await;
    let (orphans, before) = (desk.programs(), desk.environment());
    first.0.kill();
    assert!(orphans.iter().any(|pid| process::is_running(*pid)), "without orphans this test proves nothing");
    std::fs::remove_file(desk.run_dir().join("env")).unwrap();
    let second = desk.start_ready().await;
    assert!(second.0.log().contains("an earlier run left behind"), "{}", second.0.log());
    assert!(orphans.iter().all(|pid| !process::is_running(*pid)));
    assert!(desk.environment() == before, "keys or addresses changed");
    assert_eq!(desk.chat_status().await, 200);
}

#[tokio::test]
async fn a_second_supervisor_in_the_same_folder_says_who_has_it() {
    let desk = Desk::new();
    let first = desk.start_ready().await;
    let mut second = desk.start();
    let status = second.0.ended_within(Duration::from_secs(30)).await;
    assert!(!status.success());
    assert!(second.0.log().contains(&format!("in use by process {}", first.0.pid())), "{}", second.0.log());
    assert_eq!(desk.chat_status().await, 200, "the first one must not notice");
}

#[tokio::test]
async fn a_taken_port_is_named_with_its_setting() {
    let desk = Desk::new();
    let _thief = std::net::TcpListener::bind(("127.0.0.1", desk.ports[1].port())).unwrap();
    let mut supervisor = desk.start();
    let status = supervisor.0.ended_within(Duration::from_secs(30)).await;
    assert!(!status.success());
    assert!(supervisor.0.log().contains("set ADMIN_PORT"), "{}", supervisor.0.log());
}

#[tokio::test]
async fn when_a_program_dies_the_rest_is_stopped_and_the_exit_says_so() {
    let desk = Desk::new();
    let mut supervisor = desk.start_ready().await;
    let programs = desk.programs();
    process::signal(*programs.last().unwrap(), Signal::KILL).unwrap();
    let status = supervisor.0.ended_within(Duration::from_secs(30)).await;
    assert_eq!(status.code(), Some(1));
    assert!(supervisor.0.log().contains("proxy ended by itself"), "{}", supervisor.0.log());
    assert!(programs.iter().all(|pid| !process::is_running(*pid)));
}

#[tokio::test]
async fn a_given_database_is_used_as_it_is() {
    let database = harness::Database::blank().await;
    let desk = Desk::new();
    let supervisor = desk.start_with(&[("DATABASE_URL", &database.url())]).await;
    assert_eq!(desk.chat_status().await, 200);
    assert!(!desk.run_dir().join("postgres").exists());
    let keys = "SELECT count(*) FROM api_keys";
    assert_eq!(database.client().await.query_one(keys, &[]).await.unwrap().get::<_, i64>(0), 2);
    drop(supervisor);
}

#[test]
fn the_test_command_brings_a_database_and_returns_the_exit_code_of_what_it_ran() {
    let folder = tempfile::tempdir().unwrap();
    let command = r#"test -n "$TEST_DATABASE_URL" && exit 7"#;
    let mut run = Process::start("gateway-dev", &["test", "--", "sh", "-c", command], &[], folder.path());
    assert!(process::wait_until(Duration::from_secs(60), || run.has_ended().is_some()));
    assert_eq!(run.has_ended().unwrap().code(), Some(7), "{}", run.log());
}
