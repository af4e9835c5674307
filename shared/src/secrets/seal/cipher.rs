//! AES-256-GCM by OpenSSL, which is linked anyway. The nonce is random and stands before the ciphertext: at 96 bits, one
//! key may seal four billion values before a repetition becomes likely enough to matter.

use super::{SealError, Secret};
use hmac::{Hmac, KeyInit as _, Mac as _};
use openssl::rand::rand_bytes;
use openssl::symm::{Cipher, decrypt_aead, encrypt_aead};
use sha2::Sha256;
use std::fmt;
use zeroize::Zeroizing;

pub const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// A key for sealing, whether master or data key.
#[derive(Clone)]
pub struct SealingKey(Zeroizing<[u8; KEY_BYTES]>);

impl SealingKey {
    pub fn random() -> Result<Self, SealError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        rand_bytes(bytes.as_mut_slice())?;
        Ok(Self(bytes))
    }

    /// `None` when these are not 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(Zeroizing::new(bytes.try_into().ok()?)))
    }

    pub(super) fn expose(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// A key for one purpose, from which this one cannot be told.
    pub(super) fn derived(&self, purpose: &[u8]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.expose()).expect("HMAC takes keys of every length");
        mac.update(purpose);
        Self(Zeroizing::new(mac.finalize().into_bytes().into()))
    }

    /// Nonce, ciphertext, tag. `about` is not in it but must be the same to open it.
    pub(super) fn seal(&self, about: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut sealed = vec![0; NONCE_BYTES];
        rand_bytes(&mut sealed)?;
        let mut tag = [0; TAG_BYTES];
        let text = encrypt_aead(Cipher::aes_256_gcm(), self.expose(), Some(&sealed), about, plain, &mut tag)?;
        sealed.extend(text);
        sealed.extend(tag);
        Ok(sealed)
    }

    pub(super) fn open(&self, about: &[u8], sealed: &[u8]) -> Result<Secret, SealError> {
        let (nonce, rest) = sealed.split_at_checked(NONCE_BYTES).ok_or(SealError::Malformed)?;
        let end = rest.len().checked_sub(TAG_BYTES).ok_or(SealError::Malformed)?;
        let (text, tag) = rest.split_at(end);
        let plain = decrypt_aead(Cipher::aes_256_gcm(), self.expose(), Some(nonce), about, text, tag);
        plain.map(Secret::from).map_err(|_| SealError::Refused)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_the_same_key_and_place_alone() {
        let (key, other) = (SealingKey::random().unwrap(), SealingKey::random().unwrap());
        let sealed = key.seal(b"here", b"s3cret").unwrap();
        assert_eq!(key.open(b"here", &sealed).unwrap().expose(), b"s3cret");
        assert!(matches!(key.open(b"there", &sealed), Err(SealError::Refused)));
        assert!(matches!(other.open(b"here", &sealed), Err(SealError::Refused)));
        for at in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 1;
            assert!(matches!(key.open(b"here", &bent), Err(SealError::Refused)), "byte {at}");
            assert!(key.open(b"here", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn the_same_value_is_never_sealed_alike_twice() {
        let key = SealingKey::random().unwrap();
        assert_ne!(key.seal(b"", b"s3cret").unwrap(), key.seal(b"", b"s3cret").unwrap());
        assert_eq!(key.open(b"", &key.seal(b"", b"").unwrap()).unwrap().expose(), b"");
    }

    /// Test case 16 of the GCM specification, so that what is stored can be opened by any other implementation.
    #[test]
    fn the_cipher_is_the_one_of_the_specification() {
        let bytes = |text: &str| hex::decode(text).unwrap();
        let key =
            SealingKey::from_bytes(&bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")).unwrap();
        let about = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let sealed = bytes(
            "cafebabefacedbaddecaf888\
             522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662\
             76fc6ece0f4e1768cddf8853bb2d551b",
        );
        let plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
        assert_eq!(hex::encode(key.open(&about, &sealed).unwrap().expose()), plain);
        assert!(SealingKey::from_bytes(&[0; 31]).is_none());
    }
}
