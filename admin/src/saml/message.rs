//! What we say: our metadata, and requests to sign somebody in, by redirect or as a form, signed if a key is given.

use super::canonical::{EXCLUSIVE, exclusive};
use super::key::ServiceKey;
use super::metadata::{METADATA, POST, PROTOCOL};
use super::response::ASSERTION;
use super::signature::DSIG;
use super::xml::{escaped, parse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::sign::Signer;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;

const RSA_SHA256: &str = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";
const SHA256: &str = "http://www.w3.org/2001/04/xmlenc#sha256";

/// Who we are to one organisation's identity provider.
#[derive(Debug, Clone)]
pub struct ServiceProvider {
    /// Our name, which is also where our metadata is.
    pub entity_id: String,
    /// Where answers are posted to.
    pub consumer_url: String,
}

impl ServiceProvider {
    /// With the certificates of all keys: for signatures of requests, and for assertions to be encrypted with.
    pub fn metadata(&self, keys: &[ServiceKey], signs: bool) -> String {
        let described = |key: &ServiceKey| {
            let one = |used: &str| {
                format!(
                    "<md:KeyDescriptor use=\"{used}\"><ds:KeyInfo xmlns:ds=\"{DSIG}\"><ds:X509Data>\
                     <ds:X509Certificate>{}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>{}</md:KeyDescriptor>",
                    key.certificate_base64(),
                    if used == "encryption" { METHODS } else { "" },
                )
            };
            one("signing") + &one("encryption")
        };
        let keys: String = keys.iter().map(described).collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<md:EntityDescriptor xmlns:md=\"{METADATA}\" \
             entityID=\"{}\"><md:SPSSODescriptor AuthnRequestsSigned=\"{signs}\" WantAssertionsSigned=\"true\" \
             protocolSupportEnumeration=\"{PROTOCOL}\">{}<md:NameIDFormat>\
             urn:oasis:names:tc:SAML:2.0:nameid-format:persistent</md:NameIDFormat><md:NameIDFormat>\
             urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress</md:NameIDFormat>\
             <md:AssertionConsumerService Binding=\"{POST}\" Location=\"{}\" index=\"0\" isDefault=\"true\"/>\
             </md:SPSSODescriptor></md:EntityDescriptor>\n",
            escaped(&self.entity_id),
            keys,
            escaped(&self.consumer_url),
        )
    }

    /// A request to sign somebody in, without a signature. `id` comes back in the answer.
    fn request(&self, id: &str, destination: &str, now: DateTime<Utc>) -> String {
        format!(
            "<samlp:AuthnRequest xmlns:samlp=\"{PROTOCOL}\" AssertionConsumerServiceURL=\"{}\" Destination=\"{}\" \
             ID=\"{}\" IssueInstant=\"{}\" ProtocolBinding=\"{POST}\" Version=\"2.0\"><saml:Issuer \
             xmlns:saml=\"{ASSERTION}\">{}</saml:Issuer><samlp:NameIDPolicy AllowCreate=\"true\"></samlp:NameIDPolicy>\
             </samlp:AuthnRequest>",
            escaped(&self.consumer_url),
            escaped(destination),
            escaped(id),
            now.to_rfc3339_opts(SecondsFormat::Secs, true),
            escaped(&self.entity_id),
        )
    }

    /// The address to send the browser to. A signature is over the query, not in the XML.
    pub fn redirect(
        &self,
        id: &str,
        destination: &str,
        key: Option<&ServiceKey>,
        now: DateTime<Utc>,
    ) -> Result<String, CannotSign> {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
        packed.write_all(self.request(id, destination, now).as_bytes()).map_err(|_| CannotSign)?;
        let packed = STANDARD.encode(packed.finish().map_err(|_| CannotSign)?);
        let pair = |name: &str, value: &str| {
            url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
        };
        let mut query = pair("SAMLRequest", &packed);
        if let Some(key) = key {
            query = format!("{query}&{}", pair("SigAlg", RSA_SHA256));
            let signature = signed(key, query.as_bytes())?;
            query = format!("{query}&{}", pair("Signature", &signature));
        }
        let joint = if destination.contains('?') { '&' } else { '?' };
        Ok(format!("{destination}{joint}{query}"))
    }

    /// The value of the form's field.
    pub fn form_value(
        &self,
        id: &str,
        destination: &str,
        key: Option<&ServiceKey>,
        now: DateTime<Utc>,
    ) -> Result<String, CannotSign> {
        let request = self.request(id, destination, now);
        let Some(key) = key else { return Ok(STANDARD.encode(request)) };
        let document = parse(request.as_bytes()).map_err(|_| CannotSign)?;
        let canonical = exclusive(&document, document.root(), None, &[]).map_err(|_| CannotSign)?;
        let digest = STANDARD.encode(Sha256::digest(canonical));
        let info = format!(
            "<ds:SignedInfo xmlns:ds=\"{DSIG}\"><ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\">\
             </ds:CanonicalizationMethod><ds:SignatureMethod Algorithm=\"{RSA_SHA256}\"></ds:SignatureMethod>\
             <ds:Reference URI=\"#{id}\"><ds:Transforms><ds:Transform Algorithm=\"{DSIG}enveloped-signature\">\
             </ds:Transform><ds:Transform Algorithm=\"{EXCLUSIVE}\"></ds:Transform></ds:Transforms><ds:DigestMethod \
             Algorithm=\"{SHA256}\"></ds:DigestMethod><ds:DigestValue>{digest}</ds:DigestValue></ds:Reference>\
             </ds:SignedInfo>"
        );
        let signature = signed(key, info.as_bytes())?;
        let signature = format!(
            "<ds:Signature xmlns:ds=\"{DSIG}\">{info}<ds:SignatureValue>{signature}</ds:SignatureValue></ds:Signature>"
        );
        // The schema wants it after the issuer.
        Ok(STANDARD.encode(request.replacen("</saml:Issuer>", &format!("</saml:Issuer>{signature}"), 1)))
    }
}

