//! The hash chain against somebody who may do everything in the database: triggers are off, rows are edited, removed,
//! added, moved, and the command must say which.

use crate::jobs::{admin_on, run};
use crate::service::Service;
use admin::audit::chain::{self, ChainEnd};
use admin::audit::verify::{ChainReport, verify};
use futures::future::join_all;
use serde_json::json;
use std::collections::BTreeSet;
use tokio_postgres::Client;
use uuid::Uuid;

async fn labels(service: &Service, names: &[&str]) {
    for name in names {
        assert_eq!(service.administrator().post("/labels", &json!({ "name": name })).await.status, 200);
    }
}

/// Five chained records, and a copy of them to come back to.
async fn five() -> (Service, Client) {
    let service = Service::start().await;
    labels(&service, &["a", "b", "c", "d", "e"]).await;
    run(&admin_on(&service.database).await, "chain_audit").await;
    let client = service.database.client().await;
    let copies = "CREATE TABLE logs_copy AS TABLE audit_logs; CREATE TABLE chains_copy AS TABLE audit_chains";
    client.batch_execute(copies).await.unwrap();
    // Like ALTER TABLE … DISABLE TRIGGER, for this session.
    client.batch_execute("SET session_replication_role = replica").await.unwrap();
    (service, client)
}

async fn restore(client: &Client) {
    let restore = "TRUNCATE audit_logs, audit_chains; INSERT INTO audit_logs SELECT * FROM logs_copy;
                   INSERT INTO audit_chains SELECT * FROM chains_copy";
    client.batch_execute(restore).await.unwrap();
}

