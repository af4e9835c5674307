//! Answers that are not to be believed, each for its own reason; and that the same answer without the flaw is.

use super::idp::{EXCLUSIVE, Facts, Idp, SHA1, SHA256};
use chrono::{TimeDelta, Utc};

fn changed(change: impl FnOnce(&mut Facts)) -> Result<String, String> {
    let idp = Idp::new();
    let mut facts = Facts::usual(&idp);
    change(&mut facts);
    idp.believed(&idp.answer(&facts)).map(|statement| statement.name)
}

#[test]
fn an_answer_with_a_signed_assertion_or_response_is_believed() {
    let idp = Idp::new();
    let facts = Facts::usual(&idp);
    let assertion = idp.assertion(&facts);
    for xml in [
        idp.answer(&facts),
        idp.sign(&idp.response(&facts, &assertion)),
        idp.sign(&idp.response(&facts, &idp.sign(&assertion))),
    ] {
        let statement = idp.believed(&xml).unwrap();
        assert_eq!((statement.name.as_str(), statement.session.as_deref()), ("ada", Some("s-1")));
        assert_eq!(statement.attributes["mail"], ["ada@acme.test"]);
        assert_eq!(statement.attributes["groups"], ["sales", "ops"]);
        assert!(statement.expires_at > facts.until);
    }
}

#[test]
fn an_answer_may_be_spelled_otherwise_than_it_was_signed() {
    let idp = Idp::new();
    let answer = idp.answer(&Facts::usual(&idp));
    let spelled = answer
        .replace("></ds:DigestMethod>", "/>")
        .replace("<saml:Issuer>", "<saml:Issuer ><!-- who -->")
        .replace("NotBefore=", "\n  NotBefore=");
    let spelled = format!("<?xml version=\"1.0\"?>\n<!-- from the provider -->\r\n{spelled}");
    assert_eq!(idp.believed(&spelled).unwrap().name, "ada");
}

#[test]
fn unsigned_assertion_is_refused() {
    let idp = Idp::new();
    let facts = Facts::usual(&idp);
    let refused = idp.believed(&idp.response(&facts, &idp.assertion(&facts))).unwrap_err();
    assert_eq!(refused, "Neither the response nor its assertion is signed");
}

