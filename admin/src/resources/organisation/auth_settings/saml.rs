//! The SAML part of the settings: taken only if somebody could sign in by it.

use super::sign_in::https;
use crate::http::ApiError;
use crate::openapi::schema::{self, Schema};
use crate::saml::SamlSettings;
use crate::saml::settings::Described;
use serde_json::Value;
use shared::outbound::Guard;

/// Addresses must be https, or plain on a host that the operator trusts.
pub fn checked(saml: SamlSettings, guard: &Guard) -> Result<Value, ApiError> {
    let fault = |(field, bad): (&'static str, crate::saml::metadata::BadMetadata)| {
        ApiError::field(field, bad.to_string()).under("saml")
    };
    let address = |field: &str, url: &str| match guard.custom_url(url) {
        Ok(_) if url.len() <= 2048 => Ok(()),
        _ => https(field, url.to_owned()).map(drop),
    };
    saml.check_sizes().map_err(fault)?;
    match saml.described().map_err(fault)? {
        Described::At(url) => address("saml.metadata_url", &url)?,
        Described::Here(provider) => {
            let field = if saml.metadata_xml.is_some() { "saml.metadata_xml" } else { "saml.sso_url" };
            provider.addresses().try_for_each(|url| address(field, url))?;
        }
    }
    serde_json::to_value(saml).map_err(|_| ApiError::Internal)
}

pub fn docs(url: Schema) -> Schema {
    let attribute = || schema::text(1..=1024).or_null();
    let names = schema::object("SamlAttributes")
        .may("email", attribute().eg("mail").says("What the e-mail address is called; the usual names are known."))
        .may("first_name", attribute().eg("givenName").says("What the first name is called; usual ones are known."))
        .may("last_name", attribute().eg("sn").says("What the last name is called; the usual names are known."))
        .closed();
    let certificate = schema::text(1..=16384).eg("-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----");
    schema::object("SamlChange")
        .may("metadata_url", url)
        .may("metadata_xml", schema::any_text().or_null())
        .may(
            "entity_id",
            schema::text(1..=1024).eg("https://id.example.com/saml").or_null().says("Its name, without metadata."),
        )
        .may(
            "sso_url",
            schema::text(1..=2048)
                .eg("https://id.example.com/saml/sso")
                .or_null()
                .says("Where people sign in, without metadata; https."),
        )
        .may(
            "certificates",
            schema::list(certificate.says("In PEM, or its base64 alone."))
                .at_most(10)
                .or_null()
                .says("The keys it signs with, without metadata; several while it changes from one to the next."),
        )
        .may("binding", schema::choice(&["redirect", "post"]).or_null().says("How requests are sent; by redirect."))
        .may(
            "sign_requests",
            schema::flag().or_null().says("Whether requests are signed by our key, which is then made."),
        )
        .may("want_encrypted", schema::flag().or_null().says("Whether assertions must be encrypted for our key."))
        .may("attributes", names.or_null().says("What the identity provider calls what we want to know."))
        .closed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saml::key::ServiceKey;
    use serde_json::json;

    fn checked(sent: Value) -> Result<Value, String> {
        let saml = crate::http::json::parse::<SamlSettings>(sent).map_err(|error| error.to_string())?;
        super::checked(saml, &Guard::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_provider_is_described_in_one_way_and_well_enough() {
        let certificate = ServiceKey::generate("idp").unwrap().certificate_base64();
        let fields = |url: &str| json!({ "entity_id": "urn:idp", "sso_url": url, "certificates": [certificate], "want_encrypted": true });
        let stored = checked(fields("https://id.test/sso")).unwrap();
        assert_eq!((&stored["entity_id"], &stored["want_encrypted"]), (&json!("urn:idp"), &json!(true)));
        assert_eq!(
            checked(json!({ "metadata_url": "https://id.test/metadata" })).unwrap().as_object().unwrap().len(),
            1
        );
        let mut both = fields("https://id.test/sso");
        both["metadata_url"] = json!("https://id.test/metadata");
        let mut without = fields("https://id.test/sso");
        without["certificates"] = json!([]);
        for (sent, field) in [
            (json!({}), "saml: "),
            (both, "saml: "),
            (without, "saml.certificates: "),
            (json!({ "metadata_url": "http://id.test/metadata" }), "saml.metadata_url: "),
            (json!({ "metadata_xml": "<EntityDescriptor/>" }), "saml.metadata_xml: "),
            (fields("http://id.test/sso"), "saml.sso_url: "),
            (fields("javascript:alert(1)"), "saml.sso_url: "),
            (json!({ "metadata_url": "https://id.test/m", "attributes": { "email": "" } }), "saml.attributes.email: "),
        ] {
            let refused = checked(sent.clone()).unwrap_err();
            assert!(refused.starts_with(field), "{sent}: {refused}");
        }
    }
}
