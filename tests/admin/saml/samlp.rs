//! A real peer: npm's `samlp`, the engine of `saml-idp`, in a process of its own. It reads our requests, verifies their
//! signatures, and signs and encrypts by other people's code.

use super::idp::Idp;
use super::login::{Site, between};
use admin::saml::metadata::key_of;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::node::Script;
use serde_json::json;
use tempfile::TempDir;

const MODULE: &str = include_str!("samlp.mjs");
const GCM: &str = "http://www.w3.org/2009/xmlenc11%23aes256-gcm";

fn pem(certificate: &str) -> String {
    let lines: Vec<&str> = certificate.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// The identity provider's key, and our certificate, where it reads them.
pub async fn folder(site: &Site) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
    write("key.pem", &site.idp.private_pem());
    write("cert.pem", pem(&site.idp.certificate).as_bytes());
    let metadata = site.our_metadata(site.service.home.organisation_id).await;
    if metadata.contains("<ds:X509Certificate>") {
        let ours = between(&metadata, "<ds:X509Certificate>", "</ds:X509Certificate>");
        write("sp.pem", pem(ours).as_bytes());
        write("sp-public.pem", &key_of(ours).unwrap().public_key_to_pem().unwrap());
    }
    folder
}

/// Follows our redirect to the peer, and brings its answer back.
async fn sign_in(site: &Site, peer: &str, how: &str) -> (u16, String) {
    let home = site.service.home.organisation_id;
    let answer = site.service.client().get(&format!("/auth/saml/{home}/login")).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
    let query = answer.header("location").split_once('?').unwrap().1;
    let page = reqwest::get(format!("{peer}?{query}&{how}")).await.unwrap().text().await.unwrap();
    let response = STANDARD.decode(between(&page, "value=\"", "\"")).unwrap_or_else(|_| panic!("{page}"));
    let answer = site.post(home, &cookie, &String::from_utf8(response).unwrap()).await;
    (answer.status.as_u16(), answer.text())
}

#[tokio::test]
async fn what_samlp_signs_and_encrypts_is_believed() {
    let site = Site::start().await;
    let keys = folder(&site).await;
    let start = |keys: &TempDir, idp: &Idp| {
        Script::start(MODULE, &["samlp@8.0.0"], &[keys.path().to_str().unwrap(), &idp.entity_id])
    };
    let peer = start(&keys, &site.idp);
    for how in ["signs=assertion", "signs=response"] {
        let (status, text) = sign_in(&site, &peer.greeting, how).await;
        assert_eq!(status, 303, "{how}: {text}");
    }
    site.trust(&site.service.home, &site.idp, json!({ "sign_requests": true, "want_encrypted": true })).await;
    let keys = folder(&site).await;
    let peer = start(&keys, &site.idp);
    let (status, text) = sign_in(&site, &peer.greeting, &format!("signs=assertion&cipher={GCM}")).await;
    assert_eq!(status, 303, "{text}");
    let (status, text) = sign_in(&site, &peer.greeting, "signs=assertion").await;
    assert_eq!(status, 403, "it is not encrypted: {text}");
}
