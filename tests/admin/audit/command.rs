//! The processes: two admins on one database do each piece of work once, and `gateway-admin audit verify` says by its
//! words and its status whether the trail is whole.

use crate::service::Service;
use bench::ports::Reservation;
use harness::{Process, until};
use serde_json::json;
use shared::model::KeyKind;
use std::process::ExitStatus;
use std::time::Duration;
use tempfile::TempDir;

struct Machine {
    service: Service,
    folder: TempDir,
}

impl Machine {
    async fn new() -> Self {
        Self { service: Service::start().await, folder: tempfile::tempdir().unwrap() }
    }

    fn start(&self, arguments: &[&str], more: &[(&str, &str)]) -> Process {
        let url = self.service.database.url();
        let environment = [("DATABASE_URL", url.as_str())].into_iter().chain(more.iter().copied());
        let environment: Vec<_> = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Process::start("gateway-admin", arguments, &environment, self.folder.path())
    }

    async fn verify(&self, more: &[&str]) -> (ExitStatus, String) {
        let mut process = self.start(&[&["audit", "verify"], more].concat(), &[]);
        (process.ended_within(Duration::from_secs(30)).await, process.log())
    }

    /// One number from the database.
    async fn count(&self, sql: &str) -> i64 {
        self.service.database.client().await.query_one(sql, &[]).await.unwrap().get(0)
    }
}

#[tokio::test]
async fn two_admins_expire_a_key_and_chain_its_record_once_and_the_command_finds_what_is_edited_later() {
    let machine = Machine::new().await;
    let service = &machine.service;
    let key = service.key(KeyKind::WorkspaceService, &["prompts.read"]).await;
    service.sql(&format!("UPDATE api_keys SET expires_at = now() WHERE id = '{}'", key.id)).await;
    for name in ["a", "b"] {
        assert_eq!(service.administrator().post("/labels", &json!({ "name": name })).await.status, 200);
    }
    let ports = [Reservation::any().unwrap(), Reservation::any().unwrap()];
    let admins = ports.each_ref().map(|port| machine.start(&[], &[("ADMIN_PORT", &port.port().to_string())]));
    let expired = format!("SELECT count(*) FROM api_keys WHERE id = '{}' AND status = 'expired'", key.id);
    until("the key is marked", async || machine.count(&expired).await == 1).await;
    let chained = "SELECT count(*) FROM audit_logs WHERE sequence IS NOT NULL";
    until("all records are chained", async || machine.count(chained).await == 3).await;
    assert_eq!(machine.count("SELECT count(*) FROM audit_logs").await, 3, "one record of the expiry");
    drop(admins);

    let (status, said) = machine.verify(&[]).await;
    assert!(status.success() && said.contains("3 records, intact, ends with 3:"), "{status} {said}");
    let end = said.split("ends with ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let organisation = service.home.organisation_id.to_string();
    let (status, said) = machine.verify(&["--organisation", &organisation, "--anchor", &end]).await;
    assert!(status.success(), "{status} {said}");

    let edit =
        "SET session_replication_role = replica; UPDATE audit_logs SET client_ip = '10.0.0.1' WHERE sequence = 2";
    service.sql(edit).await;
    let client = service.database.client().await;
    let id = client.query_one("SELECT id::text FROM audit_logs WHERE sequence = 2", &[]).await.unwrap();
    let id: String = id.get(0);
    for more in [&[][..], &["--organisation", &organisation]] {
        let (status, said) = machine.verify(more).await;
        assert_eq!(status.code(), Some(3), "{said}");
        assert!(said.contains("NOT INTACT") && said.contains(&format!("record 2 ({id}) was edited")), "{said}");
    }
}

#[tokio::test]
async fn a_trail_that_cannot_be_read_is_told_from_one_that_was_edited() {
    let machine = Machine::new().await;
    let nobody = "00000000-0000-0000-0000-000000000001";
    let (status, said) = machine.verify(&["--organisation", nobody]).await;
    assert!(status.code() == Some(1) && said.contains("there is no organisation"), "{status} {said}");
    let (status, said) = machine.verify(&["--organisation", nobody, "--anchor", "3:zz"]).await;
    assert!(status.code() == Some(2) && said.contains("64 hex digits"), "{status} {said}");
    machine.service.sql("ALTER TABLE audit_chains RENAME TO elsewhere").await;
    let (status, said) = machine.verify(&[]).await;
    assert!(status.code() == Some(1) && said.contains("the audit trail cannot be read"), "{status} {said}");
}

#[tokio::test]
async fn commands_that_change_something_leave_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let keyring = folder.path().join("keyring");
    std::fs::write(&keyring, shared::secrets::seal::Keyring::generate("one").unwrap()).unwrap();
    let file = format!("--gateway-master-key-file={}", keyring.display());
    let machine = Machine { service: Service::start_with(&[&file]).await, folder };
    crate::integrations::account(&machine.service.administrator(), "sealed").await;
    let run = async |arguments: &[&str]| {
        let mut process = machine.start(arguments, &[("GATEWAY_MASTER_KEY_FILE", keyring.to_str().unwrap())]);
        assert!(process.ended_within(Duration::from_secs(30)).await.success(), "{}", process.log());
    };
    run(&["keys", "rotate"]).await;
    run(&["create-organisation", "--name", "Second", "--owner-email", "owner@second.test"]).await;
    let home = machine.service.home.organisation_id;
    let rotated = format!(
        "SELECT count(*) FROM audit_logs WHERE organisation_id = '{home}' AND user_type = 'system'
         AND resource_type = 'data_keys' AND action = 'rotate'"
    );
    assert_eq!(machine.count(&rotated).await, 1);
    let made = "SELECT count(*) FROM audit_logs a JOIN organisations o ON o.id = a.organisation_id
        WHERE o.name = 'Second' AND resource_type = 'organisation' AND action = 'create' AND resource_id = o.id::text";
    assert_eq!(machine.count(made).await, 1);
}

#[tokio::test]
async fn the_first_start_is_the_first_record() {
    let (database, folder) = (harness::Database::fresh().await, tempfile::tempdir().unwrap());
    let port = Reservation::any().unwrap();
    let environment = [("DATABASE_URL".to_owned(), database.url()), ("ADMIN_PORT".to_owned(), port.port().to_string())];
    let process = Process::start("gateway-admin", &[], &environment, folder.path());
    let client = database.client().await;
    let trail = "SELECT resource_type || ' ' || action FROM audit_logs ORDER BY created_at";
    until("the organisation is made", async || !client.query(trail, &[]).await.unwrap().is_empty()).await;
    let first: String = client.query(trail, &[]).await.unwrap()[0].get(0);
    assert_eq!(first, "organisation create");
    drop(process);
}
