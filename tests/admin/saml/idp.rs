//! An identity provider of SAML: says what it is told of somebody, signed and encrypted as it is told.

use admin::saml::key::ServiceKey;
use admin::saml::message::ServiceProvider;
use admin::saml::metadata::IdentityProvider;
use admin::saml::response::{self, Expected, Statement};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use openssl::hash::{MessageDigest, hash};
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::sign::Signer;

pub const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
pub const ASSERTION: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
pub const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
pub const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

pub struct Idp {
    pub entity_id: String,
    private: PKey<Private>,
    pub certificate: String,
}

/// What an answer says.
#[derive(Debug, Clone)]
pub struct Facts {
    pub issuer: String,
    pub request_id: String,
    pub response_id: String,
    pub assertion_id: String,
    pub consumer_url: String,
    pub audience: String,
    pub name: String,
    pub email: String,
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

/// Hash functions by their names in XML.
pub struct Algorithms {
    pub signature: &'static str,
    pub digest: &'static str,
    pub with: fn() -> MessageDigest,
}

pub const SHA256: Algorithms = Algorithms {
    signature: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
    digest: "http://www.w3.org/2001/04/xmlenc#sha256",
    with: MessageDigest::sha256,
};
pub const SHA1: Algorithms = Algorithms {
    signature: "http://www.w3.org/2000/09/xmldsig#rsa-sha1",
    digest: "http://www.w3.org/2000/09/xmldsig#sha1",
    with: MessageDigest::sha1,
};

impl Idp {
    pub fn new() -> Self {
        let private = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let certificate = ServiceKey::signed_by_itself("idp", private.clone()).unwrap().certificate_base64();
        Self { entity_id: "https://idp.test/saml".into(), private, certificate }
    }

    pub fn private_pem(&self) -> Vec<u8> {
        self.private.private_key_to_pem_pkcs8().unwrap()
    }

    pub fn metadata(&self) -> String {
        let base = "urn:oasis:names:tc:SAML:2.0";
        format!(
            "<EntityDescriptor xmlns=\"{base}:metadata\" entityID=\"{}\"><IDPSSODescriptor \
             protocolSupportEnumeration=\"{base}:protocol\"><KeyDescriptor use=\"signing\"><KeyInfo \
             xmlns=\"{DSIG}\"><X509Data><X509Certificate>{}</X509Certificate></X509Data></KeyInfo></KeyDescriptor>\
             <SingleSignOnService Binding=\"{base}:bindings:HTTP-Redirect\" Location=\"https://idp.test/sso\"/>\
             <SingleSignOnService Binding=\"{base}:bindings:HTTP-POST\" Location=\"https://idp.test/post\"/>\
             </IDPSSODescriptor></EntityDescriptor>",
            self.entity_id, self.certificate
        )
    }

    /// In canonical form, not signed.
    pub fn assertion(&self, facts: &Facts) -> String {
        let Facts { issuer, request_id, assertion_id, consumer_url, audience, name, email, .. } = facts;
        let (from, until, now) = (written(facts.from), written(facts.until), written(Utc::now()));
        format!(
            "<saml:Assertion xmlns:saml=\"{ASSERTION}\" ID=\"{assertion_id}\" IssueInstant=\"{now}\" Version=\"2.0\">\
             <saml:Issuer>{issuer}</saml:Issuer><saml:Subject><saml:NameID \
             Format=\"urn:oasis:names:tc:SAML:2.0:nameid-format:persistent\">{name}</saml:NameID>\
             <saml:SubjectConfirmation Method=\"urn:oasis:names:tc:SAML:2.0:cm:bearer\"><saml:SubjectConfirmationData \
             InResponseTo=\"{request_id}\" NotOnOrAfter=\"{until}\" Recipient=\"{consumer_url}\">\
             </saml:SubjectConfirmationData></saml:SubjectConfirmation></saml:Subject><saml:Conditions \
             NotBefore=\"{from}\" NotOnOrAfter=\"{until}\"><saml:AudienceRestriction><saml:Audience>{audience}\
             </saml:Audience></saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement AuthnInstant=\"{now}\" \
             SessionIndex=\"s-1\"></saml:AuthnStatement><saml:AttributeStatement><saml:Attribute Name=\"mail\">\
             <saml:AttributeValue>{email}</saml:AttributeValue></saml:Attribute><saml:Attribute Name=\"groups\">\
             <saml:AttributeValue>sales</saml:AttributeValue><saml:AttributeValue>ops</saml:AttributeValue>\
             </saml:Attribute></saml:AttributeStatement></saml:Assertion>"
        )
    }

