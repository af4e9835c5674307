//! Forms as clients write them, well and badly.

use super::*;
use crate::request::headers::Aliases;
use http::HeaderName;
use proptest::prelude::*;

fn form(body: &[u8]) -> Option<Form> {
    Form::parse(&Bytes::copy_from_slice(body), b"B".to_vec()).ok()
}

fn field(name: &str, value: &str) -> String {
    format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

const FILE: &str = "--B\r\ncontent-type: audio/wav\r\ncontent-disposition: form-data; filename=\"a;name=\\\"b.wav\"; name=file\r\n\r\n\0\r\n--Bogus\r\n--\r\n--B\u{1}\r\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn text_fields_are_read_and_files_are_not() {
    let body = format!("{}{FILE}{}{}--B--\r\n", field("model", "@a/m"), field("stream", "true"), field("é", "\"1\""));
    let read = form(body.as_bytes()).unwrap();
    assert_eq!(text(read.json()), r#"{"model":"@a/m","stream":true,"é":"\"1\""}"#);
    assert_eq!(read.parts.len(), 4);
    assert!(read.parts[1].is_file && read.parts[1].name == "file");
    assert_eq!(&body[read.parts[1].value.clone()], "\0\r\n--Bogus\r\n--\r\n--B\u{1}");
    let (name, bytes) = read.file().unwrap();
    assert_eq!((&*name, &bytes[..]), ("a;name=\"b.wav", &b"\0\r\n--Bogus\r\n--\r\n--B\x01"[..]));
    assert_eq!(form(format!("{}--B--\r\n", field("model", "m")).as_bytes()).unwrap().file(), None);
}

#[test]
fn a_change_touches_its_own_field_alone() {
    let (model, lang) = (field("model", "@a/m"), field("language", "de"));
    let body = format!("ignored\r\n{model}{FILE}{lang}--B--\r\nignored");
    let read = form(body.as_bytes()).unwrap();
    for (json, expected) in [
        (r#"{"model":"@a/m","language":"de"}"#, body.clone()),
        (r#"{"model":"m","language":"de"}"#, body.replace("@a/m", "m")),
        (r#"{"model":"@a/m"}"#, body.replace(&lang, "")),
        (r#"{"language":"de","model":"longer/than/before"}"#, body.replace("@a/m", "longer/than/before")),
        (r#"{"model":"@a/m","language":"de","n":0}"#, body.replace("--B--", &format!("{}--B--", field("n", "0")))),
        (
            r#"{"model":"@a/m","language":"de","a\"b":"x"}"#,
            body.replace("--B--", &format!("{}--B--", field("a%22b", "x"))),
        ),
        ("no json", body.clone()),
    ] {
        assert_eq!(text(&read.edited(&Bytes::from_static(json.as_bytes()))), expected, "{json}");
    }
    assert_eq!(read.edited(read.json()).as_ptr(), read.whole.as_ptr(), "nothing to change is nothing to copy");
}

#[test]
fn odd_forms_are_read_and_broken_ones_are_not() {
    let long = field("prompt", &"x".repeat(MAX_FIELD + 1));
    for (body, json) in [
        ("--B--".to_owned(), Some("{}")),
        (format!("{}--B--", field("a", "")), Some(r#"{"a":""}"#)),
        ("--B \t\r\n\r\nno head\r\n--B--".to_owned(), Some(r#"{"":"no head"}"#)),
        (format!("{long}--B--"), Some("{}")),
        (format!("{}--B--", field("stream", "yes")), Some("{}")),
        (format!("{}{}--B--", field("a[]", "1"), field("a[]", "2")), Some(r#"{"a[]":"1","a[]":"2"}"#)),
        (field("model", "m"), None),
        (String::new(), None),
        ("--B\r\n--B--".to_owned(), None),
        ("--B\r\nContent-Disposition: form-data; name=\"a\"\r\n--B--".to_owned(), None),
        (format!("{}--B--", field("a", "").repeat(1001)), None),
    ] {
        let read = form(body.as_bytes()).map(|form| text(form.json()));
        assert_eq!(read.as_deref(), json, "{}", &body[..body.len().min(80)]);
    }
}

#[test]
fn what_is_short_enough_or_names_its_provider_only_inside_is_held() {
    let kind = "multipart/form-data; boundary=B";
    for (pairs, has_plan, held) in [
        (vec![("content-type", kind), ("content-length", "26214400")], false, true),
        (vec![("content-type", kind), ("content-length", "26214401")], false, false),
        (vec![("content-type", kind)], false, true),
        (vec![("content-type", kind)], true, false),
        (vec![("content-type", kind), ("x-gateway-provider", "openai")], false, false),
        (vec![("content-type", "Multipart/Form-Data"), ("content-length", "1")], false, false),
        (vec![("content-type", "application/json; charset=utf-8"), ("content-length", "1")], false, true),
        (vec![("content-type", "audio/wav"), ("content-length", "1")], false, false),
        (vec![("content-length", "1")], false, false),
    ] {
        let mut head = HeaderMap::new();
        for (name, value) in &pairs {
            head.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let ours = GatewayHeaders::from_headers(&head, &Aliases::default()).unwrap();
        assert_eq!(is_held(&head, &ours, has_plan, false), held, "{pairs:?}");
        let fits = !pairs.contains(&("content-length", "26214401"));
        let is_form = pairs.iter().any(|(_, value)| *value == kind);
        assert_eq!(is_held(&head, &ours, has_plan, true), held || (is_form && fits), "{pairs:?}: its model decides");
    }
}

const PIECES: &[&[u8]] = &[
    b"--B",
    b"\r\n",
    b"--",
    b"\r\n\r\n",
    b" ",
    b"\xff",
    b"value",
    b"Content-Disposition: form-data; name=\"model\"",
    b"content-disposition:;filename=",
];

proptest! {
    #[test]
    fn no_bytes_make_it_panic_and_no_edit_means_no_change(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30),
    ) {
        let body = pieces.concat();
        if let Some(read) = form(&body) {
            prop_assert_eq!(&read.edited(read.json())[..], &body[..]);
            read.edited(&Bytes::from_static(br#"{"model":"m","new":1}"#));
        }
    }
}
