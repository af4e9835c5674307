//! Every setting has a reader: one that is parsed, documented and then forgotten would be believed to work.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// From the file that a test of `shared` holds against the programs.
fn settings() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("conf/gateway.toml")).unwrap();
    let names = text.lines().filter_map(|line| line.strip_prefix('#')?.split_once(" = "));
    let is_name = |name: &str| name.chars().all(|letter| letter.is_ascii_lowercase() || "_0123456789".contains(letter));
    names.map(|(name, _)| name.to_owned()).filter(|name| is_name(name)).collect()
}

/// The words of the programs' code, but for comments, tests and the lines that declare a setting.
fn words_of_code() -> BTreeSet<String> {
    let mut pending: Vec<PathBuf> =
        ["shared/src", "proxy/src", "admin/src", "bench/src"].map(|name| root().join(name)).into();
    let mut words = BTreeSet::new();
    while let Some(path) = pending.pop() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if name.ends_with(".rs") && !path.strip_prefix(root()).unwrap().to_str().unwrap().contains("test") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let is_read = |line: &&str| !line.starts_with("//") && !line.starts_with("pub ");
            for line in code.lines().map(str::trim).filter(is_read) {
                let all = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                words.extend(all.map(str::to_owned));
            }
        }
    }
    words
}

#[test]
fn every_setting_is_read() {
    let (settings, words) = (settings(), words_of_code());
    assert!(settings.len() > 150, "{}", settings.len());
    let forgotten: Vec<&String> = settings.difference(&words).collect();
    assert!(forgotten.is_empty(), "nothing reads {forgotten:?}");
}
