//! An organisation's SAML settings, as they are stored: where the identity provider is described, what is asked of it,
//! and what it calls what we want to know.

use super::metadata::{BadMetadata, IdentityProvider, MAX_KEYS, MAX_SIZE, key_of};
use serde::{Deserialize, Serialize};

/// The identity provider is described by metadata, by address or as text, or field by field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamlSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_xml: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sso_url: Option<String>,
    /// In PEM; several while the identity provider changes from one to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_requests: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub want_encrypted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<AttributeNames>,
}

/// How a request reaches the identity provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    Redirect,
    Post,
}

/// What the identity provider calls these; the usual names are known without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttributeNames {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
}

/// Where the description of an identity provider comes from.
#[derive(Debug)]
pub enum Described {
    At(String),
    Here(IdentityProvider),
}

const MAX_URL: usize = 1024;
const MAX_CERTIFICATE: usize = 16 << 10;

/// What is wrong, with the name of the field below `saml`.
pub type FieldFault = (&'static str, BadMetadata);

impl SamlSettings {
    pub fn described(&self) -> Result<Described, FieldFault> {
        let fault = |field: &'static str, words: &str| (field, BadMetadata(words.to_owned()));
        let by_fields = self.entity_id.is_some() || self.sso_url.is_some() || self.certificates.is_some();
        match (&self.metadata_url, &self.metadata_xml) {
            (Some(url), None) if !by_fields => Ok(Described::At(url.clone())),
            (None, Some(xml)) if !by_fields => {
                let provider = IdentityProvider::parse(xml.as_bytes()).map_err(|bad| ("metadata_xml", bad))?;
                Ok(Described::Here(provider))
            }
            (None, None) if by_fields => self.by_fields().map(Described::Here),
            _ => {
                let one = "must have one of metadata_url, metadata_xml, or entity_id with sso_url and certificates";
                Err(fault("", one))
            }
        }
    }

    fn by_fields(&self) -> Result<IdentityProvider, FieldFault> {
        let required = |field: &'static str, value: &Option<String>| {
            let value = value.clone().filter(|value| (1..=2 * MAX_URL).contains(&value.len()));
            value.ok_or((field, BadMetadata(format!("is required, with 1 to {} bytes", 2 * MAX_URL))))
        };
        let certificates = self.certificates.as_deref().unwrap_or_default();
        if certificates.len() > MAX_KEYS || certificates.iter().any(|one| one.len() > MAX_CERTIFICATE) {
            let words = format!("must be at most {MAX_KEYS}, of at most {MAX_CERTIFICATE} bytes each");
            return Err(("certificates", BadMetadata(words)));
        }
        let keys = certificates.iter().map(|one| key_of(one)).collect::<Result<Vec<_>, _>>();
        let url = required("sso_url", &self.sso_url)?;
        let (redirect_url, post_url) = match self.binding {
            Some(Binding::Post) => (None, Some(url)),
            _ => (Some(url), None),
        };
        let provider = IdentityProvider {
            entity_id: required("entity_id", &self.entity_id)?,
            redirect_url,
            post_url,
            keys: keys.map_err(|bad| ("certificates", bad))?,
            wants_signed_requests: false,
        };
        provider.checked().map_err(|bad| ("certificates", bad))
    }

    /// Everything but addresses, which are judged by rules that are not ours.
    pub fn check_sizes(&self) -> Result<(), FieldFault> {
        let too_long = |field, text: &Option<String>, most: usize| match text {
            Some(text) if text.is_empty() || text.len() > most => {
                Err((field, BadMetadata(format!("must have 1 to {most} bytes"))))
            }
            _ => Ok(()),
        };
        too_long("metadata_xml", &self.metadata_xml, MAX_SIZE)?;
        too_long("metadata_url", &self.metadata_url, 2 * MAX_URL)?;
        let Some(names) = &self.attributes else { return Ok(()) };
        too_long("attributes.email", &names.email, MAX_URL)?;
        too_long("attributes.first_name", &names.first_name, MAX_URL)?;
        too_long("attributes.last_name", &names.last_name, MAX_URL)
    }

    /// Whether logins need a key pair of ours.
    pub fn needs_key(&self) -> bool {
        self.sign_requests == Some(true) || self.want_encrypted == Some(true)
    }
}
