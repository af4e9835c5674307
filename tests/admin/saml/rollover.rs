//! Our own key is replaced without a gap: the next one is published before it signs, and the one before opens what is
//! encrypted for it until it is forgotten.

use super::encrypted::{Content, hidden};
use super::login::{Site, between};
use admin::saml::metadata::key_of;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openssl::hash::MessageDigest;
use openssl::rsa::Padding;
use openssl::sign::Verifier;
use serde_json::json;

const KEYS: &str = "/admin/saml-keys";

/// Of our metadata: for signatures and for encryption they are the same.
async fn published(site: &Site) -> Vec<String> {
    let metadata = site.our_metadata(site.service.home.organisation_id).await;
    let used = |kind: &str| -> Vec<String> {
        let mark = format!("use=\"{kind}\"");
        let parts = metadata.split(&mark).skip(1);
        parts.map(|part| between(part, "<ds:X509Certificate>", "</ds:X509Certificate>").to_owned()).collect()
    };
    assert_eq!(used("signing"), used("encryption"));
    used("signing")
}

/// Whether a request of ours is signed by the key of this certificate.
async fn is_signed_by(site: &Site, certificate: &str) -> bool {
    let home = site.service.home.organisation_id;
    let answer = site.service.client().get(&format!("/auth/saml/{home}/login")).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let query = answer.header("location").split_once('?').unwrap().1.to_owned();
    let (signed, signature) = query.split_once("&Signature=").unwrap();
    let signature = url::form_urlencoded::parse(format!("s={signature}").as_bytes()).next().unwrap().1.into_owned();
    let key = key_of(certificate).unwrap();
    let mut verifier = Verifier::new(MessageDigest::sha256(), &key).unwrap();
    verifier.update(signed.as_bytes()).unwrap();
    verifier.verify(&STANDARD.decode(signature).unwrap()).unwrap_or(false)
}

/// Signs somebody in with an assertion that is encrypted for this certificate.
async fn sign_in(site: &Site, certificate: &str) -> u16 {
    let home = site.service.home.organisation_id;
    let begun = site.begin(home).await;
    let signed = site.idp.sign(&site.idp.assertion(&begun.facts));
    let inside = hidden(&signed, &key_of(certificate).unwrap(), Content::Gcm, Padding::PKCS1_OAEP);
    site.post(home, &begun.cookie, &site.idp.response(&begun.facts, &inside)).await.status.as_u16()
}

#[tokio::test]
async fn our_own_key_is_replaced_without_a_gap() {
    let site = Site::start().await;
    let admin = site.service.administrator();
    site.trust(&site.service.home, &site.idp, json!({ "sign_requests": true, "want_encrypted": true })).await;
    let old = published(&site).await.remove(0);
    assert_eq!(admin.get(KEYS).await.json()["total"], 1);
    assert_eq!(admin.post(&format!("{KEYS}/activate"), &json!({})).await.status, 404, "there is no other yet");

    let made = admin.post(KEYS, &json!({})).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let statuses: Vec<_> = made.json()["data"].as_array().unwrap().iter().map(|key| key["status"].clone()).collect();
    assert_eq!(statuses, ["active", "standby"]);
    assert_eq!(admin.post(KEYS, &json!({})).await.status, 409, "two are enough");
    let new = published(&site).await.remove(1);
    assert_eq!(published(&site).await, [old.clone(), new.clone()]);
    assert!(is_signed_by(&site, &old).await && !is_signed_by(&site, &new).await);
    assert_eq!((sign_in(&site, &old).await, sign_in(&site, &new).await), (303, 303));

    let active = admin.post(&format!("{KEYS}/activate"), &json!({})).await;
    assert_eq!(active.status, 200, "{}", active.text());
    assert_eq!(published(&site).await, [new.clone(), old.clone()]);
    assert!(is_signed_by(&site, &new).await && !is_signed_by(&site, &old).await);
    assert_eq!((sign_in(&site, &old).await, sign_in(&site, &new).await), (303, 303));

    assert_eq!(admin.delete(&format!("{KEYS}/standby")).await.status, 200);
    assert_eq!(admin.delete(&format!("{KEYS}/standby")).await.status, 404);
    assert_eq!(published(&site).await, std::slice::from_ref(&new));
    assert_eq!((sign_in(&site, &old).await, sign_in(&site, &new).await), (403, 303));

    let other = site.service.organisation().await;
    let stranger = site.service.client().with_key(&other.admin_key.key);
    assert_eq!(stranger.get(KEYS).await.json()["total"], 0);
    let trail = site.service.trail(site.service.home.organisation_id).await;
    let changes = trail.iter().filter(|row| row["uri"].as_str().unwrap().contains(KEYS));
    assert_eq!(changes.filter(|row| row["response_status_code"] == 200).count(), 3);
    assert!(!json!(trail).to_string().contains("PRIVATE KEY"));
}
