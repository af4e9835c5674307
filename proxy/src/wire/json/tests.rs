//! The scan judges every text as a reader that builds values does, and finds the end of a run wherever it is.

use super::*;
use proptest::prelude::*;
use serde_json::value::RawValue;

/// Whether a reader that builds values judges the text the same. Text that is not UTF-8 is never JSON.
fn agrees(text: &[u8]) -> bool {
    let built = std::str::from_utf8(text).is_ok_and(|text| serde_json::from_str::<&RawValue>(text).is_ok());
    check(text).is_ok() == built
}

#[test]
fn members_are_given_as_they_were_written() {
    let text = " { \"a\\u0062\" : [1, {\"x\": \"}\"}] ,\"c\":\"\\\"\",\n\"d\": -1.50e+3}\t";
    let found = members(text.as_bytes()).unwrap();
    let written: Vec<_> = found.iter().map(|member| (member.key, member.value)).collect();
    assert_eq!(written, [("\"a\\u0062\"", "[1, {\"x\": \"}\"}]"), ("\"c\"", "\"\\\"\""), ("\"d\"", "-1.50e+3")]);
    assert_eq!(found[0].name().unwrap(), "ab");
    assert!(matches!(found[1].name(), Some(Cow::Borrowed("c"))));
    assert_eq!(members(br#"{"\ud800":1}"#).unwrap()[0].name(), None);
    assert_eq!(members(b" {} ").unwrap(), []);
    for other in ["[]", "1", "", "{", "{}{}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{a:1}"] {
        assert!(members(other.as_bytes()).is_err(), "{other}");
    }
}

#[test]
fn items_are_given_as_they_were_written() {
    let found = items(" [ {\"a\": [1, 2]} ,\"]\",\nnull ] ").unwrap();
    assert_eq!(found, ["{\"a\": [1, 2]}", "\"]\"", "null"]);
    assert!(items("[ ]").unwrap().is_empty());
    for other in ["{}", "1", "", "[", "[1", "[1,]", "[,]", "[1 2]", "[]]"] {
        assert!(items(other).is_err(), "{other}");
    }
}

#[test]
fn every_odd_text_is_judged_as_by_the_reader_that_builds() {
    for text in [
        "0",
        "-0",
        "00",
        "01",
        "1.",
        ".1",
        "1.0",
        "1e",
        "1e5",
        "1E-07",
        "-",
        "--1",
        "+1",
        "1e+",
        "tru",
        "true",
        "truex",
        "nul",
        "null",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12G4\"",
        "\"\\ud800\"",
        "\"\n\"",
        "\"\u{7f}\"",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[]]",
        "{}}",
        "[{]}",
        "{\"a\":[}",
        "{\"a\":1 \"b\":2}",
        "[1 2]",
        "",
        " ",
        "\u{feff}1",
        "\u{a0}1",
        "[\"é\",\"日本\"]",
        "{\"a\":{\"b\":{}}}",
        "[[],[[]],{}]",
        "\u{0}",
        "[1]\u{0}",
        "\"a\u{0}\"",
    ] {
        assert!(agrees(text.as_bytes()), "{text:?}");
    }
    assert!(agrees(b"\"\xff\"") && agrees(b"\"\xc3\"") && agrees(b"{\"\xe6\x97\":1}"));
}

#[test]
fn depth_is_no_danger_and_brackets_must_match_at_any_depth() {
    for depth in [1, 63, 64, 65, 127, 128, 129, 10_000] {
        let open: String = "[{\"a\":".repeat(depth);
        let close = "}]".repeat(depth);
        assert!(check(format!("{open}1{close}").as_bytes()).is_ok(), "{depth}");
        assert!(check(format!("{open}1{}", &close[1..]).as_bytes()).is_err(), "{depth}");
        assert!(check(format!("{open}1]{}", &close[1..]).as_bytes()).is_err(), "{depth}");
    }
}

#[test]
fn the_end_of_a_run_is_found_at_every_place_and_for_every_byte() {
    for length in 0..80 {
        for special in [0u8, 1, 0x1f, b'"', b'\\'] {
            let mut text = vec![b'x'; 80];
            text[length] = special;
            assert_eq!(plain_until(&text, 0), length, "{special} at {length}");
        }
        assert_eq!(plain_until(&vec![b'x'; length], 0), length);
    }
    for byte in 0..=255u8 {
        let text = [b'a', b'a', byte, b'a', b'a', b'a', b'a', b'a', b'"'];
        assert_eq!(plain_until(&text, 0), if is_special(byte) { 2 } else { 8 }, "{byte}");
    }
}

fn a_text() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\"",
        "\"a\"",
        "\"model\":",
        "1",
        "-2.5e3",
        "true",
        "null",
        "\\",
        "\\u00e9",
        "é",
        "\"long enough to take more than one block of the scan, to be sure\"",
        "\n",
        "\t",
        "0",
        "\u{1}",
        "{\"a\":1}",
        "[1,2]",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..14).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn random_texts_are_judged_as_by_the_reader_that_builds(text in a_text(), at in any::<prop::sample::Index>(), byte: u8) {
        prop_assert!(agrees(&text), "{:?}", String::from_utf8_lossy(&text));
        let mut broken = br#"{"model":"gpt-4o","messages":[{"role":"user","content":"a \"b\" \u00e9 \\ c"}],"n":1.5e-3,"x":{"y":[true,false,null]}}"#.to_vec();
        let at = at.index(broken.len());
        broken[at] = byte;
        prop_assert!(agrees(&broken), "{:?}", String::from_utf8_lossy(&broken));
        broken.truncate(at);
        prop_assert!(agrees(&broken), "{:?}", String::from_utf8_lossy(&broken));
    }
}
