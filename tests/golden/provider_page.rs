//! `docs/providers.md`: what each provider can be asked for, and in which format. It is written from the table of
//! providers and from what the golden folders hold, so that it cannot say more than is there. `GOLDEN=write` rewrites it.

use shared::providers::{CODECS, Family, OBJECT_CODECS, ProviderEntry, Providers, Way};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const HEAD: &str = "# Providers

What each provider of `conf/providers.toml` can be asked for. This page is written by a test from that table and from the
test data, and the test fails when it is not true (`GOLDEN=write` rewrites it); how a format is translated is in
[translation.md](translation.md).

- **as is**: the body passes as it came. `tests/proxy/providers.rs` asks every such endpoint of every row through the gateway and
  looks at path, credential and headers; `tests/proxy/families.rs` compares bodies byte for byte.
- `codec`: the body is written anew in that format. `tests/proxy/translation.rs` asks every conversation of every row, and
  `tests/proxy/translation/object_wires.rs` everything else, against a mock provider that refuses what is not of the vendor's wire;
  which data each codec is tested with is in the [second table](#formats). Where there are several, the model's name decides.
- –: the provider does not offer it, or nobody knows a way there. Paths that belong to no family are passed through.

";

/// Families with a column of their own, and how it is called.
const COLUMNS: [(Family, &str); 6] = [
    (Family::Chat, "chat"),
    (Family::Complete, "completions"),
    (Family::Messages, "messages"),
    (Family::Responses, "responses"),
    (Family::Embed, "embeddings"),
    (Family::Image, "images"),
];

fn page() -> String {
    let providers = Providers::bundled().unwrap();
    let mut rows: Vec<&ProviderEntry> = providers.iter().map(|row| &**row).collect();
    rows.sort_by(|one, other| one.slug.cmp(&other.slug));
    let chats = rows.iter().filter(|row| row.way(Family::Chat, "m").is_some()).count();
    let mut page = HEAD.to_owned();
    writeln!(page, "{} providers, {chats} of which serve chats.\n", rows.len()).unwrap();
    let names: Vec<&str> = COLUMNS.iter().map(|(_, name)| *name).collect();
    writeln!(page, "| Provider | {} | more |\n|---|{}---|", names.join(" | "), "---|".repeat(names.len())).unwrap();
    for row in rows {
        let cells: Vec<String> =
            COLUMNS.iter().map(|(family, _)| way(row, *family).unwrap_or_else(|| "–".into())).collect();
        let more = Family::ALL.into_iter().filter(|family| !COLUMNS.iter().any(|(column, _)| column == family));
        let more: Vec<String> =
            more.filter_map(|family| Some(format!("{} {}", family.name(), way(row, family)?))).collect();
        let more = if more.is_empty() { "–".to_owned() } else { more.join("; ") };
        writeln!(page, "| {} | {} | {more} |", row.slug, cells.join(" | ")).unwrap();
    }
    page + &formats()
}

/// How a family is asked for, if it is.
fn way(row: &ProviderEntry, family: Family) -> Option<String> {
    let codecs = |names: Vec<&str>| {
        let mut names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        names.dedup();
        names.join(" ")
    };
    match row.way(family, "m") {
        Some(Way::Native(_) | Way::Placed(_)) => Some("as is".into()),
        Some(Way::Translated(_)) => Some(codecs(row.wires().iter().map(|wire| &*wire.codec).collect())),
        Some(Way::Reshaped(_)) => Some(codecs(row.object_wires(family).map(|wire| &*wire.codec).collect())),
        None if row.untranslated().any(|waiting| waiting == family) => Some("not yet".into()),
        None => None,
    }
}

fn formats() -> String {
    let mut page = String::from("\n## Formats\n\nThe golden data of each codec, in `tests/golden`.\n\n");
    page += "| Codec | requests | answers | streams | errors |\n|---|---|---|---|---|\n";
    for codec in CODECS {
        let own = fixtures(&format!("{codec}/requests"));
        let requests = if own > 0 { own } else { fixtures("shaped/requests") };
        let rest = ["answers", "streams", "errors"].map(|kind| shown(fixtures(&format!("{codec}/{kind}"))));
        writeln!(page, "| `{codec}` | {requests} | {} |", rest.join(" | ")).unwrap();
    }
    for codec in OBJECT_CODECS {
        let kind = match codec.rsplit('_').next() {
            Some("count") => "count_tokens",
            Some(kind) => kind,
            None => continue,
        };
        let requests = fixtures(&format!("objects/{kind}"));
        let answers = fixtures(&format!("objects/{codec}"));
        writeln!(page, "| `{codec}` | {requests} | {answers} | – | – |").unwrap();
    }
    page
}

fn shown(count: usize) -> String {
    if count == 0 { "–".into() } else { count.to_string() }
}

/// How many there are in a folder.
fn fixtures(folder: &str) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(folder);
    let files = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    files.filter(|file| !file.file_name().to_string_lossy().contains(".expected.")).count()
}

#[test]
fn the_page_of_providers_says_what_the_table_and_the_test_data_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/providers.md");
    let written = page();
    if std::env::var("GOLDEN").as_deref() == Ok("write") {
        fs::write(&path, written).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == written, "{} is not what the table says; GOLDEN=write rewrites it", path.display());
}
