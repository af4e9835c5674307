//! A real peer: npm's `saml-idp`, with its own metadata, its page that reads our request, and its form that signs
//! somebody in. Its engine comes from the registry: it names a fork by an address of git, which a build cannot rely on.

use super::idp::Idp;
use super::login::{Site, between};
use super::samlp::folder;
use crate::service::Service;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::node::{Packages, Script};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

const MODULE: &str = include_str!("saml_idp.mjs");
const PACKAGES: Packages<'static> = Packages { names: &["saml-idp@1.2.1"], instead: &[("samlp", "7.0.2")] };
const ENTITY: &str = "urn:example:idp";

async fn started(site: &Site) -> Script {
    let home = site.service.home.organisation_id;
    let metadata = site.our_metadata(home).await;
    let audience = between(&metadata, "entityID=\"", "\"").to_owned();
    let consumer = between(&metadata, "Location=\"", "\"").to_owned();
    let keys = folder(site).await;
    let start = move || {
        let folder = keys.path().to_str().unwrap();
        let script = Script::start_with(MODULE, &PACKAGES, &[folder, ENTITY, &audience, &consumer]);
        // It has read its files by now.
        drop(keys);
        script
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// The peer is described by its own metadata, at its own address.
async fn trust(site: &Site, peer: &Script, more: Value) {
    let mut saml = json!({ "metadata_url": format!("{}/metadata", peer.greeting) });
    saml.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let set = site.service.administrator().put("/admin/organisation/auth-settings", &json!({ "saml": saml })).await;
    assert_eq!(set.status, 200, "{}", set.text());
}

/// Its pages write `=` as a reference.
fn plain(value: &str) -> String {
    value.replace("&#x3D;", "=")
}

/// To the peer as our login leads there, through its form, and back with its answer.
async fn sign_in(site: &Site) -> (u16, String) {
    let home = site.service.home.organisation_id;
    let answer = site.service.client().get(&format!("/auth/saml/{home}/login")).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
    let location = answer.header("location").to_owned();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let page = http.get(&location).send().await.unwrap().text().await.unwrap();
    let request = plain(between(&page, "name=\"_authnRequest\" type='hidden' value='", "'"));
    let fields = [
        ("_authnRequest", request.as_str()),
        ("userName", "ada@acme.test"),
        ("email", "ada@acme.test"),
        ("firstName", "Ada"),
        ("lastName", "Lovelace"),
        ("displayName", "Ada Lovelace"),
        ("mobilePhone", "+44"),
        ("groups", "sales,ops"),
        ("userType", "Admin"),
    ];
    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let origin = url::Url::parse(&location).unwrap().origin().ascii_serialization();
    let sent = http.post(format!("{origin}/signin"));
    let sent = sent.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form).send().await.unwrap();
    let page = sent.text().await.unwrap();
    assert!(page.contains("name=\"SAMLResponse\""), "{page}");
    let response = plain(between(page.split_once("name=\"SAMLResponse\"").unwrap().1, "value=\"", "\""));
    let response = String::from_utf8(STANDARD.decode(response).unwrap()).unwrap();
    let answer = site.post(home, &cookie, &response).await;
    (answer.status.as_u16(), answer.text())
}

#[tokio::test]
async fn saml_idp_signs_people_in_by_its_own_metadata_and_form() {
    let service = Service::start_with(&["--trusted-custom-hosts=127.0.0.1"]).await;
    let site = Site { service, idp: Idp::new() };
    site.prove(site.service.home.organisation_id, "acme.test").await;
    let peer = started(&site).await;
    assert!(peer.greeting.starts_with("http://127.0.0.1:"), "{}", peer.greeting);
    trust(&site, &peer, json!({})).await;
    let (status, text) = sign_in(&site).await;
    assert_eq!(status, 303, "{text}");
    const NAME: &str = "SELECT first_name || ' ' || last_name FROM users WHERE email = 'ada@acme.test'";
    let name: String = site.service.database.client().await.query_one(NAME, &[]).await.unwrap().get(0);
    assert_eq!(name, "Ada Lovelace");

    // It does not encrypt, where that is wanted; another one that knows our certificate does.
    trust(&site, &peer, json!({ "sign_requests": true, "want_encrypted": true })).await;
    let (status, text) = sign_in(&site).await;
    assert_eq!(status, 403, "{text}");
    let peer = started(&site).await;
    trust(&site, &peer, json!({ "sign_requests": true, "want_encrypted": true })).await;
    let (status, text) = sign_in(&site).await;
    assert_eq!(status, 303, "{text}");
}
