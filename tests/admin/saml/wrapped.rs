//! Signature wrapping: a signed element is moved to where its signature is still found, and another takes its place. In
//! all eight known positions nobody may be signed in but the person whom the identity provider signed.

use super::idp::{DSIG, Facts, Idp, SHA256};

struct Wrapping {
    idp: Idp,
    /// Signed, of `ada`.
    original: String,
    /// The same without its signature, and the signature.
    bare: String,
    signature: String,
    /// Not signed, of `eve`, with an id of its own.
    evil: String,
    facts: Facts,
}

impl Wrapping {
    fn new() -> Self {
        let idp = Idp::new();
        let facts = Facts::usual(&idp);
        let bare = idp.assertion(&facts);
        let evil =
            Facts { name: "eve".into(), email: "eve@acme.test".into(), assertion_id: "_evil".into(), ..facts.clone() };
        Self {
            original: idp.sign(&bare),
            signature: idp.signature(&bare, &SHA256),
            evil: idp.assertion(&evil),
            bare,
            facts,
            idp,
        }
    }

    fn response(&self, inside: &str) -> String {
        self.idp.response(&self.facts, inside)
    }

    /// The words of the refusal; panics if anybody is signed in.
    fn refusal(&self, xml: &str) -> String {
        self.idp.believed(xml).map(|statement| statement.name).expect_err("somebody was signed in")
    }
}

/// After its issuer, where a signature stands.
fn with_signature(element: &str, signature: &str) -> String {
    element.replacen("</saml:Issuer>", &format!("</saml:Issuer>{signature}"), 1)
}

fn holding(signature: &str, object: &str) -> String {
    signature.replace("</ds:Signature>", &format!("<ds:Object xmlns:ds=\"{DSIG}\">{object}</ds:Object></ds:Signature>"))
}

/// The message itself, signed as a whole.
fn signed_response(wrapping: &Wrapping) -> (String, String) {
    let bare = wrapping.response(&wrapping.bare);
    let signature = wrapping.idp.signature(&bare, &SHA256);
    (bare, signature)
}

#[test]
fn position_1_the_signed_response_inside_the_signature_of_another() {
    let wrapping = Wrapping::new();
    let (bare, signature) = signed_response(&wrapping);
    let evil = wrapping.response(&wrapping.evil).replace("ID=\"_response\"", "ID=\"_evil_response\"");
    let xml = with_signature(&evil, &holding(&signature, &bare));
    assert_eq!(wrapping.refusal(&xml), "The signature is of another element");
}

#[test]
fn position_2_the_signed_response_beside_a_detached_signature() {
    let wrapping = Wrapping::new();
    let (bare, signature) = signed_response(&wrapping);
    let evil = wrapping.response(&wrapping.evil).replace("ID=\"_response\"", "ID=\"_evil_response\"");
    let xml = with_signature(&evil, &format!("{bare}{signature}"));
    assert_eq!(wrapping.refusal(&xml), "The signature is of another element");
}

#[test]
fn position_3_another_assertion_before_the_signed_one() {
    let wrapping = Wrapping::new();
    let both = [format!("{}{}", wrapping.evil, wrapping.original), format!("{}{}", wrapping.original, wrapping.evil)];
    for inside in both {
        assert_eq!(wrapping.refusal(&wrapping.response(&inside)), "The response must have exactly one assertion");
    }
}

#[test]
fn position_4_the_signed_assertion_inside_another() {
    let wrapping = Wrapping::new();
    let around = wrapping.evil.replace("</saml:Assertion>", &format!("{}</saml:Assertion>", wrapping.original));
    let xml = wrapping.response(&around);
    assert_eq!(wrapping.refusal(&xml), "Neither the response nor its assertion is signed");
}

#[test]
fn position_5_another_assertion_with_the_signature_and_the_signed_one_at_the_end() {
    let wrapping = Wrapping::new();
    let evil = with_signature(&wrapping.evil, &wrapping.signature);
    let xml = wrapping.response(&format!("{evil}{}", wrapping.bare));
    assert_eq!(wrapping.refusal(&xml), "The response must have exactly one assertion");
    let alone = wrapping.response(&evil);
    assert_eq!(wrapping.refusal(&alone), "The signature is of another element");
}

#[test]
fn position_6_the_signed_assertion_inside_the_signature_of_another() {
    let wrapping = Wrapping::new();
    let inside = wrapping.signature.replace("</ds:Signature>", &format!("{}</ds:Signature>", wrapping.bare));
    let xml = wrapping.response(&with_signature(&wrapping.evil, &inside));
    assert_eq!(wrapping.refusal(&xml), "The signature is of another element");
}

#[test]
fn position_7_another_assertion_in_the_extensions_with_the_same_id() {
    let wrapping = Wrapping::new();
    let evil = wrapping.evil.replace("_evil", "_assertion");
    let extensions = format!("<samlp:Extensions>{evil}</samlp:Extensions>");
    let same = wrapping.response(&format!("{extensions}{}", wrapping.original));
    assert_eq!(wrapping.refusal(&same), "Several elements have the id of the signed one");
    // With an id of its own it is passed over, and the signed one is read.
    let other = same.replacen("ID=\"_assertion\"", "ID=\"_evil\"", 1);
    assert_eq!(wrapping.idp.believed(&other).unwrap().name, "ada");
}

#[test]
fn position_8_the_signed_assertion_inside_an_object_of_the_signature() {
    let wrapping = Wrapping::new();
    let inside = holding(&wrapping.signature, &wrapping.bare);
    let xml = wrapping.response(&with_signature(&wrapping.evil, &inside));
    assert_eq!(wrapping.refusal(&xml), "The signature is of another element");
    let named_alike = xml.replace("ID=\"_evil\"", "ID=\"_assertion\"");
    assert_eq!(wrapping.refusal(&named_alike), "Several elements have the id of the signed one");
}

#[test]
fn another_assertion_under_the_id_of_the_signed_one_is_not_what_was_signed() {
    let wrapping = Wrapping::new();
    let evil = wrapping.evil.replace("_evil", "_assertion");
    let xml = wrapping.response(&with_signature(&evil, &wrapping.signature));
    assert_eq!(wrapping.refusal(&xml), "The element is not what was signed");
}

#[test]
fn two_signatures_of_one_element_are_refused() {
    let wrapping = Wrapping::new();
    let twice = with_signature(&wrapping.original, &wrapping.signature);
    assert_eq!(wrapping.refusal(&wrapping.response(&twice)), "The element has more than one signature");
}
