//! Which metadata is taken, and which is refused with what words.

use super::super::key::ServiceKey;
use super::*;
use std::sync::LazyLock;

static CERTIFICATE: LazyLock<String> = LazyLock::new(|| ServiceKey::generate("idp").unwrap().certificate_base64());

fn metadata(inside: &str) -> String {
    format!(
        "<EntityDescriptor xmlns='{METADATA}' entityID='https://idp.test/saml'><IDPSSODescriptor \
         protocolSupportEnumeration='{PROTOCOL}'>{inside}</IDPSSODescriptor></EntityDescriptor>"
    )
}

fn key(used: &str) -> String {
    format!(
        "<KeyDescriptor{used}><KeyInfo xmlns='{DSIG}'><X509Data><X509Certificate>{}</X509Certificate></X509Data>\
         </KeyInfo></KeyDescriptor>",
        *CERTIFICATE
    )
}

fn service(binding: &str) -> String {
    format!("<SingleSignOnService Binding='{binding}' Location='https://idp.test/sso'/>")
}

#[test]
fn several_keys_are_taken_and_those_for_encryption_are_not() {
    let inside = [key(" use='signing'"), key(""), key(" use='encryption'"), service(REDIRECT)].concat();
    let provider = IdentityProvider::parse(metadata(&inside).as_bytes()).unwrap();
    assert_eq!((provider.entity_id.as_str(), provider.keys.len()), ("https://idp.test/saml", 2));
    assert_eq!(provider.redirect_url.as_deref(), Some("https://idp.test/sso"));
    assert_eq!(provider.post_url, None);
}

#[test]
fn metadata_with_which_nobody_could_sign_in_is_refused() {
    let (signing, by_post) = (key(""), service(POST));
    for (xml, words) in [
        (metadata(&by_post), "certificates for signatures"),
        (metadata(&signing), "an address to sign in at"),
        (metadata(&format!("{}{by_post}", signing.repeat(11))), "certificates for signatures"),
        (metadata(&format!("{signing}{by_post}")).replace("entityID='https://idp.test/saml'", ""), "name its entity"),
        (metadata(&format!("{signing}{by_post}")).replace("SAML:2.0:protocol", "SAML:1.1:protocol"), "SAML 2.0"),
        ("<EntityDescriptor/>".to_owned(), "EntityDescriptor"),
        ("no xml".to_owned(), "plain XML"),
        (format!("<!DOCTYPE a [<!ENTITY b 'c'>]>{}", metadata("")), "document type or entities"),
        (" ".repeat(MAX_SIZE + 1), "at most"),
    ] {
        let refused = IdentityProvider::parse(xml.as_bytes()).unwrap_err().0;
        assert!(refused.contains(words), "{refused}: {words}");
    }
}

#[test]
fn a_certificate_is_read_in_both_spellings_and_weak_keys_are_refused() {
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", *CERTIFICATE);
    let lines: Vec<String> =
        CERTIFICATE.as_bytes().chunks(64).map(|line| String::from_utf8(line.to_vec()).unwrap()).collect();
    assert!(key_of(&lines.join("\n")).is_ok());
    assert!(key_of(&pem.replace(&*CERTIFICATE, &lines.join("\n"))).is_ok());
    assert!(key_of("AAAA").is_err());
    let weak = PKey::from_rsa(openssl::rsa::Rsa::generate(1024).unwrap()).unwrap();
    let weak = ServiceKey::signed_by_itself("idp", weak).unwrap().certificate_base64();
    assert!(key_of(&weak).unwrap_err().0.contains("2048"));
}
