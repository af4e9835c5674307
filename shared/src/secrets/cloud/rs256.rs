//! RSA with SHA-256: tokens (JWT) that an account signs for itself, and plain signatures. Keys come as PEM, the way
//! clouds hand them out: PKCS#1 or PKCS#8, without a passphrase.

use super::LoginError;
use crate::secrets::seal::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::sign::Signer;
use serde_json::Value;

/// A key to sign with. Shorter ones than this nobody hands out, longer ones would hold up whoever signs.
pub fn private_key(pem: &Secret, passphrase: Option<&Secret>) -> Result<PKey<Private>, LoginError> {
    let pem = unfolded(pem);
    // How long it takes to open an encrypted key is for its maker to say: one could hold up a thread for minutes.
    if passphrase.is_some() || memchr::memmem::find(pem.expose(), b"ENCRYPTED").is_some() {
        return Err(LoginError::Key("it must be stored without a passphrase; it is sealed here"));
    }
    // Without a passphrase the library would ask for one at the terminal.
    let key = PKey::private_key_from_pem_passphrase(pem.expose(), b"");
    let key = key.map_err(|_| LoginError::Key("it is no PEM"))?;
    match key.rsa() {
        Ok(rsa) if (1024..=8192).contains(&(rsa.size() * 8)) => Ok(key),
        Ok(_) => Err(LoginError::Key("it must have 1024 to 8192 bits")),
        Err(_) => Err(LoginError::Key("it is no RSA key")),
    }
}

/// In settings that hold one line, a key's line ends are often written as `\n`.
fn unfolded(pem: &Secret) -> Secret {
    match pem.expose_text() {
        Some(text) if text.contains("\\n") => text.replace("\\n", "\n").into(),
        _ => pem.clone(),
    }
}

pub fn signature(key: &PKey<Private>, message: &[u8]) -> Result<Vec<u8>, LoginError> {
    let sign = || Signer::new(MessageDigest::sha256(), key)?.sign_oneshot_to_vec(message);
    sign().map_err(|_| LoginError::Key("it does not sign"))
}

/// A token in its compact form.
pub fn token(key: &PKey<Private>, header: &Value, claims: &Value) -> Result<Secret, LoginError> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = signature(key, message.as_bytes())?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use openssl::rsa::Rsa;
    use openssl::sign::Verifier;
    use openssl::symm::Cipher;
    use serde_json::json;

    #[test]
    fn a_token_is_signed_by_the_key_and_says_what_it_was_given() {
        let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let pem: Secret = key.private_key_to_pem_pkcs8().unwrap().into();
        let folded: Secret = pem.expose_text().unwrap().replace('\n', "\\n").into();
        for pem in [pem, folded] {
            let token =
                token(&private_key(&pem, None).unwrap(), &json!({ "alg": "RS256" }), &json!({ "iss": "me" })).unwrap();
            let token = token.expose_text().unwrap();
            let (message, signature) = token.rsplit_once('.').unwrap();
            let claims = URL_SAFE_NO_PAD.decode(message.split_once('.').unwrap().1).unwrap();
            assert_eq!(claims, br#"{"iss":"me"}"#);
            let mut verifier = Verifier::new(MessageDigest::sha256(), &key).unwrap();
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            assert!(verifier.verify_oneshot(&signature, message.as_bytes()).unwrap());
        }
    }

    #[test]
    fn what_cannot_sign_is_refused_and_never_asked_for_at_the_terminal() {
        let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let locked = key.private_key_to_pem_pkcs8_passphrase(Cipher::aes_256_cbc(), b"open").unwrap();
        let locked = Secret::from(locked);
        // Whoever makes a key says how long it takes to open it.
        for passphrase in [None, Some(Secret::from("open".to_owned()))] {
            assert!(matches!(private_key(&locked, passphrase.as_ref()), Err(LoginError::Key(_))));
        }
        let elliptic = PKey::generate_ed25519().unwrap().private_key_to_pem_pkcs8().unwrap();
        let short = Rsa::generate(512).unwrap().private_key_to_pem().unwrap();
        for pem in [elliptic, short, b"-----BEGIN PRIVATE KEY-----\n".to_vec(), Vec::new()] {
            assert!(matches!(private_key(&pem.into(), None), Err(LoginError::Key(_))));
        }
    }
}