#[test]
fn half_signed_answer_is_refused() {
    let idp = Idp::new();
    let facts = Facts::usual(&idp);
    let signed = idp.sign(&idp.assertion(&facts));
    let without_value = format!(
        "{}<ds:SignatureValue></ds:SignatureValue></ds:Signature>{}",
        signed.split_once("<ds:SignatureValue>").unwrap().0,
        signed.split_once("</ds:Signature>").unwrap().1
    );
    // The response's signature holds, the assertion's does not: what is signed badly is not as good as unsigned.
    let other = Idp::new();
    let by_a_stranger = other.sign(&idp.assertion(&facts));
    for (xml, words) in [
        (idp.response(&facts, &without_value), "none of the identity provider's keys"),
        (idp.sign(&idp.response(&facts, &by_a_stranger)), "none of the identity provider's keys"),
        (idp.response(&facts, &signed).replace("ada@acme.test", "eve@acme.test"), "not what was signed"),
    ] {
        let refused = idp.believed(&xml).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn a_key_that_only_the_message_names_is_not_believed() {
    let idp = Idp::new();
    let facts = Facts::usual(&idp);
    let stranger = Idp::new();
    let key = format!(
        "</ds:SignatureValue><ds:KeyInfo><ds:X509Data><ds:X509Certificate>{}</ds:X509Certificate></ds:X509Data>\
         </ds:KeyInfo>",
        stranger.certificate
    );
    let xml = stranger.answer(&facts).replace("</ds:SignatureValue>", &key);
    assert!(idp.believed(&xml).unwrap_err().contains("none of the identity provider's keys"));
}

#[test]
fn sha1_is_refused() {
    let idp = Idp::new();
    let facts = Facts::usual(&idp);
    let assertion = idp.assertion(&facts);
    let signed =
        assertion.replacen("</saml:Issuer>", &format!("</saml:Issuer>{}", idp.signature(&assertion, &SHA1)), 1);
    assert!(idp.believed(&idp.response(&facts, &signed)).unwrap_err().contains("SHA-256"));
}

#[test]
fn comment_truncation_in_the_name_id_leaves_the_whole_name() {
    let idp = Idp::new();
    let mut facts = Facts::usual(&idp);
    facts.name = "admin@acme.test.evil.test".into();
    // What was signed has no comment; with one, the digest is the same and so must the name be.
    let xml = idp.answer(&facts).replace("admin@acme.test.evil.test", "admin@acme.test<!-- x -->.evil.test");
    assert_eq!(idp.believed(&xml).unwrap().name, "admin@acme.test.evil.test");
}

#[test]
fn expired_answer_is_refused_and_clocks_may_differ_a_little() {
    let now = Utc::now();
    assert_eq!(changed(|facts| facts.until = now - TimeDelta::seconds(200)).unwrap_err(), "The assertion has expired");
    assert!(changed(|facts| facts.until = now - TimeDelta::seconds(30)).is_ok());
    assert_eq!(
        changed(|facts| facts.from = now + TimeDelta::seconds(200)).unwrap_err(),
        "The assertion is not valid yet"
    );
    assert!(changed(|facts| facts.from = now + TimeDelta::seconds(30)).is_ok());
}

#[test]
fn wrong_audience_an_assertion_for_another_service_is_refused() {
    for other in ["https://other.test/", "", "https://gateway.test/metadata/", "https://gateway.test"] {
        let refused = changed(|facts| facts.audience = other.to_owned()).unwrap_err();
        assert_eq!(refused, "The assertion was meant for another audience", "{other}");
    }
}

#[test]
fn an_answer_for_somebody_else_is_refused() {
    let other = || "https://other.test/".to_owned();
    let address = changed(|facts| facts.consumer_url = other()).unwrap_err();
    assert_eq!(address, "The response was meant for another address");
    let request = changed(|facts| facts.request_id = "_other".into()).unwrap_err();
    assert_eq!(request, "The response answers another request");
    let issuer = changed(|facts| facts.issuer = other()).unwrap_err();
    assert_eq!(issuer, "The response is by another identity provider");
}

/// The response around an assertion is not signed here, so it says what the attacker likes.
#[test]
fn an_assertion_for_somebody_else_is_refused_whatever_stands_around_it() {
    let idp = Idp::new();
    let usual = Facts::usual(&idp);
    let inside = |change: fn(&mut Facts)| {
        let mut facts = usual.clone();
        change(&mut facts);
        idp.believed(&idp.response(&usual, &idp.sign(&idp.assertion(&facts)))).unwrap_err()
    };
    assert_eq!(
        inside(|facts| facts.consumer_url = "https://other.test/".into()),
        "The assertion was meant for another recipient"
    );
    assert_eq!(inside(|facts| facts.request_id = "_other".into()), "The assertion answers another request");
    assert_eq!(
        inside(|facts| facts.issuer = "https://other.test/".into()),
        "The assertion is by another identity provider"
    );
}

#[test]
fn an_assertion_that_does_not_say_what_it_must_is_refused() {
    let idp = Idp::new();
    let facts = Facts::usual(&idp);
    let without = |start: &str, end: &str| {
        let assertion = idp.assertion(&facts);
        let (before, rest) = assertion.split_once(start).unwrap();
        let left = format!("{before}{}", rest.split_once(end).unwrap().1);
        idp.believed(&idp.response(&facts, &idp.sign(&left))).unwrap_err()
    };
    for (start, end, words) in [
        ("<saml:AudienceRestriction>", "</saml:AudienceRestriction>", "another audience"),
        ("<saml:Conditions", "</saml:Conditions>", "neither for whom"),
        ("<saml:AuthnStatement", "</saml:AuthnStatement>", "anybody signed in"),
        ("<saml:SubjectConfirmation ", "</saml:SubjectConfirmation>", "not confirmed"),
        ("<saml:NameID", "</saml:NameID>", "does not name its subject"),
        ("<saml:Subject>", "</saml:Subject>", "about nobody"),
    ] {
        let refused = without(start, end);
        assert!(refused.contains(words), "{start}: {refused}");
    }
}

#[test]
fn a_failed_login_is_no_login() {
    let idp = Idp::new();
    let facts = Facts::usual(&idp);
    let xml = idp.answer(&facts).replace("status:Success", "status:Responder");
    assert_eq!(idp.believed(&xml).unwrap_err(), "The identity provider did not sign anybody in");
}

/// Why an answer is refused in which this stands before the root, and the entity `x` in the place of the address.
fn refusal_with_head(head: &str) -> String {
    let idp = Idp::new();
    let answer = idp.answer(&Facts::usual(&idp));
    idp.believed(&format!("{head}{}", answer.replace("ada@acme.test", "&x;"))).unwrap_err()
}

#[test]
fn xml_bomb_of_entities_is_refused_before_one_is_read() {
    let steps = (1..20).map(|n| format!("<!ENTITY e{n} \"{}\">", format!("&e{};", n - 1).repeat(10)));
    let laughs = format!("<!DOCTYPE r [<!ENTITY e0 \"lol\">{}<!ENTITY x \"&e19;\">]>", steps.collect::<String>());
    let blowup = format!("<!DOCTYPE r [<!ENTITY x \"{}\">]>", "x".repeat(100_000));
    for head in [laughs, blowup] {
        let refused = refusal_with_head(&head);
        assert!(refused.contains("document type or entities"), "{refused}");
    }
}

#[test]
fn xml_bomb_of_depth_is_refused() {
    let deep = format!("{}{}", "<a>".repeat(10_000), "</a>".repeat(10_000));
    assert!(Idp::new().believed(&deep).unwrap_err().contains("nested too deeply"));
}

#[test]
fn external_entities_are_refused_and_never_fetched() {
    for head in [
        "<!DOCTYPE r [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>",
        "<!DOCTYPE r [<!ENTITY x PUBLIC \"-//X\" \"http://evil.test/x\">]>",
        "<!DOCTYPE r [<!ENTITY % p SYSTEM \"http://evil.test/p\"> %p;]>",
        "<!DOCTYPE r SYSTEM \"http://evil.test/dtd\">",
        "<!doctype r SYSTEM \"http://evil.test/dtd\">",
    ] {
        let refused = refusal_with_head(head);
        assert!(refused.contains("is no XML that is taken"), "{head}: {refused}");
    }
    // An entity that nobody declared is none of the five either.
    assert!(refusal_with_head("").contains("is no XML that is taken"));
}

/// Before anything is worked out of a signature that nobody has made.
#[test]
fn a_signature_that_asks_for_much_work_is_refused_before_any_is_done() {
    let idp = Idp::new();
    let facts = Facts::usual(&idp);
    let answer = idp.answer(&facts);
    let method = format!("<ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\">");
    let with = |inside: &str| {
        let changed = answer.replacen(&method, &format!("{method}{inside}"), 1);
        assert_ne!(changed, answer);
        let (refused, steps) = admin::saml::work::counted(|| idp.believed(&changed).unwrap_err());
        (refused, steps as usize / changed.len())
    };
    let prefixes = |count: usize| {
        let names: String = (0..count).map(|n| format!("p{n} ")).collect();
        format!("<ec:InclusiveNamespaces xmlns:ec=\"{EXCLUSIVE}\" PrefixList=\"{names}\"></ec:InclusiveNamespaces>")
    };
    // As many as may be change what was signed, and are refused for that.
    assert_eq!(with(&prefixes(32)).0, "The signature is by none of the identity provider's keys");
    for count in [33, 5_000, 20_000] {
        let (refused, steps) = with(&prefixes(count));
        assert!(refused.contains("prefixes"), "{count}: {refused}");
        assert!(steps < 16, "{count}: {steps} steps for each byte");
    }
    for count in [64, 10_000] {
        let (refused, steps) = with(&"<a></a>".repeat(count));
        assert!(refused.contains("too many elements"), "{count}: {refused}");
        assert!(steps < 16, "{count}: {steps} steps for each byte");
    }
    for (algorithm, other, words) in [
        (EXCLUSIVE, "http://www.w3.org/TR/2001/REC-xml-c14n-20010315", "Only exclusive"),
        (SHA256.signature, "http://www.w3.org/2000/09/xmldsig#hmac-sha1", "must be RSA or ECDSA"),
        (SHA256.signature, "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256", "must be RSA or ECDSA"),
        (SHA256.signature, "", "must be RSA or ECDSA"),
    ] {
        let refused = idp.believed(&answer.replacen(algorithm, other, 1)).unwrap_err();
        assert!(refused.contains(words), "{other}: {refused}");
        assert!(!refused.contains("none of the identity provider's keys"), "{other}: no key is tried: {refused}");
    }
}

#[test]
fn a_message_that_is_for_nobody_here_costs_no_look_at_its_signature() {
    let idp = Idp::new();
    for change in [
        |facts: &mut Facts| facts.consumer_url = "https://other.test/".into(),
        |facts: &mut Facts| facts.request_id = "_other".into(),
        |facts: &mut Facts| facts.issuer = "https://other.test/".into(),
    ] {
        let mut facts = Facts::usual(&idp);
        change(&mut facts);
        // Nothing of it is signed by anybody who is known.
        let refused = idp.believed(&Idp::new().sign(&idp.response(&facts, &idp.assertion(&facts)))).unwrap_err();
        assert!(refused.starts_with("The response "), "{refused}");
    }
}
