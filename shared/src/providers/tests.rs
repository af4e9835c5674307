//! The bundled table is whole, and a wrong row is told by its name.

use super::*;

fn table(text: &str) -> Result<HashMap<Box<str>, Arc<ProviderEntry>>, String> {
    rows("t", text).and_then(|rows| providers("t", rows)).map_err(|error| error.to_string())
}

#[test]
fn the_bundled_table_has_all_83_providers() {
    let providers = Providers::bundled().unwrap();
    assert_eq!(providers.iter().count(), 83);
    let native = providers.iter().filter(|provider| provider.native().next().is_some()).count();
    let waiting = providers.iter().filter(|provider| provider.adapted().next().is_some()).count();
    let rest = providers.iter().filter(|one| one.native().next().is_none() && one.adapted().next().is_none()).count();
    assert_eq!((native, waiting, rest), (54, 29, 8));
    for name in ["openai", "azure-openai", "302ai", "ovhcloud", "pinecone"] {
        assert_eq!(providers.get(name).map(|found| &*found.slug), Some(name));
    }
}

#[test]
fn a_provider_that_speaks_openai_is_at_most_twenty_lines() {
    for row in BUNDLED.split("\n[").skip(1) {
        let lines = row.lines().take_while(|line| !line.is_empty()).count();
        assert!(lines <= 20, "{lines} lines: {row}");
    }
}

#[test]
fn an_address_is_complete_or_the_request_must_name_one() {
    let providers = Providers::bundled().unwrap();
    let address = |name: &str| providers.get(name).unwrap().base_url.as_deref().map(str::to_owned);
    assert_eq!(address("byteplus").as_deref(), Some("https://ark.ap-southeast.bytepluses.com/api/v3"));
    assert_eq!(address("groq").as_deref(), Some("https://api.groq.com/openai/v1"));
    for name in ["azure-openai", "ollama", "cortex"] {
        assert_eq!(address(name), None, "{name}");
    }
}

#[test]
fn a_request_goes_where_the_provider_has_that_family() {
    let providers = Providers::bundled().unwrap();
    let (post, get) = (Method::POST, Method::GET);
    for (provider, method, path, expected) in [
        ("openai", &post, "/chat/completions", Ok("/chat/completions")),
        ("together-ai", &post, "/chat/completions", Ok("/v1/chat/completions")),
        ("bedrock-mantle", &get, "/responses/r-1/input_items", Ok("/v1/responses/r-1/input_items")),
        ("openai", &get, "/models", Ok("/models")),
        ("groq", &post, "/embeddings", Err(NotOffered::Missing(Family::Embed))),
        ("groq", &post, "/rerank", Ok("/rerank")),
        ("cohere", &post, "/rerank", Ok("/v2/rerank")),
        ("voyage", &post, "/rerank", Err(NotOffered::NeedsAdapter(Family::Rerank))),
        ("anthropic", &post, "/chat/completions", Err(NotOffered::NeedsAdapter(Family::Chat))),
        ("anthropic", &post, "/messages", Ok("/messages")),
        ("openai", &post, "/messages", Err(NotOffered::Missing(Family::Messages))),
        ("replicate", &post, "/files", Ok("/files")),
        ("sagemaker", &post, "/endpoints/e/invocations", Err(NotOffered::NeedsSignature)),
    ] {
        let found = providers.get(provider).unwrap().upstream_path(method, path);
        assert_eq!(found.as_deref().map_err(|error| *error), expected, "{provider} {method} {path}");
    }
}

#[test]
fn a_wrong_row_is_told_by_its_name() {
    for (row, complaint) in [
        ("name = 'X'\nbase_url = 'https://x/'", "t [x]: base_url"),
        ("name = 'X'\nbase_url = 'ftp://x'", "t [x]: base_url"),
        ("name = 'X'\nbase_url = 'https://x'\noptions = { y = 'z' }", "t [x]: base_url has no {y}"),
        ("name = 'X'\nendpoints = ['chat']\npaths = { embed = '/e' }", "t [x]: paths: embed"),
        ("name = 'X'\nendpoints = ['chat']\npaths = { chat = 'e' }", "t [x]: paths: chat"),
        ("name = 'X'\nendpoints = ['chat', 'chat']", "t [x]: chat is listed twice"),
        ("name = 'X'\nendpoints = ['chat']\nadapter = 'x'\nadapted = ['chat']", "t [x]: chat is listed twice"),
        ("name = 'X'\nadapted = ['chat']", "t [x]: `adapter`"),
        ("name = 'X'\nadapter = 'x'", "t [x]: `adapter`"),
        ("name = 'X'\nauth = 'two words'", "t [x]: auth"),
        ("name = 'X'\nheaders = { 'a b' = 'c' }", "t [x]: headers"),
        ("name = 'X'\nendpoints = ['chit']", "chit"),
        ("name = 'X'\nbass_url = 'https://x'", "bass_url"),
        ("base_url = 'https://x'", "name"),
    ] {
        let problem = table(&format!("[x]\n{row}")).unwrap_err();
        assert!(problem.contains(complaint), "{row}: {problem}");
    }
    assert!(table("[X]\nname = 'X'").unwrap_err().contains("t [X]: a provider's name"));
}

#[test]
fn an_operators_rows_are_added_and_win() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "[mine]\nname = 'Mine'\nbase_url = 'https://mine.test/v1'\nendpoints = ['chat']\n\
                [groq]\nname = 'Groq'\nbase_url = 'https://groq.test'\n";
    std::fs::write(file.path(), text).unwrap();
    let providers = Providers::load(Some(file.path())).unwrap();
    assert_eq!(providers.iter().count(), 84);
    assert_eq!(providers.get("groq").unwrap().base_url.as_deref(), Some("https://groq.test"));
    assert_eq!(providers.get("mine").unwrap().native_path(Family::Chat), Some("/chat/completions"));
    let missing = Providers::load(Some(Path::new("/nowhere/providers.toml"))).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/providers.toml"), "{missing}");
}
