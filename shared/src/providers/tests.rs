//! The bundled table is whole, and a wrong row is told by its name.

use super::*;

fn table(text: &str) -> Result<HashMap<Box<str>, Arc<ProviderEntry>>, String> {
    rows("t", text).and_then(|rows| providers("t", rows)).map_err(|error| error.to_string())
}

#[test]
fn the_bundled_table_has_all_82_providers() {
    let providers = Providers::bundled().unwrap();
    assert_eq!(providers.iter().count(), 82);
    let native = providers.iter().filter(|provider| provider.native().next().is_some()).count();
    let chats = |provider: &&Arc<ProviderEntry>| provider.way(Family::Chat, "m").is_some();
    let waiting = providers.iter().filter(|provider| provider.untranslated().next().is_some()).count();
    assert_eq!((native, providers.iter().filter(chats).count(), waiting), (59, 66, 0));
    for name in ["openai", "azure-openai", "302ai", "ovhcloud", "pinecone"] {
        assert_eq!(providers.get(name).map(|found| &*found.slug), Some(name));
    }
}

/// What is kept at providers waits for others; everything that is asked and answered is written.
#[test]
fn nothing_but_files_batches_jobs_and_sessions_waits_for_a_translation() {
    const KEPT: [Family; 4] = [Family::Files, Family::Batches, Family::FineTuning, Family::Realtime];
    for provider in Providers::bundled().unwrap().iter() {
        let waiting: Vec<Family> = provider.untranslated().filter(|family| !KEPT.contains(family)).collect();
        assert!(waiting.is_empty(), "{}: {waiting:?}", provider.slug);
    }
}

#[test]
fn at_least_65_providers_serve_chats() {
    let providers = Providers::bundled().unwrap();
    let chats = providers.iter().filter(|provider| provider.way(Family::Chat, "m").is_some()).count();
    assert!(chats >= 65, "{chats}");
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
fn a_conversation_is_asked_for_as_it_is_or_in_a_format_that_the_provider_speaks() {
    let providers = Providers::bundled().unwrap();
    for (provider, family, model, expected) in [
        ("openai", Family::Chat, "m", Some("")),
        ("openai", Family::Messages, "m", Some("chat")),
        ("groq", Family::Complete, "m", Some("chat")),
        ("groq", Family::Embed, "m", None),
        ("anthropic", Family::Messages, "m", Some("")),
        ("anthropic", Family::Responses, "m", Some("messages")),
        ("google", Family::Chat, "m", Some("gemini")),
        ("google", Family::Embed, "m", Some("gemini_embeddings")),
        ("bedrock", Family::CountTokens, "m", Some("converse_count")),
        ("bedrock", Family::Embed, "cohere.embed-english-v3", Some("bedrock_cohere_embeddings")),
        ("bedrock", Family::Embed, "amazon.titan-embed-text-v2:0", Some("titan_embeddings")),
        ("bedrock", Family::Embed, "global.cohere.embed-v4:0", Some("bedrock_cohere_embeddings")),
        (
            "bedrock",
            Family::Embed,
            "arn:aws:bedrock:eu-west-1::foundation-model/cohere.embed-english-v3",
            Some("bedrock_cohere_embeddings"),
        ),
        ("bedrock", Family::Chat, "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a1", Some("converse")),
        ("bedrock", Family::Messages, "m", Some("converse")),
        ("cohere", Family::Chat, "m", Some("cohere")),
        ("vertex-ai", Family::Chat, "gemini-2.5-pro", Some("gemini")),
        ("vertex-ai", Family::Chat, "anthropic.claude", Some("messages")),
        ("vertex-ai", Family::Chat, "meta.llama", Some("chat")),
        ("azure-openai", Family::Chat, "m", Some("/deployments/")),
        ("azure-openai", Family::Messages, "m", Some("chat")),
        ("oracle", Family::Chat, "m", Some("oracle")),
        ("reka-ai", Family::Messages, "m", Some("reka")),
        ("triton", Family::Complete, "m", Some("triton")),
        ("bedrock", Family::Complete, "cohere.command-text-v14", Some("bedrock_cohere_text")),
        ("bedrock", Family::Chat, "ai21.j2-ultra-v1", Some("bedrock_ai21_text")),
        ("bedrock", Family::Rerank, "cohere.rerank-v3-5:0", Some("bedrock_rerank")),
        ("bedrock", Family::Image, "amazon.nova-canvas-v1:0", Some("bedrock_images")),
        ("stability-ai", Family::Image, "stable-diffusion-xl-1024-v1-0", Some("stability_v1_images")),
        ("stability-ai", Family::Image, "sd3.5-large", Some("stability_sd3_images")),
        ("stability-ai", Family::Image, "ultra", Some("stability_v2_images")),
        ("vertex-ai", Family::CountTokens, "anthropic.claude", Some("vertex_claude_count")),
        ("vertex-ai", Family::CountTokens, "gemini-2.5-pro", Some("vertex_count")),
        ("azure-ai", Family::Rerank, "cohere.rerank-v4", Some("cohere_rerank")),
        ("azure-ai", Family::Ocr, "m", Some("/deployments/")),
        ("ai21", Family::Embed, "m", Some("ai21_embeddings")),
        ("anthropic", Family::Batches, "", Some("message_batches")),
        ("bedrock", Family::Files, "", Some("bedrock_files")),
        ("replicate", Family::Chat, "m", None),
    ] {
        let row = providers.get(provider).unwrap();
        let found = row.way(family, model).map(|way| match way {
            Way::Native(_) => "",
            Way::Placed(_) => "/deployments/",
            Way::Translated(wire) | Way::Reshaped(wire) => &wire.codec,
            Way::Mapped(wire) => &wire.codec,
        });
        assert_eq!(found, expected, "{provider} {family:?} {model}");
    }
    let wire = providers.get("vertex-ai").unwrap().wires().iter().find(|wire| wire.serves("meta.llama-4")).unwrap();
    assert_eq!(wire.model_name("meta.llama-4"), "meta/llama-4");
    let adapted = &providers.get("predibase").unwrap().wires()[0];
    assert_eq!((adapted.model_name("mistral-7b:mine"), adapted.model_name("mistral-7b")), ("mine".into(), "".into()));
    let hugging = &providers.get("huggingface").unwrap().wires()[0];
    assert_eq!(hugging.place(true, true).places().next(), None);
    assert_eq!(hugging.place(true, false).places().next(), Some("model_path"));
}

#[test]
fn a_place_is_filled_by_the_first_field_that_is_there_and_else_by_its_default() {
    let providers = Providers::bundled().unwrap();
    let azure = providers.get("azure-openai").unwrap();
    let of = |known: &'static [(&str, &str)]| {
        move |field: &str| known.iter().find(|(name, _)| *name == field).map(|(_, value)| *value)
    };
    assert_eq!(azure.placed("resource", of(&[("resource_name", "a")])), Some("a"));
    assert_eq!(azure.placed("resource", of(&[("resource_name", "a"), ("azure_resource_name", "b")])), Some("b"));
    assert_eq!(azure.placed("resource", of(&[])), None);
    assert_eq!(azure.placed("deployment", of(&[])), Some("{model}"));
    let address = azure.address.as_ref().unwrap().fill(|place| azure.placed(place, of(&[("resource_name", "acme")])));
    assert_eq!(address.as_deref(), Ok("https://acme.openai.azure.com/openai"));
}

