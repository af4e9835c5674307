//! One-time links: printed by the operator's command and sent by mail; once, for ten minutes, and nothing that tells a
//! stranger who is there.

use super::{Browser, link, set_up};
use crate::service::Service;
use harness::sink::{Sink, Speech};
use harness::{Database, Process, until};
use serde_json::{Value, json};
use shared::bootstrap;
use std::time::Duration;

#[tokio::test]
async fn a_link_works_once_and_for_ten_minutes() {
    let service = Service::start().await;
    let (organisation, owner) = (service.home.organisation_id, service.home.owner_id);
    let token = link(&service, organisation, owner).await;
    let redeem = async |token: &str| service.client().post("/auth/sessions", &json!({ "token": token })).await;
    let first = redeem(&token).await;
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.json()["user_id"], json!(owner));
    assert_eq!(redeem(&token).await.status, 400, "a second time");
    assert_eq!(redeem("made-up").await.status, 400);
    let old = link(&service, organisation, owner).await;
    service.sql("UPDATE login_links SET expires_at = now() - interval '1 second'").await;
    let late = redeem(&old).await;
    assert_eq!(late.json()["message"], redeem("made-up").await.json()["message"], "nobody learns which");
    let rows = super::trail(&service).await;
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0]["after"]["provider"], "link");
    assert_eq!((&rows[1]["response_status_code"], &rows[1]["user_id"]), (&json!(400), &json!(owner)), "too late");
    let written = Value::Array(rows).to_string();
    assert!(!written.contains(&token) && !written.contains(&old), "no token is in a record");
}

#[tokio::test]
async fn two_who_follow_a_link_at_once_are_one() {
    let service = Service::start().await;
    let token = link(&service, service.home.organisation_id, service.home.owner_id).await;
    let redeem = || async { service.client().post("/auth/sessions", &json!({ "token": token })).await.status };
    let all = futures::future::join_all((0..8).map(|_| redeem())).await;
    assert_eq!(all.iter().filter(|status| **status == 200).count(), 1, "{all:?}");
}

#[tokio::test]
async fn the_page_behind_a_link_asks_before_it_uses_it_up() {
    let service = Service::start().await;
    let page = harness::Client::new(&service.origin).get("/auth/link").await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    assert!(page.text().contains("/v1/auth/sessions"), "{}", page.text());
}

#[tokio::test]
async fn a_mailed_link_signs_its_reader_in_and_strangers_learn_nothing() {
    let mut sink = Sink::start(Speech::Plain).await;
    let port = format!("--smtp-port={}", sink.port);
    let settings = ["--smtp-host=127.0.0.1", &port, "--smtp-tls=off", "--public-url=http://gw.test"];
    let service = Service::start_with(&settings).await;
    let ask = async |email: &str| service.client().post("/auth/link", &json!({ "email": email })).await;
    let (known, unknown) = (ask("OWNER@home.test").await, ask("nobody@home.test").await);
    assert_eq!(known.status, 200, "{}", known.text());
    assert_eq!(known.json(), unknown.json());
    let letter = sink.letter().await;
    assert_eq!(letter.to, ["owner@home.test"]);
    let text = letter.text.replace("=\r\n", "").replace("=3D", "=");
    let token = text.split("http://gw.test/auth/link#token=").nth(1).unwrap().split_whitespace().next().unwrap();
    let mut browser = Browser::new(&service);
    assert_eq!(browser.post("/auth/sessions", &json!({ "token": token })).await.status, 200, "{text}");
    assert_eq!(ask("no address").await.status, 400);
    // No more than three within a quarter of an hour, whoever asks; the one that was used does not count.
    for _ in 0..5 {
        assert_eq!(ask("owner@home.test").await.status, 200);
    }
    for _ in 0..3 {
        sink.letter().await;
    }
    let count = async || {
        let row = service.database.client().await.query_one("SELECT count(*) FROM login_links", &[]).await.unwrap();
        row.get::<_, i64>(0)
    };
    until("three links are there", async || count().await == 3).await;
    set_up(&service, json!({ "disable_login_links": true })).await;
    service.sql("DELETE FROM login_links").await;
    assert_eq!(ask("owner@home.test").await.status, 200, "the answer is the same");
    let rows = service.trail(service.home.organisation_id).await;
    assert_eq!(rows.iter().filter(|row| row["resource_type"] == "login_links").count(), 4);
}

#[tokio::test]
async fn one_address_may_ask_so_often_and_no_more() {
    let service = Service::start().await;
    let ask = async || service.client().post("/auth/link", &json!({ "email": "nobody@home.test" })).await;
    let mut refused = None;
    // The minute may turn in between.
    for _ in 0..130 {
        let answer = ask().await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("it is refused at some time");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.headers.contains_key("retry-after"));
}

/// What `gateway-admin login-link` prints, or what it complains of.
async fn command(database: &Database, arguments: &[&str]) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let environment =
        [("DATABASE_URL".to_owned(), database.url()), ("PUBLIC_URL".to_owned(), "https://gw.test".into())];
    let arguments = [&["login-link"], arguments].concat();
    let mut process = Process::start("gateway-admin", &arguments, &environment, folder.path());
    let status = process.ended_within(Duration::from_secs(30)).await;
    (status.success(), process.log())
}

#[tokio::test]
async fn the_command_prints_a_link_for_the_person_it_means() {
    let service = Service::start().await;
    let (done, log) = command(&service.database, &["--email", "owner@home.test"]).await;
    assert!(done, "{log}");
    let token = log.split("https://gw.test/auth/link#token=").nth(1).unwrap().split_whitespace().next().unwrap();
    let mut browser = Browser::new(&service);
    assert_eq!(browser.post("/auth/sessions", &json!({ "token": token })).await.status, 200);
    let rows = service.trail(service.home.organisation_id).await;
    assert!(rows.iter().any(|row| row["resource_type"] == "login_links" && row["user_type"] == "system"));
    let (done, log) = command(&service.database, &["--email", "nobody@home.test"]).await;
    assert!(!done && log.contains("nobody with this e-mail address"), "{log}");
    // In two organisations, one must be named.
    let mut client = service.database.client().await;
    let other = bootstrap::create_organisation(&mut client, "Other", "owner@home.test", "pk_").await.unwrap();
    let (done, log) = command(&service.database, &["--email", "owner@home.test"]).await;
    assert!(!done && log.contains(&other.organisation_id.to_string()), "{log}");
    let named = other.organisation_id.to_string();
    let (done, log) = command(&service.database, &["--email", "owner@home.test", "--organisation", &named]).await;
    assert!(done, "{log}");
}
