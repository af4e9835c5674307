//! What a sign-in page is told before anybody signed in: of a mail domain, and nothing of its people.

use super::{Browser, set_up, started};
use harness::Answer;
use harness::sink::{Sink, Speech};
use serde_json::{Value, json};

const URL: &str = "http://gw.test";

async fn asked(service: &crate::service::Service, email: &str) -> Answer {
    service.client().get(&format!("/auth/methods?email={email}")).await
}

fn expected(methods: &[&str]) -> Value {
    json!({ "object": "sign_in_methods", "methods": methods, "public_url": URL })
}

#[tokio::test]
async fn a_domain_is_told_its_ways_to_sign_in_and_everybody_of_it_the_same() {
    let sink = Sink::start(Speech::Plain).await;
    let port = format!("--smtp-port={}", sink.port);
    let url = format!("--public-url={URL}");
    let (service, provider) = started(&["--smtp-host=127.0.0.1", &port, "--smtp-tls=off", &url]).await;
    service.sql("UPDATE organisations SET name = 'Secret Acquisition Ltd'").await;
    let (known, unknown) = (asked(&service, "owner@home.test").await, asked(&service, "nobody@home.test").await);
    assert_eq!(known.json(), expected(&["oidc", "link"]), "{}", known.text());
    assert_eq!((known.status, known.text()), (unknown.status, unknown.text()), "whether there is such a person or not");
    assert_eq!(known.header("cache-control"), "no-store");
    for hidden in ["Secret", &service.home.organisation_id.to_string(), &provider.issuer] {
        assert!(!known.text().contains(hidden), "{hidden}: {}", known.text());
    }
    // As the organisation sets it up.
    set_up(&service, json!({ "disable_login_links": true })).await;
    assert_eq!(asked(&service, "owner@HOME.test").await.json(), expected(&["oidc"]));
    // A domain that nobody proved is told the same as one that does not exist, also where an organisation has people of it.
    service.sql("UPDATE users SET email = 'owner@free.test' WHERE role = 'owner'").await;
    for email in ["owner@free.test", "ada@nowhere.test", "ada@mail.home.test", "ada@localhost"] {
        assert_eq!(asked(&service, email).await.json(), expected(&["link"]), "{email}");
    }
    for wrong in ["", "home.test", "a@b@c", &format!("{}@home.test", "a".repeat(400))] {
        assert_eq!(asked(&service, wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_link_is_no_way_where_no_mail_leaves() {
    let (service, _provider) = started(&[]).await;
    for (email, methods) in [("ada@home.test", json!(["oidc"])), ("ada@nowhere.test", json!([]))] {
        assert_eq!(asked(&service, email).await.json()["methods"], methods, "{email}");
    }
}

#[tokio::test]
async fn whoever_asks_for_many_addresses_is_stopped_with_their_network() {
    let (service, _provider) = started(&[]).await;
    let tries = async |address: &str, n: usize| {
        let mut browser = Browser::new(&service).with("x-forwarded-for", address);
        browser.get(&format!("/auth/methods?email=ada@domain-{n}.test")).await.status.as_u16()
    };
    let mut is_refused = false;
    for n in 0..200 {
        is_refused |= tries(&format!("2001:db8:1:2::{n:x}"), n).await == 429;
    }
    assert!(is_refused);
    assert_eq!(tries("2001:db8:1:3::1", 0).await, 200, "the neighbours");
}
