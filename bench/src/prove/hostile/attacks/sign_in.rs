//! Answers of SAML to logins that were begun, so that they are read as far as those of an identity provider: the tenant has one of
//! its own, and anybody may begin.

use super::Attacker;
use super::strangers::send_form;
use crate::prove::client::{Caller, empty};
use anyhow::Context as _;
use http::{Method, header};
use http_body_util::BodyExt as _;
use openssl::asn1::Asn1Time;
use openssl::base64::{decode_block, encode_block};
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use openssl::x509::X509Builder;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::Arc;

const SAML: &str = "urn:oasis:names:tc:SAML:2.0";
const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

/// Metadata of an identity provider that signs nothing.
pub fn metadata() -> anyhow::Result<String> {
    let key = PKey::from_rsa(Rsa::generate(2048)?)?;
    let mut certificate = X509Builder::new()?;
    certificate.set_pubkey(&key)?;
    let (from, until) = (Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(2)?);
    certificate.set_not_before(&from)?;
    certificate.set_not_after(&until)?;
    certificate.sign(&key, MessageDigest::sha256())?;
    let certificate = encode_block(&certificate.build().to_der()?);
    Ok(format!(
        "<EntityDescriptor xmlns=\"{SAML}:metadata\" entityID=\"urn:hostile\"><IDPSSODescriptor \
         protocolSupportEnumeration=\"{SAML}:protocol\"><KeyDescriptor><KeyInfo xmlns=\"{DSIG}\"><X509Data>\
         <X509Certificate>{certificate}</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService \
         Binding=\"{SAML}:bindings:HTTP-POST\" Location=\"https://idp.hostile.test/post\"/></IDPSSODescriptor>\
         </EntityDescriptor>"
    ))
}

/// A signature whose canonical form names thousands of prefixes, below many declarations.
pub async fn many_prefixes(by: Arc<Attacker>) -> String {
    let names: String = (0..10_000).map(|n| format!("p{n:04x} ")).collect();
    let inclusive = format!("<c:InclusiveNamespaces xmlns:c=\"{EXCLUSIVE}\" PrefixList=\"{names}\"/>");
    answer(&by, &signature(&inclusive, &nested(""))).await
}

/// As many elements as fit, in a signature.
pub async fn many_elements(by: Arc<Attacker>) -> String {
    answer(&by, &signature("", &nested(&"<a/>".repeat(20_000)))).await
}

/// Many wrapped keys, each of which would be an operation with a private key.
pub async fn many_keys(by: Arc<Attacker>) -> String {
    let key = "<x:EncryptedKey><x:EncryptionMethod Algorithm='http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p'/>\
               <x:CipherData><x:CipherValue>AAAA</x:CipherValue></x:CipherData></x:EncryptedKey>";
    let inside = format!(
        "<s:EncryptedAssertion xmlns:s='{SAML}:assertion' xmlns:x='http://www.w3.org/2001/04/xmlenc#'><x:EncryptedData>\
         <x:EncryptionMethod Algorithm='http://www.w3.org/2009/xmlenc11#aes256-gcm'/><d:KeyInfo xmlns:d='{DSIG}'>{}\
         </d:KeyInfo></x:EncryptedData></s:EncryptedAssertion>",
        key.repeat(500)
    );
    answer(&by, &inside).await
}

fn nested(inside: &str) -> String {
    let declared: String = (0..28).map(|n| format!(" xmlns:n{n}='urn:{n}'")).collect();
    format!("{}{inside}{}", format!("<b{declared}>").repeat(20), "</b>".repeat(20))
}

fn signature(inside: &str, behind: &str) -> String {
    format!(
        "<d:Signature xmlns:d=\"{DSIG}\"><d:SignedInfo><d:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\">{inside}\
         </d:CanonicalizationMethod>{behind}</d:SignedInfo><d:SignatureValue>AAAA</d:SignatureValue></d:Signature>"
    )
}

async fn answer(by: &Attacker, inside: &str) -> String {
    match begun(by).await {
        Err(error) => error.to_string(),
        Ok((browser, request)) => {
            let consumer = between(&request, "AssertionConsumerServiceURL=\"").unwrap_or_default();
            let id = between(&request, " ID=\"").unwrap_or_default();
            let document = format!(
                "<p:Response xmlns:p=\"{SAML}:protocol\" ID=\"_r\" Version=\"2.0\" InResponseTo=\"{id}\" \
                 Destination=\"{consumer}\"><p:Status><p:StatusCode Value=\"{SAML}:status:Success\"/></p:Status>{inside}\
                 </p:Response>"
            );
            let encoded = encode_block(document.as_bytes());
            let form = format!("SAMLResponse={}", utf8_percent_encode(&encoded, NON_ALPHANUMERIC));
            send_form(&browser, &format!("/v1/auth/saml/{}/acs", by.organisation), form).await
        }
    }
}

/// A login of the tenant's organisation: the browser with its cookie, and the request to the identity provider.
async fn begun(by: &Attacker) -> anyhow::Result<(Caller, String)> {
    let path = format!("/v1/auth/saml/{}/login", by.organisation);
    let mut connection = by.bare.connect().await?;
    let answer = connection.send(by.bare.request(Method::GET, &path, empty())).await?;
    let cookie = answer.headers().get(header::SET_COOKIE).and_then(|cookie| cookie.to_str().ok());
    let cookie = cookie.and_then(|cookie| cookie.split(';').next()).map(str::to_owned);
    let status = answer.status();
    let page = answer.into_body().collect().await?.to_bytes();
    let page = String::from_utf8_lossy(&page);
    let cookie = cookie.with_context(|| format!("no login was begun: {status}"))?;
    let request = between(&page, "name=\"SAMLRequest\" value=\"").context("the page has no request")?;
    let request = request.replace("&#43;", "+").replace("&#x2B;", "+").replace("&#61;", "=").replace("&#x3D;", "=");
    let request = String::from_utf8(decode_block(&request)?)?;
    Ok((by.bare.with("cookie", &cookie)?, request))
}

fn between<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    text.split_once(start)?.1.split('"').next()
}
