//! Golden tests: each fixture of a format is read, and written to every format; the results stand beside it in
//! `*.expected.*`. `GOLDEN=write` rewrites them. What is written there was read by a person before it was committed.

use super::essence;
use super::{AnswerOptions, CODECS, Codec, CodecError, RequestOptions, SseSink, StreamReader, WireEvent};
use crate::wire::conversation::{Answer, Assembler, Delta, Request};
use crate::wire::sse::{Splitter, events};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) const OPTIONS: AnswerOptions<'static> = AnswerOptions {
    is_strict: true,
    id: Cow::Borrowed("gw-0001"),
    created: 1_760_000_000,
    model: Cow::Borrowed("asked-model"),
    provider: Cow::Borrowed("acme"),
    include_usage: true,
    request: None,
};

/// The fixtures of a format, in the order of their names.
pub(super) fn fixtures(codec: &dyn Codec, kind: &str) -> Vec<(PathBuf, Vec<u8>)> {
    fixtures_in(codec.name(), kind)
}

pub(super) fn fixtures_in(name: &str, kind: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name).join(kind);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.to_string_lossy().contains(".expected."));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Compares with what stands beside the fixture, or writes it there.
pub(super) fn check(fixture: &Path, ending: &str, found: &str) {
    let path = fixture.with_extension(ending);
    if std::env::var("GOLDEN").as_deref() == Ok("write") {
        fs::write(&path, found).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{} differs; GOLDEN=write rewrites it. Found:\n{found}", path.display());
}

/// One line for each format, so that a difference is short and names its format.
pub(super) fn lines(found: &Map<String, Value>) -> String {
    let lines: Vec<String> = found.iter().map(|(name, value)| format!("  {}: {value}", json!(name))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

pub(super) fn parsed(out: &[u8]) -> Value {
    serde_json::from_slice(out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(out)))
}

#[test]
fn every_format_has_enough_fixtures() {
    for codec in CODECS {
        for (kind, least) in [("requests", 15), ("answers", 15), ("streams", 8), ("errors", 4)] {
            let count = fixtures(*codec, kind).len();
            assert!(count >= least, "{} has {count} {kind}, not {least}", codec.name());
        }
    }
}

#[test]
fn requests_are_written_to_every_format_as_expected() {
    for codec in CODECS {
        for (path, body) in fixtures(*codec, "requests") {
            let mut found = Map::new();
            match codec.read_request(&body) {
                Err(error) => {
                    found.insert("refused".into(), error.to_string().into());
                }
                Ok(request) => {
                    for target in CODECS {
                        let mut out = Vec::new();
                        let entry = match target.write_request(&request, &RequestOptions::default(), &mut out) {
                            Err(error) => json!({ "refused": error.to_string() }),
                            Ok(dropped) => {
                                json!({ "dropped": dropped.names().collect::<Vec<_>>(), "body": parsed(&out) })
                            }
                        };
                        found.insert(target.name().into(), entry);
                    }
                }
            }
            check(&path, "expected.json", &lines(&found));
        }
    }
}

#[test]
fn answers_are_written_to_every_format_as_expected() {
    for codec in CODECS {
        for (path, body) in fixtures(*codec, "answers") {
            let mut found = Map::new();
            match codec.read_answer(&body) {
                Err(error) => {
                    found.insert("refused".into(), error.to_string().into());
                }
                Ok(answer) => {
                    for target in CODECS {
                        let mut out = Vec::new();
                        target.write_answer(&answer, &OPTIONS, &mut out);
                        found.insert(target.name().into(), parsed(&out));
                    }
                    let mut out = Vec::new();
                    let options = AnswerOptions { is_strict: false, ..OPTIONS };
                    super::chat::ChatCodec.write_answer(&answer, &options, &mut out);
                    found.insert("chat, not strict".into(), parsed(&out));
                }
            }
            check(&path, "expected.json", &lines(&found));
        }
    }
}

/// `{status, type?, body}`, where a string body is no JSON.
#[test]
fn errors_are_written_to_every_format_as_expected() {
    for codec in CODECS {
        for (path, fixture) in fixtures(*codec, "errors") {
            let fixture = parsed(&fixture);
            let status = u16::try_from(fixture["status"].as_u64().unwrap()).unwrap();
            let body = match &fixture["body"] {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let error = codec.read_error(status, fixture["type"].as_str(), body.as_bytes());
            let mut found = Map::new();
            found.insert("kind".into(), format!("{:?} {}", error.kind, error.status).into());
            for target in CODECS {
                let mut out = Vec::new();
                target.write_error(&error, &OPTIONS, &mut out);
                found.insert(target.name().into(), parsed(&out));
            }
            check(&path, "expected.json", &lines(&found));
        }
    }
}

/// Reads a stream that comes in these pieces.
pub(super) fn read_stream(codec: &dyn Codec, pieces: &[&[u8]]) -> (Vec<Delta>, Result<(), CodecError>) {
    let mut splitter = Splitter::default();
    let mut reader = codec.stream_reader();
    let mut deltas = Vec::new();
    let feed = |whole: &[u8], reader: &mut dyn StreamReader, deltas: &mut Vec<Delta>| {
        events(whole)
            .try_for_each(|event| reader.push(&WireEvent { name: event.name.as_deref(), data: &event.data }, deltas))
    };
    for piece in pieces {
        let whole = splitter.push(Bytes::copy_from_slice(piece)).unwrap();
        if let Err(error) = feed(&whole, &mut *reader, &mut deltas) {
            return (deltas, Err(error));
        }
    }
    let ended = reader.finish(&mut deltas);
    (deltas, ended)
}

pub(super) fn write_stream(codec: &dyn Codec, deltas: &[Delta], options: AnswerOptions<'_>) -> Vec<u8> {
    let mut sink = SseSink::default();
    let mut writer = codec.stream_writer(options);
    deltas.iter().for_each(|delta| writer.push(delta, &mut sink));
    writer.finish(&mut sink);
    sink.bytes
}

#[test]
fn streams_are_written_to_every_format_as_expected() {
    for codec in CODECS {
        for (path, stream) in fixtures(*codec, "streams") {
            let (deltas, ended) = read_stream(*codec, &[&stream]);
            let mut found = String::from("== deltas\n");
            deltas.iter().for_each(|delta| found += &format!("{delta:?}\n"));
            found += &format!("{ended:?}\n");
            for target in CODECS {
                found += &format!("== {}\n", target.name());
                found += &String::from_utf8(write_stream(*target, &deltas, OPTIONS)).unwrap();
            }
            found += "== chat, not strict\n";
            let options = AnswerOptions { is_strict: false, ..OPTIONS };
            found += &String::from_utf8(write_stream(&super::chat::ChatCodec, &deltas, options)).unwrap();
            check(&path, "expected.txt", &found);
        }
    }
}

#[test]
fn streams_cut_at_any_byte_say_the_same() {
    for codec in CODECS {
        for (path, stream) in fixtures(*codec, "streams") {
            let whole = read_stream(*codec, &[&stream]);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(read_stream(*codec, &bytes), whole, "{} byte by byte", path.display());
            for cut in 0..=stream.len() {
                let pieces = [&stream[..cut], &stream[cut..]];
                assert_eq!(read_stream(*codec, &pieces), whole, "{} cut at {cut}", path.display());
            }
        }
    }
}

/// All that differs, so that one run shows the whole damage.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, found: T, expected: T, place: &str) {
        if found != expected {
            self.0.push(format!("{place}\n   found {found:?}\nexpected {expected:?}"));
        }
    }

    fn assert_none(self) {
        assert!(self.0.is_empty(), "{} differ:\n{}", self.0.len(), self.0.join("\n"));
    }
}

fn place(path: &Path, target: &dyn Codec) -> String {
    format!("{} to {}", path.display(), target.name())
}

#[test]
fn what_a_writer_streams_its_reader_understands() {
    let mut differences = Differences::default();
    for codec in CODECS {
        for (path, stream) in fixtures(*codec, "streams") {
            let (deltas, ended) = read_stream(*codec, &[&stream]);
            let has_error = deltas.iter().any(|delta| matches!(delta, Delta::Error(_)));
            if ended.is_err() || has_error {
                continue;
            }
            for target in CODECS {
                let written = write_stream(*target, &deltas, OPTIONS);
                let (again, ended) = read_stream(*target, &[&written]);
                differences.compare(ended, Ok(()), &place(&path, *target));
                let reply = |deltas: &[Delta]| essence::of_answer(&assembled(deltas)).told_to(target.name());
                differences.compare(reply(&again), reply(&deltas), &place(&path, *target));
            }
        }
    }
    differences.assert_none();
}

fn assembled(deltas: &[Delta]) -> Answer {
    let mut assembler = Assembler::default();
    deltas.iter().for_each(|delta| assembler.push(delta.clone()).unwrap());
    assembler.finish().unwrap()
}

#[test]
fn a_request_that_stays_in_its_format_loses_nothing() {
    let options = RequestOptions { is_strict: false, ..RequestOptions::default() };
    let mut differences = Differences::default();
    for codec in CODECS {
        for (path, body) in fixtures(*codec, "requests") {
            let Ok(request) = codec.read_request(&body) else { continue };
            let mut out = Vec::new();
            let dropped = match codec.write_request(&request, &options, &mut out) {
                Ok(dropped) => dropped,
                // The one that even its own format refuses.
                Err(error) => {
                    differences.compare(error.to_string(), String::new(), &place(&path, *codec));
                    continue;
                }
            };
            let again = codec.read_request(&out).unwrap();
            let names: Vec<&str> = dropped.names().collect();
            let is_without = essence::tells_other_tools(&request, codec.name());
            let reply = |request: &Request| {
                essence::of_request(request).without(&names).without_tools(is_without).told_to(codec.name())
            };
            differences.compare(reply(&again), reply(&request), &place(&path, *codec));
            if !names.is_empty() {
                continue;
            }
            let mut second = Vec::new();
            codec.write_request(&again, &options, &mut second).unwrap();
            differences.compare(parsed(&second), parsed(&out), &place(&path, *codec));
        }
    }
    differences.assert_none();
}

#[test]
fn a_request_comes_back_from_every_format_it_was_sent_to() {
    let mut differences = Differences::default();
    for codec in CODECS {
        for (path, body) in fixtures(*codec, "requests") {
            let Ok(request) = codec.read_request(&body) else { continue };
            for target in CODECS.iter().filter(|target| target.name() != "completions") {
                let mut out = Vec::new();
                let options = RequestOptions::default();
                let Ok(dropped) = target.write_request(&request, &options, &mut out) else { continue };
                let there = target.read_request(&out).unwrap();
                let names: Vec<&str> = dropped.names().collect();
                let is_without = essence::tells_other_tools(&request, target.name());
                let reply = |request: &Request| {
                    essence::of_request(request).without(&names).without_tools(is_without).told_to(target.name())
                };
                differences.compare(reply(&there), reply(&request), &place(&path, *target));
            }
        }
    }
    differences.assert_none();
}

#[test]
fn an_answer_comes_back_from_every_format_it_was_sent_to() {
    let mut differences = Differences::default();
    for codec in CODECS {
        for (path, body) in fixtures(*codec, "answers") {
            let Ok(answer) = codec.read_answer(&body) else { continue };
            for target in CODECS {
                let mut out = Vec::new();
                target.write_answer(&answer, &OPTIONS, &mut out);
                let there = target.read_answer(&out).unwrap();
                let reply = |answer: &Answer| essence::of_answer(answer).told_to(target.name());
                differences.compare(reply(&there), reply(&answer), &place(&path, *target));
            }
        }
    }
    differences.assert_none();
}
