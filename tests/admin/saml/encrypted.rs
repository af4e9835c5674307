//! Encrypted assertions: opened with our key, believed as far as they are signed, and CBC only where nobody could have
//! changed it.

use super::idp::{Facts, Idp};
use admin::saml::key::ServiceKey;
use admin::saml::metadata::key_of;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openssl::encrypt::Encrypter;
use openssl::pkey::{PKey, Public};
use openssl::rsa::Padding;
use openssl::symm::{Cipher, encrypt, encrypt_aead};
use std::slice::from_ref;

#[derive(Clone, Copy, PartialEq)]
pub enum Content {
    Gcm,
    Cbc,
}

/// An `EncryptedAssertion` in canonical form, for who has the private part of the key.
pub fn hidden(assertion: &str, to: &PKey<Public>, content: Content, padding: Padding) -> String {
    let secret = [7u8; 32];
    let (algorithm, sealed) = match content {
        Content::Gcm => {
            let (nonce, mut tag) = ([3u8; 12], [0u8; 16]);
            let cipher = Cipher::aes_256_gcm();
            let sealed = encrypt_aead(cipher, &secret, Some(&nonce), &[], assertion.as_bytes(), &mut tag).unwrap();
            ("http://www.w3.org/2009/xmlenc11#aes256-gcm", [&nonce[..], &sealed, &tag].concat())
        }
        Content::Cbc => {
            let nonce = [3u8; 16];
            let sealed = encrypt(Cipher::aes_256_cbc(), &secret, Some(&nonce), assertion.as_bytes()).unwrap();
            ("http://www.w3.org/2001/04/xmlenc#aes256-cbc", [&nonce[..], &sealed].concat())
        }
    };
    let mut encrypter = Encrypter::new(to).unwrap();
    encrypter.set_rsa_padding(padding).unwrap();
    let mut wrapped = vec![0; encrypter.encrypt_len(&secret).unwrap()];
    let length = encrypter.encrypt(&secret, &mut wrapped).unwrap();
    wrapped.truncate(length);
    let wrapping = if padding == Padding::PKCS1 { "rsa-1_5" } else { "rsa-oaep-mgf1p" };
    format!(
        "<saml:EncryptedAssertion xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\"><xenc:EncryptedData \
         xmlns:xenc=\"http://www.w3.org/2001/04/xmlenc#\" Type=\"http://www.w3.org/2001/04/xmlenc#Element\">\
         <xenc:EncryptionMethod Algorithm=\"{algorithm}\"></xenc:EncryptionMethod><ds:KeyInfo \
         xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"><xenc:EncryptedKey><xenc:EncryptionMethod \
         Algorithm=\"http://www.w3.org/2001/04/xmlenc#{wrapping}\"></xenc:EncryptionMethod><xenc:CipherData>\
         <xenc:CipherValue>{}</xenc:CipherValue></xenc:CipherData></xenc:EncryptedKey></ds:KeyInfo><xenc:CipherData>\
         <xenc:CipherValue>{}</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion>",
        STANDARD.encode(wrapped),
        STANDARD.encode(sealed)
    )
}

fn ours() -> (ServiceKey, PKey<Public>) {
    let key = ServiceKey::generate("gateway").unwrap();
    let public = key_of(&key.certificate_base64()).unwrap();
    (key, public)
}

#[test]
fn an_encrypted_assertion_is_opened_and_must_be_signed_somewhere() {
    let (idp, (key, public)) = (Idp::new(), ours());
    let facts = Facts::usual(&idp);
    let (bare, signed) = (idp.assertion(&facts), idp.sign(&idp.assertion(&facts)));
    let oaep = Padding::PKCS1_OAEP;
    let gcm = |assertion: &str| idp.response(&facts, &hidden(assertion, &public, Content::Gcm, oaep));
    for xml in [gcm(&signed), idp.sign(&gcm(&bare)), idp.sign(&gcm(&signed))] {
        assert_eq!(idp.believed_with(&xml, from_ref(&key), true).unwrap().name, "ada");
    }
    let refused = |xml: &str| idp.believed_with(xml, from_ref(&key), true).unwrap_err();
    assert_eq!(refused(&gcm(&bare)), "Neither the response nor its assertion is signed");
    assert_eq!(refused(&gcm(&signed.replace(">ada<", ">eve<"))), "The element is not what was signed");
    assert_eq!(refused(&idp.answer(&facts)), "Assertions must be encrypted, and this one is not");
    assert!(idp.believed_with(&gcm(&signed), &[], false).unwrap_err().contains("no key to open it"));
    let (other, _) = ours();
    let by = |keys: &[ServiceKey]| idp.believed_with(&gcm(&signed), keys, true).map(|statement| statement.name);
    assert!(by(from_ref(&other)).unwrap_err().contains("cannot be decrypted"));
    // While one key replaces another, either opens what is for it.
    assert_eq!(by(&[other, key]).unwrap(), "ada");
}

/// A change of CBC ciphertext changes the plain text without notice, and errors would tell what it was.
#[test]
fn cbc_is_opened_only_inside_of_a_signed_response() {
    let (idp, (key, public)) = (Idp::new(), ours());
    let facts = Facts::usual(&idp);
    let inside = hidden(&idp.sign(&idp.assertion(&facts)), &public, Content::Cbc, Padding::PKCS1_OAEP);
    let bare = idp.response(&facts, &inside);
    assert!(idp.believed_with(&bare, from_ref(&key), true).unwrap_err().contains("signed as a whole"));
    assert_eq!(idp.believed_with(&idp.sign(&bare), from_ref(&key), true).unwrap().name, "ada");
}

#[test]
fn keys_wrapped_in_the_old_way_are_refused() {
    let (idp, (key, public)) = (Idp::new(), ours());
    let facts = Facts::usual(&idp);
    let inside = hidden(&idp.sign(&idp.assertion(&facts)), &public, Content::Gcm, Padding::PKCS1);
    let refused = idp.believed_with(&idp.response(&facts, &inside), from_ref(&key), true).unwrap_err();
    assert_eq!(refused, "The key of an assertion must be wrapped with RSA-OAEP");
}
