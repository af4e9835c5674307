//! Encrypted assertions: the key of the content is wrapped by RSA-OAEP for our certificate, the content is AES. With GCM
//! a change of the ciphertext shows; CBC does not show it and betrays plain texts to who may ask often enough, so it is
//! taken only inside of a response whose signature held. RSA of PKCS #1 v1.5 is not taken at all.

use super::key::ServiceKey;
use super::signature::{DSIG, decoded};
use super::work;
use super::xml::{Document, ElementId};
use openssl::encrypt::Decrypter;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Padding;
use openssl::symm::{Cipher, Crypter, Mode, decrypt_aead};

const XENC: &str = "http://www.w3.org/2001/04/xmlenc#";
const XENC11: &str = "http://www.w3.org/2009/xmlenc11#";
/// Steps of `work` that an operation with a private key is worth: about a millisecond.
const PRIVATE_OPERATION: usize = 64 << 10;

/// Nothing about the ciphertext: an answer that told more would be an oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undecryptable(pub &'static str);

const FAILED: Undecryptable = Undecryptable("The assertion cannot be decrypted with our key");

/// The plain bytes of an `EncryptedAssertion`. `is_signed` says that a signature over the ciphertext held.
pub fn decrypted(
    document: &Document,
    assertion: ElementId,
    keys: &[ServiceKey],
    is_signed: bool,
) -> Result<Vec<u8>, Undecryptable> {
    let data = document.only(assertion, XENC, "EncryptedData").ok_or(FAILED)?;
    let algorithm = algorithm(document, data);
    let (cipher, is_gcm) = match algorithm.as_str() {
        "http://www.w3.org/2009/xmlenc11#aes128-gcm" => (Cipher::aes_128_gcm(), true),
        "http://www.w3.org/2009/xmlenc11#aes256-gcm" => (Cipher::aes_256_gcm(), true),
        "http://www.w3.org/2001/04/xmlenc#aes128-cbc" => (Cipher::aes_128_cbc(), false),
        "http://www.w3.org/2001/04/xmlenc#aes256-cbc" => (Cipher::aes_256_cbc(), false),
        _ => return Err(Undecryptable("Assertions must be encrypted with AES-128 or AES-256, GCM or CBC")),
    };
    if !is_gcm && !is_signed {
        return Err(Undecryptable("AES-CBC is taken only in a response that is signed as a whole; use AES-GCM"));
    }
    let content = cipher_value(document, data)?;
    // Which of our keys it is for, it need not say: the others do not open it.
    let mut why = FAILED;
    for key in keys {
        match content_key(document, assertion, data, &key.private) {
            Ok(secret) if secret.len() == cipher.key_len() && is_gcm => return opened_gcm(cipher, &secret, &content),
            Ok(secret) if secret.len() == cipher.key_len() => return opened_cbc(cipher, &secret, &content),
            Ok(_) => {}
            Err(refused) => why = refused,
        }
    }
    Err(why)
}

/// The wrapped key stands in the data's `KeyInfo`, or beside the data.
fn content_key(
    document: &Document,
    assertion: ElementId,
    data: ElementId,
    key: &PKey<Private>,
) -> Result<Vec<u8>, Undecryptable> {
    let info = document.only(data, DSIG, "KeyInfo");
    let inside = info.map(|info| document.children(info, XENC, "EncryptedKey")).unwrap_or_default();
    let wrapped = match (inside.as_slice(), document.children(assertion, XENC, "EncryptedKey").as_slice()) {
        ([one], []) | ([], [one]) => *one,
        _ => return Err(FAILED),
    };
    let method = document.only(wrapped, XENC, "EncryptionMethod").ok_or(FAILED)?;
    let named = |of: Option<ElementId>| of.and_then(|of| document.attribute(of, "Algorithm")).map(str::to_owned);
    let digest = digest(named(document.only(method, DSIG, "DigestMethod")).as_deref())?;
    let mask = match document.attribute(method, "Algorithm") {
        Some("http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p") => MessageDigest::sha1(),
        Some("http://www.w3.org/2009/xmlenc11#rsa-oaep") => {
            mask(named(document.only(method, XENC11, "MGF")).as_deref())?
        }
        _ => return Err(Undecryptable("The key of an assertion must be wrapped with RSA-OAEP")),
    };
    let value = cipher_value(document, wrapped)?;
    work::note(PRIVATE_OPERATION);
    let unwrap = || {
        let mut decrypter = Decrypter::new(key).ok()?;
        decrypter.set_rsa_padding(Padding::PKCS1_OAEP).ok()?;
        decrypter.set_rsa_oaep_md(digest).ok()?;
        decrypter.set_rsa_mgf1_md(mask).ok()?;
        let mut out = vec![0; decrypter.decrypt_len(&value).ok()?];
        let length = decrypter.decrypt(&value, &mut out).ok()?;
        out.truncate(length);
        Some(out)
    };
    unwrap().ok_or(FAILED)
}