async fn report(client: &mut Client, organisation: Uuid, anchor: Option<ChainEnd>) -> ChainReport {
    let mut reports = verify(client, Some(organisation), anchor).await.unwrap();
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

async fn id_at(client: &Client, sequence: i64) -> Uuid {
    client.query_one("SELECT id FROM logs_copy WHERE sequence = $1", &[&sequence]).await.unwrap().get(0)
}

#[tokio::test]
async fn each_organisation_has_a_chain_of_its_own_that_goes_on_where_it_ended() {
    let service = Service::start().await;
    let (app, mut client) = (admin_on(&service.database).await, service.database.client().await);
    let other = service.organisation().await;
    let stranger = service.client().with_key(&other.admin_key.key);
    assert_eq!(report(&mut client, other.organisation_id, None).await.records, 0);
    labels(&service, &["a", "b"]).await;
    assert_eq!(stranger.post("/labels", &json!({ "name": "a" })).await.status, 200);
    let waiting = report(&mut client, service.home.organisation_id, None).await;
    assert_eq!((waiting.records, waiting.waiting, waiting.is_intact()), (0, 2, true), "{waiting}");
    assert_eq!(run(&app, "chain_audit").await, 3);
    labels(&service, &["c"]).await;
    assert_eq!(stranger.post("/labels", &json!({ "name": "a" })).await.status, 409, "failures are chained too");
    assert_eq!(run(&app, "chain_audit").await, 2);
    for (organisation, records) in [(service.home.organisation_id, 3), (other.organisation_id, 2)] {
        let report = report(&mut client, organisation, None).await;
        assert!(report.is_intact(), "{report}");
        assert_eq!((report.records, report.waiting, report.end.unwrap().sequence), (records, 0, records as i64));
    }
    let all = verify(&mut client, None, None).await.unwrap();
    assert!(all.len() == 2 && all.iter().all(ChainReport::is_intact));
    let nobody = verify(&mut client, Some(Uuid::new_v4()), None).await.unwrap_err();
    assert!(nobody.to_string().contains("there is no organisation"), "{nobody}");
}

#[tokio::test]
async fn records_written_while_two_admins_chain_are_each_chained_once() {
    let service = Service::start().await;
    let (one, other) = (admin_on(&service.database).await, admin_on(&service.database).await);
    let administrator = service.administrator();
    let write = async |n: usize| {
        let answer = administrator.post("/labels", &json!({ "name": format!("l-{n}") })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    let job = admin::jobs::JOBS.iter().find(|job| job.name == "chain_audit").unwrap();
    let chain = async |app: &admin::App| {
        for _ in 0..10 {
            let again = "UPDATE jobs SET next_run_at = now() WHERE name = 'chain_audit'";
            app.db.get().await.unwrap().batch_execute(again).await.unwrap();
            admin::jobs::attempt(app, job).await.unwrap();
        }
    };
    tokio::join!(join_all((0..40).map(write)), chain(&one), chain(&other));
    run(&one, "chain_audit").await;
    let report = report(&mut service.database.client().await, service.home.organisation_id, None).await;
    assert!(report.is_intact() && report.records == 40 && report.waiting == 0, "{report}");
}

#[tokio::test]
async fn every_column_of_a_record_is_hashed() {
    let service = Service::start().await;
    let columns = "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'audit_logs'";
    let rows = service.database.client().await.query(columns, &[]).await.unwrap();
    let words: BTreeSet<&str> = chain::FIELDS.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for row in rows {
        let column: &str = row.get(0);
        let is_chain = ["sequence", "previous_hash", "hash"].contains(&column);
        assert!(is_chain || words.contains(column), "`{column}` could be edited without anybody noticing");
    }
}

#[tokio::test]
async fn an_edit_of_any_column_is_found_and_named() {
    let (service, mut client) = five().await;
    for edit in [
        "workspace_id = gen_random_uuid()",
        "created_at = created_at + interval '1 microsecond'",
        "user_id = gen_random_uuid()",
        "user_id = NULL",
        "user_type = 'user'",
        "api_key_id = NULL",
        "method = 'GET'",
        "uri = uri || '/'",
        "query_params = '{\"x\": 1}'",
        "request_headers = request_headers - 'host'",
        "request_body = jsonb_set(request_body, '{name}', '\"z\"')",
        "request_body = NULL",
        "request_id = gen_random_uuid()",
        "client_ip = '127.0.0.2'",
        "country = 'DE'",
        "resource_type = 'configs'",
        "action = 'delete'",
        "resource_id = 'x'",
        "response_status_code = 201",
        "error = ''",
        "before = 'null'",
        "after = after || '{\"name\": \"z\"}'",
        "previous_hash = sha256('x')",
        "hash = NULL",
        "id = gen_random_uuid()",
    ] {
        client.batch_execute(&format!("UPDATE audit_logs SET {edit} WHERE sequence = 3")).await.unwrap();
        let found = report(&mut client, service.home.organisation_id, None).await;
        assert!(found.findings[0].to_string().starts_with("record 3 ("), "{edit}: {found}");
        restore(&client).await;
    }
    let found = report(&mut client, service.home.organisation_id, None).await;
    assert!(found.is_intact(), "after everything was put back: {found}");
}

#[tokio::test]
async fn removed_added_and_moved_records_are_found_wherever_they_stood() {
    let (service, mut client) = five().await;
    let other = service.organisation().await.organisation_id;
    let third = id_at(&client, 3).await;
    for (tampering, expected) in [
        ("DELETE FROM audit_logs WHERE sequence = 1", "record 1 is missing".to_owned()),
        ("DELETE FROM audit_logs WHERE sequence IN (2, 3)", "records 2 to 3 are missing".to_owned()),
        ("DELETE FROM audit_logs WHERE sequence = 5", "record 5 is missing".to_owned()),
        ("DELETE FROM audit_logs", "records 1 to 5 are missing".to_owned()),
        ("UPDATE audit_logs SET sequence = NULL WHERE sequence = 4", "record 4 is missing".to_owned()),
        ("UPDATE audit_logs SET organisation_id = '{other}' WHERE sequence = 2", "record 2 is missing".to_owned()),
        ("UPDATE audit_logs SET sequence = 6 WHERE sequence = 3", "record 3 is missing".to_owned()),
        (
            "DELETE FROM audit_logs WHERE sequence = 2; UPDATE audit_logs SET sequence = 2 WHERE sequence = 3",
            format!("record 2 ({third}) was edited: it does not give its hash"),
        ),
        ("DELETE FROM audit_chains", "the note of where the chain ends is missing".to_owned()),
        (
            "INSERT INTO audit_logs SELECT (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(),
             'sequence', 0))).* FROM audit_logs a WHERE sequence = 1",
            "was added: its number is taken or was never given".to_owned(),
        ),
    ] {
        client.batch_execute(&tampering.replace("{other}", &other.to_string())).await.unwrap();
        let found = report(&mut client, service.home.organisation_id, None).await;
        let findings: Vec<String> = found.findings.iter().map(ToString::to_string).collect();
        assert!(findings.iter().any(|finding| finding.contains(&expected)), "{tampering}: {found}");
        restore(&client).await;
    }
}

#[tokio::test]
async fn a_trail_that_was_chained_anew_is_found_by_an_end_that_was_noted() {
    let (service, mut client) = five().await;
    let organisation = service.home.organisation_id;
    let noted = report(&mut client, organisation, None).await.end;
    let rewrite = "UPDATE audit_logs SET sequence = NULL, previous_hash = NULL, hash = NULL;
                   UPDATE audit_logs SET action = 'read' WHERE resource_type = 'labels'; DELETE FROM audit_chains";
    client.batch_execute(rewrite).await.unwrap();
    assert_eq!(run(&admin_on(&service.database).await, "chain_audit").await, 5);
    assert!(report(&mut client, organisation, None).await.is_intact(), "nothing inside shows it");
    let found = report(&mut client, organisation, noted).await;
    assert_eq!(found.findings[0].to_string().split(':').next(), Some("record 5 is not the one that the anchor names"));
}

#[tokio::test]
async fn where_a_chain_ends_can_only_move_forward() {
    let service = Service::start().await;
    labels(&service, &["a"]).await;
    run(&admin_on(&service.database).await, "chain_audit").await;
    let client = service.database.client().await;
    for statement in [
        "UPDATE audit_chains SET hash = sha256('x')",
        "UPDATE audit_chains SET sequence = 1, hash = sha256('x')",
        "DELETE FROM audit_chains",
        "TRUNCATE audit_chains",
    ] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert!(error.as_db_error().unwrap().message().contains("append-only"), "{statement}: {error}");
    }
}