    /// A response around this, in canonical form, not signed.
    pub fn response(&self, facts: &Facts, inside: &str) -> String {
        let Facts { issuer, request_id, response_id, consumer_url, .. } = facts;
        let now = written(Utc::now());
        format!(
            "<samlp:Response xmlns:samlp=\"{PROTOCOL}\" Destination=\"{consumer_url}\" ID=\"{response_id}\" \
             InResponseTo=\"{request_id}\" IssueInstant=\"{now}\" Version=\"2.0\"><saml:Issuer \
             xmlns:saml=\"{ASSERTION}\">{issuer}</saml:Issuer><samlp:Status><samlp:StatusCode \
             Value=\"urn:oasis:names:tc:SAML:2.0:status:Success\"></samlp:StatusCode></samlp:Status>{inside}\
             </samlp:Response>"
        )
    }

    /// The element with a signature of its own, after its first issuer.
    pub fn sign(&self, element: &str) -> String {
        element.replacen("</saml:Issuer>", &format!("</saml:Issuer>{}", self.signature(element, &SHA256)), 1)
    }

    /// The signature alone, of an element in canonical form.
    pub fn signature(&self, element: &str, by: &Algorithms) -> String {
        let id = element.split_once(" ID=\"").unwrap().1.split_once('"').unwrap().0;
        let digest = STANDARD.encode(hash((by.with)(), element.as_bytes()).unwrap());
        let inside = format!(
            "<ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\"></ds:CanonicalizationMethod><ds:SignatureMethod \
             Algorithm=\"{}\"></ds:SignatureMethod><ds:Reference URI=\"#{id}\"><ds:Transforms><ds:Transform \
             Algorithm=\"{DSIG}enveloped-signature\"></ds:Transform><ds:Transform Algorithm=\"{EXCLUSIVE}\">\
             </ds:Transform></ds:Transforms><ds:DigestMethod Algorithm=\"{}\"></ds:DigestMethod><ds:DigestValue>\
             {digest}</ds:DigestValue></ds:Reference></ds:SignedInfo>",
            by.signature, by.digest
        );
        let mut signer = Signer::new((by.with)(), &self.private).unwrap();
        signer.update(format!("<ds:SignedInfo xmlns:ds=\"{DSIG}\">{inside}").as_bytes()).unwrap();
        let value = STANDARD.encode(signer.sign_to_vec().unwrap());
        format!(
            "<ds:Signature xmlns:ds=\"{DSIG}\"><ds:SignedInfo>{inside}<ds:SignatureValue>{value}</ds:SignatureValue>\
             </ds:Signature>"
        )
    }

    /// A response with an assertion that is signed.
    pub fn answer(&self, facts: &Facts) -> String {
        self.response(facts, &self.sign(&self.assertion(facts)))
    }

    /// What the gateway makes of an answer to `Facts::usual`, here and now.
    pub fn believed(&self, xml: &str) -> Result<Statement, String> {
        self.believed_with(xml, &[], false)
    }

    pub fn believed_with(&self, xml: &str, keys: &[ServiceKey], wants_encrypted: bool) -> Result<Statement, String> {
        let usual = Facts::usual(self);
        let from = IdentityProvider::parse(self.metadata().as_bytes()).unwrap();
        let to = ServiceProvider { entity_id: usual.audience, consumer_url: usual.consumer_url };
        let request_id = &usual.request_id;
        let expected = Expected { from: &from, to: &to, request_id, keys, wants_encrypted, now: Utc::now() };
        response::believed(xml.as_bytes(), &expected).map_err(|why| why.to_string())
    }
}

impl Facts {
    pub fn usual(idp: &Idp) -> Self {
        let now = Utc::now();
        Self {
            issuer: idp.entity_id.clone(),
            request_id: "_request".into(),
            response_id: "_response".into(),
            assertion_id: "_assertion".into(),
            consumer_url: "https://gateway.test/acs".into(),
            audience: "https://gateway.test/metadata".into(),
            name: "ada".into(),
            email: "ada@acme.test".into(),
            from: now - TimeDelta::seconds(60),
            until: now + TimeDelta::seconds(300),
        }
    }
}

fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