#[test]
fn a_variant_takes_the_place_of_its_row_where_a_place_or_the_model_is_so() {
    let providers = Providers::bundled().unwrap();
    for (provider, known, expected) in [
        ("azure-openai", vec![("version", "2024-10-21")], None),
        ("azure-openai", vec![("version", "v1")], Some("/v1/chat/completions")),
        ("azure-ai", vec![("foundry_url", "https://x.test/models"), ("model", "gpt-4o")], None),
        ("azure-ai", vec![("foundry_url", "https://x.test/anthropic"), ("model", "m")], Some("/v1/messages")),
        ("azure-ai", vec![("foundry_url", "https://x.test/models"), ("model", "claude-x")], Some("/v1/messages")),
        ("openai", vec![("model", "claude-x")], None),
    ] {
        let row = providers.get(provider).unwrap();
        let value = |place: &str| known.iter().find(|(name, _)| *name == place).map(|(_, value)| *value);
        let variant = row.variant(value).map(|number| &row.variants[number].row);
        let path = variant.and_then(|row| row.native_path(Family::Chat).or(row.native_path(Family::Messages)));
        assert_eq!(path, expected, "{provider} {known:?}");
    }
    let azure = providers.get("azure-ai").unwrap();
    let claude = &azure.variants[1].row;
    let place = |place: &str| (place == "foundry_origin").then_some("https://x.test/models");
    let address = claude.address.as_ref().unwrap().fill(place);
    assert_eq!(address.as_deref(), Ok("https://x.test/anthropic"));
    assert_eq!(azure.base(Family::Files).unwrap().fill(place).as_deref(), Ok("https://x.test/openai"));
    assert!(claude.way(Family::Chat, "m").is_some(), "chats are translated into messages");
}

#[test]
fn responses_are_asked_for_as_they_are_beside_the_foundry_url() {
    let providers = Providers::bundled().unwrap();
    let azure = providers.get("azure-ai").unwrap();
    assert_eq!(azure.native_path(Family::Responses), None);
    assert_eq!(azure.variant(|place| (place == "responses_proxy").then_some("false")), None);
    let number = azure.variant(|place| (place == "responses_proxy").then_some("true")).unwrap();
    let row = &azure.variants[number].row;
    assert_eq!(row.native_path(Family::Responses), Some("/v1/responses"));
    let url = |place: &str| place.starts_with("foundry").then_some("https://x.test/models");
    for family in [Family::Responses, Family::Files, Family::Batches] {
        assert_eq!(row.base(family).unwrap().fill(url).as_deref(), Ok("https://x.test/openai"), "{family:?}");
    }
    assert_eq!(row.address.as_ref().unwrap().fill(url).as_deref(), Ok("https://x.test/models"));
}

