//! Slips of somebody who writes an application, each as it was made: what was ignored is told with the answer, and what is
//! refused says what was meant.

use crate::families::{application, integrate};
use crate::limits::{limited, patient};
use crate::routing::saved::save;
use crate::routing::{ask, client, target};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

const WARNINGS: &str = "x-gateway-warnings";

fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap_or_else(|| panic!("{}", answer.text())).to_owned()
}

fn chat_of(model: &str) -> Value {
    let mut body = chat("Hello");
    body["model"] = json!(model);
    body
}

async fn ask_for(client: &Client, model: &str) -> Answer {
    client.post("/chat/completions", &chat_of(model)).await
}

/// They were ignored without a word, and metadata was lost.
#[tokio::test]
async fn a_header_that_nobody_reads_is_told_with_every_answer_and_by_explain() {
    let stack = Stack::builder().proxy("HEADER_PREFIX_ALIASES", "x-acme-").start().await;
    let told = "x-gateway-metdata: is no header that the gateway reads: did you mean x-gateway-metadata?";
    let slip = stack.client().with("x-gateway-metdata", "{}");
    for path in ["/chat/completions", "/rerank", "/elsewhere"] {
        assert_eq!(slip.post(path, &chat("Hello")).await.header(WARNINGS), told, "{path}");
        assert_eq!(stack.client().post(path, &chat("Hello")).await.header(WARNINGS), "", "{path}");
    }
    let recorded = stack.client().with("x-gateway-span-id", "s-1").with("x-gateway-runtime", "node");
    assert_eq!(recorded.post("/chat/completions", &chat("Hello")).await.header(WARNINGS), "", "logs record them");
    let place = stack.client().with("x-gateway-aws-regoin", "eu-west-1");
    let warned = place.post("/chat/completions", &chat("Hello")).await;
    assert!(warned.header(WARNINGS).ends_with("did you mean x-gateway-aws-region?"), "{:?}", warned.headers);
    let foreign = stack.client().with("x-acme-metdata", "{}").post("/chat/completions", &chat("Hello")).await;
    assert_eq!(foreign.header(WARNINGS), "", "clients of another product send more than we read");
    let models = application(&stack).with("x-gateway-metdata", "{}").get("/models?porvider=openai&after_id=x").await;
    let misspelt = "porvider: is no parameter of this list: did you mean provider?";
    assert_eq!(models.header(WARNINGS), format!("{told}; {misspelt}"), "{:?}", models.headers);
    let question = json!({ "path": "/v1/chat/completions", "body": chat("Hello"),
        "headers": { "x-gateway-provider": "openai", "x-gateway-metdata": {} } });
    let explained = application(&stack).post("/explain", &question).await.json();
    assert_eq!(explained["warnings"][0]["path"], "x-gateway-metdata", "{explained}");
}

/// It was "there is no provider" or "no provider selected", whatever was wrong.
#[tokio::test]
async fn a_provider_that_is_nearly_named_is_told_which_one_was_meant() {
    let stack = Stack::start().await;
    integrate(&stack, "openai", "openai").await;
    let plain = application(&stack);
    // The catalogue is made of the rows a moment after they are known.
    let nearest = async || message(&ask_for(&plain, "@opnai/gpt-4o").await).contains("`@openai`");
    stack.until("the catalogue knows the provider", nearest).await;
    for (client, model, code, param, says) in [
        (plain.clone(), "@opnai/gpt-4o", "invalid_provider", "model", "did you mean `@openai`?"),
        (plain.with("x-gateway-provider", "@opnai"), "m", "invalid_provider", "x-gateway-provider", "`@openai`?"),
        (plain.with("x-gateway-virtual-key", "opnai"), "m", "invalid_provider", "x-gateway-virtual-key", "`@openai`?"),
        (plain.clone(), "@unlike-any/m", "invalid_provider", "model", "GET /v1/models lists what there is"),
        (
            plain.clone(),
            "openai/gpt-4o",
            "missing_provider",
            "x-gateway-provider",
            "did you mean the model `@openai/gpt-4o`?",
        ),
        (plain.clone(), "@openai", "missing_provider", "x-gateway-provider", "write @openai/<model>"),
        (
            plain.with("x-gateway-provder", "@openai"),
            "m",
            "missing_provider",
            "x-gateway-provider",
            "did you mean x-gateway-provider?",
        ),
    ] {
        let answer = ask_for(&client, model).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status.as_u16(), &error["code"], &error["param"]),
            (400, &json!(code), &json!(param)),
            "{model}"
        );
        assert!(message(&answer).contains(says), "{model}: {error}");
    }
    let unknown = message(&ask_for(&plain, "unlike-any").await);
    assert!(unknown.ends_with("offers the model `unlike-any`; GET /v1/models lists what there is"), "{unknown}");
    let nothing = stack.organisation().await;
    let nothing = stack.anonymous().with_key(&nothing.workspace_key);
    let plain = message(&ask_for(&nothing, "gpt-4o").await);
    assert!(plain.ends_with("or a @slug/model model"), "{plain}");
}

