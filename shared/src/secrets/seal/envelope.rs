//! What sealed values look like as bytes, and what they are bound to. Each begins with the version of its form and names
//! the key that opens it, so that several keys can be in use while one replaces the other.
//!
//! A value: 1, id of the data key (16 bytes), nonce, ciphertext, tag. A data key: 1, length and id of the master key,
//! nonce, ciphertext, tag.

use super::{Keyring, SealError, SealingKey, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

const VERSION: u8 = 1;

/// Where a sealed value is stored. It opens nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedPlace {
    pub organisation: Uuid,
    pub table: &'static str,
    pub row: Uuid,
    /// The column, or the part of it.
    pub field: &'static str,
}

impl SealedPlace {
    fn about(&self) -> Vec<u8> {
        let names = format!("{}\0{}", self.table, self.field);
        [self.organisation.as_bytes(), self.row.as_bytes().as_slice(), names.as_bytes()].concat()
    }
}

/// Sealed bytes. They are no secret, but nobody needs to read them either.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Arc<[u8]>);

impl Sealed {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn to_vec(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// The data key that opens a value.
    pub fn data_key_id(&self) -> Result<Uuid, SealError> {
        match self.0.split_first() {
            Some((&VERSION, rest)) => {
                rest.split_at_checked(16).and_then(|(id, _)| Uuid::from_slice(id).ok()).ok_or(SealError::Malformed)
            }
            _ => Err(SealError::Malformed),
        }
    }

    pub(crate) fn seal(id: Uuid, key: &SealingKey, place: &SealedPlace, plain: &[u8]) -> Result<Self, SealError> {
        let text = key.seal(&place.about(), plain)?;
        Ok(Self([&[VERSION], id.as_bytes().as_slice(), &text].concat().into()))
    }

    pub(crate) fn open(&self, key: &SealingKey, place: &SealedPlace) -> Result<Secret, SealError> {
        self.data_key_id()?;
        key.open(&place.about(), &self.0[17..])
    }

    /// A data key, sealed by the active master key.
    pub(crate) fn wrap(ring: &Keyring, organisation: Uuid, id: Uuid, key: &SealingKey) -> Result<Self, SealError> {
        let (name, master) = ring.active();
        let length = u8::try_from(name.len()).map_err(|_| SealError::Malformed)?;
        let text = master.seal(&about_key(organisation, id), key.expose())?;
        Ok(Self([&[VERSION, length], name.as_bytes(), &text].concat().into()))
    }

    pub(crate) fn unwrap(&self, ring: &Keyring, organisation: Uuid, id: Uuid) -> Result<SealingKey, SealError> {
        let [VERSION, length, rest @ ..] = &*self.0 else { return Err(SealError::Malformed) };
        let (name, text) = rest.split_at_checked(usize::from(*length)).ok_or(SealError::Malformed)?;
        let name = std::str::from_utf8(name).map_err(|_| SealError::Malformed)?;
        let master = ring.key(name).ok_or_else(|| SealError::UnknownMasterKey(name.to_owned()))?;
        let key = master.open(&about_key(organisation, id), text)?;
        SealingKey::from_bytes(key.expose()).ok_or(SealError::Malformed)
    }
}

fn about_key(organisation: Uuid, id: Uuid) -> Vec<u8> {
    SealedPlace { organisation, table: "data_keys", row: id, field: "wrapped" }.about()
}

impl From<Vec<u8>> for Sealed {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Sealed {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

/// In base64, because lists of numbers are four times as long.
impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self::from).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> SealedPlace {
        SealedPlace {
            organisation: Uuid::from_u128(1),
            table: "integrations",
            row: Uuid::from_u128(2),
            field: "sealed",
        }
    }

    #[test]
    fn a_value_opens_only_where_it_was_sealed() {
        let (id, key) = (Uuid::from_u128(9), SealingKey::random().unwrap());
        let sealed = Sealed::seal(id, &key, &place(), b"s3cret").unwrap();
        assert_eq!(sealed.data_key_id().unwrap(), id);
        assert_eq!(sealed.open(&key, &place()).unwrap().expose(), b"s3cret");
        for moved in [
            SealedPlace { organisation: Uuid::from_u128(3), ..place() },
            SealedPlace { table: "integration", ..place() },
            SealedPlace { row: Uuid::from_u128(3), ..place() },
            SealedPlace { field: "s", ..place() },
        ] {
            assert!(matches!(sealed.open(&key, &moved), Err(SealError::Refused)), "{moved:?}");
        }
        assert!(!sealed.as_bytes().windows(6).any(|part| part == b"s3cret"));
    }

    #[test]
    fn a_data_key_opens_with_the_master_key_that_wrapped_it_and_for_its_organisation_alone() {
        let (one, two) = (Keyring::generate("one").unwrap(), Keyring::generate("two").unwrap());
        let (old, both) = (Keyring::parse(&one).unwrap(), Keyring::parse(&format!("{two}{one}")).unwrap());
        let (organisation, id, key) = (Uuid::from_u128(1), Uuid::from_u128(2), SealingKey::random().unwrap());
        let wrapped = Sealed::wrap(&old, organisation, id, &key).unwrap();
        assert_eq!(wrapped.unwrap(&both, organisation, id).unwrap().expose(), key.expose());
        let again = Sealed::wrap(&both, organisation, id, &key).unwrap();
        assert!(
            matches!(again.unwrap(&old, organisation, id), Err(SealError::UnknownMasterKey(name)) if name == "two")
        );
        assert!(matches!(wrapped.unwrap(&both, id, id), Err(SealError::Refused)));
        let false_friend = Keyring::parse(&Keyring::generate("one").unwrap()).unwrap();
        assert!(matches!(wrapped.unwrap(&false_friend, organisation, id), Err(SealError::Refused)));
    }

    #[test]
    fn bytes_of_another_form_are_refused_and_not_followed() {
        let (key, ring) = (SealingKey::random().unwrap(), Keyring::parse(&Keyring::generate("a").unwrap()).unwrap());
        for bytes in [&[][..], &[1], &[2; 64], &[1; 17], &[1; 18], &[1, 255], &[1, 3, 97]] {
            let sealed = Sealed::from(bytes);
            assert!(sealed.open(&key, &place()).is_err(), "{bytes:?}");
            assert!(sealed.unwrap(&ring, Uuid::nil(), Uuid::nil()).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn sealed_bytes_survive_json() {
        let sealed = Sealed::from(vec![1, 2, 255]);
        let text = serde_json::to_string(&sealed).unwrap();
        assert_eq!(text, "\"AQL/\"");
        assert_eq!(serde_json::from_str::<Sealed>(&text).unwrap(), sealed);
    }
}