#[test]
fn a_deployment_on_azure_has_the_host_that_its_name_kind_and_region_make() {
    let providers = Providers::bundled().unwrap();
    let azure = providers.get("azure-ai").unwrap();
    for (kind, expected) in [
        ("serverless", "https://llama.westeurope.models.ai.azure.com"),
        ("managed", "https://llama.westeurope.inference.ml.azure.com"),
    ] {
        let field = |name: &str| match name {
            "azure_deployment_type" => Some(kind),
            "azure_deployment_name" => Some("llama"),
            "azure_region" => Some("westeurope"),
            _ => None,
        };
        let number = azure.variant(|place| azure.placed(place, field)).unwrap();
        let row = &azure.variants[number].row;
        let address = row.address.as_ref().unwrap().fill(|place| row.placed(place, field));
        assert_eq!(address.as_deref(), Ok(expected));
        let incomplete = row.address.as_ref().unwrap().fill(|place| row.placed(place, |_| None));
        assert_eq!(incomplete, Err("deployment".to_owned()));
    }
}

#[test]
fn every_provider_that_offers_something_says_where_its_models_are() {
    let providers = Providers::bundled().unwrap();
    for (provider, form, path) in [
        ("openai", "openai", "/models"),
        ("together-ai", "openai", "/v1/models"),
        ("ollama", "openai", "/v1/models"),
        ("anthropic", "anthropic", "/models"),
        ("claude-platform-aws", "anthropic", "/models"),
        ("google", "gemini", "/v1beta/models?pageSize=1000"),
        ("bedrock", "bedrock", "/foundation-models"),
        ("cohere", "cohere", "/v1/models?page_size=1000"),
    ] {
        let list = providers.get(provider).unwrap().model_list.as_ref().unwrap();
        assert_eq!((&*list.form, list.path.fill(|_| None).as_deref()), (form, Ok(path)), "{provider}");
    }
    assert_eq!(providers.get("replicate").unwrap().model_list, None);
    let v1 = &providers.get("azure-openai").unwrap().variants[0].row;
    assert_eq!(v1.model_list.as_ref().unwrap().path.fill(|_| None).as_deref(), Ok("/v1/models"));
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
        ("bedrock", &post, "/rerank", Err(NotOffered::Missing(Family::Rerank))),
        ("anthropic", &post, "/messages", Ok("/messages")),
        ("anthropic", &get, "/responses/r-1", Err(NotOffered::Missing(Family::Responses))),
        ("azure-openai", &get, "/files", Err(NotOffered::Untranslated(Family::Files))),
        ("replicate", &post, "/files", Ok("/files")),
        ("sagemaker", &post, "/endpoints/e/invocations", Ok("/endpoints/e/invocations")),
        ("claude-platform-aws", &post, "/messages", Ok("/messages")),
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
        ("name = 'X'\nendpoints = ['chat']\nuntranslated = ['chat']", "t [x]: chat is listed twice"),
        ("name = 'X'\nwires = [{ codec = 'x', path = '/x' }]", "t [x]: wires: there is no codec `x`"),
        ("name = 'X'\nwires = [{ codec = 'chat', path = 'x' }]", "t [x]: wires: `x` is no path"),
        (
            "name = 'X'\nrerank_wires = [{ codec = 'cohere_rerank', base_url = 'http://y', path = '/x' }]",
            "t [x]: wires: `http://y` is no address",
        ),
        ("name = 'X'\nwires = [{ codec = 'chat', path = '/x', model_prefix = 'a.' }]", "t [x]: wires: the last"),
        ("name = 'X'\nmodels = { form = 'x' }", "t [x]: models: there is no form `x`"),
        ("name = 'X'\njobs = { files = { codec = 'x', path = '/x' } }", "t [x]: jobs: there is no codec `x`"),
        ("name = 'X'\njobs = { chat = { codec = 'cohere_files', path = '/x' } }", "t [x]: jobs: chat has none"),
        ("name = 'X'\nbases = { files = 'http://x' }", "t [x]: bases: `http://x` is no address"),
        ("name = 'X'\nvariants = [{ when = {}, endpoints = ['chat'] }]", "t [x]: variants: `when` says nothing"),
        ("name = 'X'\nplacement = { y = ['z'] }", "t [x]: base_url has no {y}"),
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
    assert_eq!(providers.iter().count(), 83);
    assert_eq!(providers.get("groq").unwrap().base_url.as_deref(), Some("https://groq.test"));
    assert_eq!(providers.get("mine").unwrap().native_path(Family::Chat), Some("/chat/completions"));
    let missing = Providers::load(Some(Path::new("/nowhere/providers.toml"))).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/providers.toml"), "{missing}");
}
