//! Mail of invitations, received by a server that speaks SMTP over real sockets: in the clear, upgraded, and
//! encrypted from the first byte.

use crate::service::Service;
use bench::mock::Authority;
use harness::sink::{Letter, Sink, Speech};
use serde_json::json;
use std::io::Write as _;
use tempfile::NamedTempFile;

const INVITES: &str = "/admin/users/invites";

fn authority_file(authority: &Authority) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(authority.pem().unwrap().as_bytes()).unwrap();
    file
}

/// Invites somebody; the link that the inviter saw.
async fn invite(service: &Service) -> String {
    let body = json!({ "email": "ada@x.test", "role": "member" });
    let answer = service.administrator().post(INVITES, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["invite_link"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_invitation_and_its_repetition_bring_their_links_to_the_person_invited() {
    let mut sink = Sink::start(Speech::Plain).await;
    let port = format!("--smtp-port={}", sink.port);
    let from = "--mail-from=Gate <gate@acme.test>";
    let service = Service::start_with(&["--smtp-host=127.0.0.1", &port, "--smtp-tls=off", from]).await;
    service.sql("UPDATE organisations SET name = E'Äcme\\r\\nBcc: eve@x.test'").await;
    let link = invite(&service).await;
    let Letter { from, to, text, login, is_encrypted } = sink.letter().await;
    assert_eq!(
        (from.as_str(), to, login, is_encrypted),
        ("gate@acme.test", vec!["ada@x.test".to_owned()], None, false)
    );
    let plain = text.replace("=\r\n", "").replace("=3D", "=");
    assert!(plain.contains(&link), "{text}");
    let (head, _) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("To: ada@x.test") && head.contains("From: Gate <gate@acme.test>"), "{head}");
    assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{head}");
    let id = service.administrator().get(INVITES).await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let again = service.administrator().post(&format!("{INVITES}/{id}/resend"), &json!({})).await.json();
    let text = sink.letter().await.text.replace("=\r\n", "").replace("=3D", "=");
    assert!(text.contains(again["invite_link"].as_str().unwrap()) && !text.contains(&link), "{text}");
}

#[tokio::test]
async fn mail_is_encrypted_and_the_password_only_spoken_then() {
    let authority = Authority::new().unwrap();
    let ca = authority_file(&authority);
    for (speech, mode) in [(Speech::Starttls, "starttls"), (Speech::Tls, "tls")] {
        let mut sink = Sink::with_tls(speech, &authority.issue(&["localhost"]).unwrap()).await;
        let settings = [
            "--smtp-host=localhost".to_owned(),
            format!("--smtp-port={}", sink.port),
            format!("--smtp-tls={mode}"),
            format!("--smtp-ca={}", ca.path().display()),
            "--smtp-username=user".to_owned(),
            "--smtp-password=s3cret".to_owned(),
        ];
        let service = Service::start_with(&settings.each_ref().map(String::as_str)).await;
        invite(&service).await;
        let letter = sink.letter().await;
        assert_eq!((letter.login.as_deref(), letter.is_encrypted), (Some("\0user\0s3cret"), true), "{mode}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_prove_itself_gets_no_letter_and_the_invitation_stands() {
    let (ours, foreign) = (Authority::new().unwrap(), Authority::new().unwrap());
    let ca = authority_file(&ours);
    let ca = format!("--smtp-ca={}", ca.path().display());
    let mut sinks = [
        ("a server without encryption", Sink::start(Speech::Plain).await, "starttls"),
        ("a foreign authority", Sink::with_tls(Speech::Tls, &foreign.issue(&["localhost"]).unwrap()).await, "tls"),
        ("another name", Sink::with_tls(Speech::Starttls, &ours.issue(&["other.test"]).unwrap()).await, "starttls"),
    ];
    for (what, sink, mode) in &mut sinks {
        let (port, mode) = (format!("--smtp-port={}", sink.port), format!("--smtp-tls={mode}"));
        let service = Service::start_with(&["--smtp-host=localhost", &port, &mode, &ca]).await;
        invite(&service).await;
        sink.ended().await;
        assert!(sink.try_letter().is_none(), "{what}");
        assert_eq!(service.administrator().get(INVITES).await.json()["total"], 1, "{what}");
    }
}