/// What assertions may be encrypted with, the best first.
const METHODS: &str = "<md:EncryptionMethod Algorithm=\"http://www.w3.org/2009/xmlenc11#aes256-gcm\"/>\
    <md:EncryptionMethod Algorithm=\"http://www.w3.org/2009/xmlenc11#aes128-gcm\"/>\
    <md:EncryptionMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p\"/>";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be signed")]
pub struct CannotSign;

fn signed(key: &ServiceKey, bytes: &[u8]) -> Result<String, CannotSign> {
    let sign = || -> Result<Vec<u8>, ErrorStack> {
        let mut signer = Signer::new(MessageDigest::sha256(), &key.private)?;
        signer.update(bytes)?;
        signer.sign_to_vec()
    };
    sign().map(|signature| STANDARD.encode(signature)).map_err(|_| CannotSign)
}

#[cfg(test)]
mod tests {
    use super::super::metadata::key_of;
    use super::super::signature::verified;
    use super::*;

    fn ours() -> ServiceProvider {
        ServiceProvider {
            entity_id: "https://gateway.test/auth/saml/1/metadata".into(),
            consumer_url: "https://gateway.test/auth/saml/1/acs".into(),
        }
    }

    #[test]
    fn a_signed_form_holds_by_our_own_certificate_and_no_longer_when_changed() {
        let key = ServiceKey::generate("gateway").unwrap();
        let public = [key_of(&key.certificate_base64()).unwrap()];
        let form = ours().form_value("_1", "https://idp.test/sso?a=1&b=2", Some(&key), Utc::now()).unwrap();
        let xml = String::from_utf8(STANDARD.decode(form).unwrap()).unwrap();
        let holds = |xml: &str| {
            let document = parse(xml.as_bytes()).unwrap();
            verified(&document, document.root(), &public).is_ok_and(|signed| signed.is_some())
        };
        assert!(holds(&xml));
        assert!(!holds(&xml.replace("https://gateway.test/auth/saml/1/acs", "https://evil.test/acs")));
    }

    #[test]
    fn a_redirect_is_packed_and_signed_over_its_query() {
        let key = ServiceKey::generate("gateway").unwrap();
        let address = ours().redirect("_1", "https://idp.test/sso?tenant=a", Some(&key), Utc::now()).unwrap();
        let query = address.strip_prefix("https://idp.test/sso?tenant=a&").unwrap();
        let (signed, signature) = query.split_once("&Signature=").unwrap();
        assert!(signed.starts_with("SAMLRequest=") && signed.contains("&SigAlg=http%3A%2F%2F"));
        let value = url::form_urlencoded::parse(format!("s={signature}").as_bytes()).next().unwrap().1.into_owned();
        let public = key_of(&key.certificate_base64()).unwrap();
        let mut verifier = openssl::sign::Verifier::new(MessageDigest::sha256(), &public).unwrap();
        verifier.update(signed.as_bytes()).unwrap();
        assert!(verifier.verify(&STANDARD.decode(value).unwrap()).unwrap());
    }

    #[test]
    fn our_metadata_is_xml_with_all_our_certificates() {
        let keys = [ServiceKey::generate("gateway").unwrap(), ServiceKey::generate("gateway").unwrap()];
        let xml = ours().metadata(&keys, true);
        let document = parse(xml.as_bytes()).unwrap();
        assert_eq!(document.attribute(document.root(), "entityID"), Some("https://gateway.test/auth/saml/1/metadata"));
        for key in &keys {
            assert_eq!(xml.matches(&key.certificate_base64()).count(), 2);
        }
        assert!(parse(ours().metadata(&[], false).as_bytes()).is_ok());
    }
}
