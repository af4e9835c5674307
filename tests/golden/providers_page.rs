//! `docs/providers.md`: what each provider is asked for, how, and how that was tested. It is made from the provider table
//! and from what the tests have, so it cannot promise more than either. `PAGES=write` writes it anew.

use shared::providers::{CODECS, CONVERSATIONS, Family, ProviderEntry, Providers, Way};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn rows() -> Vec<Arc<ProviderEntry>> {
    let mut rows: Vec<_> = Providers::bundled().unwrap().iter().cloned().collect();
    rows.sort_by_cached_key(|row| row.name.to_lowercase());
    rows
}

/// How a family is asked for: the codec, or `as is`.
fn ways(row: &ProviderEntry, family: Family) -> Vec<String> {
    // Some formats serve models of some names alone.
    let prefixes = ["m", "anthropic.m", "mistralai.m", "meta.m", "endpoints.m", "google.m", "cohere.m", "claude-m"];
    let rows = std::iter::once(row).chain(row.variants.iter().map(|variant| &*variant.row));
    let mut ways: Vec<String> = Vec::new();
    for way in rows.flat_map(|row| prefixes.iter().filter_map(|model| row.way(family, model))) {
        let way = match way {
            Way::Native(_) | Way::Placed(_) => "as is".to_owned(),
            Way::Translated(wire) | Way::Reshaped(wire) => wire.codec.to_string(),
            Way::Mapped(wire) => wire.codec.to_string(),
        };
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

fn cell(row: &ProviderEntry, family: Family) -> String {
    match ways(row, family) {
        ways if !ways.is_empty() => ways.join(", "),
        _ if row.untranslated().any(|waiting| waiting == family) => "not yet".to_owned(),
        _ => String::new(),
    }
}

fn table(page: &mut String, title: &str, families: &[Family]) {
    let names: Vec<&str> = families.iter().map(|family| family.name()).collect();
    writeln!(page, "## {title}\n\n| Provider | {} |\n|---{}|", names.join(" | "), "|---".repeat(names.len())).unwrap();
    for row in rows() {
        let cells: Vec<String> = families.iter().map(|family| cell(&row, *family)).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            writeln!(page, "| {} (`{}`) | {} |", row.name, row.slug, cells.join(" | ")).unwrap();
        }
    }
    page.push('\n');
}

/// The texts of all files below a folder that are tests: those of a name of tests, and what stands below `mod tests`.
fn tests_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tests_below(&path));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        match (path.ends_with("tests.rs"), text.split_once("mod tests {")) {
            (true, _) => found.push(text),
            (false, Some((_, tests))) => found.push(tests.to_owned()),
            (false, None) => {}
        }
    }
    found
}

/// Which tests there are of a way to ask for these families, by looking at the tests.
fn evidence(way: &str, families: &[Family]) -> String {
    // Walked by `tests/proxy`, row by row: what passes as it is, conversations, and these.
    const WALKED: [Family; 6] =
        [Family::Embed, Family::Rerank, Family::CountTokens, Family::Files, Family::Batches, Family::FineTuning];
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let name = format!("\"{way}\"");
    let mut found = Vec::new();
    let count =
        |kind: &str| std::fs::read_dir(root().join("tests/golden").join(way).join(kind)).map_or(0, Iterator::count);
    let golden = ["requests", "answers", "streams", "errors"].map(count).iter().sum::<usize>();
    if golden > 0 {
        found.push("golden");
    }
    if read("tests/clients/oracles/golden.py").contains(&name) {
        found.push("vendor types");
    }
    if golden == 0 && tests_below(&root().join("proxy/src/wire/codecs")).iter().any(|text| text.contains(&name)) {
        found.push("vectors");
    }
    let is_walked = families.iter().any(|family| WALKED.contains(family) || CONVERSATIONS.contains(family));
    if way == "as is" || is_walked {
        found.push("HTTP");
    }
    if found.is_empty() { "data only".to_owned() } else { found.join(", ") }
}

fn page() -> String {
    let mut page = String::from(
        "# What works with which provider\n\n\
         Made from `conf/providers.toml` and the tests by `PAGES=write cargo test -p tests --test golden providers_page`; a test \
         keeps it true.\n\n\
         A cell says how a family is asked for: `as is` (the caller's bytes, at the provider's path), or the format that the \
         request is written in and the answer read from. Several formats serve different models, or accounts, of one provider. An \
         empty cell is `endpoint_not_supported`; `not yet` says that the provider has it in a format that is not written. Other \
         paths pass through.\n\n",
    );
    let all = rows();
    let chats = all.iter().filter(|row| !ways(row, Family::Chat).is_empty()).count();
    let lists = all.iter().filter(|row| row.model_list.is_some()).count();
    writeln!(
        page,
        "{} providers, of which {chats} serve chats; {lists} lists of models are given in OpenAI's form.\n",
        all.len()
    )
    .unwrap();
    table(&mut page, "Conversations", &CONVERSATIONS);
    table(
        &mut page,
        "Embeddings and the like",
        &[Family::Embed, Family::Rerank, Family::CountTokens, Family::Ocr, Family::Moderate],
    );
    let images = [Family::Image, Family::ImageEdit, Family::ImageVariation];
    table(
        &mut page,
        "Images and sound",
        &[&images[..], &[Family::Speech, Family::Transcribe, Family::Translate]].concat(),
    );
    table(
        &mut page,
        "What is kept, and sessions",
        &[Family::Files, Family::Batches, Family::FineTuning, Family::Realtime],
    );
    let mut users: BTreeMap<String, (Vec<&str>, Vec<Family>)> = BTreeMap::new();
    for row in &all {
        for family in Family::ALL {
            for way in ways(row, family) {
                let (users, families) = users.entry(way).or_default();
                if !users.contains(&&*row.slug) {
                    users.push(&row.slug);
                }
                families.push(family);
            }
        }
    }
    page.push_str(
        "## How it was tested\n\n\
         *golden*: fixtures of requests, answers, streams and errors, written to every other format. *vendor types*: what is \
         written validates against the vendor's own published types, and what is answered is read by its own client. *vectors*: \
         requests and answers in unit tests. *HTTP*: through a running gateway; each row is asked at its own path with its own \
         credential. *data only*: the row was read. No vendor was asked with a real key.\n\n| Way | Providers | Tested |\n|---|---|---|\n",
    );
    for (way, (users, families)) in users {
        let tested = evidence(&way, &families);
        let users = if users.len() > 6 { format!("{} providers", users.len()) } else { users.join(", ") };
        writeln!(page, "| {way} | {users} | {tested} |").unwrap();
    }
    page
}

/// Formats of which no vendor publishes types.
const UNTYPED: &[&str] = &["oracle", "reka", "triton", "bedrock_ai21_text", "bedrock_cohere_text"];

#[test]
fn the_page_of_what_works_says_what_the_table_and_the_tests_say() {
    let path = root().join("docs/providers.md");
    let made = page();
    if std::env::var("PAGES").as_deref() == Ok("write") {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let different = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
    assert!(made == kept, "docs/providers.md differs; PAGES=write rewrites it. First difference: {different:?}");
    for codec in CODECS {
        let tested = evidence(codec, &[Family::Chat]);
        let is_typed = tested.contains("vendor types") || UNTYPED.contains(codec);
        assert!(tested.contains("golden") && is_typed, "{codec}: {tested}");
    }
}
