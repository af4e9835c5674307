//! Alerts of budgets, taken by a mail server that others wrote: it holds our SMTP, its encryption and the form of letters to more
//! than the sink of the other tests does.

use super::{admin_with, run};
use crate::service::Service;
use admin::jobs::outbox;
use bench::mock::Authority;
use bench::ports::Reservation;
use harness::{python, until};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tokio::net::TcpStream;

const SERVER: &str = "aiosmtpd==1.4.6\natpublic==9.0.0\nattrs==26.1.0\n";

/// A server on this port that takes letters by STARTTLS alone and puts each into a file of the folder.
fn start(port: u16, authority: &Authority, folder: &Path) -> python::Server {
    let identity = authority.issue(&["localhost"]).unwrap();
    let files = ["ca.pem", "cert.pem", "key.pem"].map(|name| folder.join(name));
    for (file, text) in
        files.iter().zip([authority.pem().unwrap(), identity.cert_pem.clone(), identity.key_pem.clone()])
    {
        std::fs::write(file, text).unwrap();
    }
    let [_, certificate, key] = files;
    let mut command = Command::new(python::with(SERVER));
    command.args(["-m", "aiosmtpd", "--nosetuid", "--listen", &format!("127.0.0.1:{port}")]);
    command.arg("--tlscert").arg(certificate).arg("--tlskey").arg(key);
    command.args(["--class", "aiosmtpd.handlers.Mailbox"]).arg(folder.join("mail"));
    python::Server::start(&mut command)
}

/// What arrived, by recipient. The server writes whom a letter was for into its head.
fn arrived(folder: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder.join("mail/new")).into_iter().flatten();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let by_recipient = texts.map(|text| {
        let recipient = text.lines().find_map(|line| line.strip_prefix("X-RcptTo: ")).unwrap_or_default();
        (recipient.to_owned(), text.clone())
    });
    by_recipient.collect()
}

#[tokio::test]
async fn alerts_of_a_budget_reach_all_their_people_through_a_mail_server() {
    let (service, folder) = (Service::start().await, TempDir::new().unwrap());
    let (authority, port) = (Authority::new().unwrap(), Reservation::any().unwrap());
    let _server = start(port.port(), &authority, folder.path());
    let listens = async || TcpStream::connect(("127.0.0.1", port.port())).await.is_ok();
    until("the mail server listens", listens).await;
    let settings = [
        "--smtp-host=localhost".to_owned(),
        format!("--smtp-port={}", port.port()),
        format!("--smtp-ca={}", folder.path().join("ca.pem").display()),
        "--mail-from=Gate <gate@acme.test>".to_owned(),
    ];
    let app = admin_with(&service.database, &settings.each_ref().map(String::as_str)).await;
    let key = json!({
        "name": "ci", "workspace_id": service.home.workspace_id, "scopes": ["completions.write"],
        "usage_limits": { "credit_limit": 10, "alert_threshold": 8 }, "alert_emails": ["ops@x.test"],
    });
    let made = service.administrator().post("/api-keys/workspace/service", &key).await;
    assert_eq!(made.status, 200, "{}", made.text());

    for (spent, subject) in [("800", "goes to its end"), ("1000", "is used up")] {
        service.spend("api_keys", spent).await;
        assert_eq!(run(&app, "watch_budgets").await, 1);
        assert_eq!(outbox::send(&app).await.unwrap(), 2, "both are taken");
        let letters = arrived(folder.path());
        let to: Vec<&str> = letters.keys().map(String::as_str).collect();
        assert_eq!(to, ["ops@x.test", "owner@home.test"], "{letters:?}");
        for (to, letter) in &letters {
            let (head, body) = letter.split_once("\n\n").unwrap();
            assert!(head.contains("From: Gate <gate@acme.test>") && head.contains(&format!("To: {to}")), "{head}");
            assert!(head.contains(&format!("Subject: The budget of API key ci {subject}")), "{head}");
            assert!(body.contains("It has used $"), "{body}");
        }
        std::fs::remove_dir_all(folder.path().join("mail/new")).unwrap();
        std::fs::create_dir(folder.path().join("mail/new")).unwrap();
    }
}
