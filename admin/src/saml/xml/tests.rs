//! What is taken as XML, what is refused, and that comments do not part texts.

use super::*;

fn refused(text: &str) -> &'static str {
    parse(text.as_bytes()).expect_err(text).0
}

#[test]
fn texts_around_comments_and_cdata_are_one_text() {
    let document = parse(b"<a>admin@x.test<!-- -->.evil.test<![CDATA[<&]]>&lt;&#x41;&#10;</a>").unwrap();
    assert_eq!(document.text(document.root()), Some("admin@x.test.evil.test<&<A"));
}

#[test]
fn names_have_the_namespaces_of_their_place() {
    let text = "<?xml version='1.0' encoding='UTF-8'?>\n<p:a xmlns:p='urn:1' xmlns='urn:2' p:x='1' x=\"2\"><b><p:c \
                xmlns:p='urn:3'/></b></p:a>\n<!-- end -->";
    let document = parse(text.as_bytes()).unwrap();
    let root = document.root();
    assert!(document.is(root, "urn:1", "a"));
    assert_eq!(document.attribute(root, "x"), Some("2"));
    let b = document.only(root, "urn:2", "b").unwrap();
    let c = document.only(b, "urn:3", "c").unwrap();
    assert_eq!(&**document.scope(c)["p"], "urn:3");
    assert_eq!(&**document.scope(b)["p"], "urn:1");
    assert_eq!(document.text(b), None, "it has an element");
}

#[test]
fn a_document_is_read_as_if_it_stood_elsewhere() {
    let (outer, default): (Arc<str>, Arc<str>) = ("urn:outer".into(), "urn:default".into());
    let scope = Scope::from([("p", &outer), ("", &default)]);
    let document = parse_within(b"<p:a xmlns='urn:own'><b/></p:a>", &scope).unwrap();
    assert!(document.is(document.root(), "urn:outer", "a"));
    assert!(document.only(document.root(), "urn:own", "b").is_some());
}

#[test]
fn external_entities_and_bombs_are_refused_before_anything_is_read() {
    for text in [
        "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>",
        "<!DOCTYPE lolz [<!ENTITY l \"lol\"><!ENTITY m \"&l;&l;\">]><a>&m;</a>",
        "<a>&x;</a>",
        "<a><!ENTITY x 'y'></a>",
    ] {
        assert_eq!(refused(text), "has a document type or entities", "{text}");
    }
    assert_eq!(refused("<a><?php x ?></a>"), "has processing instructions");
    let deep = "<a>".repeat(100) + &"</a>".repeat(100);
    assert_eq!(refused(&deep), "has too many elements, or is nested too deeply");
    let wide = format!("<a>{}</a>", "<b/>".repeat(20_000));
    assert_eq!(refused(&wide), "has too many elements, or is nested too deeply");
}

#[test]
fn what_is_not_well_formed_is_refused() {
    for text in [
        "",
        " ",
        "a",
        "<a",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a/>x",
        "<a x=1/>",
        "<a x='1'y='2'/>",
        "<a x='1' x='2'/>",
        "<a x='<'/>",
        "<p:a/>",
        "<a xmlns:p=''/>",
        "<a xmlns:xml='urn:x'/>",
        "<a xmlns:p='urn:1' xmlns:q='urn:1' p:x='1' q:x='2'/>",
        "<a>&amp</a>",
        "<a>&#0;</a>",
        "<a>&#xD800;</a>",
        "<a>]]></a>",
        "<a><!-- -- --></a>",
        "<a\u{0}/>",
        "<?xml version='1.0' encoding='UTF-16'?><a/>",
        "<a:b:c xmlns:a='urn:1'/>",
        "<1a/>",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(parse(b"<a>\xff</a>").is_err());
}
