//! What anybody can send who has no key.

use super::{Attacker, status};
use crate::prove::client::{Caller, empty, whole};
use http::{HeaderValue, Method, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use std::sync::Arc;

/// Fourteen megabytes for whoever would read them before knowing from whom they are.
pub async fn large_body(by: Arc<Attacker>) -> String {
    let mut body = String::with_capacity(14 << 20);
    body.push_str("{\"token\": [");
    while body.len() < 14 << 20 {
        body.push_str("{},[],{},[],");
    }
    body.push_str("0]}");
    let mut request = by.bare.request(Method::POST, "/v1/admin/users/invites/accept", whole(body));
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    status(&by.bare, request).await
}

/// A signature whose canonical form names thousands of prefixes.
pub async fn saml_prefixes(by: Arc<Attacker>) -> String {
    let prefixes: String = (0..5000).map(|n| format!("p{n} ")).collect();
    let inclusive = format!(
        r#"<ec:InclusiveNamespaces xmlns:ec="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="{prefixes}"/>"#
    );
    saml(&by, &format!(r#"<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:SignedInfo>{inclusive}</ds:SignedInfo></ds:Signature>"#)).await
}

/// As many elements as fit, each with a namespace of its own.
pub async fn saml_elements(by: Arc<Attacker>) -> String {
    let elements: String = (0..3000).map(|n| format!(r#"<a xmlns:n{n}="urn:{n}"/>"#)).collect();
    saml(&by, &elements).await
}

async fn saml(by: &Attacker, inside: &str) -> String {
    let document = format!(
        r#"<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="a" Version="2.0">{inside}</samlp:Response>"#
    );
    let form = format!(
        "SAMLResponse={}",
        utf8_percent_encode(&openssl::base64::encode_block(document.as_bytes()), NON_ALPHANUMERIC)
    );
    send_form(&by.bare, &format!("/v1/auth/saml/{}/acs", by.organisation), form).await
}

pub async fn begun_sign_in(by: Arc<Attacker>) -> String {
    let path = format!("/v1/auth/login?organisation={}", by.organisation);
    status(&by.bare, by.bare.request(Method::GET, &path, empty())).await
}

pub async fn junk_logout(by: Arc<Attacker>) -> String {
    let form = format!("logout_token={}", junk(12 << 10));
    send_form(&by.bare, &format!("/v1/auth/backchannel-logout/{}", by.organisation), form).await
}

pub async fn registration(by: Arc<Attacker>) -> String {
    let addresses: Vec<String> = (0..200).map(|n| format!("https://{n}.example/callback")).collect();
    let body = json!({ "client_name": "x".repeat(4000), "redirect_uris": addresses });
    status(&by.bare, by.bare.post_json("/oauth/register", &body)).await
}

pub async fn junk_token(by: Arc<Attacker>) -> String {
    let Ok(caller) = by.bare.with("authorization", &format!("Bearer {}", junk(12 << 10))) else { return "none".into() };
    status(&caller, caller.post_json("/v1/chat/completions", &json!({ "model": "m", "messages": [] }))).await
}

/// What looks like a token until it is read.
fn junk(length: usize) -> String {
    let head = openssl::base64::encode_block(br#"{"alg":"RS256","kid":"none"}"#).replace('=', "");
    format!("{head}.{}.c2ln", "e".repeat(length))
}

pub async fn send_form(by: &Caller, path: &str, form: String) -> String {
    let mut request = by.request(Method::POST, path, whole(form));
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(header::CONTENT_TYPE, kind);
    status(by, request).await
}
