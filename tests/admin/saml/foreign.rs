//! Answers that others wrote: PyPI's pysaml2 with the program xmlsec1, once, for `https://gateway.test`. That they hold
//! shows that canonicalisation here is what it is elsewhere.

use admin::saml::message::ServiceProvider;
use admin::saml::metadata::{IdentityProvider, key_of};
use admin::saml::response::{Expected, Statement, believed};
use chrono::{DateTime, Utc};

/// A moment after they were written.
const NOW: &str = "2026-11-17T08:55:00Z";
const ANSWERS: [(&str, &str); 3] = [
    ("assertion", include_str!("pysaml2/assertion.xml")),
    ("response", include_str!("pysaml2/response.xml")),
    ("both", include_str!("pysaml2/both.xml")),
];

fn judged(xml: &str, now: &str) -> Result<Statement, String> {
    let from = IdentityProvider {
        entity_id: "https://idp.test/metadata".into(),
        redirect_url: Some("https://idp.test/sso".into()),
        post_url: None,
        keys: vec![key_of(include_str!("pysaml2/certificate.pem")).unwrap()],
        wants_signed_requests: false,
    };
    let to = ServiceProvider {
        entity_id: "https://gateway.test/metadata".into(),
        consumer_url: "https://gateway.test/acs".into(),
    };
    let now: DateTime<Utc> = now.parse().unwrap();
    let expected = Expected { from: &from, to: &to, request_id: "_request", keys: &[], wants_encrypted: false, now };
    believed(xml.as_bytes(), &expected).map_err(|why| why.to_string())
}

#[test]
fn what_another_implementation_signed_is_believed_in_its_time() {
    for (which, xml) in ANSWERS {
        let statement = judged(xml, NOW).unwrap_or_else(|why| panic!("{which}: {why}"));
        assert_eq!(statement.name, "ada", "{which}");
        let mail = statement.attributes.values().flatten().any(|value| value == "ada@acme.test");
        assert!(mail, "{which}: {:?}", statement.attributes);
        assert_eq!(judged(xml, "2026-11-17T12:00:00Z").unwrap_err(), "The assertion has expired", "{which}");
    }
}

#[test]
fn not_one_character_of_it_may_be_another() {
    for (which, xml) in ANSWERS {
        let changed = xml.replacen("ada@acme.test", "eve@acme.test", 1);
        assert_ne!(changed, xml, "{which}");
        assert!(judged(&changed, NOW).is_err(), "{which}");
    }
}
