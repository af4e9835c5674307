//! Bodies as they are captured, whole and in pieces.

use super::*;

fn of(kind: &'static str) -> CapturedBody {
    let mut head = HeaderMap::new();
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    CapturedBody::begin(&head)
}

fn text(stored_length: &CapturedBody) -> String {
    String::from_utf8([&stored_length.whole[..], &stored_length.more].concat()).unwrap()
}

#[test]
fn no_more_than_allowed_is_kept_and_all_is_measured() {
    for pieces in [&["abcdef"][..], &["abc", "def"], &["a", "b", "c", "d", "e", "f"]] {
        for (most, expected) in [(0, ""), (2, "ab"), (3, "abc"), (4, "abcd"), (6, "abcdef"), (100, "abcdef")] {
            let (mut shared, mut gathered) = (of("text/plain"), of("text/event-stream; charset=utf-8"));
            for piece in pieces {
                shared.piece(&Bytes::from_static(piece.as_bytes()), most);
                gathered.gather(piece.as_bytes(), most);
            }
            for stored_length in [shared, gathered] {
                assert_eq!((text(&stored_length).as_str(), stored_length.length), (expected, 6), "{pieces:?} {most}");
            }
        }
    }
}

#[test]
fn what_is_whole_is_shared() {
    let body = Bytes::from_static(b"abc");
    let mut stored_length = of("application/json");
    stored_length.piece(&body, 100);
    assert_eq!(
        (stored_length.whole.as_ptr(), CapturedBody::whole(&body, 100).whole.as_ptr()),
        (body.as_ptr(), body.as_ptr())
    );
}

#[test]
fn a_kept_head_tells_text_as_the_head_itself_does() {
    for kind in ["application/json; charset=utf-8", "text/plain", "application/problem+json", "audio/mpeg"] {
        let lines = format!("/v1/x\nhost: a\ncontent-type: {kind}\nx-b: c\n");
        assert_eq!(CapturedBody::begin_after(lines.as_bytes()).is_text, of(kind).is_text, "{kind}");
    }
}

#[test]
fn what_is_no_text_is_only_measured() {
    let mut encoded = HeaderMap::new();
    encoded.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    encoded.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let mut lines = Vec::new();
    head_lines::write(&mut lines, &encoded, None);
    for mut stored_length in [
        of("audio/mpeg"),
        of("multipart/form-data"),
        CapturedBody::begin(&encoded),
        CapturedBody::begin(&HeaderMap::new()),
        CapturedBody::begin_after(&lines),
        CapturedBody::begin_after(b"content-type: audio/mpeg\n"),
        CapturedBody::begin_after(b""),
    ] {
        stored_length.piece(&Bytes::from_static(b"abc"), 100);
        stored_length.gather(b"def", 100);
        assert_eq!((stored_length.stored_length(), stored_length.length), (0, 6));
    }
}

#[test]
fn a_secret_is_found_wherever_it_stands() {
    for (whole, more) in [("a sk-12345 b", ""), ("", "a sk-12345 b"), ("a sk-1", "2345 b")] {
        let mut stored_length =
            CapturedBody { whole: Bytes::from(whole), more: more.into(), length: 12, is_text: true };
        stored_length.scrub(b"sk-12345", &memmem::Finder::new("2345"));
        assert_eq!((text(&stored_length).as_str(), stored_length.length), ("a ***** b", 9));
    }
}
