//! Golden tests of objects: each request of a kind is written in the form of every provider of that kind, and each
//! provider's answer is read; the results stand beside the fixtures in `*.expected.json`. `GOLDEN=write` rewrites them. What
//! is written there was read by a person before it was committed.

use super::{AskedObject, OBJECT_CODECS, ObjectCodec};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of requests, and how the names of their codecs end.
const KINDS: [(&str, &str); 4] =
    [("images", "_images"), ("embeddings", "_embeddings"), ("rerank", "_rerank"), ("count_tokens", "_count")];

fn fixtures(folder: &str) -> Vec<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/objects").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.to_string_lossy().contains(".expected."));
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read(&path).unwrap();
        let value = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, value)
    };
    paths.into_iter().map(read).collect()
}

fn check(fixture: &Path, found: &Map<String, Value>) {
    let lines: Vec<String> = found.iter().map(|(name, value)| format!("  {}: {value}", json!(name))).collect();
    let found = format!("{{\n{}\n}}\n", lines.join(",\n"));
    let path = fixture.with_extension("expected.json");
    if std::env::var("GOLDEN").as_deref() == Ok("write") {
        fs::write(&path, found).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{} differs; GOLDEN=write rewrites it. Found:\n{found}", path.display());
}

fn codecs_of(ending: &str) -> impl Iterator<Item = &'static dyn ObjectCodec> {
    OBJECT_CODECS.iter().copied().filter(move |codec| codec.name().ends_with(ending))
}

#[test]
fn every_codec_is_of_one_kind_and_has_enough_fixtures() {
    for codec in OBJECT_CODECS {
        let kinds = KINDS.iter().filter(|(_, ending)| codec.name().ends_with(ending)).count();
        assert_eq!(kinds, 1, "{}", codec.name());
        let count = fixtures(codec.name()).len();
        assert!(count >= 2, "{} has {count} answers", codec.name());
    }
    for (kind, least) in [("images", 15), ("embeddings", 8), ("rerank", 8), ("count_tokens", 4)] {
        let count = fixtures(kind).len();
        assert!(count >= least, "{kind} has {count} requests, not {least}");
    }
}

/// `{model, body}`.
#[test]
fn requests_are_written_in_every_form_as_expected() {
    for (kind, ending) in KINDS {
        for (path, fixture) in fixtures(kind) {
            let body = fixture["body"].as_object().cloned().unwrap();
            let model = fixture["model"].as_str().unwrap();
            let mut found = Map::new();
            for codec in codecs_of(ending) {
                let entry = match codec.write_request(body.clone(), model) {
                    Err(error) => json!({ "refused": error.to_string() }),
                    Ok((body, dropped)) => json!({ "dropped": dropped.names().collect::<Vec<_>>(), "body": body }),
                };
                found.insert(codec.name().into(), entry);
            }
            check(&path, &found);
        }
    }
}

/// A provider's whole answer.
#[test]
fn answers_are_read_as_expected() {
    let asked = AskedObject {
        id: "gw-0001".into(),
        model: "asked-model".into(),
        provider: "acme".into(),
        is_base64: false,
        created: 1_760_000_000,
    };
    for codec in OBJECT_CODECS {
        for (path, answer) in fixtures(codec.name()) {
            let mut found = Map::new();
            match codec.read_answer(answer, &asked) {
                Ok(answer) => found.insert("told".into(), answer),
                Err(error) => found.insert("refused".into(), error.to_string().into()),
            };
            check(&path, &found);
        }
    }
}