/// It was "the API key is not valid" for a provider's own key, and "no API key was sent" for a misspelt header.
#[tokio::test]
async fn a_key_in_the_wrong_place_is_told_how_it_was_read() {
    let stack = Stack::start().await;
    let stranger = stack.anonymous();
    for (client, code, says) in [
        (
            stranger.with("authorization", "Bearer sk-own"),
            "invalid_api_key",
            "Authorization was read as the gateway's key",
        ),
        (stranger.with("x-api-key", "sk-own"), "invalid_api_key", "x-api-key was read as the gateway's key"),
        (stranger.with("x-gateway-apikey", "pk"), "missing_api_key", "x-gateway-apikey is no header of the gateway"),
    ] {
        let answer = ask_for(&client, "m").await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (401, &json!(code)));
        assert!(message(&answer).contains(says) && !message(&answer).contains("sk-own"), "{}", answer.text());
    }
    let own = ask_for(&stranger.with("x-gateway-api-key", "pk_wrong"), "m").await;
    assert_eq!(message(&own), "the API key is not valid");
}

/// A misspelt first target sent everything to the second, and nobody heard of it.
#[tokio::test]
async fn a_target_that_can_never_be_asked_is_told_when_another_takes_its_place() {
    let stack = Stack::start().await;
    let config =
        json!({ "strategy": { "mode": "fallback" }, "targets": [{ "provider": "@nope" }, target(&stack, json!({}))] });
    for path in ["/chat/completions", "/elsewhere"] {
        let answer = client(&stack, &config).post(path, &chat("Hello")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header(WARNINGS), "targets[0]: there is no provider `@nope` in this workspace", "{path}");
    }
    let healthy = json!({ "strategy": { "mode": "fallback" }, "targets": [target(&stack, json!({})), target(&stack, json!({}))] });
    stack.mock.script(json!([{ "status": 503 }])).unwrap();
    let answer = ask(&stack, &healthy).await;
    assert_eq!((answer.header("x-gateway-attempt-count"), answer.header(WARNINGS)), ("2", ""), "an outage is no slip");
}

/// What was missing was told, and not the misspelt key that left it out.
#[tokio::test]
async fn an_inline_config_with_a_slip_is_refused_by_the_slip() {
    let stack = Stack::start().await;
    let targets = json!([target(&stack, json!({}))]);
    for (config, says) in [
        (json!({ "stratgy": { "mode": "fallback" }, "targets": targets }), "did you mean strategy?"),
        (target(&stack, json!({ "retry": { "attempt": 2 } })), "did you mean attempts?"),
        (json!({ "strategy": { "mode": "fallbck" }, "targets": targets }), "did you mean fallback?"),
        (json!({ "provider": "openai" }), "name a stored one as @slug"),
        (json!({ "provider": "opnai", "api_key": "sk" }), "did you mean openai?"),
        (json!([{ "provider": "@openai" }]), "it must be a JSON object, or the slug of a saved config"),
    ] {
        let answer = ask(&stack, &config).await;
        assert_eq!(answer.status, 400, "{config}");
        assert!(message(&answer).contains(says), "{config}: {}", answer.text());
    }
    let never = json!({ "strategy": { "mode": "conditional", "default": "a",
        "conditions": [{ "query": { "metdata.tier": "pro" }, "then": "a" }] }, "targets": [target(&stack, json!({ "name": "a" }))] });
    let warned = ask(&stack, &never).await.header(WARNINGS).to_owned();
    assert!(warned.contains("query.metdata.tier: must be metadata.<key>"), "{warned}");
}

