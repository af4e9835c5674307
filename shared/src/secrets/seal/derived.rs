//! Sealing what no table holds: values in stores of their own, which come without number. A data key may seal only so many
//! values under random nonces, so each place gets a key of its own, derived from the data key and the place. The form is
//! that of other sealed values: 1, id of the data key, nonce, ciphertext, tag.

use super::data_key::DataKey;
use super::{SealError, Sealer, SealingKey, Secret};
use uuid::Uuid;

const VERSION: u8 = 1;
const PREFIX: usize = 1 + 16;

impl Sealer {
    /// `place` says where the value is kept; it opens nowhere else.
    pub fn seal_elsewhere(&self, data_key: &DataKey, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let about = about(data_key.organisation_id, place);
        let sealed = self.place_key(data_key, &about)?.seal(&about, plain)?;
        Ok([&[VERSION], data_key.id.as_bytes().as_slice(), &sealed].concat())
    }

    pub fn open_elsewhere(&self, data_key: &DataKey, place: &[u8], sealed: &[u8]) -> Result<Secret, SealError> {
        if data_key_id(sealed)? != data_key.id {
            return Err(SealError::Refused);
        }
        let about = about(data_key.organisation_id, place);
        self.place_key(data_key, &about)?.open(&about, sealed.get(PREFIX..).ok_or(SealError::Malformed)?)
    }

    /// A secret of the organisation's own for this purpose, the same wherever the data key is at hand.
    pub fn derive_elsewhere(&self, data_key: &DataKey, purpose: &[u8]) -> Result<Secret, SealError> {
        let key = self.place_key(data_key, &about(data_key.organisation_id, purpose))?;
        Ok(Secret::from(key.expose().to_vec()))
    }

    fn place_key(&self, data_key: &DataKey, about: &[u8]) -> Result<SealingKey, SealError> {
        Ok(self.unwrapped(data_key)?.derived(about))
    }
}

/// The data key that opens such a value.
pub fn data_key_id(sealed: &[u8]) -> Result<Uuid, SealError> {
    match sealed.split_first() {
        Some((&VERSION, rest)) => {
            rest.split_at_checked(16).and_then(|(id, _)| Uuid::from_slice(id).ok()).ok_or(SealError::Malformed)
        }
        _ => Err(SealError::Malformed),
    }
}

/// The organisation stands first, and after it what no row of a table is called.
fn about(organisation: Uuid, place: &[u8]) -> Vec<u8> {
    [organisation.as_bytes().as_slice(), b"elsewhere\0", place].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::seal::{Keyring, MasterKeys};
    use crate::settings;

    fn sealer() -> Sealer {
        let key = Keyring::generate("m").unwrap().trim().to_owned();
        let settings = settings::Sealing { gateway_master_key_file: None, gateway_master_key: Some(key) };
        Sealer::new(MasterKeys::load(&settings).unwrap())
    }

    #[test]
    fn a_value_opens_with_its_data_key_and_at_its_place_alone() {
        let sealer = sealer();
        let [key, other] = [1, 2].map(|id| sealer.new_data_key(Uuid::from_u128(id)).unwrap());
        let sealed = sealer.seal_elsewhere(&key, b"here", b"s3cret").unwrap();
        assert_eq!(data_key_id(&sealed).unwrap(), key.id);
        assert_eq!(sealer.open_elsewhere(&key, b"here", &sealed).unwrap().expose(), b"s3cret");
        assert!(matches!(sealer.open_elsewhere(&key, b"there", &sealed), Err(SealError::Refused)));
        assert!(matches!(sealer.open_elsewhere(&other, b"here", &sealed), Err(SealError::Refused)));
        let disguised = DataKey { id: key.id, ..other };
        assert!(sealer.open_elsewhere(&disguised, b"here", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 1;
            assert!(sealer.open_elsewhere(&key, b"here", &bent).is_err(), "byte {at}");
            assert!(sealer.open_elsewhere(&key, b"here", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    /// A derived key must not be the data key, or a flood of values would wear it out.
    #[test]
    fn each_place_has_a_key_of_its_own() {
        let key = SealingKey::random().unwrap();
        let keys = [key.clone(), key.derived(b"here"), key.derived(b"there")];
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            assert_ne!(keys[one].expose(), keys[other].expose());
        }
        assert_eq!(key.derived(b"here").expose(), key.derived(b"here").expose());
    }
}