/// SHA-1 inside of OAEP is not a signature: nothing known is weaker for it, and it is the default of the format.
fn digest(algorithm: Option<&str>) -> Result<MessageDigest, Undecryptable> {
    match algorithm {
        None | Some("http://www.w3.org/2000/09/xmldsig#sha1") => Ok(MessageDigest::sha1()),
        Some("http://www.w3.org/2001/04/xmlenc#sha256") => Ok(MessageDigest::sha256()),
        Some("http://www.w3.org/2001/04/xmlenc#sha512") => Ok(MessageDigest::sha512()),
        Some(_) => Err(Undecryptable("The digest of RSA-OAEP must be SHA-1, SHA-256 or SHA-512")),
    }
}

fn mask(algorithm: Option<&str>) -> Result<MessageDigest, Undecryptable> {
    match algorithm {
        None | Some("http://www.w3.org/2009/xmlenc11#mgf1sha1") => Ok(MessageDigest::sha1()),
        Some("http://www.w3.org/2009/xmlenc11#mgf1sha256") => Ok(MessageDigest::sha256()),
        Some("http://www.w3.org/2009/xmlenc11#mgf1sha512") => Ok(MessageDigest::sha512()),
        Some(_) => Err(Undecryptable("The mask of RSA-OAEP must be made with SHA-1, SHA-256 or SHA-512")),
    }
}

fn algorithm(document: &Document, data: ElementId) -> String {
    let method = document.only(data, XENC, "EncryptionMethod");
    method.and_then(|method| document.attribute(method, "Algorithm")).unwrap_or_default().to_owned()
}

fn cipher_value(document: &Document, of: ElementId) -> Result<Vec<u8>, Undecryptable> {
    let data = document.only(of, XENC, "CipherData").ok_or(FAILED)?;
    let value = document.only(data, XENC, "CipherValue").ok_or(FAILED)?;
    decoded(document.text(value).unwrap_or_default()).map_err(|_| FAILED)
}

/// 12 bytes of nonce, the content, 16 bytes of tag.
fn opened_gcm(cipher: Cipher, key: &[u8], content: &[u8]) -> Result<Vec<u8>, Undecryptable> {
    let (nonce, rest) = content.split_at_checked(12).ok_or(FAILED)?;
    let (sealed, tag) = rest.split_at_checked(rest.len().saturating_sub(16)).ok_or(FAILED)?;
    if tag.len() != 16 {
        return Err(FAILED);
    }
    decrypt_aead(cipher, key, Some(nonce), &[], sealed, tag).map_err(|_| FAILED)
}

/// 16 bytes of nonce, the content, and padding of which only the last byte, its length, means something.
fn opened_cbc(cipher: Cipher, key: &[u8], content: &[u8]) -> Result<Vec<u8>, Undecryptable> {
    let (nonce, sealed) = content.split_at_checked(16).ok_or(FAILED)?;
    if sealed.is_empty() || sealed.len() % 16 != 0 {
        return Err(FAILED);
    }
    let open = || {
        let mut crypter = Crypter::new(cipher, Mode::Decrypt, key, Some(nonce)).ok()?;
        crypter.pad(false);
        let mut plain = vec![0; sealed.len() + 16];
        let mut length = crypter.update(sealed, &mut plain).ok()?;
        length += crypter.finalize(&mut plain[length..]).ok()?;
        plain.truncate(length);
        let padding = usize::from(*plain.last()?);
        (1..=16).contains(&padding).then(|| plain[..length - padding].to_vec())
    };
    open().ok_or(FAILED)
}