/// Only the log knew.
#[tokio::test]
async fn what_a_translated_request_loses_is_told_with_its_answer() {
    let stack = Stack::start().await;
    let anthropic = crate::translation::client(&stack, "anthropic");
    let mut body = chat("Hello");
    (body["seed"], body["max_token"]) = (json!(7), json!(5));
    for stream in [false, true] {
        body["stream"] = json!(stream);
        let answer = anthropic.post("/chat/completions", &body).await;
        let told = "not sent, as the provider's format has no place for it: seed, max_token";
        assert_eq!((answer.status.as_u16(), answer.header(WARNINGS)), (200, told));
        let question = json!({ "request_id": answer.header("x-gateway-request-id") });
        let asker = application(&stack);
        stack.until("its log is stored", async || asker.post("/explain", &question).await.status == 200).await;
        let explained = asker.post("/explain", &question).await.json();
        assert_eq!(explained["plan"][0]["target"]["dropped_params"], json!(["seed", "max_token"]), "{explained}");
    }
    let whole = anthropic.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(whole.header(WARNINGS), "");
}

/// "used up: 20000 tokens" was said of a budget that nobody had touched, and of three possible reasons all were told.
#[tokio::test]
async fn a_strict_budget_says_why_it_refuses() {
    let stack = patient().await;
    let strict = async |kind: &str| {
        limited(&stack, json!({ "usage_limits": { "type": kind, "credit_limit": 20_000, "strict": true } })).await
    };
    let (tokens, money) = (strict("tokens").await, strict("cost").await);
    for (client, model, most, says) in [
        (&tokens, "gpt-4o", Some(100_000), "less is left of its 20000 tokens than the 1"),
        (&tokens, "gpt-4o", None, "at most: it must say how long the answer may be (max_tokens)"),
        (&money, "gpt-4o", None, "at most: it must say how long the answer may be (max_tokens)"),
        (&money, "of-no-price", Some(5), "at most: its model has no known price"),
    ] {
        let mut body = chat_of(model);
        if let Some(most) = most {
            body["max_tokens"] = json!(most);
        }
        let answer = client.post("/chat/completions", &body).await;
        assert_eq!(answer.status, 412, "{model} {most:?}");
        assert!(message(&answer).contains(says), "{says}: {}", answer.text());
    }
}

/// The header was passed over in silence, and the answer came from elsewhere.
#[tokio::test]
async fn a_provider_beside_a_default_config_that_does_not_ask_for_it_is_told() {
    let stack = Stack::start().await;
    let slug = save(&stack, "own", target(&stack, json!({})), json!({})).await;
    let body = json!({ "name": "k", "workspace_id": stack.home.workspace_id.to_string(), "scopes": ["completions.write"],
        "defaults": { "config_id": slug } });
    let made = stack.administrator().post("/api-keys/workspace/service", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let key = made.json()["key"].as_str().unwrap().to_owned();
    stack.until_known(&key).await;
    let bound = stack.anonymous().with_key(&key);
    stack.until("the config is known", async || ask_for(&bound, "m").await.status == 200).await;
    assert_eq!(ask_for(&bound, "m").await.header(WARNINGS), "");
    let told = "x-gateway-provider: is not used: the default config of the API key says where requests go";
    assert_eq!(ask_for(&bound.with("x-gateway-provider", "@other"), "m").await.header(WARNINGS), told);
    assert_eq!(ask_for(&bound.with("x-gateway-provider", "openai"), "m").await.header(WARNINGS), "", "it is asked");
}

/// The place was told by a word of ours, the endpoint by another.
#[tokio::test]
async fn what_an_account_lacks_and_what_a_provider_does_not_offer_are_told_by_names_that_can_be_sent() {
    let stack = Stack::start().await;
    let named = |provider: &str| {
        application(&stack).with("x-gateway-provider", provider).with("authorization", "Bearer sk-mock")
    };
    let azure = message(&ask_for(&named("azure-openai"), "m").await);
    assert!(azure.contains("azure_resource_name") && azure.contains("x-gateway-azure-resource-name"), "{azure}");
    let hosted = named("vertex-ai").with("x-gateway-custom-host", stack.mock.url());
    let vertex = message(&ask_for(&hosted, "m").await);
    assert!(vertex.contains("vertex_project_id") && vertex.contains("x-gateway-vertex-project-id"), "{vertex}");
    let hosted = named("anthropic").with("x-gateway-custom-host", stack.mock.url());
    let embedding = message(&hosted.post("/embeddings", &json!({ "model": "m", "input": "x" })).await);
    assert!(embedding.contains("`/v1/embeddings`"), "{embedding}");
    let private = message(&ask_for(&named("openai").with("x-gateway-custom-host", "http://10.0.0.5/v1"), "m").await);
    assert!(private.contains("TRUSTED_CUSTOM_HOSTS"), "{private}");
}
